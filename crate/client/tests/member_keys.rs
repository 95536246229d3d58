//! A member follows the batches of a key stream, from stored rows to data keys.

use ed25519_dalek::{Signer, SigningKey};
use remuda_client::member_keys::{
    KeyBatchDraft, KeyBatchUpload, MemberKeyConfig, MemberKeyEvent, MemberKeyOutput, MemberKeys, StreamKeyFacts,
    UploadStep,
};
use remuda_client::{CommandOutcome, Failure, Keyring};
use remuda_position::{ItemAssurance, StoredItem, StoredItemBody, StoredStandardRecord};
use remuda_verify::hpke::agree;
use remuda_verify::key_batch::KeyBatchPosition;
use remuda_verify::open::hpke_public_key;
use remuda_verify::response::AnsweredResult;
use remuda_verify::secret::SecretBytes;
use remuda_wire::context::SigningContext;
use remuda_wire::key::{HpkePublicKey, SigningPublicKey};
use remuda_wire::preimage::{envelope_digest, keccak256, key_stream_id};
use remuda_wire::record::{RecordHeader, RecordKind, RecordOrigin, StandardRecordId};
use remuda_wire::request::RequestBody;
use remuda_wire::response::KeyBatchStageResult;
use remuda_wire::{Bytes, Bytes24, Bytes32, Canonical, ProviderEpoch, Remedy, Signature, Signed, VersionOne};

const MAIN: Bytes32 = Bytes32([0x21; 32]);

fn context() -> SigningContext {
    SigningContext { version: VersionOne, chain_id: 39, chain_instance_id: Bytes32([0x33; 32]) }
}

fn secret(name: &str) -> SecretBytes {
    SecretBytes::new(keccak256(name.as_bytes()).0)
}

fn member(name: &str) -> HpkePublicKey {
    hpke_public_key(&secret(name))
}

fn rotation() -> SigningKey {
    SigningKey::from_bytes(&[4; 32])
}

fn rotation_key() -> SigningPublicKey {
    SigningPublicKey(Bytes32(rotation().verifying_key().to_bytes()))
}

fn data_key(generation: u64) -> SecretBytes {
    secret(&format!("data key {generation}"))
}

/// An owner, and the rows that a member has of its key stream.
struct Owner {
    tail: Option<Bytes32>,
    members: Vec<(u64, HpkePublicKey)>,
    rows: Vec<StoredItem>,
    first_sequence: u64,
    drawn: u64,
}

impl Owner {
    fn new() -> Self {
        Self { tail: None, members: Vec::new(), rows: Vec::new(), first_sequence: 0, drawn: 0 }
    }

    fn compose(
        &mut self,
        active_generation: u64,
        generation: u64,
        names: &[&str],
        key: &SecretBytes,
    ) -> KeyBatchUpload {
        let members: Vec<_> = self.members.iter().filter(|it| it.0 == generation).map(|it| it.1).collect();
        let (context, rotation_key) = (context(), rotation_key());
        let position = KeyBatchPosition {
            context: &context,
            main_stream_id: &MAIN,
            rotation_key: &rotation_key,
            active_generation,
            batch_tail: self.tail,
            members: &members,
        };
        let recipients: Vec<_> = names.iter().map(|name| member(name)).collect();
        let fresh = || {
            self.drawn += 1;
            secret(&format!("ephemeral {}", self.drawn))
        };
        let draft = KeyBatchDraft::compose(&position, generation, &recipients, key, 1, fresh).expect("a batch");
        let signature = Signature(rotation().sign(&draft.digest().0).to_bytes());
        draft.sign(signature, &position).expect("ours")
    }

    /// Publishes a batch of `generation` for `names`, sealed under its key.
    fn publish(&mut self, active_generation: u64, generation: u64, names: &[&str]) {
        let upload = self.compose(active_generation, generation, names, &data_key(generation));
        self.append(&upload);
    }

