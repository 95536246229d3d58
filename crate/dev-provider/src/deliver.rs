//! Filling an answer from all subscriptions of a session, in turns (§13.2).

use crate::exchange::Exchange;
use crate::outbox::Outbox;
use crate::session::SessionState;
use crate::subscription::Life;

/// Frames that one subscription may send before the next has its turn.
const FRAMES_PER_TURN: usize = 32;
/// Bytes after which its turn ends as well.
const BYTES_PER_TURN: usize = 64 << 10;

/// Puts into `outbox` whatever is ready and fits; what does not fit stays owed, its cursor unmoved.
///
/// # Errors
/// When the store fails before anything moved. Later, what is already in the response is sent first.
pub fn fill(state: &mut SessionState, outbox: &mut Outbox, exchange: &Exchange) -> anyhow::Result<()> {
    match fill_in_turns(state, outbox, exchange) {
        Err(error) if outbox.has_frames() => {
            tracing::error!(%error, "a response was cut short");
            Ok(())
        }
        other => other,
    }
}

fn fill_in_turns(state: &mut SessionState, outbox: &mut Outbox, exchange: &Exchange) -> anyhow::Result<()> {
    let mut idle = 0;
    while idle < state.subscriptions.len() {
        let turn = state.turn % state.subscriptions.len();
        let subscription = &mut state.subscriptions[turn];
        let (mut frames, before) = (0, outbox.bytes());
        while frames < FRAMES_PER_TURN && outbox.bytes() - before < BYTES_PER_TURN {
            let Some(owed) = subscription.owed(exchange, outbox)? else { break };
            if !outbox.push(&owed.message) {
                return Ok(());
            }
            frames += 1;
            if subscription.sent(&owed, exchange) == Life::Ended {
                state.subscriptions.remove(turn);
                break;
            }
        }
        idle = if frames == 0 { idle + 1 } else { 0 };
        state.turn = turn + 1;
    }
    Ok(())
}
