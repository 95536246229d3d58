//! Processing: the next pending envelope of a topic becomes state and messages, and P moves with them, in one transaction
//! (STR-070 to STR-077).
//!
//! Every attempt loads what it decides from, and throws away what it computed when it is overtaken. Nothing in it waits for
//! the network: what is missing is answered as a [`Block`], and the attempt after it begins anew.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use remuda_streaming::{SequenceId, Topic, TopicKind};

use super::key::{Key, KeyRange};
use super::limits::Limit;
use super::message::{number_messages, NewMessage};
use super::place::{Processed, Received};
use super::processor::{Applied, Attempt, Block, IdentityReference, Outcome, Processor, RejectionReason};
use super::row::{decode, PendingRow, Phase, RejectedRow, TopicRow};
use super::store::TopicStore;
use super::transaction::{Transaction, ATTEMPTS};
use crate::store::StoreError;

/// Identity states that one envelope may ask for, one after the other.
const MAX_IDENTITY_REFERENCES: usize = 64;

/// What one attempt came to. Only the first two moved anything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// An envelope is applied.
    Applied {
        /// Which.
        sequence_id: SequenceId,
        /// Messages that are deliverable since.
        messages: usize,
    },
    /// An envelope is terminally rejected, and that is recorded.
    Rejected {
        /// Which.
        sequence_id: SequenceId,
        /// Why.
        reason: RejectionReason,
    },
    /// The head waits, and everything behind it on this topic with it.
    Blocked {
        /// Which.
        sequence_id: SequenceId,
        /// For what.
        block: Block,
    },
    /// The head failed transiently.
    Retry {
        /// Which.
        sequence_id: SequenceId,
    },
    /// Nothing is pending.
    Idle,
    /// The group is not joined, or this installation was removed: what is pending stays (STR-086).
    Inactive,
}

/// Attempts the head of a group or identity topic. `invalid` names identity references whose wait has ended without them
/// (STR-076).
///
/// # Errors
/// [`StoreError`]: nothing was written. [`StoreError::Conflict`] when others were faster every time.
pub async fn process(
    store: &impl TopicStore,
    processor: &impl Processor,
    topic: &Topic,
    invalid: &BTreeSet<IdentityReference>,
) -> Result<Step, StoreError> {
    for _ in 0..ATTEMPTS {
        match attempt(store, processor, topic, invalid).await {
            Err(StoreError::Conflict) => {}
            step => return step,
        }
    }
    Err(StoreError::Conflict)
}

async fn attempt(
    store: &impl TopicStore,
    processor: &impl Processor,
    topic: &Topic,
    invalid: &BTreeSet<IdentityReference>,
) -> Result<Step, StoreError> {
    let mut transaction = Transaction::default();
    let head = KeyRange::pending(topic, SequenceId::BEGINNING, SequenceId::MAX, Limit { rows: 1, bytes: usize::MAX });
    let keys = [Key::topic(topic), Key::kind(topic.kind())];
    let beside = transaction.load(store, &keys, &[head, KeyRange::one(Key::state(topic))]).await?;
    let mut beside = beside.into_iter();
    let (pending, state) = (beside.next().unwrap_or_default(), beside.next().unwrap_or_default());
    let mut row = transaction.topic(topic)?;
    if row.phase != Phase::Active {
        return Ok(Step::Inactive);
    }
    let Some((key, value)) = pending.into_iter().next() else { return Ok(Step::Idle) };
    let sequence_id = SequenceId::of_row(key.last_number().unwrap_or_default()).map_err(|_| StoreError::Corrupt)?;
    let pending: PendingRow = decode(&value)?;
    let state = state.into_iter().next().map(|(_, state)| state);
    let mut identities = Vec::new();
    let outcome = loop {
        let attempt = Attempt {
            topic: *topic,
            sequence_id,
            envelope: &pending.envelope,
            message_hash: &pending.message_hash.0,
            state: state.as_deref(),
            identities: &identities,
        };
        match processor.process(&attempt) {
            Outcome::Blocked(Block::Identity(reference)) => {
                if reference.at >= sequence_id || invalid.contains(&reference) {
                    break Outcome::Rejected(RejectionReason::InvalidReference);
                }
                match snapshot(store, &reference).await? {
                    Some(state) if identities.len() < MAX_IDENTITY_REFERENCES => identities.push((reference, state)),
                    _ => break Outcome::Blocked(Block::Identity(reference)),
                }
            }
            outcome => break outcome,
        }
    };
    match outcome {
        Outcome::Applied(applied) => {
            row.processed = sequence_id.get();
            transaction.take_pending(topic, &mut row, key, pending.envelope.len())?;
            let messages = apply(&mut transaction, store, topic, row, applied).await?;
            transaction.commit(store).await?;
            Ok(Step::Applied { sequence_id, messages })
        }
        Outcome::Rejected(reason) => {
            row.processed = sequence_id.get();
            transaction.take_pending(topic, &mut row, key, pending.envelope.len())?;
            transaction.put(Key::rejected(topic, sequence_id), RejectedRow::bytes(reason));
            transaction.put_topic(topic, row);
            transaction.commit(store).await?;
            Ok(Step::Rejected { sequence_id, reason })
        }
        Outcome::Blocked(block) => Ok(Step::Blocked { sequence_id, block }),
        // A join is no answer to anything but a welcome.
        Outcome::Retry | Outcome::Joined(_) => Ok(Step::Retry { sequence_id }),
    }
}