    fn append(&mut self, upload: &KeyBatchUpload) {
        let batch = upload.batch();
        let generation = batch.batch().encryption_generation;
        self.record(RecordKind::KeyBatchHeader, batch.digest(), generation, batch.batch().to_bytes());
        for envelope in batch.envelopes() {
            self.record(RecordKind::KeyEnvelope, envelope_digest(envelope), generation, envelope.to_bytes());
            self.members.push((generation, envelope.recipient_hpke_key));
        }
        self.tail = Some(batch.digest());
    }

    fn record(&mut self, kind: RecordKind, client_message_id: Bytes32, encryption_generation: u64, payload: Vec<u8>) {
        let sequence = self.first_sequence + u64::try_from(self.rows.len()).expect("few");
        let header = RecordHeader {
            stream_id: key_stream_id(&MAIN),
            lane_id: Bytes32::ZERO,
            origin: RecordOrigin::ProviderEvent,
            kind,
            client_message_id,
            created_at_ms: 5,
            visible_after_ms: 0,
            expires_at_ms: 0,
            encryption_generation,
            nonce: Bytes24::ZERO,
        };
        let record_id = StandardRecordId { provider_epoch: ProviderEpoch, sequence };
        let payload = Bytes::new(payload).expect("short");
        let record = StoredStandardRecord { record_id, receipt: Bytes32([9; 32]), header, payload };
        self.rows.push(StoredItem { assurance: ItemAssurance::Receipt, body: StoredItemBody::StandardRecord(record) });
    }

    /// Changes one stored record.
    fn bend(&mut self, index: usize, bend: impl FnOnce(&mut StoredStandardRecord)) {
        let StoredItemBody::StandardRecord(record) = &mut self.rows[index].body else { panic!("of a standard stream") };
        bend(record);
    }
}

struct Member {
    name: &'static str,
    keys: MemberKeys,
    keyring: Keyring,
    active_generation: u64,
    events: Vec<MemberKeyEvent>,
    kept: Option<Vec<u8>>,
    /// What it agrees by, where that is not its own key.
    wrong_key: bool,
}

impl Member {
    fn new(name: &'static str) -> Self {
        Self {
            name,
            keys: MemberKeys::new(config(name)),
            keyring: Keyring::default(),
            active_generation: 0,
            events: Vec::new(),
            kept: None,
            wrong_key: false,
        }
    }

    /// Another process on the same database, and on what was kept.
    fn restart(&mut self, rows: usize) {
        self.keyring = Keyring::default();
        let kept = self.kept.clone().unwrap_or_default();
        let last_item = u64::try_from(rows).expect("few");
        self.keys = MemberKeys::restore(config(self.name), &kept, last_item, &mut self.keyring);
        self.events.clear();
    }

    fn facts(&self) -> StreamKeyFacts {
        StreamKeyFacts { rotation_key: rotation_key(), active_generation: self.active_generation }
    }

    fn drain(&mut self) {
        while let Some(output) = self.keys.poll_output() {
            match output {
                MemberKeyOutput::Agree { public_key } => {
                    let agreed = agree(&secret(if self.wrong_key { "nobody" } else { self.name }), &public_key);
                    self.keys.handle_agreed(agreed, &mut self.keyring);
                }
                MemberKeyOutput::ReadChain => self.keys.handle_chain(self.facts(), &mut self.keyring),
                MemberKeyOutput::Keep(kept) => self.kept = Some(kept.to_vec()),
                MemberKeyOutput::Event(event) => self.events.push(event),
            }
        }
    }

    /// Takes every row that it wants. Gives the codes of what failed.
    fn follow(&mut self, owner: &Owner) -> Vec<String> {
        self.keys.handle_chain(self.facts(), &mut self.keyring);
        loop {
            self.drain();
            let Some(after) = self.keys.wants_after() else { break };
            let next = usize::try_from(after).ok().and_then(|after| owner.rows.get(after));
            let Some(row) = next else { break };
            self.keys.handle_item(after + 1, row.clone(), &mut self.keyring);
        }
        let code = |event: &MemberKeyEvent| match event {
            MemberKeyEvent::Failed(failure) | MemberKeyEvent::NotOpened { failure, .. } => Some(failure.code.clone()),
            MemberKeyEvent::Opened { .. } | MemberKeyEvent::Removed { .. } => None,
        };
        self.events.iter().filter_map(code).collect()
    }

