//! Sources beside the streams of a provider: Watchtower feeds and BPS broadcasts, each with its own verification, their
//! items and cursors in the same database.
//!
//! ```text
//! endpoint ── POST ──▶ watchtower::Feed ──▶ Ledger ──▶ IndexedDB
//! broker ── WebSocket ──▶ bps::Subscriber ──▶ Ledger ──▶ IndexedDB
//! application ──▶ Ledger (index) ──▶ bps::Publisher ── WebSocket ──▶ broker
//! ```
//! Each driver is one loop: one input, then every output, until the machine says when to wake. What it stores, it waits for.

pub mod failure;
mod line;
pub mod publisher;
mod store;
pub mod subscriber;
pub mod watchtower;

pub use store::FeedStore;

use futures_channel::mpsc::{unbounded, UnboundedReceiver, UnboundedSender};
use futures_util::future::{select, Either};
use futures_util::StreamExt;
use remuda_position::feed::SourceKey;
use remuda_wire::preimage::keccak256;

use crate::clock::{random_bytes, sleep_until};

/// Names a source by all that decides which items it has.
pub fn source_key(name: &[u8]) -> SourceKey {
    SourceKey(keccak256(&[b"remuda-source:".as_slice(), name].concat()))
}

/// 64 bits for the jitter of delays; zero where the browser has none.
fn random() -> u64 {
    random_bytes().map_or(0, u64::from_be_bytes)
}

/// The inputs of a driver, and the way to give it more, also before it runs.
struct Inputs<T> {
    sender: UnboundedSender<T>,
    receiver: UnboundedReceiver<T>,
}

impl<T> Inputs<T> {
    fn new() -> Self {
        let (sender, receiver) = unbounded();
        Self { sender, receiver }
    }

    /// The next input, or `None` when `wake_at_ms` has come first.
    async fn next(&mut self, wake_at_ms: Option<u64>) -> Option<T> {
        let Some(at_ms) = wake_at_ms else { return self.receiver.next().await };
        match select(self.receiver.next(), Box::pin(sleep_until(at_ms))).await {
            Either::Left((input, _)) => input,
            Either::Right(_) => None,
        }
    }
}

/// Queues an input. Nothing happens once the driver has ended.
fn send<T>(sender: &UnboundedSender<T>, input: T) {
    // A closed receiver means that the driver has ended: there is nobody to tell.
    drop(sender.unbounded_send(input));
}
