//! Receipt: ordered prefixes become pending rows, and F moves with them, in one transaction (STR-060 to STR-063).

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use remuda_streaming::{OrderedPrefix, ReceivedEnvelope, Topic, TopicKind};
use remuda_wire::codec::{Bytes, VersionOne};
use remuda_wire::{Bytes32, Canonical};

use super::evidence::PrefixEvidence;
use super::key::{Key, KeyRange};
use super::limits::{Limit, ReceiptLimits};
use super::place::Received;
use super::row::{decode, KindRow, PendingRow, TopicRow};
use super::store::{Entry, TopicStore};
use super::transaction::{Transaction, ATTEMPTS};
use crate::store::StoreError;

remuda_wire::verdicts! {
    /// Why rows were not received. F and what is pending are what they were.
    pub enum ReceiptRefused in "receipt" {
        Gap = "gap", "STR-060", "the source starts beyond what is received: the missing prefix has to be fetched", ReEnterAtBoundary;
        Conflict = "conflict", "STR-061", "another envelope is pending at the same place", Halt;
        TopicFull = "topic-full", "STR-063", "the pending rows of this topic have no room", Retry;
        KindFull = "kind-full", "STR-063", "the pending rows of this kind have no room", Retry;
        Oversized = "oversized", "STR-066", "a row is larger than its budget", Surface;
        Kind = "kind", "STR-060", "rows of this kind of topic are never received", FixRequest;
    }
}

/// What became of one prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// Whose rows.
    pub topic: Topic,
    /// F now.
    pub received: Received,
    /// Rows that are pending since.
    pub admitted: usize,
    /// What is left of it: with a reason, what had no room; without, what the next transaction takes.
    pub rest: Option<OrderedPrefix>,
    /// Why there is a rest that waits, or why nothing of it was taken.
    pub refused: Option<ReceiptRefused>,
}

/// Commits as much of `prefixes` as one transaction and every budget allow; rows at or below F are dropped, and those that
/// are still pending must be the same. Where a kind's budget is scarce, the topics that hold the least are served first;
/// else in the given order, in turns.
///
/// # Errors
/// [`StoreError`]: nothing was written. [`StoreError::Conflict`] when others were faster every time.
pub async fn receive<E: PrefixEvidence>(
    store: &impl TopicStore,
    limits: &ReceiptLimits,
    prefixes: Vec<E>,
) -> Result<Vec<Receipt>, StoreError> {
    let prefixes: Vec<_> = prefixes.into_iter().map(PrefixEvidence::into_prefix).collect();
    let mut attempt = 1;
    loop {
        match attempt_once(store, limits, &prefixes).await {
            Err(StoreError::Conflict) if attempt < ATTEMPTS => attempt += 1,
            answer => return answer,
        }
    }
}

async fn attempt_once(
    store: &impl TopicStore,
    limits: &ReceiptLimits,
    prefixes: &[OrderedPrefix],
) -> Result<Vec<Receipt>, StoreError> {
    let topics: BTreeSet<_> = prefixes.iter().map(OrderedPrefix::topic).collect();
    let kinds: BTreeSet<_> = topics.iter().map(Topic::kind).collect();
    let keys: Vec<_> = topics.iter().map(Key::topic).chain(kinds.iter().map(|kind| Key::kind(*kind))).collect();
    let overlaps: Vec<_> = prefixes.iter().map(overlap).collect();
    let mut transaction = Transaction::default();
    let pending = transaction.load(store, &keys, &overlaps).await?;
    let mut plan = Plan::new(limits, &transaction, &topics, &kinds)?;
    let mut offers = Vec::with_capacity(prefixes.len());
    let mut begun = BTreeSet::new();
    for (prefix, pending) in prefixes.iter().zip(pending) {
        // A second prefix of one topic begins where the first one leads to: the next transaction takes it.
        offers.push(match begun.insert(prefix.topic()) {
            true => Offer::judge(prefix, plan.row(&prefix.topic()), &pending, limits)?,
            false => Offer { prefix, new: &[], taken: 0, refused: None, known: 0 },
        });
    }
    plan.take(&mut offers);
    plan.write(&mut transaction, &offers)?;
    let receipts = offers.iter().map(|offer| offer.receipt(&plan)).collect();
    transaction.commit(store).await?;
    Ok(receipts)
}

