//! An audit file in chunks: each part is decoded once it is complete, from the chunk itself where it is whole there.
//!
//! A part that a chunk cuts is collected in one buffer, which never holds more than twice what has come of it, and of
//! parts that say their length never more than that. A part that says nothing is tried again only when its bytes have
//! doubled, so the work is linear whatever the chunks are.

use alloc::vec::Vec;

use remuda_wire::audit::{AuditMagic, HeldObject};
use remuda_wire::bound;
use remuda_wire::chain::BrokerState;
use remuda_wire::key::SigningPublicKey;
use remuda_wire::request::OpenSubscriptionRequest;
use remuda_wire::snapshot::SnapshotManifest;
use remuda_wire::{Bytes32, Canonical, DecodeError, Reader};

use super::judge::Judge;
use crate::sorted::SortedMap;

/// One item, its long byte strings borrowed.
#[derive(Debug)]
#[allow(clippy::large_enum_variant)]
pub(super) enum Item<'a> {
    Subscription(OpenSubscriptionRequest),
    ServerFrame(&'a [u8]),
    Snapshot { manifest: SnapshotManifest, receipt: HeldObject, bytes: &'a [u8], application_key: SigningPublicKey },
    Held(HeldObject),
}

/// Why the file is none.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fault {
    pub item: Option<usize>,
    pub error: DecodeError,
}

/// Which part comes next.
#[derive(Debug)]
enum Stage {
    Start,
    ChainReads { left: usize, views: SortedMap<(u64, Bytes32, Bytes32), ()>, duplicate: bool },
    Items { done: usize, declared: usize },
    Failed(Fault),
}

/// The bytes that wait, and the part that they begin.
#[derive(Debug)]
pub(super) struct Feed {
    stage: Stage,
    waiting: Vec<u8>,
    /// How many bytes must wait before the part is tried.
    wanted: usize,
}

/// What one attempt came to.
enum Attempt {
    Consumed(usize),
    /// At least so many bytes, from the start of the part.
    Wants(usize),
    /// The file is over, as far as it says.
    Over,
}

/// Where unknown lengths start to double.
const FIRST_ATTEMPT_BYTES: usize = 512;

impl Default for Feed {
    fn default() -> Self {
        Self { stage: Stage::Start, waiting: Vec::new(), wanted: 0 }
    }
}

impl Feed {
    pub const fn declared_items(&self) -> Option<usize> {
        match &self.stage {
            Stage::Items { declared, .. } => Some(*declared),
            Stage::Start | Stage::ChainReads { .. } | Stage::Failed(_) => None,
        }
    }

    /// Takes a chunk.
    pub fn push(&mut self, mut chunk: &[u8], judge: &mut Option<Judge>) {
        while !chunk.is_empty() && !matches!(self.stage, Stage::Failed(_)) {
            if self.waiting.is_empty() {
                let consumed = self.run(chunk, judge);
                let rest = chunk.get(consumed..).unwrap_or_default();
                let taken = rest.len().min(self.wanted);
                self.waiting.extend_from_slice(rest.get(..taken).unwrap_or_default());
                chunk = rest.get(taken..).unwrap_or_default();
                continue;
            }
            let missing = self.wanted.saturating_sub(self.waiting.len()).max(1);
            let taken = missing.min(chunk.len());
            self.waiting.extend_from_slice(chunk.get(..taken).unwrap_or_default());
            chunk = chunk.get(taken..).unwrap_or_default();
            if self.waiting.len() >= self.wanted {
                self.run_waiting(judge);
            }
        }
    }

    /// The end of the file.
    ///
    /// # Errors
    /// The first fault.
    pub fn finish(&mut self, judge: &mut Option<Judge>) -> Result<(), Fault> {
        self.run_waiting(judge);
        match &self.stage {
            Stage::Failed(fault) => Err(*fault),
            Stage::Items { done, declared } if done == declared => Ok(()),
            Stage::Items { done, .. } => Err(Fault { item: Some(*done), error: DecodeError::Truncated }),
            Stage::Start | Stage::ChainReads { .. } => Err(Fault { item: None, error: DecodeError::Truncated }),
        }
    }

    fn run_waiting(&mut self, judge: &mut Option<Judge>) {
        let mut waiting = core::mem::take(&mut self.waiting);
        let consumed = self.run(&waiting, judge);
        waiting.drain(..consumed);
        self.waiting = waiting;
    }

