//! What QueryNewest answers moves no received boundary.

use remuda_position::topic::limits::ReceiptLimits;
use remuda_position::topic::memory::MemoryTopicStore;
use remuda_position::topic::receipt::receive;
use remuda_streaming::proto::QueryNewestResponse;

async fn advance(store: &MemoryTopicStore, told: QueryNewestResponse) {
    let _ = receive(store, &ReceiptLimits::default(), vec![told]).await;
}

fn main() {}
