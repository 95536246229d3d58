//! One member follows the batches of a key stream.

use alloc::collections::{BTreeSet, VecDeque};
use alloc::vec::Vec;

use remuda_position::{StoredItem, StoredItemBody, StoredStandardRecord};
use remuda_verify::key_batch::{KeyBatchPosition, MaterialisedRecord, VerifiedKeyBatch};
use remuda_verify::open::{encapsulated_key, open_agreed};
use remuda_verify::secret::SecretBytes;
use remuda_wire::chain::StreamRecord;
use remuda_wire::codec::{Canonical, VersionOne};
use remuda_wire::context::SigningContext;
use remuda_wire::key::{HpkePublicKey, SigningPublicKey};
use remuda_wire::key_batch::{KeyEnvelope, KeyRotationBatch};
use remuda_wire::preimage::{key_batch_genesis, key_stream_id};
use remuda_wire::record::RecordKind;
use remuda_wire::verdict::{Refusal, VerifyError};
use remuda_wire::{Bytes32, List, Remedy, Signed};
use zeroize::Zeroizing;

use super::kept::{FollowedBatches, GenerationMembers, Kept};
use crate::failure::Failure;
use crate::keyring::Keyring;

/// Whose keys are followed, of which stream.
#[derive(Clone, Debug)]
pub struct MemberKeyConfig {
    /// The chain.
    pub context: SigningContext,
    /// The encrypted main stream.
    pub main_stream_id: Bytes32,
    /// The member's public key, as envelopes name it.
    pub member: HpkePublicKey,
}

/// What the chain says of the keys of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamKeyFacts {
    /// The key that signs batches.
    pub rotation_key: SigningPublicKey,
    /// The generation that payloads are sealed under.
    pub active_generation: u64,
}

impl StreamKeyFacts {
    /// Of the main stream's record; `None` where it has no rotation key.
    pub fn of(stream: &StreamRecord) -> Option<Self> {
        Some(Self { rotation_key: stream.rotation_key?, active_generation: stream.encryption_generation })
    }
}

/// What the driver does or the application learns, in order.
#[derive(Debug)]
pub enum MemberKeyOutput {
    /// X25519 of the member's private key and this public key; answer with [`MemberKeys::handle_agreed`].
    Agree {
        /// The encapsulated key of an envelope.
        public_key: Bytes32,
    },
    /// Read the broker state of the main stream again; answer with [`MemberKeys::handle_chain`].
    ReadChain,
    /// Wrap and keep this in the place of what was kept before. Without it everything is followed again from the stored rows.
    Keep(Zeroizing<Vec<u8>>),
    /// Tell the application.
    Event(MemberKeyEvent),
}

/// What became of a generation, for this member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemberKeyEvent {
    /// Its data key is in the keyring: what is stored of it can be read from now on.
    Opened {
        /// Which.
        generation: u64,
    },
    /// Its batch has no envelope for this member, who reads what was sealed before and nothing of it.
    Removed {
        /// Which.
        generation: u64,
        /// The newest generation before it that this member has a key of.
        last_readable: Option<u64>,
    },
    /// Its envelope for this member gave no key. The following goes on.
    NotOpened {
        /// Which.
        generation: u64,
        /// Why.
        failure: Failure,
    },
    /// The batches are not what they must be, or the member's key did not agree: nothing more is followed. Keys that are known stay.
    Failed(Failure),
}

/// How often the chain is read before a batch is held to be ahead of it.
const READS_OF_CHAIN: u8 = 2;

/// Records of a batch that is not whole yet.
#[derive(Debug)]
struct OpenBatch {
    batch: KeyRotationBatch,
    envelopes: Vec<KeyEnvelope>,
    records: Vec<StoredStandardRecord>,
    last_item: u64,
}

/// What an envelope waits for.
#[derive(Debug)]
struct Agreement {
    batch: KeyRotationBatch,
    envelope: KeyEnvelope,
}

/// Follows the batches for one member. See [`super`] for how to drive it.
#[derive(Debug)]
pub struct MemberKeys {
    config: MemberKeyConfig,
    facts: Option<StreamKeyFacts>,
    followed: FollowedBatches,
    /// Generations whose key came from an envelope.
    opened: BTreeSet<u64>,
    open: Option<OpenBatch>,
    /// Reads of the chain that a whole batch waits for. The first that comes may have been asked for before the batch was there.
    reads_due: u8,
    agreement: Option<Agreement>,
    /// What was restored was not continued yet: the rows may be of another database.
    is_restored: bool,
    told_removed: Option<u64>,
    has_failed: bool,
    outputs: VecDeque<MemberKeyOutput>,
}