/// Where rows of this prefix could be pending already.
fn overlap(prefix: &OrderedPrefix) -> KeyRange {
    let unlimited = Limit { rows: usize::MAX, bytes: usize::MAX };
    KeyRange::pending(&prefix.topic(), prefix.after(), prefix.through(), unlimited)
}

/// One prefix, judged: what of it is new, and how much is taken.
struct Offer<'a> {
    prefix: &'a OrderedPrefix,
    /// Rows at its front that we have.
    known: usize,
    new: &'a [ReceivedEnvelope],
    taken: usize,
    refused: Option<ReceiptRefused>,
}

impl<'a> Offer<'a> {
    fn judge(
        prefix: &'a OrderedPrefix,
        row: TopicRow,
        pending: &[Entry],
        limits: &ReceiptLimits,
    ) -> Result<Self, StoreError> {
        let known = prefix.rows().partition_point(|envelope| envelope.sequence_id() <= row.received());
        let (overlap, new) = prefix.rows().split_at_checked(known).unwrap_or((prefix.rows(), &[]));
        let refused = if limits.kind(prefix.topic().kind()).is_none() {
            Some(ReceiptRefused::Kind)
        } else if prefix.after() > row.received() {
            Some(ReceiptRefused::Gap)
        } else if contradicts(overlap, pending)? {
            Some(ReceiptRefused::Conflict)
        } else {
            None
        };
        Ok(Self { prefix, known, new, taken: 0, refused })
    }

    fn next(&self) -> Option<&'a ReceivedEnvelope> {
        if self.refused.is_some() {
            None
        } else {
            self.new.get(self.taken)
        }
    }

    fn receipt(&self, plan: &Plan<'_>) -> Receipt {
        let rest = match self.refused {
            // What contradicts us, or cannot follow, is of no use later.
            Some(ReceiptRefused::Gap | ReceiptRefused::Conflict | ReceiptRefused::Kind) => None,
            _ => self.prefix.clone().split_at(self.known + self.taken).1,
        };
        let topic = self.prefix.topic();
        let received = Received(plan.row(&topic).received());
        Receipt { topic, received, admitted: self.taken, rest, refused: self.refused }
    }
}

