//! A writer that keeps the demo lanes filling.

use std::sync::Arc;
use std::time::Duration;

use remuda_wire::Bytes;

use crate::broker::{application_header, Broker};
use crate::keys::random32;
use crate::lanes::DemoLane;
use crate::store::StoredRecord;

/// How often it wakes.
const TICK: Duration = Duration::from_millis(20);

const LINES: [&str; 6] =
    ["moved a card", "wrote a line", "joined", "answered a question", "renamed a page", "left a comment"];

/// Appends about `rate` records a second to `lanes` in turn, until the broker closes.
///
/// # Errors
/// When there is no randomness.
pub async fn run(broker: Arc<Broker>, lanes: Vec<DemoLane>, rate: u32) -> anyhow::Result<()> {
    let stream_id = broker.chain.stream_id();
    let mut ticks = tokio::time::interval(TICK);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
    let (mut owed, mut written) = (0, 0usize);
    loop {
        ticks.tick().await;
        // Thousandths of a record.
        owed += u64::from(rate) * 20;
        while owed >= 1_000 {
            owed -= 1_000;
            let (Some(lane), Some(line)) = (lanes.get(written % lanes.len().max(1)), LINES.get(written % LINES.len()))
            else {
                return Ok(());
            };
            let payload = format!("{{\"lane\":\"{}\",\"number\":{written},\"text\":\"{line}\"}}", lane.name);
            let record = StoredRecord {
                header: application_header(&stream_id, &lane.id, &random32()?, broker.chain.now_ms()),
                payload: Bytes::new(payload.into_bytes())?,
            };
            if broker.append(record).await.is_err() {
                return Ok(());
            }
            written += 1;
        }
    }
}
