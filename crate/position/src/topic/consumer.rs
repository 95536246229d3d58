//! The default consumer: one owner of D, one item at a time, acknowledged at the next pull (STR-091 to STR-097, STR-104).

use alloc::collections::{BTreeMap, BTreeSet};

use remuda_streaming::Topic;
use remuda_wire::codec::VersionOne;
use remuda_wire::{Bytes32, Canonical};

use super::key::Key;
use super::limits::DEFAULT_CONSUMER_LEASE_DURATION_MS;
use super::message::{look_further, read_messages, Message, FIRST_LOOK};
use super::place::{Delivered, DeliveryNumber};
use super::row::{LeaseRow, NumberRow};
use super::store::TopicStore;
use super::transaction::Transaction;
use crate::store::StoreError;

remuda_wire::verdicts! {
    /// Why nothing is delivered, or nothing acknowledged.
    pub enum DeliveryRefused in "delivery" {
        AlreadyActive = "already-active", "STR-023", "another default consumer is active", Surface;
        NotOwner = "not-owner", "STR-096", "the lease has expired or was taken over", ReEnterAtBoundary;
        Token = "token", "STR-104", "the token is not that of the item that was handed over", FixRequest;
        CursorDatabase = "cursor-database", "STR-098", "the cursor is of another database", FixRequest;
        CursorRange = "cursor-range", "STR-098", "the cursor is above every delivery number", FixRequest;
    }
}

/// Why a delivery did not go on. D is what it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeliveryError {
    /// The rules refuse it.
    Refused(DeliveryRefused),
    /// Our disk failed us.
    Store(StoreError),
}

impl DeliveryError {
    /// The stable code.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Refused(refused) => refused.code(),
            Self::Store(error) => error.code(),
        }
    }
}

impl From<StoreError> for DeliveryError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<DeliveryRefused> for DeliveryError {
    fn from(refused: DeliveryRefused) -> Self {
        Self::Refused(refused)
    }
}

/// The groups of which an application wants messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Every group, new ones included.
    AllGroups,
    /// These alone.
    Groups(BTreeSet<Topic>),
}

impl Scope {
    /// Whether messages of `group` are wanted.
    pub fn contains(&self, group: &Topic) -> bool {
        match self {
            Self::AllGroups => true,
            Self::Groups(groups) => groups.contains(group),
        }
    }
}

/// Where a reader stands: this database, strictly after this message. Its number is not a sequence id and no timestamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeliveryCursor {
    /// Which database.
    pub database_id: Bytes32,
    /// The last delivery number; 0 is the beginning.
    pub delivery_number: DeliveryNumber,
}

impl DeliveryCursor {
    /// A cursor as an application kept it. Whether it is one of this database is judged where it is used.
    pub const fn kept(database_id: Bytes32, delivery_number: u64) -> Self {
        Self { database_id, delivery_number: DeliveryNumber(delivery_number) }
    }
}

/// A message that is delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The message.
    pub message: Message,
    /// Resumes behind it; having it acknowledges nothing.
    pub cursor: DeliveryCursor,
}

/// Names one handoff. Given back, it acknowledges that one and no other, once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandoffToken {
    generation: u64,
    group: Topic,
    number: DeliveryNumber,
}

/// A message that was handed to the application, and the token that acknowledges it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handoff {
    /// What was handed over.
    pub delivery: Delivery,
    /// Goes back with the next pull.
    pub token: HandoffToken,
}

/// The owner of D. At most one item is unacknowledged; scope and filter are those of each pull.
#[derive(Debug)]
pub struct Consumer {
    lease: LeaseRow,
    /// D of the groups that were met, ours alone while the lease is.
    delivered: BTreeMap<Topic, DeliveryNumber>,
    handed: Option<HandoffToken>,
    scope: Scope,
    /// Everything at or below was scanned under this scope.
    scanned: DeliveryNumber,
}