async fn apply(
    transaction: &mut Transaction,
    store: &impl TopicStore,
    topic: &Topic,
    mut row: TopicRow,
    applied: Applied,
) -> Result<usize, StoreError> {
    row.epoch = applied.epoch;
    if applied.removes_us && topic.kind() == TopicKind::Group {
        row.phase = Phase::Inactive;
    }
    if topic.kind() == TopicKind::Identity {
        transaction.put(Key::snapshot(topic, row.processed()), applied.state.clone());
    }
    transaction.put(Key::state(topic), applied.state);
    transaction.put_topic(topic, row);
    // An envelope makes messages of its own group, and an identity makes none.
    let ours = |message: &NewMessage| topic.kind() == TopicKind::Group && message.group == *topic;
    let messages = applied.messages.into_iter().filter(ours).collect();
    number_messages(transaction, store, messages).await
}

/// The verified state of an inbox at exactly one update. Written once and never changed: it needs no comparison.
async fn snapshot(store: &impl TopicStore, reference: &IdentityReference) -> Result<Option<Vec<u8>>, StoreError> {
    let range = KeyRange::one(Key::snapshot(&reference.inbox, reference.at));
    let rows = store.read(&[range]).await?;
    Ok(rows.into_iter().flatten().next().map(|(_, state)| state))
}

/// Installs a group that this client created: it has no welcome and begins at its beginning (STR-103).
///
/// # Errors
/// [`StoreError`]; [`StoreError::Conflict`] when the group is there already.
pub async fn install_created_group(
    store: &impl TopicStore,
    group: &Topic,
    created: Applied,
) -> Result<usize, StoreError> {
    let mut transaction = Transaction::default();
    transaction.load(store, &[Key::topic(group), Key::discovered(group)], &[]).await?;
    let mut row = transaction.topic(group)?;
    if row.phase != Phase::Absent {
        return Err(StoreError::Conflict);
    }
    row.phase = Phase::Active;
    transaction.put(Key::discovered(group), Vec::new());
    let messages = apply(&mut transaction, store, group, row, created).await?;
    transaction.commit(store).await?;
    Ok(messages)
}

/// How far a topic has come, as everyone sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// F.
    pub received: Received,
    /// P; `None` of a welcome topic, which has none.
    pub processed: Option<Processed>,
    /// Rows between them.
    pub pending: u64,
    /// A group that was left, or is not joined yet.
    pub inactive: bool,
}

/// Reads the progress of a topic.
///
/// # Errors
/// [`StoreError`].
pub async fn progress(store: &impl TopicStore, topic: &Topic) -> Result<Progress, StoreError> {
    let mut transaction = Transaction::default();
    transaction.load(store, &[Key::topic(topic)], &[]).await?;
    let row = transaction.topic(topic)?;
    Ok(Progress {
        received: Received(row.received()),
        processed: (topic.kind() != TopicKind::Welcome).then(|| Processed(row.processed())),
        pending: row.pending_rows,
        inactive: row.phase == Phase::Inactive,
    })
}

/// Every terminal rejection of a topic, ascending.
///
/// # Errors
/// [`StoreError`].
pub async fn rejections(
    store: &impl TopicStore,
    topic: &Topic,
) -> Result<Vec<(SequenceId, RejectionReason)>, StoreError> {
    let rows = store.read(&[KeyRange::rejections(topic)]).await?;
    let decoded = rows.into_iter().flatten().map(|(key, value)| {
        let place = SequenceId::of_row(key.last_number().unwrap_or_default()).map_err(|_| StoreError::Corrupt)?;
        Ok((place, decode::<RejectedRow>(&value)?.reason))
    });
    decoded.collect()
}

/// Every group that is stored, from one snapshot: what an all-groups controller reconciles its interests with (STR-085).
///
/// # Errors
/// [`StoreError`].
pub async fn discovered_groups(store: &impl TopicStore) -> Result<Vec<Topic>, StoreError> {
    let unlimited = Limit { rows: usize::MAX, bytes: usize::MAX };
    let rows = store.read(&[KeyRange::discoveries(unlimited)]).await?;
    rows.into_iter().flatten().map(|(key, _)| key.only_topic().ok_or(StoreError::Corrupt)).collect()
}
