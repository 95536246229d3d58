//! Items, boundaries, statuses and events as plain objects.

use js_sys::{Array, Uint8Array};
use remuda_client::member_keys::MemberKeyEvent;
use remuda_client::{
    CommandOutcome, Connection, Engine, Event, Failure, Keyring, OpenedPayload, OutboxCounts, Recording, Subscription,
    SubscriptionSpec, SubscriptionState, TailKey,
};
use remuda_position::outbox::{OutboxEntry, OutboxState};
use remuda_position::{
    Anchor, Boundary, ItemAssurance, PositionKey, StoredGap, StoredItem, StoredItemBody, StoredRecord, StoredSnapshot,
    StoredStandardRecord, StoredTransition,
};
use remuda_session::Transport;
use remuda_verify::response::AnsweredResult;
use remuda_verify::retention::JustifiedRefusal;
use remuda_wire::delivery::RecordDelivery;
use remuda_wire::lane::{LaneRecord, LaneStatus};
use remuda_wire::record::{RecordHeader, RecordId, RecordKind};
use remuda_wire::snapshot::{SnapshotManifest, SnapshotScope};
use remuda_wire::transition::TransitionKind;
use remuda_wire::Bytes32;
use wasm_bindgen::JsValue;

use crate::group::{config_members, state_members};
use crate::object::{number, time_ms, Builder, ToJs};
use crate::thrown::{failure_object, thrown};

const fn assurance_name(assurance: ItemAssurance) -> &'static str {
    match assurance {
        ItemAssurance::LaneSet => "lane-set",
        ItemAssurance::FullBatch => "full-batch",
        ItemAssurance::Transition => "transition",
        ItemAssurance::Receipt => "receipt",
        ItemAssurance::RetentionAnchor => "retention-anchor",
        ItemAssurance::Snapshot => "snapshot",
        ItemAssurance::None => "none",
    }
}

const fn kind_name(kind: TransitionKind) -> &'static str {
    match kind {
        TransitionKind::Clean => "clean",
        TransitionKind::Void => "void",
    }
}

/// One committed item with its local number. With a keyring its stream is encrypted, and payloads are opened.
pub fn item(number: u64, item: &StoredItem, keyring: Option<&Keyring>) -> JsValue {
    let object = Builder::new().with("item", &number).with("assurance", assurance_name(item.assurance));
    match &item.body {
        StoredItemBody::Record(record) => record_members(object, record, keyring),
        StoredItemBody::Transition(transition) => transition_members(object, transition),
        StoredItemBody::StandardRecord(record) => standard_record_members(object, record, keyring),
        StoredItemBody::Gap(gap) => gap_members(object, gap),
        StoredItemBody::Snapshot(snapshot) => snapshot_members(object, snapshot),
    }
    .build()
}

fn record_members(object: Builder, record: &StoredRecord, keyring: Option<&Keyring>) -> Builder {
    let object = object
        .with("kind", "record")
        .with("brokerEpoch", &record.record_id.broker_epoch)
        .with("sequence", &record.record_id.sequence)
        .with("checkpoint", &record.checkpoint);
    payload_members(header_members(object, &record.header), &record.header, &record.payload, keyring)
}

/// A record of a tail, as it came. With a keyring its stream is encrypted, and the payload is opened.
pub fn painted(key: TailKey, record: &RecordDelivery, keyring: Option<&Keyring>) -> JsValue {
    let broker_epoch = match &record.record_id {
        RecordId::Fast(id) => Some(id.broker_epoch),
        RecordId::Standard(_) => None,
    };
    let object = Builder::new()
        .with("kind", "painted-record")
        .with("brokerEpoch", &broker_epoch)
        .with("sequence", &record.record_id.sequence())
        .with("assurance", "none");
    let object = payload_members(header_members(object, &record.header), &record.header, &record.payload, keyring);
    Builder::new().with("type", "painted").with("key", &key.0).with_value("record", &object.build()).build()
}

