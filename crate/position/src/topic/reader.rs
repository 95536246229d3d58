//! Readers beside the default consumer: replay from a cursor, and history with a cursor of the same snapshot (STR-098 to
//! STR-102). They know no D and no lease.

use remuda_wire::Bytes32;

use super::consumer::{Delivery, DeliveryCursor, DeliveryError, DeliveryRefused, Scope};
use super::key::Key;
use super::message::{look_further, read_messages, Message, FIRST_LOOK};
use super::place::DeliveryNumber;
use super::row::DatabaseRow;
use super::store::TopicStore;
use super::transaction::Transaction;
use crate::store::StoreError;

/// Reads retained messages in local order, strictly after a cursor.
#[derive(Debug)]
pub struct ReplayReader {
    database_id: Bytes32,
    scope: Scope,
    after: DeliveryNumber,
    /// Nothing above is read; `None`: what is new is read as it comes.
    through: Option<DeliveryNumber>,
}

impl ReplayReader {
    /// A reader that begins behind `cursor` and goes on with what is new.
    ///
    /// # Errors
    /// [`DeliveryRefused::CursorDatabase`], [`DeliveryRefused::CursorRange`]; [`StoreError`].
    pub async fn open(store: &impl TopicStore, cursor: DeliveryCursor, scope: Scope) -> Result<Self, DeliveryError> {
        let database = database(store).await?;
        if cursor.database_id != database.database_id {
            return Err(DeliveryRefused::CursorDatabase.into());
        }
        if cursor.delivery_number.0 > database.last_number {
            return Err(DeliveryRefused::CursorRange.into());
        }
        let database_id = database.database_id;
        Ok(Self { database_id, scope, after: cursor.delivery_number, through: None })
    }

    /// Everything that is there now, and the cursor behind it, both of one snapshot: what becomes deliverable later has a
    /// higher number, so that a reader which opens at that cursor misses nothing and repeats nothing.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn history(store: &impl TopicStore, scope: Scope) -> Result<(Self, DeliveryCursor), DeliveryError> {
        let database = database(store).await?;
        let through = DeliveryNumber(database.last_number);
        let database_id = database.database_id;
        let cursor = DeliveryCursor { database_id, delivery_number: through };
        let after = DeliveryNumber::default();
        Ok((Self { database_id, scope, after, through: Some(through) }, cursor))
    }

    /// The next message that the scope and `filter` let through; `None` when there is none yet, or, of a history, none
    /// any more.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn next(
        &mut self,
        store: &impl TopicStore,
        filter: impl Fn(&Message) -> bool,
        now_ms: u64,
    ) -> Result<Option<Delivery>, DeliveryError> {
        let mut limit = FIRST_LOOK;
        loop {
            let (messages, _) = read_messages(store, self.after, limit).await?;
            if messages.is_empty() {
                return Ok(None);
            }
            for (number, message) in messages {
                if self.through.is_some_and(|through| number > through) {
                    return Ok(None);
                }
                self.after = number;
                if self.scope.contains(&message.group) && !message.has_disappeared(now_ms) && filter(&message) {
                    let cursor = DeliveryCursor { database_id: self.database_id, delivery_number: number };
                    return Ok(Some(Delivery { message, cursor }));
                }
            }
            limit = look_further(limit);
        }
    }
}

/// The cursor before every message of this database.
///
/// # Errors
/// [`StoreError`].
pub async fn beginning(store: &impl TopicStore) -> Result<DeliveryCursor, DeliveryError> {
    let database_id = database(store).await?.database_id;
    Ok(DeliveryCursor { database_id, delivery_number: DeliveryNumber::default() })
}

async fn database(store: &impl TopicStore) -> Result<DatabaseRow, StoreError> {
    let mut transaction = Transaction::default();
    transaction.load(store, &[Key::database()], &[]).await?;
    transaction.database()
}