    fn generations(&self) -> Vec<u64> {
        self.keyring.generations().collect()
    }
}

fn config(name: &str) -> MemberKeyConfig {
    MemberKeyConfig { context: context(), main_stream_id: MAIN, member: member(name) }
}

/// Three batches: a first one, one that adds Carol, one that removes Bob.
fn history() -> Owner {
    let mut owner = Owner::new();
    owner.publish(0, 0, &["alice", "bob"]);
    owner.publish(0, 0, &["carol"]);
    owner.publish(0, 1, &["alice", "carol"]);
    owner
}

#[test]
fn each_member_gets_the_keys_of_its_generations() {
    let owner = history();
    let [mut alice, mut bob, mut carol] = ["alice", "bob", "carol"].map(Member::new);
    for member in [&mut alice, &mut bob, &mut carol] {
        assert_eq!(member.follow(&owner), [""; 0]);
    }
    assert_eq!((alice.generations(), bob.generations(), carol.generations()), (vec![0, 1], vec![0], vec![0, 1]));
    let (zero, one) = (MemberKeyEvent::Opened { generation: 0 }, MemberKeyEvent::Opened { generation: 1 });
    assert_eq!(alice.events, [zero.clone(), one.clone()]);
    assert_eq!(bob.events, [zero.clone(), MemberKeyEvent::Removed { generation: 1, last_readable: Some(0) }]);
    // The first batch did not name her; the next did.
    assert_eq!(carol.events, [MemberKeyEvent::Removed { generation: 0, last_readable: None }, zero, one]);
    assert_eq!((bob.keys.newest(), carol.keys.newest()), (Some((1, false)), Some((1, true))));
}

#[test]
fn what_was_kept_goes_on_where_it_stopped_and_means_nothing_to_others() {
    let mut owner = Owner::new();
    owner.publish(0, 0, &["alice", "bob"]);
    let mut alice = Member::new("alice");
    alice.follow(&owner);
    owner.publish(0, 1, &["alice"]);
    // Stopped inside a batch: nothing of it was kept, and all of it is taken again.
    let header = owner.rows[3].clone();
    assert!(alice.keys.handle_item(4, header, &mut alice.keyring));
    alice.restart(4);
    assert_eq!((alice.generations(), alice.keys.newest()), (vec![0], Some((0, true))));
    assert_eq!(alice.follow(&owner), [""; 0]);
    assert_eq!(alice.events, [MemberKeyEvent::Opened { generation: 1 }]);
    alice.restart(5);
    assert_eq!(alice.follow(&owner), [""; 0]);
    assert_eq!((alice.generations(), alice.events.len()), (vec![0, 1], 0), "nothing is opened twice");
    // A removed member is told again.
    let mut bob = Member::new("bob");
    bob.follow(&owner);
    bob.restart(5);
    bob.follow(&owner);
    assert_eq!(bob.events, [MemberKeyEvent::Removed { generation: 1, last_readable: Some(0) }]);
    // The rows are gone: its keys are good, and the batches are followed again.
    alice.restart(0);
    assert_eq!((alice.generations(), alice.keys.newest()), (vec![0, 1], None));
    assert_eq!(alice.follow(&owner), [""; 0]);
    // The rows are others than it followed: from the start, once.
    let mut again = Owner::new();
    again.publish(0, 0, &["alice"]);
    again.publish(0, 0, &["dave"]);
    again.publish(0, 1, &["alice"]);
    alice.restart(6);
    assert_eq!(alice.follow(&again), [""; 0]);
    assert_eq!(alice.keys.newest(), Some((1, true)));
    // Of another member, or cut, it is nothing.
    for kept in
        [bob.kept.clone().expect("kept"), alice.kept.clone().map(|kept| kept[..kept.len() - 1].to_vec()).expect("kept")]
    {
        alice.kept = Some(kept);
        alice.restart(6);
        assert_eq!((alice.generations(), alice.keys.newest()), (vec![], None));
    }
}