/// Whether a row is pending with other bytes at the same place.
fn contradicts(overlap: &[ReceivedEnvelope], pending: &[Entry]) -> Result<bool, StoreError> {
    let mut stored = BTreeMap::new();
    for (key, value) in pending {
        stored.insert(key.last_number(), value);
    }
    for envelope in overlap {
        if let Some(value) = stored.get(&Some(envelope.sequence_id().get())) {
            if *decode::<PendingRow>(value)?.envelope != **envelope.bytes() {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// What one transaction will hold.
struct Plan<'a> {
    limits: &'a ReceiptLimits,
    rows: BTreeMap<Topic, TopicRow>,
    kinds: BTreeMap<TopicKind, KindRow>,
    left: Limit,
}

impl<'a> Plan<'a> {
    fn new(
        limits: &'a ReceiptLimits,
        transaction: &Transaction,
        topics: &BTreeSet<Topic>,
        kinds: &BTreeSet<TopicKind>,
    ) -> Result<Self, StoreError> {
        let rows =
            topics.iter().map(|topic| Ok((*topic, transaction.topic(topic)?))).collect::<Result<_, StoreError>>()?;
        let kinds =
            kinds.iter().map(|kind| Ok((*kind, transaction.kind(*kind)?))).collect::<Result<_, StoreError>>()?;
        Ok(Self { limits, rows, kinds, left: limits.admission })
    }

    fn row(&self, topic: &Topic) -> TopicRow {
        self.rows.get(topic).copied().unwrap_or_else(|| TopicRow::empty(topic))
    }

    /// Takes rows in turns until nothing more fits.
    fn take(&mut self, offers: &mut [Offer<'_>]) {
        let scarce: BTreeSet<_> = self.kinds.keys().copied().filter(|kind| self.is_scarce(*kind, offers)).collect();
        let mut order: Vec<usize> = (0..offers.len()).collect();
        // Where not everything fits, who holds the most waits (STR-063). The order of the others is not touched.
        order.sort_by_key(|index| {
            let topic = offers.get(*index).map(|offer| offer.prefix.topic());
            let topic = topic.filter(|topic| scarce.contains(&topic.kind()));
            topic.map(|topic| self.row(&topic)).map_or((0, 0), |row| (row.pending_rows, row.pending_bytes))
        });
        let turn = (self.limits.admission.rows / order.len().max(1)).max(1);
        let mut progress = true;
        while progress {
            progress = false;
            for index in &order {
                let Some(offer) = offers.get_mut(*index) else { continue };
                for _ in 0..turn {
                    if !self.take_one(offer) {
                        break;
                    }
                    progress = true;
                }
            }
        }
    }

    /// Whether what is offered of a kind is more than its budget has left.
    fn is_scarce(&self, kind: TopicKind, offers: &[Offer<'_>]) -> bool {
        let (Some(limit), Some(held)) = (self.limits.kind(kind), self.kinds.get(&kind)) else { return false };
        let new = offers.iter().filter(|offer| offer.prefix.topic().kind() == kind).flat_map(|offer| offer.new);
        let (rows, bytes) = new.fold((held.rows, held.bytes), |(rows, bytes), envelope| {
            (rows.saturating_add(1), bytes.saturating_add(length(envelope)))
        });
        !fits(rows, bytes, limit)
    }

    fn take_one(&mut self, offer: &mut Offer<'_>) -> bool {
        let Some(envelope) = offer.next() else { return false };
        let topic = offer.prefix.topic();
        let (Some(limit), Some(kind)) = (self.limits.kind(topic.kind()), self.kinds.get_mut(&topic.kind())) else {
            return false;
        };
        let Some(row) = self.rows.get_mut(&topic) else { return false };
        let bytes = length(envelope);
        if [self.limits.admission, self.limits.topic, limit].iter().any(|limit| !fits(1, bytes, *limit)) {
            offer.refused = Some(ReceiptRefused::Oversized);
            return false;
        }
        if !fits(row.pending_rows.saturating_add(1), row.pending_bytes.saturating_add(bytes), self.limits.topic) {
            offer.refused = Some(ReceiptRefused::TopicFull);
            return false;
        }
        if !fits(kind.rows.saturating_add(1), kind.bytes.saturating_add(bytes), limit) {
            offer.refused = Some(ReceiptRefused::KindFull);
            return false;
        }
        if !fits(1, bytes, self.left) {
            return false;
        }
        self.left.rows -= 1;
        self.left.bytes -= envelope.bytes().len();
        (row.pending_rows, row.pending_bytes) = (row.pending_rows + 1, row.pending_bytes + bytes);
        (kind.rows, kind.bytes) = (kind.rows + 1, kind.bytes + bytes);
        row.received = envelope.sequence_id().get();
        offer.taken += 1;
        true
    }

    fn write(&self, transaction: &mut Transaction, offers: &[Offer<'_>]) -> Result<(), StoreError> {
        let mut moved = BTreeSet::new();
        for offer in offers {
            let topic = offer.prefix.topic();
            for envelope in offer.new.iter().take(offer.taken) {
                let pending = PendingRow {
                    version: VersionOne,
                    message_hash: Bytes32(*envelope.message_hash()),
                    deadline_ms: None,
                    // A row that fits its topic's budget fits its field.
                    envelope: Bytes::new(envelope.bytes().to_vec()).map_err(|_| StoreError::Corrupt)?,
                };
                transaction.put(Key::pending(&topic, envelope.sequence_id()), pending.to_bytes());
                moved.insert(topic);
            }
        }
        for topic in &moved {
            transaction.put_topic(topic, self.row(topic));
        }
        let kinds: BTreeSet<_> = moved.iter().map(Topic::kind).collect();
        for kind in kinds {
            if let Some(row) = self.kinds.get(&kind) {
                transaction.put(Key::kind(kind), row.to_bytes());
            }
        }
        Ok(())
    }
}

fn length(envelope: &ReceivedEnvelope) -> u64 {
    u64::try_from(envelope.bytes().len()).unwrap_or(u64::MAX)
}

fn fits(rows: u64, bytes: u64, limit: Limit) -> bool {
    let within = |used: u64, limit: usize| u64::try_from(limit).map_or(true, |limit| used <= limit);
    within(rows, limit.rows) && within(bytes, limit.bytes)
}

/// F of several topics, from one snapshot; the beginning of one of which nothing is durable.
///
/// # Errors
/// [`StoreError`].
pub async fn received(store: &impl TopicStore, topics: &[Topic]) -> Result<Vec<(Topic, Received)>, StoreError> {
    let keys: Vec<_> = topics.iter().map(Key::topic).collect();
    let mut transaction = Transaction::default();
    transaction.load(store, &keys, &[]).await?;
    topics.iter().map(|topic| Ok((*topic, Received(transaction.topic(topic)?.received())))).collect()
}