impl Consumer {
    /// Becomes the owner of D. `owner` is random and ours alone.
    ///
    /// # Errors
    /// [`DeliveryRefused::AlreadyActive`] while another lease has not expired; [`StoreError`].
    pub async fn acquire(
        store: &impl TopicStore,
        owner: Bytes32,
        scope: Scope,
        now_ms: u64,
    ) -> Result<Self, DeliveryError> {
        let mut transaction = Transaction::default();
        transaction.load(store, &[Key::lease()], &[]).await?;
        let held: Option<LeaseRow> = transaction.decoded(&Key::lease())?;
        // One of ours is an acquisition that completed and was never heard of.
        if held.is_some_and(|held| held.expires_at_ms > now_ms && held.owner != owner) {
            return Err(DeliveryRefused::AlreadyActive.into());
        }
        let lease = LeaseRow {
            version: VersionOne,
            generation: held.map_or(1, |held| held.generation.saturating_add(1)),
            owner,
            expires_at_ms: now_ms.saturating_add(DEFAULT_CONSUMER_LEASE_DURATION_MS),
        };
        transaction.put(Key::lease(), lease.to_bytes());
        match transaction.commit(store).await {
            // Somebody else became it between our look and our word.
            Err(StoreError::Conflict) => Err(DeliveryRefused::AlreadyActive.into()),
            committed => {
                committed?;
                let scanned = DeliveryNumber::default();
                Ok(Self { lease, delivered: BTreeMap::new(), handed: None, scope, scanned })
            }
        }
    }

    /// Extends the lease: to be called within [`super::limits::DEFAULT_CONSUMER_RENEWAL_MS`].
    ///
    /// # Errors
    /// [`DeliveryRefused::NotOwner`]: no handoff any more; [`StoreError`].
    pub async fn renew(&mut self, store: &impl TopicStore, now_ms: u64) -> Result<(), DeliveryError> {
        let expires_at_ms = now_ms.saturating_add(DEFAULT_CONSUMER_LEASE_DURATION_MS);
        self.rewrite_lease(store, now_ms, expires_at_ms).await
    }

    /// Gives the lease up. An unacknowledged item stays one; F, P and D are what they were.
    ///
    /// # Errors
    /// [`DeliveryRefused::NotOwner`]; [`StoreError`]: the lease then ends by itself.
    pub async fn close(mut self, store: &impl TopicStore, now_ms: u64) -> Result<(), DeliveryError> {
        self.rewrite_lease(store, now_ms, 0).await
    }

    /// Changes what is wanted from the next pull on. D of no group moves by it (STR-092).
    pub fn set_scope(&mut self, scope: Scope) {
        if self.scope != scope {
            self.scope = scope;
            self.scanned = DeliveryNumber::default();
        }
    }

    /// The next message of the scope that `filter` lets through, after `acknowledged` is durably so. Messages that the
    /// filter excludes are passed by D; one that was handed over and is not acknowledged comes again.
    ///
    /// # Errors
    /// [`DeliveryRefused::Token`]; [`DeliveryRefused::NotOwner`]; [`StoreError`]. Nothing was acknowledged and nothing is
    /// handed over: the same call may be repeated.
    pub async fn next(
        &mut self,
        store: &impl TopicStore,
        acknowledged: Option<HandoffToken>,
        filter: impl Fn(&Message) -> bool,
        now_ms: u64,
    ) -> Result<Option<Handoff>, DeliveryError> {
        if acknowledged.is_some() && acknowledged != self.handed {
            return Err(DeliveryRefused::Token.into());
        }
        let mut advanced = BTreeMap::new();
        let mut scanned = self.scanned;
        if let Some(token) = acknowledged {
            advanced.insert(token.group, token.number);
        }
        let mut limit = FIRST_LOOK;
        loop {
            let (messages, database) = read_messages(store, scanned, limit).await?;
            let is_last = messages.is_empty();
            let mut found = None;
            for (number, message) in messages {
                if self.scope.contains(&message.group)
                    && number > self.reached(store, &advanced, &message.group).await?
                {
                    if message.has_disappeared(now_ms) || !filter(&message) {
                        advanced.insert(message.group, number);
                    } else {
                        found = Some((number, message));
                        break;
                    }
                }
                scanned = number;
            }
            if found.is_none() && !is_last {
                limit = look_further(limit);
                continue;
            }
            self.commit(store, advanced, now_ms).await?;
            (self.scanned, self.handed) = (scanned, None);
            let Some((number, message)) = found else { return Ok(None) };
            let token = HandoffToken { generation: self.lease.generation, group: message.group, number };
            self.handed = Some(token);
            let cursor = DeliveryCursor { database_id: database.database_id, delivery_number: number };
            return Ok(Some(Handoff { delivery: Delivery { message, cursor }, token }));
        }
    }