#[test]
fn a_batch_that_is_not_what_it_must_be_is_the_last() {
    type Bend = fn(&mut Owner);
    let bends: [(Bend, &str); 9] = [
        (|owner| owner.bend(1, |it| it.payload = owner_payload(it, |bytes| bytes[100] ^= 1)), "verify/envelope-digest"),
        (
            |owner| owner.bend(0, |it| it.payload = owner_payload(it, |bytes| *bytes.last_mut().expect("some") ^= 1)),
            "verify/signature",
        ),
        (|owner| owner.bend(1, |it| it.header.created_at_ms = 0), ""),
        (|owner| owner.bend(1, |it| it.header.client_message_id = Bytes32([8; 32])), "verify/key-materialization"),
        (|owner| owner.bend(1, |it| it.header.nonce = Bytes24([1; 24])), "verify/key-materialization"),
        (|owner| owner.bend(2, |it| it.record_id.sequence = 7), "verify/key-materialization"),
        (|owner| owner.rows.swap(1, 2), "verify/envelope-digest"),
        (|owner| drop(owner.rows.remove(2)), "verify/key-materialization"),
        (|owner| drop(owner.rows.drain(..3)), "verify/key-batch-predecessor"),
    ];
    for (index, (bend, code)) in bends.into_iter().enumerate() {
        let mut owner = history();
        bend(&mut owner);
        if index == 8 {
            // They say that they are the first of the stream.
            for (row, sequence) in (0..2).zip(0..) {
                owner.bend(row, |it| it.record_id.sequence = sequence);
            }
        }
        let mut alice = Member::new("alice");
        let failed = alice.follow(&owner);
        if code.is_empty() {
            assert_eq!(failed, [""; 0], "when a record was made is its provider's to say");
            continue;
        }
        assert_eq!((failed, alice.generations()), (vec![code.to_owned()], vec![]), "{index}");
        assert_eq!(alice.keys.wants_after(), None, "nothing more is asked for");
        assert!(alice.kept.is_none());
    }
}

fn owner_payload<const N: usize>(record: &StoredStandardRecord, bend: impl FnOnce(&mut [u8])) -> Bytes<N> {
    let mut bytes = record.payload.to_vec();
    bend(&mut bytes);
    Bytes::new(bytes).expect("as long")
}

#[test]
fn a_batch_ahead_of_the_chain_waits_for_a_read_of_it() {
    let mut owner = history();
    owner.publish(1, 2, &["alice", "carol"]);
    let mut alice = Member::new("alice");
    alice.follow(&owner);
    assert_eq!(alice.events.last().map(|event| matches!(event, MemberKeyEvent::Failed(_))), Some(true));
    let mut carol = Member::new("carol");
    carol.active_generation = 1;
    assert_eq!(carol.follow(&owner), [""; 0]);
    assert_eq!(carol.generations(), [0, 1, 2]);
    // What a batch of a generation that is over says is refused.
    owner.publish(1, 1, &["alice"]);
    owner.publish(1, 2, &["dave"]);
    assert_eq!(carol.follow(&owner), [""; 0], "the last batch of generation 1 may come after one of generation 2");
    owner.publish(2, 3, &["carol"]);
    owner.publish(1, 1, &["alice"]);
    carol.active_generation = 3;
    assert_eq!(carol.follow(&owner), ["verify/key-generation"]);
}

#[test]
fn a_provider_that_keeps_only_the_end_is_not_accused() {
    let mut owner = history();
    owner.publish(1, 1, &["bob"]);
    owner.publish(1, 2, &["alice", "bob"]);
    owner.rows.drain(..8);
    let mut alice = Member::new("alice");
    alice.active_generation = 1;
    // The whole membership of generation 1 cannot be known any more.
    assert_eq!(alice.follow(&owner), ["verify/membership-digest"]);
    assert_eq!((alice.generations(), alice.keys.newest()), (vec![2], Some((2, true))));
    assert!(alice.keys.position(1).is_none() && alice.keys.position(2).is_some());
    assert!(!alice.events.iter().any(|event| matches!(event, MemberKeyEvent::Failed(_))));
}

