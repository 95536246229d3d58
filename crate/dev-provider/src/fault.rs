//! What goes wrong on request, beside the chain: nothing of it is a lie.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::refusal::{Code, Refusal};

/// Faults in force.
#[derive(Debug, Default)]
pub struct Faults(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    refusals: VecDeque<Code>,
    delay: Duration,
    is_offline: bool,
    cuts: u64,
}

impl Faults {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next requests are refused with this code, whatever they ask.
    pub fn refuse(&self, code: Code, times: usize) {
        self.state().refusals.extend(std::iter::repeat_n(code, times));
    }

    /// The refusal of this request, when it is told to be refused.
    ///
    /// # Errors
    /// The code that was asked for.
    pub fn check(&self) -> Result<(), Refusal> {
        let code = self.state().refusals.pop_front();
        code.map_or(Ok(()), |code| Err(Refusal::new(code, "told to refuse")))
    }

    /// Every frame waits so long before it is looked at.
    pub fn set_delay(&self, delay: Duration) {
        self.state().delay = delay;
    }

    /// How long a frame waits.
    pub fn delay(&self) -> Duration {
        self.state().delay
    }

    /// No request is answered and no connection accepted.
    pub fn set_offline(&self, is_offline: bool) {
        let mut state = self.state();
        state.is_offline = is_offline;
        state.cuts = state.cuts.wrapping_add(u64::from(is_offline));
    }

    /// True while nothing is answered.
    pub fn is_offline(&self) -> bool {
        self.state().is_offline
    }

    /// Every open connection ends.
    pub fn cut(&self) {
        let mut state = self.state();
        state.cuts = state.cuts.wrapping_add(1);
    }

    /// Changes when connections that are open have to end.
    pub fn cuts(&self) -> u64 {
        self.state().cuts
    }
}
