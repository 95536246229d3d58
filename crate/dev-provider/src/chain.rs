//! A deterministic dev chain (§4): every block that it ever finalized can be read again, byte for byte.
//!
//! ```text
//! block hash = keccak("remuda-dev-block:" || chain instance || height)[..24] || height
//! ```
//! A hash carries its own height, so a pinned read needs no index.

use std::sync::Arc;

use remuda_wire::chain::{
    BaseRateAdmission, BaseRateReservationTotals, BrokerState, DeliveryClass, EndpointTransport, PricingBasis,
    ProviderEndpoint, ProviderQuoteBasis, ProviderRecord, ProviderStatus, Purpose, StreamConfig, StreamRecord,
    StreamStatus,
};
use remuda_wire::context::{FinalizedView, SigningContext};
use remuda_wire::preimage::{chain_instance_id, keccak256, stream_id};
use remuda_wire::{Bytes32, Canonical, List, ProviderEpoch, Text, VersionOne};
use tokio::sync::watch;

use crate::keys::{public_key, DevKeys};
use crate::store::Store;
use crate::time::Clock;

/// The numeric chain id of every dev chain.
pub const CHAIN_ID: u64 = 39_039;

/// Where the provider was reachable from a height on.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
struct EndpointSince {
    height: u64,
    uri: String,
}

/// The chain and its one stream.
#[derive(Debug)]
pub struct Chain {
    context: SigningContext,
    stream: StreamRecord,
    provider: ProviderRecord,
    endpoints: Vec<EndpointSince>,
    view: watch::Sender<FinalizedView>,
    store: Arc<Store>,
    clock: Clock,
}

impl Chain {
    /// Opens the chain of this store one block after the last that it served. `config` counts when the stream is new;
    /// everybody who serves this chain reads the time from `clock`.
    ///
    /// # Errors
    /// When the store fails.
    pub fn open(
        store: Arc<Store>,
        keys: &DevKeys,
        endpoint: &str,
        config: &StreamConfig,
        clock: Clock,
    ) -> anyhow::Result<Self> {
        let config = StreamConfig::from_bytes(&store.meta_or("stream-config", || Ok(config.to_bytes()))?)?;
        let instance = chain_instance_id(genesis_source(keys).as_bytes());
        let context = SigningContext { version: VersionOne, chain_id: CHAIN_ID, chain_instance_id: instance };
        let height = match store.meta("height")? {
            Some(height) => u64::from_bytes(&height)?.saturating_add(1),
            None => 1,
        };
        let mut endpoints: Vec<EndpointSince> = match store.meta("endpoints")? {
            Some(json) => serde_json::from_slice(&json)?,
            None => Vec::new(),
        };
        if endpoints.last().is_none_or(|last| last.uri != endpoint) {
            endpoints.push(EndpointSince { height, uri: endpoint.to_owned() });
            store.put_meta("endpoints", &serde_json::to_vec(&endpoints)?)?;
        }
        store.put_meta("height", &height.to_bytes())?;
        let view = watch::Sender::new(view_at(&instance, height));
        let (stream, provider) = (stream_record(&context, keys, config), provider_record(&context, keys));
        Ok(Self { context, stream, provider, endpoints, view, store, clock })
    }

    /// What every signed object of this chain carries.
    pub const fn context(&self) -> &SigningContext {
        &self.context
    }

    /// The stream, the same at every view.
    pub const fn stream(&self) -> &StreamRecord {
        &self.stream
    }

    /// What its time is read from.
    pub const fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Milliseconds since 1970.
    pub fn now_ms(&self) -> u64 {
        self.clock.now_ms()
    }

    /// The latest finalized view.
    pub fn view(&self) -> FinalizedView {
        self.view.borrow().clone()
    }

    /// Finalizes one more block: stored, then served.
    ///
    /// # Errors
    /// When the store fails; the view then stays.
    pub fn advance(&self) -> anyhow::Result<()> {
        let height = self.view.borrow().height.saturating_add(1);
        self.store.put_meta("height", &height.to_bytes())?;
        self.view.send_replace(view_at(&self.context.chain_instance_id, height));
        Ok(())
    }