impl MemberKeys {
    /// Follows from the first stored row on.
    pub fn new(config: MemberKeyConfig) -> Self {
        Self {
            followed: from_the_start(&config),
            config,
            facts: None,
            opened: BTreeSet::new(),
            open: None,
            reads_due: 0,
            agreement: None,
            is_restored: false,
            told_removed: None,
            has_failed: false,
            outputs: VecDeque::new(),
        }
    }

    /// Goes on from what was kept, and puts its keys into the keyring. What was kept of another stream, member or version counts
    /// for nothing. `last_item` is the number of the last stored row: what was kept beyond it is of another database, and all but
    /// its keys is forgotten.
    pub fn restore(config: MemberKeyConfig, kept: &[u8], last_item: u64, keyring: &mut Keyring) -> Self {
        let mut restored = Self::new(config);
        let of_us = |followed: &FollowedBatches| {
            let FollowedBatches { context, main_stream_id, member, .. } = followed;
            let MemberKeyConfig { context: ours, main_stream_id: stream, member: us } = &restored.config;
            (context, main_stream_id, member) == (ours, stream, us)
        };
        let Some(kept) = Kept::from_bytes(kept).filter(|kept| of_us(&kept.followed)) else { return restored };
        for (generation, key) in kept.keys {
            match keyring.insert(generation, key) {
                Ok(()) => {
                    restored.opened.insert(generation);
                }
                Err(failure) => restored.tell(MemberKeyEvent::NotOpened { generation, failure }),
            }
        }
        if let Some(active) = kept.followed.active_generation {
            keyring.set_active(active);
        }
        if kept.followed.after_item <= last_item {
            restored.is_restored = true;
            restored.followed = kept.followed;
            restored.tell_if_removed();
        }
        restored
    }

    /// The next thing to do or to tell, until there is none.
    pub fn poll_output(&mut self) -> Option<MemberKeyOutput> {
        self.outputs.pop_front()
    }

    /// The number behind which rows are wanted; `None` while an answer is awaited, and after a failure.
    pub fn wants_after(&self) -> Option<u64> {
        let is_free = !self.has_failed && self.reads_due == 0 && self.agreement.is_none();
        (is_free && self.facts.is_some())
            .then(|| self.open.as_ref().map_or(self.followed.after_item, |open| open.last_item))
    }

    /// The newest generation of a batch, and whether this member is in it; `None` before the first batch.
    pub fn newest(&self) -> Option<(u64, bool)> {
        self.followed.newest.map(|newest| (newest, self.is_member(newest)))
    }

