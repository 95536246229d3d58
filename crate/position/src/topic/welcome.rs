//! Welcomes: independent of each other, and joins that never rewind a group (STR-080 to STR-086, STR-115).

use alloc::vec::Vec;

use remuda_streaming::{SequenceId, Topic, TopicKind};
use remuda_wire::Canonical;

use super::key::{Key, KeyRange};
use super::limits::{Limit, WELCOME_RETENTION_MS};
use super::message::number_messages;
use super::processing::Step;
use super::processor::{Attempt, Block, Join, JoinAnchor, Outcome, Processor, RejectionReason};
use super::row::{decode, PendingRow, Phase, RejectedRow, TopicRow};
use super::store::TopicStore;
use super::transaction::{Transaction, ATTEMPTS};
use crate::store::StoreError;

/// The welcomes at or below `through` that are neither installed nor rejected: what a barrier through it waits for.
///
/// # Errors
/// [`StoreError`].
pub async fn unresolved(
    store: &impl TopicStore,
    topic: &Topic,
    through: SequenceId,
) -> Result<Vec<SequenceId>, StoreError> {
    let unlimited = Limit { rows: usize::MAX, bytes: usize::MAX };
    let rows = store.read(&[KeyRange::pending(topic, SequenceId::BEGINNING, through, unlimited)]).await?;
    let place = |key: &Key| SequenceId::of_row(key.last_number().unwrap_or_default()).map_err(|_| StoreError::Corrupt);
    rows.iter().flatten().map(|(key, _)| place(key)).collect()
}

/// Attempts one welcome, whatever became of those before it.
///
/// # Errors
/// [`StoreError`]: nothing was written. [`StoreError::Conflict`] when others were faster every time.
pub async fn process_welcome(
    store: &impl TopicStore,
    processor: &impl Processor,
    topic: &Topic,
    sequence_id: SequenceId,
    now_ms: u64,
) -> Result<Step, StoreError> {
    for _ in 0..ATTEMPTS {
        match attempt(store, processor, topic, sequence_id, now_ms).await {
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
    sequence_id: SequenceId,
    now_ms: u64,
) -> Result<Step, StoreError> {
    let key = Key::pending(topic, sequence_id);
    let mut transaction = Transaction::default();
    let keys = [Key::topic(topic), Key::kind(topic.kind())];
    let beside = transaction.load(store, &keys, &[KeyRange::one(key.clone())]).await?;
    let Some((_, value)) = beside.into_iter().flatten().next() else { return Ok(Step::Idle) };
    let pending: PendingRow = decode(&value)?;
    let welcome = Welcome { topic, sequence_id, key, pending };
    let outcome = processor.process(&Attempt {
        topic: *topic,
        sequence_id,
        envelope: &welcome.pending.envelope,
        message_hash: &welcome.pending.message_hash.0,
        state: None,
        identities: &[],
    });
    let settled = match outcome {
        Outcome::Joined(join) => install(&mut transaction, store, &welcome, join).await?,
        Outcome::Rejected(reason) => Settled::Rejected(reason),
        Outcome::Blocked(block) => Settled::Waits(Step::Blocked { sequence_id, block }),
        // Nothing but a join applies a welcome.
        Outcome::Retry | Outcome::Applied(_) => Settled::Waits(Step::Retry { sequence_id }),
    };
    let step = match settled {
        Settled::Installed { messages } => {
            welcome.complete(&mut transaction)?;
            Step::Applied { sequence_id, messages }
        }
        Settled::Rejected(reason) => welcome.reject(&mut transaction, reason)?,
        Settled::Waits(step) => match welcome.pending.deadline_ms {
            // This was the one further attempt at or after the deadline.
            Some(deadline) if now_ms >= deadline => welcome.reject(&mut transaction, RejectionReason::Expired)?,
            Some(_) => return Ok(step),
            None => {
                welcome.set_deadline(&mut transaction, now_ms.saturating_add(WELCOME_RETENTION_MS))?;
                step
            }
        },
    };
    transaction.commit(store).await?;
    Ok(step)
}

/// A pending welcome.
struct Welcome<'a> {
    topic: &'a Topic,
    sequence_id: SequenceId,
    key: Key,
    pending: PendingRow,
}

impl Welcome<'_> {
    fn complete(&self, transaction: &mut Transaction) -> Result<(), StoreError> {
        let mut row = transaction.topic(self.topic)?;
        transaction.take_pending(self.topic, &mut row, self.key.clone(), self.pending.envelope.len())?;
        transaction.put_topic(self.topic, row);
        Ok(())
    }

    fn reject(&self, transaction: &mut Transaction, reason: RejectionReason) -> Result<Step, StoreError> {
        self.complete(transaction)?;
        transaction.put(Key::rejected(self.topic, self.sequence_id), RejectedRow::bytes(reason));
        Ok(Step::Rejected { sequence_id: self.sequence_id, reason })
    }

    /// Once: a retry or restart does not extend it.
    fn set_deadline(&self, transaction: &mut Transaction, deadline_ms: u64) -> Result<(), StoreError> {
        let pending = PendingRow { deadline_ms: Some(deadline_ms), ..self.pending.clone() };
        transaction.put(self.key.clone(), pending.to_bytes());
        transaction.put_topic(self.topic, transaction.topic(self.topic)?);
        Ok(())
    }
}