/// A recording: an audit file.
pub fn recording(recording: &Recording) -> JsValue {
    Builder::new()
        .with("file", &recording.file[..])
        .with_value("items", &number(recording.items))
        .with("isComplete", &recording.is_complete)
        .build()
}

fn standard_record_members(object: Builder, record: &StoredStandardRecord, keyring: Option<&Keyring>) -> Builder {
    let object = object
        .with("kind", "standard-record")
        .with("sequence", &record.record_id.sequence)
        .with("receipt", &record.receipt);
    payload_members(header_members(object, &record.header), &record.header, &record.payload, keyring)
}

/// `payload` is null for as long as it cannot be read; `sealed` then says why.
pub(crate) fn payload_members(
    object: Builder,
    header: &RecordHeader,
    payload: &[u8],
    keyring: Option<&Keyring>,
) -> Builder {
    let (plaintext, sealed) = match keyring.map(|keyring| keyring.open(header, payload)) {
        None | Some(OpenedPayload::Clear) => (Uint8Array::from(payload).into(), None),
        Some(OpenedPayload::Opened(plaintext)) => (Uint8Array::from(plaintext.as_slice()).into(), None),
        Some(OpenedPayload::Sealed) => (JsValue::NULL, Some("encryption/no-key")),
        Some(OpenedPayload::Unreadable(error)) => (JsValue::NULL, Some(error.code())),
    };
    object.with_value("payload", &plaintext).with_value("sealed", &sealed.map_or(JsValue::NULL, JsValue::from_str))
}

pub(crate) fn header_members(object: Builder, header: &RecordHeader) -> Builder {
    let kind = match header.kind {
        RecordKind::Application => "application",
        RecordKind::LaneCreated => "lane-created",
        RecordKind::LaneClosed => "lane-closed",
        RecordKind::KeyBatchHeader => "key-batch-header",
        RecordKind::KeyEnvelope => "key-envelope",
    };
    object
        .with("record", kind)
        .with("lane", &header.lane_id)
        .with("messageId", &header.client_message_id)
        .with("createdAtMs", &header.created_at_ms)
        .with("expiresAtMs", &header.expires_at_ms)
        .with("encryptionGeneration", &header.encryption_generation)
}

fn gap_members(object: Builder, gap: &StoredGap) -> Builder {
    let after = gap.after.as_ref().map_or(JsValue::NULL, place);
    object.with("kind", "gap").with_value("after", &after).with_value("before", &place(&gap.before))
}

/// A place in a stream of either class.
fn place(id: &RecordId) -> JsValue {
    let epoch = match id {
        RecordId::Fast(id) => Some(id.broker_epoch),
        RecordId::Standard(_) => None,
    };
    Builder::new().with("brokerEpoch", &epoch).with("sequence", &id.sequence()).build()
}

fn snapshot_members(object: Builder, snapshot: &StoredSnapshot) -> Builder {
    let manifest = |manifest: &SnapshotManifest| {
        let lane = match manifest.scope {
            SnapshotScope::Stream => None,
            SnapshotScope::Lane(lane_id) => Some(lane_id),
        };
        Builder::new()
            .with("lane", &lane)
            .with("reference", &manifest.cbfs_reference[..])
            .with("hash", &manifest.snapshot_hash)
            .with("encryptionGeneration", &manifest.encryption_generation)
            .build()
    };
    object.with("kind", "snapshot").with_value("snapshots", &snapshot.manifests.iter().map(manifest).collect::<Array>())
}

fn transition_members(object: Builder, stored: &StoredTransition) -> Builder {
    let transition = &stored.transition;
    object
        .with("kind", "transition")
        .with("transition", kind_name(transition.kind))
        .with("fromEpoch", &transition.previous_lineage.map(|lineage| lineage.broker_epoch))
        .with("toEpoch", &transition.replacement_broker_epoch)
        .with("digest", &stored.digest)
        .with("lastDurableCheckpoint", &transition.last_durable_checkpoint)
        .with("lastDurableSequence", &transition.last_durable_sequence)
        .with("lastProvisionalSequence", &transition.last_provisional_sequence)
}