    /// Where the chain of batches stands for the next batch of `generation`; `None` before the chain was read, and where the
    /// membership of that generation is not known from its first batch on.
    pub fn position(&self, generation: u64) -> Option<KeyBatchPosition<'_>> {
        let facts = self.facts.as_ref().filter(|_| self.knows_members(generation))?;
        Some(self.position_at(facts, facts.active_generation, generation))
    }

    fn position_at<'a>(
        &'a self,
        facts: &'a StreamKeyFacts,
        active_generation: u64,
        generation: u64,
    ) -> KeyBatchPosition<'a> {
        KeyBatchPosition {
            context: &self.config.context,
            main_stream_id: &self.config.main_stream_id,
            rotation_key: &facts.rotation_key,
            active_generation,
            batch_tail: self.followed.batch_tail,
            members: self.members(generation),
        }
    }

    fn members(&self, generation: u64) -> &[HpkePublicKey] {
        self.followed.members.iter().find(|it| it.generation == generation).map_or(&[], |it| &it.members)
    }

    /// False for a generation that may have batches which the provider no longer has.
    fn knows_members(&self, generation: u64) -> bool {
        self.followed.begun_within < Some(generation) || !self.members(generation).is_empty()
    }

    fn is_member(&self, generation: u64) -> bool {
        self.members(generation).contains(&self.config.member)
    }

    /// The chain was read, for the first time or again.
    pub fn handle_chain(&mut self, facts: StreamKeyFacts, keyring: &mut Keyring) {
        self.facts = Some(facts);
        keyring.set_active(facts.active_generation);
        let is_news = self.followed.active_generation != Some(facts.active_generation);
        self.followed.active_generation = Some(facts.active_generation);
        if self.reads_due > 0 {
            self.reads_due -= 1;
            self.judge(keyring);
        }
        if is_news && self.followed.after_item > 0 {
            self.keep(keyring);
        }
    }

    /// Takes the next stored item behind [`MemberKeys::wants_after`]. False when no more is wanted for now; this one was taken.
    pub fn handle_item(&mut self, number: u64, item: StoredItem, keyring: &mut Keyring) -> bool {
        if self.wants_after().is_none_or(|after| number <= after) {
            return self.wants_after().is_some();
        }
        match self.take(number, item) {
            Ok(true) => {
                self.reads_due = READS_OF_CHAIN;
                self.judge(keyring);
            }
            Ok(false) => {}
            Err(refusal) => self.fail(refusal, keyring),
        }
        self.wants_after().is_some()
    }

    /// Keeps a record. True when its batch is whole by it.
    fn take(&mut self, number: u64, item: StoredItem) -> Result<bool, VerifyError> {
        let StoredItemBody::StandardRecord(record) = item.body else { return Err(VerifyError::KeyMaterialization) };
        match (&mut self.open, record.header.kind) {
            (None, RecordKind::KeyBatchHeader) => {
                let batch =
                    KeyRotationBatch::from_bytes(&record.payload).map_err(|_| VerifyError::KeyMaterialization)?;
                let (envelopes, records) = (Vec::new(), [record].into());
                self.open = Some(OpenBatch { batch, envelopes, records, last_item: number });
                Ok(false)
            }
            (Some(open), RecordKind::KeyEnvelope) => {
                let envelope = KeyEnvelope::from_bytes(&record.payload).map_err(|_| VerifyError::KeyMaterialization)?;
                open.envelopes.push(envelope);
                open.records.push(record);
                open.last_item = number;
                Ok(open.envelopes.len() == open.batch.sorted_envelope_digests.len())
            }
            _ => Err(VerifyError::KeyMaterialization),
        }
    }

    /// Judges the batch that is whole, unless the chain is to be read before.
    fn judge(&mut self, keyring: &mut Keyring) {
        let (Some(open), Some(facts)) = (self.open.take(), self.facts) else { return };
        let generation = open.batch.encryption_generation;
        // A batch is for the generation that was active when it was committed, or for the next.
        let least_active = self.followed.least_active.max(generation.saturating_sub(1));
        if least_active > facts.active_generation && self.reads_due > 0 {
            self.open = Some(open);
            self.outputs.push_back(MemberKeyOutput::ReadChain);
            return;
        }
        self.reads_due = 0;
        let active = least_active.min(facts.active_generation);
        self.begin_within(&open);
        let last_item = open.last_item;
        match self.verify(open, &facts, active) {
            Ok(batch) => {
                self.advance(&batch.digest(), generation, least_active, last_item);
                match self.remember(generation, batch.members()) {
                    Ok(()) => self.look_for_ours(&batch),
                    Err(refusal) => self.fail(refusal, keyring),
                }
            }
            // Its generation began before what the provider still has: who else is a member is not known.
            Err((VerifyError::MembershipDigest, digest)) if !self.knows_members(generation) => {
                self.advance(&digest, generation, least_active, last_item);
                let failure = Refusal::from(VerifyError::MembershipDigest).into();
                self.tell(MemberKeyEvent::NotOpened { generation, failure });
            }
            Err((refusal, _)) => self.fail(refusal, keyring),
        }
        self.keep(keyring);
    }

    /// Where the provider has no more than the end of the chain of batches, the first that it has is taken for what it is.
    fn begin_within(&mut self, open: &OpenBatch) {
        let is_first_of_stream = open.records.first().is_some_and(|record| record.record_id.sequence == 0);
        if self.followed.batch_tail.is_none() && !is_first_of_stream {
            let genesis = key_batch_genesis(&self.config.context, &key_stream_id(&self.config.main_stream_id));
            if open.batch.previous_batch_digest != genesis {
                self.followed.batch_tail = Some(open.batch.previous_batch_digest);
                self.followed.begun_within = Some(open.batch.encryption_generation);
            }
        }
    }

    fn verify(
        &self,
        open: OpenBatch,
        facts: &StreamKeyFacts,
        active_generation: u64,
    ) -> Result<VerifiedKeyBatch, (VerifyError, Bytes32)> {
        let (generation, digest) = (open.batch.encryption_generation, open.batch.digest());
        let position = self.position_at(facts, active_generation, generation);
        let batch = position.verify(open.batch, open.envelopes).map_err(|refusal| (refusal, digest))?;
        let records: Vec<_> = open
            .records
            .iter()
            .map(|it| MaterialisedRecord { sequence: it.record_id.sequence, header: &it.header, payload: &it.payload })
            .collect();
        batch.verify_layout(&records).map_err(|refusal| (refusal, digest))?;
        Ok(batch)
    }

    fn advance(&mut self, digest: &Bytes32, generation: u64, least_active: u64, last_item: u64) {
        let followed = &mut self.followed;
        followed.batch_tail = Some(*digest);
        followed.least_active = least_active;
        followed.newest = followed.newest.max(Some(generation));
        followed.after_item = last_item;
        self.is_restored = false;
    }

    /// Keeps the membership of a generation, and forgets those that no batch can be for any more.
    ///
    /// # Errors
    /// [`VerifyError::MembershipDigest`] above the bound of one batch (§18), which a membership cannot be.
    fn remember(&mut self, generation: u64, members: &[HpkePublicKey]) -> Result<(), VerifyError> {
        // One by one: to sort them at once is the larger code.
        let mut once = BTreeSet::new();
        for member in members {
            once.insert(*member);
        }
        let members = List::new(once.into_iter().collect()).map_err(|_| VerifyError::MembershipDigest)?;
        let least = self.followed.least_active;
        let mut kept: Vec<_> = self.followed.members.iter().cloned().collect();
        kept.retain(|it| it.generation >= least && it.generation != generation);
        kept.push(GenerationMembers { generation, members });
        self.followed.members = List::new(kept).map_err(|_| VerifyError::MembershipDigest)?;
        Ok(())
    }

    fn look_for_ours(&mut self, batch: &VerifiedKeyBatch) {
        let member = self.config.member;
        match batch.envelopes().iter().find(|envelope| envelope.recipient_hpke_key == member) {
            Some(envelope) => {
                let public_key = encapsulated_key(envelope);
                self.agreement = Some(Agreement { batch: batch.batch().clone(), envelope: envelope.clone() });
                self.outputs.push_back(MemberKeyOutput::Agree { public_key });
            }
            None => self.tell_if_removed(),
        }
    }

    /// The member's key has agreed with an encapsulated key; `None` when it could not be used.
    pub fn handle_agreed(&mut self, agreed: Option<SecretBytes>, keyring: &mut Keyring) {
        let Some(Agreement { batch, envelope }) = self.agreement.take() else { return };
        let Some(agreed) = agreed else {
            self.stop(member_key_refused());
            return;
        };
        let generation = batch.encryption_generation;
        let opened = open_agreed(&envelope, &batch, &agreed).map_err(|refusal| Failure::from(Refusal::from(refusal)));
        match opened.and_then(|key| keyring.insert(generation, key)) {
            Ok(()) => {
                self.opened.insert(generation);
                self.tell(MemberKeyEvent::Opened { generation });
            }
            Err(failure) => self.tell(MemberKeyEvent::NotOpened { generation, failure }),
        }
        self.keep(keyring);
    }

    /// Has everything up to here kept, unless an envelope of the last batch is still being opened.
    fn keep(&mut self, keyring: &Keyring) {
        if self.agreement.is_some() || self.reads_due > 0 || self.has_failed {
            return;
        }
        let keys: Vec<_> =
            self.opened.iter().filter_map(|generation| Some((*generation, keyring.key(*generation)?))).collect();
        let kept = Kept::to_bytes(&self.followed, keys.into_iter());
        self.outputs.retain(|output| !matches!(output, MemberKeyOutput::Keep(_)));
        self.outputs.push_back(MemberKeyOutput::Keep(kept));
    }

    fn tell_if_removed(&mut self) {
        let Some((generation, false)) = self.newest() else { return };
        if !self.knows_members(generation) || self.told_removed >= Some(generation) {
            return;
        }
        self.told_removed = Some(generation);
        let last_readable = self.opened.range(..generation).next_back().copied();
        self.tell(MemberKeyEvent::Removed { generation, last_readable });
    }

    fn tell(&mut self, event: MemberKeyEvent) {
        self.outputs.push_back(MemberKeyOutput::Event(event));
    }

    /// The batches are not what they must be. What was restored and never continued may be of another database: then all is
    /// followed again.
    fn fail(&mut self, refusal: VerifyError, keyring: &Keyring) {
        self.open = None;
        if core::mem::take(&mut self.is_restored) {
            self.followed = from_the_start(&self.config);
            self.keep(keyring);
        } else {
            self.stop(Refusal::from(refusal).into());
        }
    }

    fn stop(&mut self, failure: Failure) {
        self.has_failed = true;
        self.tell(MemberKeyEvent::Failed(failure));
    }
}

fn from_the_start(config: &MemberKeyConfig) -> FollowedBatches {
    FollowedBatches {
        version: VersionOne,
        context: config.context.clone(),
        main_stream_id: config.main_stream_id,
        member: config.member,
        after_item: 0,
        batch_tail: None,
        active_generation: None,
        least_active: 0,
        newest: None,
        begun_within: None,
        members: List::EMPTY,
    }
}

fn member_key_refused() -> Failure {
    Failure {
        code: "encryption/member-key-refused".into(),
        remedy: Remedy::Surface,
        rule: "CIP-39 §9.1".into(),
        meaning: "the member's key could not be used to open an envelope".into(),
    }
}
