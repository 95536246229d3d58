//! What a registration names as its target moves no received boundary.

use remuda_position::topic::limits::ReceiptLimits;
use remuda_position::topic::memory::MemoryTopicStore;
use remuda_position::topic::receipt::receive;
use remuda_streaming::Target;

async fn advance(store: &MemoryTopicStore, told: Target) {
    let _ = receive(store, &ReceiptLimits::default(), vec![told]).await;
}

fn main() {}
