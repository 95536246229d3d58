//! Credit windows (§13.2): how many more records and payload bytes a subscription may be sent.

use remuda_wire::verdict::ProtocolViolation;

/// How much credit a subscription is kept at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CreditTarget {
    /// Records outstanding after a top-up.
    pub records: u32,
    /// Payload bytes outstanding after a top-up. Below the largest message that may come, nothing comes.
    pub bytes: u64,
}

impl CreditTarget {
    /// No more than is outstanding already: holds a subscription back.
    pub const NONE: Self = Self { records: 0, bytes: 0 };

    /// What brings `outstanding` up to this target, when either counter fell below half of it; else nothing.
    pub fn top_up(self, outstanding: CreditWindow) -> Option<(u32, u64)> {
        let low = outstanding.records < self.records.div_ceil(2) || outstanding.bytes < self.bytes.div_ceil(2);
        let records = self.records.saturating_sub(outstanding.records);
        let bytes = self.bytes.saturating_sub(outstanding.bytes);
        low.then_some((records, bytes))
    }
}

/// The credit that is outstanding. A subscription begins with none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct CreditWindow {
    /// Records that may still come.
    pub records: u32,
    /// Payload bytes that may still come.
    pub bytes: u64,
}

impl CreditWindow {
    /// Adds what a `Credit` response echoed. Saturates; never wraps.
    pub fn grant(&mut self, records: u32, bytes: u64) {
        self.records = self.records.saturating_add(records);
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// Takes one record of `payload_bytes` out of the window. A refused record takes nothing.
    ///
    /// # Errors
    /// [`ProtocolViolation::CreditExceeded`] unless both counters cover it.
    pub fn spend(&mut self, payload_bytes: usize) -> Result<(), ProtocolViolation> {
        let exceeded = ProtocolViolation::CreditExceeded;
        let length = u64::try_from(payload_bytes).map_err(|_| exceeded)?;
        let records = self.records.checked_sub(1).ok_or(exceeded)?;
        let bytes = self.bytes.checked_sub(length).ok_or(exceeded)?;
        *self = Self { records, bytes };
        Ok(())
    }
}