    /// Decodes parts until one is cut. Answers how many bytes were consumed; `wanted` is for the rest.
    fn run(&mut self, bytes: &[u8], judge: &mut Option<Judge>) -> usize {
        let mut consumed = 0;
        loop {
            let rest = bytes.get(consumed..).unwrap_or_default();
            match self.attempt(rest, judge) {
                Ok(Attempt::Consumed(length)) => consumed += length,
                Ok(Attempt::Wants(wanted)) => {
                    self.wanted = wanted;
                    return consumed;
                }
                Ok(Attempt::Over) => {
                    if !rest.is_empty() {
                        self.fail(DecodeError::TrailingBytes);
                    }
                    self.wanted = 0;
                    return bytes.len();
                }
                Err(error) => {
                    self.fail(error);
                    return bytes.len();
                }
            }
        }
    }

    fn fail(&mut self, error: DecodeError) {
        let item = match &self.stage {
            Stage::Items { done, declared } if done < declared => Some(*done),
            _ => None,
        };
        self.stage = Stage::Failed(Fault { item, error });
    }

    fn attempt(&mut self, bytes: &[u8], judge: &mut Option<Judge>) -> Result<Attempt, DecodeError> {
        let mut reader = Reader::new(bytes);
        // A part that does not say its length is tried again when its bytes have doubled.
        let mut wanted = bytes.len().saturating_mul(2).max(FIRST_ATTEMPT_BYTES);
        match &mut self.stage {
            Stage::Start => {
                AuditMagic::read(&mut reader);
                let (context, stream_id) = (Canonical::read(&mut reader), Canonical::read(&mut reader));
                let left = reader.length(bound::MAX_AUDIT_CHAIN_READS);
                if reader.result().is_ok() {
                    *judge = Some(Judge::new(context, stream_id));
                    self.stage = Stage::ChainReads { left, views: SortedMap::new(), duplicate: false };
                }
            }
            Stage::ChainReads { left: 0, duplicate: true, .. } => reader.fail(DecodeError::Duplicate),
            Stage::ChainReads { left: 0, .. } => {
                let declared = reader.length(bound::MAX_AUDIT_ITEMS);
                if reader.result().is_ok() {
                    self.stage = Stage::Items { done: 0, declared };
                }
            }
            Stage::ChainReads { left, views, duplicate } => {
                let read = BrokerState::read(&mut reader);
                if let (Ok(()), Some(judge)) = (reader.result(), judge) {
                    *left -= 1;
                    let view = (read.view.height, read.view.block_hash, read.view.chain_instance_id);
                    *duplicate |= views.insert(view, ()).is_some();
                    judge.chain_read(read);
                }
            }
            Stage::Items { done, declared } if done == declared => return Ok(Attempt::Over),
            Stage::Items { done, .. } => {
                let item = read_item(&mut reader, &mut wanted);
                if let (Ok(()), Some(judge)) = (reader.result(), judge) {
                    judge.item(*done, &item);
                    *done += 1;
                }
            }
            Stage::Failed(_) => return Ok(Attempt::Wants(0)),
        }
        match reader.result() {
            Ok(()) => Ok(Attempt::Consumed(bytes.len() - reader.remaining())),
            Err(DecodeError::Truncated) => Ok(Attempt::Wants(wanted)),
            Err(error) => Err(error),
        }
    }
}

/// Reads an item. Where its long byte string is cut, `wanted` becomes how many bytes the item has.
fn read_item<'a>(reader: &mut Reader<'a>, wanted: &mut usize) -> Item<'a> {
    let total = reader.remaining();
    let mut long_bytes = |reader: &mut Reader<'a>, bound, bytes_after: usize| {
        let length = reader.length(bound);
        if reader.result().is_ok() && reader.remaining() < length {
            *wanted = (total - reader.remaining()).saturating_add(length).saturating_add(bytes_after);
        }
        reader.take(length)
    };
    match u8::read(reader) {
        1 => Item::Subscription(Canonical::read(reader)),
        2 => Item::ServerFrame(long_bytes(reader, bound::MAX_WIRE_FRAME_BYTES, 0)),
        3 => Item::Snapshot {
            manifest: Canonical::read(reader),
            receipt: Canonical::read(reader),
            bytes: long_bytes(reader, bound::MAX_AUDIT_SNAPSHOT_BYTES, SigningPublicKey::MIN_BYTES),
            application_key: Canonical::read(reader),
        },
        tag => {
            reader.require(tag == 4, DecodeError::UnknownTag);
            Item::Held(Canonical::read(reader))
        }
    }
}