/// A durable boundary; null before there is one.
pub fn boundary(boundary: &Boundary) -> JsValue {
    let (Some(revision), Some(anchor)) = (boundary.revision(), boundary.anchor()) else { return JsValue::NULL };
    let anchor = match anchor {
        Anchor::Provider => "provider",
        Anchor::Genesis => "genesis",
        Anchor::Retention => "retention",
        Anchor::Snapshot => "snapshot",
    };
    let standard = boundary.receipt_chain_end().map(|end| end.last_sequence);
    Builder::new()
        .with("brokerEpoch", &boundary.broker_epoch())
        .with("sequence", &boundary.checkpoint().map(|end| end.last_sequence).or(standard))
        .with("checkpoint", &boundary.checkpoint().map(|end| end.digest).or(boundary.group_receipt()))
        .with("lastItem", &boundary.last_item())
        .with("revision", &revision)
        .with("anchor", anchor)
        .build()
}

fn lanes(spec: &SubscriptionSpec) -> JsValue {
    match spec {
        SubscriptionSpec::FullStream => JsValue::from_str("all"),
        SubscriptionSpec::StandardReplay(scope) => match scope.lanes() {
            None => JsValue::from_str("all"),
            Some(lanes) => lanes.iter().map(ToJs::to_js).collect::<Array>().into(),
        },
        SubscriptionSpec::Group(group) => [group.lane_id].iter().map(ToJs::to_js).collect::<Array>().into(),
        SubscriptionSpec::ScopedProofs(scope) => scope.lanes().iter().map(ToJs::to_js).collect::<Array>().into(),
    }
}

fn subscription(key: PositionKey, subscription: &Subscription) -> JsValue {
    let state = match subscription.state() {
        SubscriptionState::Opening => "opening",
        SubscriptionState::Live => "live",
        SubscriptionState::Due { attempt: 0, .. } => "opening",
        SubscriptionState::Due { .. } => "re-entering",
        SubscriptionState::Failed => "failed",
    };
    let verification = match subscription.spec() {
        SubscriptionSpec::ScopedProofs(_) => "scoped-proofs",
        SubscriptionSpec::FullStream => "full-stream",
        SubscriptionSpec::StandardReplay(_) => "receipts",
        SubscriptionSpec::Group(_) => "group",
    };
    let (records, batches) = subscription.verified();
    Builder::new()
        .with("key", &key.0)
        .with_value("lanes", &lanes(subscription.spec()))
        .with("verification", verification)
        .with("state", state)
        .with_value("boundary", &boundary(subscription.boundary()))
        .with_value("waiting", &number(subscription.waiting()))
        .with("verifiedRecords", &records)
        .with("verifiedBatches", &batches)
        .with("durableWatermark", &subscription.watermark())
        .with("floor", &subscription.floor().map(JustifiedRefusal::floor))
        .with_value(
            "failure",
            &subscription.failure().map_or(JsValue::NULL, |(failure, at_ms)| failure_object(failure, at_ms)),
        )
        .build()
}

fn outbox_counts(counts: OutboxCounts) -> JsValue {
    Builder::new()
        .with_value("queued", &number(counts.queued))
        .with_value("sent", &number(counts.sent))
        .with_value("provisional", &number(counts.provisional))
        .with_value("failed", &number(counts.failed))
        .build()
}

/// The whole status of an engine.
pub fn status(engine: &Engine, storage: &str) -> JsValue {
    let (connection, retry_at_ms, transport) = match engine.connection() {
        Connection::Idle => ("idle", None, None),
        Connection::Connecting => ("connecting", None, None),
        Connection::Open { transport: Transport::WebSocket } => ("open", None, Some("web-socket")),
        Connection::Open { transport: Transport::LongPoll } => ("open", None, Some("long-poll")),
        Connection::Waiting { retry_at_ms } => ("waiting", Some(*retry_at_ms), None),
        Connection::Closed => ("closed", None, None),
    };
    let subscriptions: Array = engine.subscriptions().iter().map(|(key, one)| subscription(*key, one)).collect();
    Builder::new()
        .with("connection", connection)
        .with_value("retryAtMs", &retry_at_ms.map_or(JsValue::NULL, time_ms))
        .with_value("transport", &transport.map_or(JsValue::NULL, JsValue::from_str))
        .with("storage", storage)
        .with_value("subscriptions", &subscriptions)
        .with_value("outbox", &outbox_counts(engine.outbox()))
        .build()
}

