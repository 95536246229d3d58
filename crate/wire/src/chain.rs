//! Chain records (§4.1 to §4.3) and the atomic broker state of a chain read (`RESOLUTIONS.md` §4).

use crate::bound;
use crate::bytes::{Address, Bytes32};
use crate::codec::{List, ProviderEpoch, Text, VersionOne};
use crate::context::FinalizedView;
use crate::error::DecodeError;
use crate::key::SigningPublicKey;

tags! {
    /// What a stream carries.
    pub enum Purpose: u8 { Main = 1, Key = 2, }
}

tags! {
    /// The delivery class of a stream.
    pub enum DeliveryClass: u8 { Standard = 1, Fast = 2, }
}

tags! {
    /// The materialised status of a stream.
    pub enum StreamStatus: u8 { Active = 1, Suspended = 2, Closed = 3, DataExpired = 4, }
}

object! {
    /// The derived quote digest that admitted a stream.
    pub struct ProviderQuoteBasis { quote_digest: Bytes32, }
}

object! {
    /// The frozen schedule that admitted a stream.
    pub struct GovernanceBaseBasis { schedule_version: u64, schedule_digest: Bytes32, }
}

union! {
    /// `PricingBasisV1`.
    pub enum PricingBasis: u8 {
        ProviderQuote(quote: ProviderQuoteBasis) = 1,
        GovernanceBase(base: GovernanceBaseBasis) = 2,
    }
}

object! {
    /// `StreamConfigV1` (§4.2). Times in milliseconds, sizes in bytes, rates in bytes per second.
    pub struct StreamConfig {
        retention_ms: u64,
        retained_bytes_limit: u64,
        max_message_bytes: u32,
        max_append_bytes_per_sec: u64,
        max_delivered_bytes_per_sec: u64,
        max_lanes: u32,
        idempotency_horizon_ms: u64,
        default_visibility_ms: u64,
        max_visibility_ms: u64,
        default_max_attempts: u16,
        fast_batch_max_ms: u32,
        fast_batch_max_records: u32,
    }
}

object! {
    /// `StreamRecordV1` (§4.1). Its `provider_signing_key` is the key of every receipt served at this view.
    pub struct StreamRecord {
        version: VersionOne,
        chain_instance_id: Bytes32,
        stream_id: Bytes32,
        purpose: Purpose,
        owner: Address,
        owner_nonce: u64,
        admin_key: SigningPublicKey,
        rotation_key: Option<SigningPublicKey>,
        delivery_class: DeliveryClass,
        encrypted: bool,
        linked_stream_id: Option<Bytes32>,
        provider: Address,
        provider_epoch: ProviderEpoch,
        provider_signing_key: SigningPublicKey,
        authorization_generation: u64,
        encryption_generation: u64,
        pricing_generation: u64,
        status: StreamStatus,
        config: StreamConfig,
        pricing_basis: PricingBasis,
        rate_per_block: u128,
        escrow_balance: u128,
        last_settled_block: u64,
        suspended_at_block: Option<u64>,
        suspension_grace_deadline_block: Option<u64>,
        created_at_block: u64,
    }
}

object! {
    /// `BaseRateAdmissionV1`: the caps that a provider consents to.
    pub struct BaseRateAdmission {
        accepts_new: bool,
        max_active_streams: u64,
        max_total_retained_bytes: u128,
        max_total_append_bytes_per_sec: u128,
        max_total_delivered_bytes_per_sec: u128,
    }
}

object! {
    /// `BaseRateReservationTotalsV1`: what is reserved under those caps.
    pub struct BaseRateReservationTotals {
        reserved_streams: u64,
        retained_bytes: u128,
        append_bytes_per_sec: u128,
        delivered_bytes_per_sec: u128,
    }
}

tags! {
    /// `ProviderEndpointTransportV1`.
    pub enum EndpointTransport: u8 { WebSocketTls = 1, Https = 2, }
}

impl EndpointTransport {
    /// The scheme prefix that a URI of this transport begins with, in any case.
    pub const fn scheme_prefix(self) -> &'static str {
        match self {
            Self::WebSocketTls => "wss://",
            Self::Https => "https://",
        }
    }

    /// True when `uri` begins with this transport's scheme, compared ASCII-case-insensitively.
    pub fn matches_scheme(self, uri: &str) -> bool {
        let prefix = self.scheme_prefix();
        uri.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
    }
}

object! {
    /// `ProviderEndpointV1`. Decoding alone does not admit an endpoint: that is `verify`'s `endpoint` module.
    pub struct ProviderEndpoint {
        transport: EndpointTransport,
        uri: Text<{ bound::MAX_PROVIDER_ENDPOINT_URI_BYTES }>,
    }
    check |endpoint: &ProviderEndpoint| {
        let uri = &*endpoint.uri;
        let control = uri.bytes().any(|byte| byte <= 0x20 || byte == 0x7f);
        if control || !endpoint.transport.matches_scheme(uri) { Err(DecodeError::Endpoint) } else { Ok(()) }
    };
}

tags! {
    /// `ProviderStatus`.
    pub enum ProviderStatus: u8 { Active = 1, Draining = 2, Deregistered = 3, }
}

object! {
    /// `ProviderRecordV1` (§4.3). An endpoint list may decode empty: its count is admission's to judge.
    pub struct ProviderRecord {
        version: VersionOne,
        chain_instance_id: Bytes32,
        provider: Address,
        signing_key: SigningPublicKey,
        endpoints: List<ProviderEndpoint, { bound::MAX_PROVIDER_ENDPOINTS }>,
        quote_key: SigningPublicKey,
        base_rate_admission: BaseRateAdmission,
        base_rate_reserved: BaseRateReservationTotals,
        live_assigned_streams: u64,
        status: ProviderStatus,
        metadata_hash: Bytes32,
        registered_block: u64,
    }
}

object! {
    /// `BrokerStateV1`: one atomic chain read, everything at one view.
    pub struct BrokerState {
        version: VersionOne,
        view: FinalizedView,
        effective_rent_height: u64,
        stream: Option<StreamRecord>,
        provider: Option<ProviderRecord>,
    }
}
