//! What must be true at the end, read from the database and the provider's store.

use std::collections::BTreeMap;

use remuda_client::Event;
use remuda_position::outbox::OutboxState;
use remuda_position::{
    Boundary, PositionKey, Store, StoredItem, StoredItemBody, StoredPosition, StoredRow, StreamPoint,
};
use remuda_wire::record::FastRecordId;
use remuda_wire::scope::LaneScope;
use remuda_wire::Canonical;

use crate::world::{now, World};

impl World {
    /// Whether every append has its outcome and every subscription of `client` has everything that is durable.
    pub fn caught_up(&self, client: usize) -> bool {
        if self.appended.keys().any(|entry| !self.has_ended(*entry)) {
            return false;
        }
        let head = self.provider.head();
        self.clients[client].engine.subscriptions().values().all(|it| it.boundary().point() == Some(head))
    }

    /// The failures that `client` was told, with their codes.
    pub fn failures(&self, client: usize) -> Vec<String> {
        let failure = |event: &Event| match event {
            Event::Failure { failure, .. } => Some(failure.code.clone()),
            _ => None,
        };
        self.clients[client].events.iter().filter_map(|(_, event)| failure(event)).collect()
    }

    /// The items of a position, in order, after checking that they are numbered without a gap.
    pub fn items(&self, key: PositionKey) -> Vec<StoredItem> {
        let rows = now(self.store.rows_after(key, 0, usize::MAX)).expect("a store in memory");
        let mut items = Vec::new();
        for row in rows {
            for (number, item) in StoredRow::from_bytes(&row).expect("canonical").numbered() {
                assert_eq!(number, u64::try_from(items.len()).expect("few") + 1, "items are numbered from 1 on");
                items.push(item);
            }
        }
        items
    }

    pub fn position(&self, key: PositionKey) -> Option<StoredPosition> {
        now(self.store.load(key)).expect("a store in memory")
    }

    /// Nothing is lost, nothing is repeated, the position is where its rows are: the rows of `key` are the durable records
    /// of `scope`, in order, from the first on; transitions stand between their lineages, each once.
    pub fn check(&self, key: PositionKey, scope: &LaneScope) {
        let items = self.items(key);
        let position = self.position(key).expect("a position");
        assert_eq!(position.last_item(), u64::try_from(items.len()).expect("few"), "the position names its last item");
        let expected = self.provider.durable(scope);
        let mut records = Vec::new();
        let mut epoch = None;
        for item in &items {
            match &item.body {
                StoredItemBody::Record(record) => {
                    let id = record.record_id;
                    assert_eq!(
                        *epoch.get_or_insert(id.broker_epoch),
                        id.broker_epoch,
                        "a lineage begins by its transition"
                    );
                    records.push((id, record.header.clone(), record.payload.clone()));
                }
                other @ (StoredItemBody::StandardRecord(_) | StoredItemBody::Gap(_) | StoredItemBody::Snapshot(_)) => {
                    panic!("{other:?} in a whole history of a fast stream")
                }
                StoredItemBody::Transition(stored) => {
                    let transition = &stored.transition;
                    let previous = transition.previous_lineage.map(|lineage| lineage.broker_epoch);
                    assert!(epoch.is_none() || epoch == previous, "transitions follow each other");
                    epoch = Some(transition.replacement_broker_epoch);
                }
            }
        }
        let ids =
            |records: Vec<FastRecordId>| records.iter().map(|id| (id.broker_epoch, id.sequence)).collect::<Vec<_>>();
        let ours = ids(records.iter().map(|(id, ..)| *id).collect());
        let theirs = ids(expected.iter().map(|(id, _)| *id).collect());
        assert_eq!(ours, theirs, "exactly the durable records, once, in order");
        for ((_, header, payload), (_, record)) in records.iter().zip(&expected) {
            assert_eq!((header, payload), (&record.header, &record.payload));
        }
        let point = Boundary::stored(key, position).point().expect("a checkpoint");
        if let Some((id, ..)) = records.last() {
            let last = StreamPoint { broker_epoch: id.broker_epoch, next_sequence: id.sequence + 1 };
            assert!(last <= point, "the position is never behind its rows");
        }
    }

    /// Nothing that was appended is lost, nothing is repeated, and every lane has it in the order in which it was enqueued:
    /// each entry that did not fail is one durable record. Gives the codes of those that failed.
    pub fn check_appends(&self) -> Vec<String> {
        let (codes, repeated) = self.check_appends_kept();
        assert_eq!(repeated, Vec::<u64>::new(), "entries that are more than one record");
        codes
    }

    /// The same of a fast stream under any fault: it knows no retry (§11.1), so an append whose outcome a dead connection
    /// hides for long enough is made again, under the same message id. Gives those entries too.
    pub fn check_appends_kept(&self) -> (Vec<String>, Vec<u64>) {
        let (mut codes, mut repeated) = (Vec::new(), Vec::new());
        let mut places = BTreeMap::<_, Vec<_>>::new();
        for (place, message) in self.provider.messages().into_iter().enumerate() {
            places.entry(message).or_default().push(place);
        }
        let mut lanes = BTreeMap::new();
        for (entry, appended) in &self.appended {
            match self.state(*entry) {
                Some(OutboxState::Failed(failure)) => codes.push(failure.code.to_string()),
                Some(OutboxState::Durable(_)) | None => {
                    let places = places.get(&appended.client_message_id).map_or(&[][..], Vec::as_slice);
                    let [place, again @ ..] = places else { panic!("entry {entry} is lost") };
                    if !again.is_empty() {
                        repeated.push(*entry);
                    }
                    let before = lanes.insert(appended.lane_id, *place);
                    assert!(before.is_none_or(|before| before < *place), "entry {entry} is in its place");
                }
                open => panic!("entry {entry} is {open:?}"),
            }
        }
        (codes, repeated)
    }
}