    /// The atomic broker state at the latest view, or at the block called `block`; `None` for a block never finalized.
    pub fn broker_state(&self, block: Option<&Bytes32>) -> Option<BrokerState> {
        let latest = self.view();
        let view = match block {
            None => latest,
            Some(block) => {
                let height = height_of(block);
                let view = view_at(&self.context.chain_instance_id, height);
                ((1..=latest.height).contains(&height) && view.block_hash == *block).then_some(view)?
            }
        };
        let provider = self.provider_at(view.height);
        let (version, effective_rent_height) = (VersionOne, view.height);
        Some(BrokerState { version, view, effective_rent_height, stream: Some(self.stream.clone()), provider })
    }

    fn provider_at(&self, height: u64) -> Option<ProviderRecord> {
        let uri = &self.endpoints.iter().rev().find(|since| since.height <= height)?.uri;
        let endpoint = |transport, uri: String| Some(ProviderEndpoint { transport, uri: Text::new(uri).ok()? });
        let web_socket = endpoint(EndpointTransport::WebSocketTls, uri.replacen("https", "wss", 1))?;
        let endpoints = vec![web_socket, endpoint(EndpointTransport::Https, uri.clone())?];
        Some(ProviderRecord { endpoints: List::new(endpoints).ok()?, ..self.provider.clone() })
    }
}

fn genesis_source(keys: &DevKeys) -> String {
    let (admin, provider) = (public_key(&keys.admin).0, public_key(&keys.provider).0);
    format!("{{\"chain\":\"remuda-dev\",\"chainId\":{CHAIN_ID},\"admin\":\"{admin}\",\"provider\":\"{provider}\"}}\n")
}

fn view_at(instance: &Bytes32, height: u64) -> FinalizedView {
    let height_bytes = height.to_be_bytes();
    let mut block_hash = keccak256(&[b"remuda-dev-block:", instance.0.as_slice(), &height_bytes].concat());
    block_hash.0[24..].copy_from_slice(&height_bytes);
    FinalizedView { chain_instance_id: *instance, height, block_hash }
}

fn height_of(block: &Bytes32) -> u64 {
    block.0[24..].iter().fold(0, |height, byte| height << 8 | u64::from(*byte))
}

fn stream_record(context: &SigningContext, keys: &DevKeys, config: StreamConfig) -> StreamRecord {
    let (instance, owner, owner_nonce) = (context.chain_instance_id, keys.address("owner"), 0);
    StreamRecord {
        version: VersionOne,
        chain_instance_id: instance,
        stream_id: stream_id(context.chain_id, &instance, &owner, owner_nonce),
        purpose: Purpose::Main,
        owner,
        owner_nonce,
        admin_key: public_key(&keys.admin),
        rotation_key: None,
        delivery_class: DeliveryClass::Fast,
        encrypted: false,
        linked_stream_id: None,
        provider: keys.address("provider-account"),
        provider_epoch: ProviderEpoch,
        provider_signing_key: public_key(&keys.provider),
        authorization_generation: 1,
        encryption_generation: 0,
        pricing_generation: 1,
        status: StreamStatus::Active,
        config,
        pricing_basis: PricingBasis::ProviderQuote(ProviderQuoteBasis { quote_digest: keccak256(b"remuda-dev-quote") }),
        rate_per_block: 1,
        escrow_balance: 1_000_000_000,
        last_settled_block: 1,
        suspended_at_block: None,
        suspension_grace_deadline_block: None,
        created_at_block: 1,
    }
}

fn provider_record(context: &SigningContext, keys: &DevKeys) -> ProviderRecord {
    ProviderRecord {
        version: VersionOne,
        chain_instance_id: context.chain_instance_id,
        provider: keys.address("provider-account"),
        signing_key: public_key(&keys.provider),
        endpoints: List::EMPTY,
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

/// The configuration of the demo stream. The largest message fills a batch of 1,024 to exactly the limit of §4.2.
pub fn stream_config(fast_batch_max_ms: u32, fast_batch_max_records: u32) -> StreamConfig {
    let max_message_bytes = (268_435_456 / fast_batch_max_records.max(1)).min(262_144);
    StreamConfig {
        retention_ms: 3_600_000,
        retained_bytes_limit: 1 << 30,
        max_message_bytes,
        max_append_bytes_per_sec: 64 << 20,
        max_delivered_bytes_per_sec: 256 << 20,
        max_lanes: 16_384,
        idempotency_horizon_ms: 0,
        default_visibility_ms: 0,
        max_visibility_ms: 0,
        default_max_attempts: 1,
        fast_batch_max_ms,
        fast_batch_max_records,
    }
}
