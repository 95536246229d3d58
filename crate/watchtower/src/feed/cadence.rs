//! How often an idle feed is asked.

use remuda_wire::backoff::Backoff;

/// Delays between pulls that bring nothing: they double, and are jittered in their upper half.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cadence {
    /// The shortest delay, in milliseconds.
    pub least_ms: u64,
    /// The longest, in milliseconds.
    pub most_ms: u64,
}

impl Default for Cadence {
    fn default() -> Self {
        Self { least_ms: 1_000, most_ms: 30_000 }
    }
}

impl Cadence {
    /// The delay after `idle` pulls in a row that brought nothing, chosen by `random`: never below half of its ceiling,
    /// so that jitter makes no bursts.
    pub fn delay_ms(self, idle: u32, random: u64) -> u64 {
        let ceilings = Backoff { base_ms: self.least_ms, cap_ms: self.most_ms };
        let half = ceilings.ceiling_ms(idle).div_ceil(2);
        half + Backoff { base_ms: half, cap_ms: half }.delay_ms(0, random)
    }
}