/// What a welcome came to.
enum Settled {
    Installed { messages: usize },
    Rejected(RejectionReason),
    Waits(Step),
}

async fn install(
    transaction: &mut Transaction,
    store: &impl TopicStore,
    welcome: &Welcome<'_>,
    join: Join,
) -> Result<Settled, StoreError> {
    let anchor = join.anchor.place();
    let is_group = join.group.kind() == TopicKind::Group;
    if !is_group || join.anchor == JoinAnchor::At(SequenceId::BEGINNING) || anchor >= welcome.sequence_id {
        return Ok(Settled::Rejected(RejectionReason::InvalidAnchor));
    }
    let group = join.group;
    let keys = [Key::topic(&group), Key::kind(TopicKind::Group), Key::discovered(&group)];
    let unlimited = Limit { rows: usize::MAX, bytes: usize::MAX };
    let covered = KeyRange::pending(&group, SequenceId::BEGINNING, anchor, unlimited);
    let covered = transaction.load(store, &keys, &[covered]).await?;
    let mut row = transaction.topic(&group)?;
    match judge(&row, anchor, join.epoch) {
        Verdict::Install => {}
        Verdict::Reject(reason) => return Ok(Settled::Rejected(reason)),
        Verdict::PrefixFirst => {
            let block = Block::GroupPrefix { group, through: anchor };
            return Ok(Settled::Waits(Step::Blocked { sequence_id: welcome.sequence_id, block }));
        }
    }
    // What the anchor covers is not processed again; what lies above it waits for the joined state.
    for (key, value) in covered.into_iter().flatten() {
        let bytes = decode::<PendingRow>(&value)?.envelope.len();
        transaction.take_pending(&group, &mut row, key, bytes)?;
    }
    row.processed = anchor.get();
    row.received = row.received.max(anchor.get());
    row.epoch = join.epoch;
    row.phase = Phase::Active;
    transaction.put_topic(&group, row);
    transaction.put(Key::state(&group), join.state);
    transaction.put(Key::discovered(&group), Vec::new());
    let messages = join.messages.into_iter().filter(|message| message.group == group).collect();
    Ok(Settled::Installed { messages: number_messages(transaction, store, messages).await? })
}

enum Verdict {
    Install,
    /// The old group's prefix through the anchor comes first: a removal may be in it.
    PrefixFirst,
    Reject(RejectionReason),
}

/// STR-082, case by case.
fn judge(row: &TopicRow, anchor: SequenceId, epoch: u64) -> Verdict {
    match row.phase {
        Phase::Absent => Verdict::Install,
        Phase::Inactive if row.processed() < anchor => Verdict::Install,
        // The commit that removed us and added us again.
        Phase::Inactive if row.processed() == anchor && epoch >= row.epoch => Verdict::Install,
        Phase::Inactive => Verdict::Reject(RejectionReason::StaleWelcome),
        Phase::Active if row.epoch >= epoch => Verdict::Reject(RejectionReason::StaleWelcome),
        Phase::Active if row.processed() < anchor => Verdict::PrefixFirst,
        Phase::Active => Verdict::Reject(RejectionReason::ConflictingWelcome),
    }
}
