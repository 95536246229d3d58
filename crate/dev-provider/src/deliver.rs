//! Filling an answer from all subscriptions of a session, in turns (§13.2).

use crate::broker::Broker;
use crate::lie::Liar;
use crate::outbox::Outbox;
use crate::session::SessionState;

/// Frames that one subscription may send before the next has its turn.
const FRAMES_PER_TURN: usize = 32;
/// Bytes after which its turn ends as well.
const BYTES_PER_TURN: usize = 64 << 10;

/// Puts into `outbox` whatever is ready and fits; what does not fit stays owed, its cursor unmoved.
///
/// # Errors
/// When the store fails before anything moved. Later, what is already in the response is sent first.
pub fn fill(state: &mut SessionState, outbox: &mut Outbox, broker: &Broker, liar: &Liar) -> anyhow::Result<()> {
    match fill_in_turns(state, outbox, broker, liar) {
        Err(error) if outbox.has_frames() => {
            tracing::error!(%error, "a response was cut short");
            Ok(())
        }
        other => other,
    }
}

fn fill_in_turns(state: &mut SessionState, outbox: &mut Outbox, broker: &Broker, liar: &Liar) -> anyhow::Result<()> {
    let count = state.subscriptions.len();
    let mut idle = 0;
    while idle < count {
        let turn = state.turn % count;
        let subscription = &mut state.subscriptions[turn];
        let (mut frames, before) = (0, outbox.bytes());
        while frames < FRAMES_PER_TURN && outbox.bytes() - before < BYTES_PER_TURN {
            let Some(owed) = subscription.owed(broker, liar)? else { break };
            if !outbox.push(&owed.message) {
                return Ok(());
            }
            subscription.sent(&owed, liar);
            frames += 1;
        }
        idle = if frames == 0 { idle + 1 } else { 0 };
        state.turn = turn + 1;
    }
    Ok(())
}
