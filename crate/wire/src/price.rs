//! Price quotes (§4.4) and the base-rate schedule (§4.5). Rates are nano-CBY per block.

use crate::bytes::{Address, Bytes32, Signature};
use crate::chain::DeliveryClass;
use crate::codec::VersionOne;
use crate::context::SigningContext;

object! {
    /// `PriceQuoteV1`: signed by the provider's quote key, admits one stream once.
    pub struct PriceQuote {
        context: SigningContext,
        provider: Address,
        owner: Address,
        stream_id: Bytes32,
        pricing_generation: u64,
        delivery_class: DeliveryClass,
        retained_bytes: u64,
        append_bytes_sec: u64,
        delivered_bytes_sec: u64,
        rate_per_block: u128,
        valid_until_block: u64,
        signing_key_id: Bytes32,
        signature: Signature,
    }
}

object! {
    /// `BaseRateClassV1`.
    pub struct BaseRateClass {
        retained_unit_bytes: u64,
        retained_unit_rate_per_block: u128,
        throughput_unit_bytes_per_sec: u64,
        throughput_unit_rate_per_block: u128,
        delivered_unit_bytes_per_sec: u64,
        delivered_unit_rate_per_block: u128,
    }
}

object! {
    /// `BaseRateScheduleV1`, 161 bytes.
    pub struct BaseRateSchedule {
        format_version: VersionOne,
        schedule_version: u64,
        activates_at_block: u64,
        standard: BaseRateClass,
        fast: BaseRateClass,
    }
}

object! {
    /// `BaseRateSchedulesV1`: the stored container; `pending` is never written in v1.
    pub struct BaseRateSchedules {
        active: BaseRateSchedule,
        pending: Option<BaseRateSchedule>,
    }
}

impl BaseRateSchedules {
    /// The schedule in force at effective height `height` (§4.5: select, never read `active` unconditionally).
    pub fn active_at(&self, height: u64) -> &BaseRateSchedule {
        match &self.pending {
            Some(pending) if height >= pending.activates_at_block => pending,
            _ => &self.active,
        }
    }
}
