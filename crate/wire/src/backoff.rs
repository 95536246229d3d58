//! Delays between attempts: exponential ceilings with full jitter, so that clients cut off together do not return together.

/// Full-jitter exponential backoff: attempt `n` waits a uniform time in `0..=min(cap_ms, base_ms * 2^n)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// The ceiling of the first delay, in milliseconds.
    pub base_ms: u64,
    /// The ceiling that no delay exceeds, in milliseconds.
    pub cap_ms: u64,
}

impl Backoff {
    /// Half a second at first, half a minute at most.
    pub const DEFAULT: Self = Self { base_ms: 500, cap_ms: 30_000 };

    /// The longest that `attempt` (from zero) may wait.
    pub fn ceiling_ms(self, attempt: u32) -> u64 {
        let factor = 1_u64.checked_shl(attempt).unwrap_or(u64::MAX);
        self.base_ms.saturating_mul(factor).min(self.cap_ms)
    }

    /// The delay of `attempt` (from zero), chosen by `random` uniformly from `0..=ceiling_ms(attempt)`.
    pub fn delay_ms(self, attempt: u32, random: u64) -> u64 {
        // The high half of the product is uniform over the choices: no modulo, so no favoured remainders.
        let choices = u128::from(self.ceiling_ms(attempt)) + 1;
        let chosen = (u128::from(random) * choices) >> 64;
        u64::try_from(chosen).unwrap_or(self.cap_ms)
    }
}

impl Default for Backoff {
    fn default() -> Self {
        Self::DEFAULT
    }
}
