//! Deliverable messages, numbered in this database (STR-090, STR-103).

use alloc::vec::Vec;

use remuda_streaming::Topic;
use remuda_wire::codec::{Bytes, VersionOne};
use remuda_wire::{object, tags, Bytes32, Canonical};

use super::key::{Key, KeyRange};
use super::limits::{Limit, MAX_LOCAL_READ};
use super::place::DeliveryNumber;
use super::row::{decode, DatabaseRow, NumberRow, MAX_VALUE_BYTES};
use super::store::TopicStore;
use super::transaction::{Transaction, ATTEMPTS};
use crate::store::StoreError;

tags! {
    /// What kind of record a message is.
    pub enum MessageKind: u8 {
        /// An application's message.
        Application = 1,
        /// A change of membership, a join's transcript included.
        MembershipChange = 2,
    }
}

/// A message that processing, installation or import makes deliverable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewMessage {
    /// The same for every copy of it, whatever made it deliverable.
    pub stable_id: Bytes32,
    /// What it is.
    pub kind: MessageKind,
    /// Its group; in processing, the group that is processed.
    pub group: Topic,
    /// When it disappears, in milliseconds since 1970.
    pub disappears_at_ms: Option<u64>,
    /// The application's own bytes.
    pub content: Vec<u8>,
}

object! {
    /// A message as it is stored; its key is its delivery number.
    pub struct Message {
        version: VersionOne,
        stable_id: Bytes32,
        kind: MessageKind,
        group: Topic,
        disappears_at_ms: Option<u64>,
        content: Bytes<MAX_VALUE_BYTES>,
    }
}

impl Message {
    /// Whether its own deadline has passed. A backend's expiry says nothing here (STR-103).
    pub fn has_disappeared(&self, now_ms: u64) -> bool {
        self.disappears_at_ms.is_some_and(|deadline| deadline <= now_ms)
    }
}

/// Gives each new message the next number, in order; one whose stable id has a number keeps it and is not stored again.
/// Loads what it compares.
pub(crate) async fn number_messages(
    transaction: &mut Transaction,
    store: &impl TopicStore,
    messages: Vec<NewMessage>,
) -> Result<usize, StoreError> {
    if messages.is_empty() {
        return Ok(0);
    }
    let ids = messages.iter().map(|message| Key::stable_id(&message.stable_id));
    let keys: Vec<_> = ids.chain([Key::database()]).collect();
    transaction.load(store, &keys, &[]).await?;
    let mut database = transaction.database()?;
    let mut numbered = 0;
    for message in messages {
        let id = Key::stable_id(&message.stable_id);
        if transaction.get(&id).is_some() {
            continue;
        }
        database.last_number = database.last_number.checked_add(1).ok_or(StoreError::Unavailable)?;
        numbered += 1;
        let row = Message {
            version: VersionOne,
            stable_id: message.stable_id,
            kind: message.kind,
            group: message.group,
            disappears_at_ms: message.disappears_at_ms,
            content: Bytes::new(message.content).map_err(|_| StoreError::Quota)?,
        };
        transaction.put(id, NumberRow { version: VersionOne, number: database.last_number }.to_bytes());
        transaction.put(Key::message(DeliveryNumber(database.last_number)), row.to_bytes());
    }
    transaction.put(Key::database(), database.to_bytes());
    Ok(numbered)
}

/// Founds a database, or finds the one that is there: its identity.
///
/// # Errors
/// [`StoreError`].
pub async fn found(store: &impl TopicStore, database_id: Bytes32) -> Result<Bytes32, StoreError> {
    for _ in 0..ATTEMPTS {
        let mut transaction = Transaction::default();
        transaction.load(store, &[Key::database()], &[]).await?;
        if let Some(row) = transaction.decoded::<DatabaseRow>(&Key::database())? {
            return Ok(row.database_id);
        }
        transaction.put(Key::database(), DatabaseRow { version: VersionOne, database_id, last_number: 0 }.to_bytes());
        match transaction.commit(store).await {
            Err(StoreError::Conflict) => {}
            committed => return committed.map(|()| database_id),
        }
    }
    Err(StoreError::Conflict)
}

/// Makes messages of an accepted history import deliverable, under fresh numbers; returns how many are new (STR-090).
///
/// # Errors
/// [`StoreError`].
pub async fn import(store: &impl TopicStore, messages: &[NewMessage]) -> Result<usize, StoreError> {
    for _ in 0..ATTEMPTS {
        let mut transaction = Transaction::default();
        let numbered = number_messages(&mut transaction, store, messages.to_vec()).await?;
        match transaction.commit(store).await {
            Err(StoreError::Conflict) => {}
            committed => return committed.map(|()| numbered),
        }
    }
    Err(StoreError::Conflict)
}

/// Deletes a message. Its number is not used again, and its stable id keeps it: a duplicate does not come back (STR-090,
/// STR-102).
///
/// # Errors
/// [`StoreError`].
pub async fn delete(store: &impl TopicStore, stable_id: &Bytes32) -> Result<(), StoreError> {
    let mut transaction = Transaction::default();
    let id = Key::stable_id(stable_id);
    transaction.load(store, core::slice::from_ref(&id), &[]).await?;
    if let Some(row) = transaction.decoded::<NumberRow>(&id)? {
        transaction.remove(Key::message(DeliveryNumber(row.number)));
    }
    transaction.commit(store).await
}

/// How much is read to find the next message: the one before, which D has reached by now, and mostly the next one.
pub(crate) const FIRST_LOOK: Limit = Limit { rows: 2, bytes: MAX_LOCAL_READ.bytes };

/// How much is read where nothing was found: twice as much, up to a whole batch.
pub(crate) fn look_further(limit: Limit) -> Limit {
    Limit { rows: limit.rows.saturating_mul(2).min(MAX_LOCAL_READ.rows), ..limit }
}

/// Messages above `after`, with their numbers, ascending; and the last number that was given out, from the same snapshot.
pub(crate) async fn read_messages(
    store: &impl TopicStore,
    after: DeliveryNumber,
    limit: Limit,
) -> Result<(Vec<(DeliveryNumber, Message)>, DatabaseRow), StoreError> {
    let range = KeyRange::messages(after, DeliveryNumber(u64::MAX), limit);
    let mut transaction = Transaction::default();
    let rows = transaction.load(store, &[Key::database()], &[range]).await?;
    let database = transaction.database()?;
    let decoded = rows.into_iter().flatten().map(|(key, value)| {
        let number = key.last_number().ok_or(StoreError::Corrupt)?;
        Ok((DeliveryNumber(number), decode(&value)?))
    });
    Ok((decoded.collect::<Result<_, StoreError>>()?, database))
}
