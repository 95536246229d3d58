//! What a tab appends, and the disk under its outbox.

use remuda_client::Append;
use remuda_position::outbox::{OutboxState, OutboxWrite};
use remuda_position::{Store, StoreError};
use remuda_wire::preimage::keccak256;
use remuda_wire::{Bytes, Bytes24, Bytes32};

use crate::world::{now, Input, World};

impl World {
    /// Appends by a tab: the request is sealed, and in the database when this returns. Gives the number of its entry.
    pub fn append(&mut self, client: usize, lane_id: Bytes32) -> u64 {
        let number = self.next_number();
        let payload = Bytes::new(format!("record {number}").into_bytes()).expect("short");
        let append = Append {
            lane_id,
            client_message_id: keccak256(&number.to_be_bytes()),
            client_created_at_ms: self.now_ms(),
            expires_at_ms: 0,
            payload,
        };
        self.enqueue(client, append)
    }

    /// The same with what the application says of it.
    pub fn enqueue(&mut self, client: usize, append: Append) -> u64 {
        let mut nonce = Bytes24::ZERO;
        nonce.0.copy_from_slice(&append.client_message_id.0[..24]);
        let request = append.into_request(self.stream_id);
        let request = match &self.keyring {
            None => request,
            Some(keyring) => keyring.seal(request, nonce).expect("a key"),
        };
        let entry = now(self.store.enqueue(self.outbox, &request)).expect("room");
        self.appended.insert(entry, request);
        if self.crash_here() {
            self.crash(client);
        } else {
            self.with_engine(client, |engine, _| engine.handle_enqueued());
        }
        entry
    }

    /// What the database holds of an entry; `None` once it is forgotten.
    pub fn state(&self, entry: u64) -> Option<OutboxState> {
        let page = now(self.store.outbox_after(self.outbox, entry - 1, 1)).expect("a store in memory");
        page.into_iter().find(|found| found.number == entry).map(|found| found.state)
    }

    /// Whether an entry has its outcome.
    pub fn has_ended(&self, entry: u64) -> bool {
        self.state(entry).is_none_or(|state| state.is_ended())
    }

    /// The transaction of a write of the outbox.
    pub fn settle(&mut self, client: usize, write: &OutboxWrite) {
        if self.crash_here() {
            self.crash(client);
            return;
        }
        if self.random.chance(self.weather.abort) {
            self.later(client, Input::Settled(Err(StoreError::Aborted)));
            return;
        }
        let mut result = now(self.store.settle(write));
        if self.crash_here() {
            self.crash(client);
            return;
        }
        if self.random.chance(self.weather.ambiguous) {
            result = Err(StoreError::Aborted);
        }
        self.later(client, Input::Settled(result));
    }
}