    /// D of a group, as this pull has it.
    async fn reached(
        &mut self,
        store: &impl TopicStore,
        advanced: &BTreeMap<Topic, DeliveryNumber>,
        group: &Topic,
    ) -> Result<DeliveryNumber, StoreError> {
        if let Some(number) = advanced.get(group).or_else(|| self.delivered.get(group)) {
            return Ok(*number);
        }
        let Delivered(number) = delivered(store, group).await?;
        self.delivered.insert(*group, number);
        Ok(number)
    }

    /// Moves D, as the owner that we still have to be; with nothing to move, only checks that.
    async fn commit(
        &mut self,
        store: &impl TopicStore,
        advanced: BTreeMap<Topic, DeliveryNumber>,
        now_ms: u64,
    ) -> Result<(), DeliveryError> {
        let mut transaction = self.owned(store, now_ms).await?;
        for (group, number) in &advanced {
            transaction.put(Key::delivered(group), NumberRow { version: VersionOne, number: number.0 }.to_bytes());
        }
        // It may have completed without our hearing of it: only the store knows D now.
        let known = core::mem::take(&mut self.delivered);
        match transaction.commit(store).await {
            Err(StoreError::Conflict) => return Err(DeliveryRefused::NotOwner.into()),
            committed => committed?,
        }
        self.delivered = known;
        self.delivered.extend(advanced);
        Ok(())
    }

    /// A transaction that commits only while the lease is ours and not expired.
    async fn owned(&mut self, store: &impl TopicStore, now_ms: u64) -> Result<Transaction, DeliveryError> {
        let mut transaction = Transaction::default();
        transaction.load(store, &[Key::lease()], &[]).await?;
        let held: Option<LeaseRow> = transaction.decoded(&Key::lease())?;
        let ours = held.filter(|held| held.generation == self.lease.generation && held.owner == self.lease.owner);
        // What is stored counts: a renewal may have completed that we never heard of.
        self.lease = ours.filter(|held| held.expires_at_ms > now_ms).ok_or(DeliveryRefused::NotOwner)?;
        Ok(transaction)
    }

    async fn rewrite_lease(
        &mut self,
        store: &impl TopicStore,
        now_ms: u64,
        expires_at_ms: u64,
    ) -> Result<(), DeliveryError> {
        let mut transaction = self.owned(store, now_ms).await?;
        let lease = LeaseRow { expires_at_ms, ..self.lease };
        transaction.put(Key::lease(), lease.to_bytes());
        match transaction.commit(store).await {
            Err(StoreError::Conflict) => return Err(DeliveryRefused::NotOwner.into()),
            committed => committed?,
        }
        self.lease = lease;
        Ok(())
    }
}

/// D of a group; zero where there is none.
///
/// # Errors
/// [`StoreError`].
pub async fn delivered(store: &impl TopicStore, group: &Topic) -> Result<Delivered, StoreError> {
    let mut transaction = Transaction::default();
    transaction.load(store, &[Key::delivered(group)], &[]).await?;
    let row: Option<NumberRow> = transaction.decoded(&Key::delivered(group))?;
    Ok(Delivered(DeliveryNumber(row.map_or(0, |row| row.number))))
}