/// An engine's event as JavaScript gets it; `None` for those that are told another way.
pub fn event(event: &Event) -> Option<JsValue> {
    let object = match event {
        Event::StatusChanged
        | Event::ChainRead
        | Event::Settled { .. }
        | Event::Hydrated { .. }
        | Event::Drafted { .. }
        | Event::Painted { .. }
        | Event::Recorded(_)
        | Event::Group { .. } => return None,
        Event::Gap { key, last_item } => {
            Builder::new().with("type", "gap").with("key", &key.0).with("lastItem", last_item)
        }
        Event::TailFailed { key, failure } => Builder::new()
            .with("type", "tail-failed")
            .with("key", &key.0)
            .with_value("failure", &failure_object(failure, remuda_web::clock::now_ms())),
        Event::Batch { key, batch, last_item } => Builder::new()
            .with("type", "batch")
            .with("key", &key.0)
            .with("checkpoint", &batch.checkpoint)
            .with("brokerEpoch", &batch.broker_epoch)
            .with("firstSequence", &batch.first_sequence)
            .with("lastSequence", &batch.last_sequence)
            .with_value("records", &number(batch.records))
            .with("laneMapRoot", &batch.lane_map_root)
            .with("signingKey", &batch.signing_key)
            .with("servedAtHeight", &batch.served_at_height)
            .with("committedAtMs", &batch.committed_at_ms)
            .with("assurance", assurance_name(batch.assurance.into()))
            .with("lastItem", last_item),
        Event::Segment { key, segment, last_item } => Builder::new()
            .with("type", "receipts")
            .with("key", &key.0)
            .with("lastSequence", &segment.last_sequence)
            .with("receipt", &segment.receipt)
            .with_value("records", &number(segment.records))
            .with("assurance", assurance_name(ItemAssurance::Receipt))
            .with("lastItem", last_item),
        Event::Transition { key, transition, discarded, last_item } => Builder::new()
            .with("type", "transition")
            .with("key", &key.0)
            .with("transition", kind_name(transition.kind))
            .with("fromEpoch", &transition.from_epoch)
            .with("toEpoch", &transition.to_epoch)
            .with_value("discarded", &number(*discarded))
            .with_value("returned", &number(transition.returned))
            .with("lastItem", last_item),
        Event::Append(update) => append_members(
            Builder::new().with("type", "append"),
            update.number,
            update.client_message_id,
            &update.state,
        ),
        Event::Failure { key, failure } => return Some(self::failure(*key, failure)),
    };
    Some(object.build())
}

/// A failure, of a subscription or of everything.
pub fn failure(key: Option<PositionKey>, failure: &Failure) -> JsValue {
    Builder::new()
        .with("type", "failure")
        .with("key", &key.map(|key| key.0))
        .with_value("failure", &failure_object(failure, remuda_web::clock::now_ms()))
        .build()
}

/// What became of the key of a generation.
pub fn member_key(event: &MemberKeyEvent) -> JsValue {
    let (state, generation, last_readable, failure) = match event {
        MemberKeyEvent::Opened { generation } => ("opened", Some(*generation), None, None),
        MemberKeyEvent::Removed { generation, last_readable } => ("removed", Some(*generation), *last_readable, None),
        MemberKeyEvent::NotOpened { generation, failure } => ("not-opened", Some(*generation), None, Some(failure)),
        MemberKeyEvent::Failed(failure) => ("failed", None, None, Some(failure)),
    };
    let failure = failure.map_or(JsValue::NULL, |it| failure_object(it, remuda_web::clock::now_ms()));
    Builder::new()
        .with("type", "key")
        .with("state", state)
        .with("generation", &generation)
        .with("lastReadable", &last_readable)
        .with_value("failure", &failure)
        .build()
}

