//! What the dev chain holds at its first block: one stream, its key stream when it is encrypted, one provider.

use remuda_wire::bound::MAX_PROVIDER_ENDPOINTS;
use remuda_wire::chain::{
    BaseRateAdmission, BaseRateReservationTotals, DeliveryClass, EndpointTransport, PricingBasis, ProviderEndpoint,
    ProviderQuoteBasis, ProviderRecord, ProviderStatus, Purpose, StreamConfig, StreamRecord, StreamStatus,
};
use remuda_wire::context::SigningContext;
use remuda_wire::preimage::{keccak256, key_stream_id, stream_id};
use remuda_wire::{Bytes32, List, ProviderEpoch, Text, VersionOne};

use super::Records;
use crate::keys::{public_key, DevKeys};

type Endpoints = List<ProviderEndpoint, MAX_PROVIDER_ENDPOINTS>;

/// What a new stream is.
#[derive(Clone, Debug)]
pub struct Genesis {
    /// Its configuration.
    pub config: StreamConfig,
    /// Its delivery class.
    pub class: DeliveryClass,
    /// Whether its payloads are encrypted; then it has a key stream.
    pub encrypted: bool,
}

impl Genesis {
    pub(super) fn records(&self, context: &SigningContext, keys: &DevKeys, endpoints: Endpoints) -> Records {
        let stream = self.main_stream(context, keys);
        let key_stream = self.encrypted.then(|| StreamRecord {
            stream_id: key_stream_id(&stream.stream_id),
            purpose: Purpose::Key,
            delivery_class: DeliveryClass::Standard,
            encrypted: false,
            linked_stream_id: Some(stream.stream_id),
            rate_per_block: 0,
            escrow_balance: 0,
            config: stream_config(DeliveryClass::Standard, 0, 0),
            ..stream.clone()
        });
        Records { stream, key_stream, provider: provider_record(context, keys, endpoints), admin_number: 0 }
    }

    fn main_stream(&self, context: &SigningContext, keys: &DevKeys) -> StreamRecord {
        let (instance, owner, owner_nonce) = (context.chain_instance_id, keys.address("owner"), 0);
        let stream_id = stream_id(context.chain_id, &instance, &owner, owner_nonce);
        StreamRecord {
            version: VersionOne,
            chain_instance_id: instance,
            stream_id,
            purpose: Purpose::Main,
            owner,
            owner_nonce,
            admin_key: public_key(&keys.admin(0)),
            rotation_key: self.encrypted.then(|| public_key(&keys.rotation)),
            delivery_class: self.class,
            encrypted: self.encrypted,
            linked_stream_id: self.encrypted.then(|| key_stream_id(&stream_id)),
            provider: keys.address("provider-account"),
            provider_epoch: ProviderEpoch,
            provider_signing_key: public_key(&keys.provider),
            authorization_generation: 1,
            encryption_generation: 0,
            pricing_generation: 1,
            status: StreamStatus::Active,
            config: self.config.clone(),
            pricing_basis: PricingBasis::ProviderQuote(ProviderQuoteBasis {
                quote_digest: keccak256(b"remuda-dev-quote"),
            }),
            rate_per_block: 8_000,
            escrow_balance: 1_000_000_000_000,
            last_settled_block: 1,
            suspended_at_block: None,
            suspension_grace_deadline_block: None,
            created_at_block: 1,
        }
    }
}

/// Both transports at one address: a chain record can only hold TLS endpoints.
///
/// # Errors
/// For an address longer than an endpoint may be.
pub fn endpoints(https: &str) -> anyhow::Result<Endpoints> {
    let endpoint = |transport, uri: String| anyhow::Ok(ProviderEndpoint { transport, uri: Text::new(uri)? });
    let web_socket = endpoint(EndpointTransport::WebSocketTls, https.replacen("https", "wss", 1))?;
    Ok(List::new(vec![web_socket, endpoint(EndpointTransport::Https, https.to_owned())?])?)
}

fn provider_record(context: &SigningContext, keys: &DevKeys, endpoints: Endpoints) -> ProviderRecord {
    ProviderRecord {
        version: VersionOne,
        chain_instance_id: context.chain_instance_id,
        provider: keys.address("provider-account"),
        signing_key: public_key(&keys.provider),
        endpoints,
        quote_key: public_key(&keys.provider),
        base_rate_admission: BaseRateAdmission {
            accepts_new: false,
            max_active_streams: 0,
            max_total_retained_bytes: 0,
            max_total_append_bytes_per_sec: 0,
            max_total_delivered_bytes_per_sec: 0,
        },
        base_rate_reserved: BaseRateReservationTotals {
            reserved_streams: 0,
            retained_bytes: 0,
            append_bytes_per_sec: 0,
            delivered_bytes_per_sec: 0,
        },
        live_assigned_streams: 1,
        status: ProviderStatus::Active,
        metadata_hash: Bytes32::ZERO,
        registered_block: 1,
    }
}

/// The configuration of a demo stream. The largest message of a fast one fills a batch of 1,024 to exactly the limit of
/// §4.2; the batch thresholds are of a fast stream alone, horizon, visibility and attempts of a standard one.
pub fn stream_config(class: DeliveryClass, fast_batch_max_ms: u32, fast_batch_max_records: u32) -> StreamConfig {
    let common = StreamConfig {
        retention_ms: 3_600_000,
        retained_bytes_limit: 1 << 30,
        max_message_bytes: 262_144,
        max_append_bytes_per_sec: 64 << 20,
        max_delivered_bytes_per_sec: 256 << 20,
        max_lanes: 16_384,
        idempotency_horizon_ms: 0,
        default_visibility_ms: 0,
        max_visibility_ms: 0,
        default_max_attempts: 1,
        fast_batch_max_ms: 0,
        fast_batch_max_records: 0,
    };
    match class {
        DeliveryClass::Fast => StreamConfig {
            max_message_bytes: (268_435_456 / fast_batch_max_records.max(1)).min(262_144),
            fast_batch_max_ms,
            fast_batch_max_records,
            ..common
        },
        DeliveryClass::Standard => StreamConfig {
            retention_ms: 604_800_000,
            idempotency_horizon_ms: 86_400_000,
            default_visibility_ms: 30_000,
            max_visibility_ms: 900_000,
            default_max_attempts: 10,
            ..common
        },
    }
}
