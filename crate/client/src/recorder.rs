//! Records what a session received as an audit file (`RESOLUTIONS.md` §8): whoever opens it judges what was judged here.

use alloc::vec::Vec;

use remuda_wire::audit::{AuditHead, AuditItem, AuditMagic, HeldObject};
use remuda_wire::chain::BrokerState;
use remuda_wire::context::SigningContext;
use remuda_wire::frame::{ServerFrame, ServerMessage};
use remuda_wire::request::OpenSubscriptionRequest;
use remuda_wire::{bound, Bytes, Bytes32, Canonical, List};

/// A recording that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recording {
    /// The audit file.
    pub file: Vec<u8>,
    /// How many items it has.
    pub items: u32,
    /// False when something was left out for want of room: what is there is judged all the same.
    pub is_complete: bool,
}

/// A recording under way. It holds at most the bytes that it was given, and chain reads.
#[derive(Debug)]
pub(crate) struct Recorder {
    chain: List<BrokerState, { bound::MAX_AUDIT_CHAIN_READS }>,
    items: Vec<u8>,
    count: u32,
    max_bytes: usize,
    has_ended: bool,
    is_complete: bool,
}

impl Recorder {
    /// A recording of at most `max_bytes` of items.
    pub(crate) const fn new(max_bytes: usize) -> Self {
        Self { chain: List::EMPTY, items: Vec::new(), count: 0, max_bytes, has_ended: false, is_complete: true }
    }

    /// What is asked for, before its frames.
    pub(crate) fn subscription(&mut self, request: &OpenSubscriptionRequest) {
        self.item(&AuditItem::Subscription(request.clone()));
    }

    /// A frame as it was received: it was canonical, so these are its bytes.
    pub(crate) fn frame(&mut self, message: ServerMessage) {
        match Bytes::new(ServerFrame(message).to_bytes()) {
            Ok(bytes) => self.item(&AuditItem::ServerFrame(bytes)),
            Err(_) => self.is_complete = false,
        }
    }

    /// A signed object of an answer.
    pub(crate) fn held(&mut self, object: HeldObject) {
        self.item(&AuditItem::Held(object));
    }

    /// A chain read that was taken; of each view the first.
    pub(crate) fn chain_read(&mut self, read: BrokerState) {
        if self.chain.iter().any(|known| known.view == read.view) {
            return;
        }
        self.is_complete &= self.chain.push(read).is_ok();
    }

    /// Nothing is taken any more: what comes was asked for anew, and an audit would not know that the earlier asking is over.
    pub(crate) const fn end(&mut self) {
        self.has_ended = true;
    }

    /// After the first item that has no room none is taken: a file with a hole would accuse an honest provider.
    fn item(&mut self, item: &AuditItem) {
        self.is_complete &= !self.has_ended;
        if !self.is_complete {
            return;
        }
        let bytes = item.to_bytes();
        if self.items.len().saturating_add(bytes.len()) > self.max_bytes {
            self.is_complete = false;
            return;
        }
        self.items.extend(bytes);
        self.count = self.count.saturating_add(1);
    }

    /// The file.
    pub(crate) fn finish(self, context: &SigningContext, stream_id: Bytes32) -> Recording {
        let head = AuditHead { magic: AuditMagic, context: context.clone(), stream_id, chain: self.chain };
        let mut file = head.to_bytes();
        file.extend(self.count.to_be_bytes());
        file.extend(self.items);
        Recording { file, items: self.count, is_complete: self.is_complete }
    }
}
