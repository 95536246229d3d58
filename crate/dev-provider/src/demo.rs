//! What a demo page needs to begin: where the stream is, and a grant for its own key. No production broker does this.

use remuda_wire::chain::DeliveryClass;
use remuda_wire::grant::{StreamGrant, Verb, Verbs};
use remuda_wire::key::{HpkePublicKey, SigningPublicKey};
use remuda_wire::scope::{GroupScope, LaneScope, LaneSet};
use remuda_wire::{Bytes32, Canonical, Signature};
use serde::{Deserialize, Serialize};

use crate::chain::Chain;
use crate::grant::MAX_GRANT_TTL_MS;
use crate::http::Site;
use crate::keys::{random32, sign, DevKeys};

/// `GET /demo/info`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Info {
    chain_id: u64,
    chain_instance_id: String,
    context: String,
    stream_id: String,
    /// `fast` or `standard`.
    class: &'static str,
    key_stream_id: Option<String>,
    admin_key: String,
    provider_key: String,
    endpoint: String,
    web_socket: String,
    lanes: Vec<InfoLane>,
    lies: Vec<String>,
}

#[derive(Debug, Serialize)]
struct InfoLane {
    id: String,
    name: String,
}

/// The facts of this chain and stream.
pub fn info(chain: &Chain, site: &Site) -> Info {
    let (context, records) = (chain.context(), chain.records());
    let stream = &records.stream;
    Info {
        chain_id: context.chain_id,
        chain_instance_id: context.chain_instance_id.to_string(),
        context: hex::encode(context.to_bytes()),
        stream_id: stream.stream_id.to_string(),
        class: match stream.delivery_class {
            DeliveryClass::Fast => "fast",
            DeliveryClass::Standard => "standard",
        },
        key_stream_id: stream.linked_stream_id.map(|id| id.to_string()),
        admin_key: stream.admin_key.0.to_string(),
        provider_key: stream.provider_signing_key.0.to_string(),
        endpoint: site.endpoint.clone(),
        web_socket: site.web_socket.clone(),
        lanes: site.lanes.iter().map(|lane| InfoLane { id: lane.id.to_string(), name: lane.name.clone() }).collect(),
        lies: site.lies.clone(),
    }
}

/// `POST /demo/grant`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GrantRequest {
    holder_key: String,
    verbs: Option<Vec<String>>,
    lanes: Option<Vec<String>>,
    ttl_ms: Option<u64>,
    /// The main stream unless named.
    stream: Option<String>,
    /// Any group unless named.
    group: Option<String>,
    hpke_key: Option<String>,
    max_in_flight: Option<u32>,
    max_append_bytes_per_sec: Option<u64>,
    lane_creates_per_min: Option<u32>,
}

/// Its answer.
#[derive(Debug, Serialize)]
pub struct GrantAnswer {
    grant: String,
}

/// Signs the grant that was asked for.
///
/// # Errors
/// A sentence about what is wrong with the request.
pub fn grant(request: &GrantRequest, chain: &Chain, keys: &DevKeys) -> anyhow::Result<GrantAnswer> {
    let (records, now) = (chain.records(), chain.now_ms());
    let stream = match &request.stream {
        None => &records.stream,
        Some(stream) => records.of(&bytes32(stream)?).ok_or_else(|| anyhow::anyhow!("no such stream"))?,
    };
    let lifetime = request.ttl_ms.unwrap_or(3_600_000).min(MAX_GRANT_TTL_MS);
    let mut grant = StreamGrant {
        context: chain.context().clone(),
        stream_id: stream.stream_id,
        authorization_generation: stream.authorization_generation,
        grant_nonce: random32()?,
        holder_signing_key: SigningPublicKey(bytes32(&request.holder_key)?),
        holder_hpke_key: request.hpke_key.as_deref().map(bytes32).transpose()?.map(HpkePublicKey),
        verbs: verbs(request.verbs.as_deref())?,
        lane_scope: lane_scope(request.lanes.as_deref())?,
        group_scope: request.group.as_deref().map(bytes32).transpose()?.map_or(GroupScope::Any, GroupScope::Exact),
        not_before_ms: now,
        expires_at_ms: now.saturating_add(lifetime),
        max_message_bytes: stream.config.max_message_bytes,
        max_append_bytes_per_sec: request.max_append_bytes_per_sec.unwrap_or(stream.config.max_append_bytes_per_sec),
        max_in_flight: request.max_in_flight.unwrap_or(64),
        max_lane_creates_per_min: request.lane_creates_per_min.unwrap_or(64),
        signature: Signature::ZERO,
    };
    grant.signature = sign(&keys.admin(records.admin_number), &grant);
    Ok(GrantAnswer { grant: hex::encode(grant.to_bytes()) })
}

/// 64 hexadecimal digits.
///
/// # Errors
/// When they are not.
pub fn bytes32(text: &str) -> anyhow::Result<Bytes32> {
    let mut bytes = Bytes32::ZERO;
    hex::decode_to_slice(text, &mut bytes.0).map_err(|_| anyhow::anyhow!("expected 64 hexadecimal digits"))?;
    Ok(bytes)
}

fn verbs(names: Option<&[String]>) -> anyhow::Result<Verbs> {
    let Some(names) = names else { return Ok(Verbs::of(&[Verb::Append, Verb::Consume, Verb::Replay])) };
    let named = |name: &String| Verb::ALL.into_iter().find(|verb| verb.name().eq_ignore_ascii_case(name));
    let verbs: Option<Vec<Verb>> = names.iter().map(named).collect();
    Ok(Verbs::of(&verbs.ok_or_else(|| anyhow::anyhow!("no such verb"))?))
}

fn lane_scope(lanes: Option<&[String]>) -> anyhow::Result<LaneScope> {
    let Some(lanes) = lanes else { return Ok(LaneScope::Any) };
    let lanes = lanes.iter().map(|lane| bytes32(lane)).collect::<anyhow::Result<Vec<_>>>()?;
    if let [lane] = lanes[..] {
        return Ok(LaneScope::Exact(lane));
    }
    Ok(LaneScope::Set(LaneSet::new(lanes)?.ok_or_else(|| anyhow::anyhow!("lanes is null for all, never empty"))?))
}