#[test]
fn an_envelope_that_does_not_open_stops_nothing() {
    let owner = history();
    let mut alice = Member::new("alice");
    alice.wrong_key = true;
    assert_eq!(alice.follow(&owner), ["verify/hpke", "verify/hpke"]);
    assert_eq!(alice.keys.newest(), Some((1, true)));
}

#[test]
fn two_keys_of_one_generation_are_told_and_neither_seals() {
    let mut owner = Owner::new();
    owner.publish(0, 0, &["alice"]);
    let upload = owner.compose(0, 0, &["alice"], &secret("another data key"));
    owner.append(&upload);
    let mut alice = Member::new("alice");
    assert_eq!(alice.follow(&owner), ["encryption/generation-conflict"]);
    assert_eq!(alice.generations(), [0]);
}

#[test]
fn a_member_key_that_refuses_stops_until_the_next_start() {
    let owner = history();
    let mut alice = Member::new("alice");
    alice.keys.handle_chain(alice.facts(), &mut alice.keyring);
    for (row, number) in owner.rows.iter().zip(1..) {
        alice.keys.handle_item(number, row.clone(), &mut alice.keyring);
    }
    assert!(matches!(alice.keys.poll_output(), Some(MemberKeyOutput::Agree { .. })));
    alice.keys.handle_agreed(None, &mut alice.keyring);
    assert_eq!(alice.follow(&owner), ["encryption/member-key-refused"]);
    alice.restart(owner.rows.len());
    assert_eq!(alice.follow(&owner), [""; 0]);
    assert_eq!(alice.generations(), [0, 1]);
}

#[test]
fn a_large_batch_goes_in_chunks_and_each_step_waits_for_its_answer() {
    let names: Vec<_> = (0..1_025).map(|number| format!("member {number}")).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let mut upload = Owner::new().compose(0, 0, &names, &data_key(0));
    let staged = |accepted_chunks| {
        CommandOutcome::Accepted(AnsweredResult::Staged(KeyBatchStageResult {
            key_stream_id: key_stream_id(&MAIN),
            batch_digest: Bytes32([1; 32]),
            total_chunks: 2,
            accepted_chunks,
        }))
    };
    let RequestBody::BeginKeyBatch(begin) = upload.request() else { panic!("begun first") };
    assert_eq!((begin.total_chunks, begin.batch.sorted_envelope_digests.len()), (2, 1_025));
    // No answer, and one that says to come back later: the same bytes again.
    let later = Failure::append_past_outbox();
    for unanswered in
        [CommandOutcome::Unknown, CommandOutcome::Refused(Failure { remedy: Remedy::Retry, ..later.clone() })]
    {
        assert_eq!(upload.handle(&unanswered), UploadStep::Send);
        assert_eq!(upload.request(), RequestBody::BeginKeyBatch(begin.clone()));
    }
    assert_eq!(upload.handle(&staged(0)), UploadStep::Send);
    let mut sent = Vec::new();
    for index in 0..2 {
        let RequestBody::PutKeyBatchChunk(put) = upload.request() else { panic!("a chunk") };
        assert_eq!((put.chunk_index, put.batch_digest), (index, begin.batch.digest()));
        sent.push(put.envelopes.len());
        assert_eq!(upload.handle(&staged(index + 1)), UploadStep::Send);
    }
    assert_eq!(sent, [1_024, 1]);
    assert!(matches!(upload.request(), RequestBody::CommitKeyBatch(_)));
    assert_eq!(upload.handle(&CommandOutcome::Refused(later.clone())), UploadStep::Failed(later));
}

#[test]
fn no_secret_is_printed() {
    let owner = history();
    let mut alice = Member::new("alice");
    alice.follow(&owner);
    let printed = format!("{:?} {:?} {:?}", alice.keys, alice.events, alice.keyring);
    let key = data_key(1);
    assert!(!printed.contains(&format!("{:?}", &key.expose()[..8]).replace(['[', ']'], "")));
    assert!(alice.kept.expect("kept").windows(32).any(|window| window == key.expose()), "it is what is to be wrapped");
}