/// An entry of the outbox. With a keyring its stream is encrypted, and the payload is opened.
pub fn outbox_entry(entry: &OutboxEntry, keyring: Option<&Keyring>) -> JsValue {
    let header = entry.request.header();
    let members = append_members(Builder::new(), entry.number, header.client_message_id, &entry.state)
        .with("lane", &header.lane_id)
        .with("createdAtMs", &header.created_at_ms)
        .with("expiresAtMs", &header.expires_at_ms);
    if matches!(entry.state, OutboxState::Durable(_)) {
        // It is in the stream, and no longer here.
        return members.with_value("payload", &JsValue::NULL).with_value("sealed", &JsValue::NULL).build();
    }
    payload_members(members, &header, &entry.request.payload, keyring).build()
}

/// Which entry, where it stands, and as what.
fn append_members(object: Builder, number: u64, message_id: Bytes32, state: &OutboxState) -> Builder {
    let (name, record, failure) = match state {
        OutboxState::Queued => ("queued", None, None),
        OutboxState::Sent => ("sent", None, None),
        OutboxState::Provisional(id) => ("provisional", Some((RecordId::Fast(*id), None)), None),
        OutboxState::Durable(durable) => ("durable", Some((durable.record_id, Some(durable.evidence))), None),
        OutboxState::Failed(failure) => ("failed", None, Some(failure)),
    };
    let record = record.map_or(JsValue::NULL, |(id, evidence)| {
        let epoch = match id {
            RecordId::Fast(id) => Some(id.broker_epoch),
            RecordId::Standard(_) => None,
        };
        let object = Builder::new().with("brokerEpoch", &epoch).with("sequence", &id.sequence());
        match evidence {
            None => object.with("durable", &false).build(),
            Some(evidence) => object.with("durable", &true).with("evidence", &evidence).build(),
        }
    });
    let failure = failure.map_or(JsValue::NULL, |failure| {
        let texts = [("code", &*failure.code), ("remedy", &*failure.remedy)];
        let more = [("rule", &*failure.rule), ("meaning", &*failure.meaning)];
        texts.into_iter().chain(more).fold(Builder::new(), |object, (name, text)| object.with(name, text)).build()
    });
    object
        .with("entry", &number)
        .with("messageId", &message_id)
        .with("state", name)
        .with_value("record", &record)
        .with_value("failure", &failure)
}

/// How a command ended: its result, or the failure to throw.
pub fn command_outcome(outcome: &CommandOutcome) -> Result<JsValue, JsValue> {
    match outcome {
        CommandOutcome::Accepted(answered) => Ok(answer(answered)),
        CommandOutcome::Refused(failure) => Err(thrown(failure)),
        CommandOutcome::Unknown => Err(thrown(&Failure::outcome_unknown())),
    }
}

fn answer(answered: &AnsweredResult) -> JsValue {
    match answered {
        AnsweredResult::Lane { lane, receipt } => lane_members(lane).with("receipt", &receipt.digest()).build(),
        AnsweredResult::Lanes(page) => Builder::new()
            .with_value("lanes", &page.lanes.iter().map(|lane| lane_members(lane).build()).collect::<Array>())
            .with("nextAfter", &page.next_after_lane_id)
            .build(),
        AnsweredResult::Group { config, receipt } => {
            let config = config.as_ref().map(|config| config_members(Builder::new(), config).build());
            Builder::new().with("receipt", &receipt.digest()).with("config", &config).build()
        }
        AnsweredResult::Delivery { state, receipt } => {
            state_members(Builder::new().with("receipt", &receipt.digest()), state).build()
        }
        // What else can be asked for is not asked for by this artefact.
        _ => JsValue::NULL,
    }
}

fn lane_members(lane: &LaneRecord) -> Builder {
    let status = match lane.status {
        LaneStatus::Active => "active",
        LaneStatus::Closed => "closed",
    };
    Builder::new().with("lane", &lane.lane_id).with("metadataHash", &lane.metadata_hash).with("status", status)
}
