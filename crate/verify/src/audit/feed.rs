//! An audit file in chunks: each part is decoded once it is complete, from the chunk itself where it is whole there.
//!
//! A part that a chunk cuts is collected in one buffer, which never holds more than twice what has come of it, and of
//! parts that say their length never more than that. A part that says nothing is tried again only when its bytes have
//! doubled, so the work is linear whatever the chunks are.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use remuda_wire::audit::{AuditMagic, HeldObject};
use remuda_wire::bound;
use remuda_wire::chain::BrokerState;
use remuda_wire::context::SigningContext;
use remuda_wire::key::SigningPublicKey;
use remuda_wire::request::OpenSubscriptionRequest;
use remuda_wire::snapshot::SnapshotManifest;
use remuda_wire::{Bytes32, Canonical, DecodeError, Reader};

use super::judge::Judge;

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
    ChainReads { left: usize, views: BTreeSet<(u64, Bytes32, Bytes32)>, duplicate: bool },
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
        let attempt = match &mut self.stage {
            Stage::Start => decode_start(&mut reader).map(|(context, stream_id, reads)| {
                *judge = Some(Judge::new(context, stream_id));
                self.stage = Stage::ChainReads { left: reads, views: BTreeSet::new(), duplicate: false };
            }),
            Stage::ChainReads { left: 0, duplicate: true, .. } => return Err(DecodeError::Duplicate),
            Stage::ChainReads { left: 0, .. } => reader.length(bound::MAX_AUDIT_ITEMS).map(|declared| {
                self.stage = Stage::Items { done: 0, declared };
            }),
            Stage::ChainReads { left, views, duplicate } => BrokerState::decode(&mut reader).map(|read| {
                *left -= 1;
                *duplicate |= !views.insert((read.view.height, read.view.block_hash, read.view.chain_instance_id));
                if let Some(judge) = judge {
                    judge.chain_read(read);
                }
            }),
            Stage::Items { done, declared } if done == declared => return Ok(Attempt::Over),
            Stage::Items { done, .. } => match decode_item(&mut reader) {
                Ok(item) => {
                    if let Some(judge) = judge {
                        judge.item(*done, &item);
                    }
                    *done += 1;
                    Ok(())
                }
                Err(Cut::Wants(wanted)) => return Ok(Attempt::Wants(wanted)),
                Err(Cut::Error(error)) => Err(error),
            },
            Stage::Failed(_) => return Ok(Attempt::Wants(0)),
        };
        match attempt {
            Ok(()) => Ok(Attempt::Consumed(bytes.len() - reader.remaining())),
            Err(DecodeError::Truncated) => Ok(Attempt::Wants(double(bytes.len()))),
            Err(error) => Err(error),
        }
    }
}

fn double(bytes: usize) -> usize {
    bytes.saturating_mul(2).max(FIRST_ATTEMPT_BYTES)
}

fn decode_start(reader: &mut Reader<'_>) -> Result<(SigningContext, Bytes32, usize), DecodeError> {
    AuditMagic::decode(reader)?;
    let (context, stream_id) = (SigningContext::decode(reader)?, Bytes32::decode(reader)?);
    Ok((context, stream_id, reader.length(bound::MAX_AUDIT_CHAIN_READS)?))
}

/// Why an item is not there.
enum Cut {
    Wants(usize),
    Error(DecodeError),
}

fn decode_item<'a>(reader: &mut Reader<'a>) -> Result<Item<'a>, Cut> {
    let total = reader.remaining();
    let cut = |error| match error {
        DecodeError::Truncated => Cut::Wants(double(total)),
        error => Cut::Error(error),
    };
    match u8::decode(reader).map_err(cut)? {
        1 => Canonical::decode(reader).map(Item::Subscription).map_err(cut),
        2 => {
            let length = reader.length(bound::MAX_WIRE_FRAME_BYTES).map_err(cut)?;
            take_exactly(reader, total, length, 0).map(Item::ServerFrame)
        }
        3 => {
            let (manifest, receipt) =
                (Canonical::decode(reader).map_err(cut)?, Canonical::decode(reader).map_err(cut)?);
            let length = reader.length(bound::MAX_AUDIT_SNAPSHOT_BYTES).map_err(cut)?;
            let bytes = take_exactly(reader, total, length, SigningPublicKey::MIN_BYTES)?;
            let application_key = Canonical::decode(reader).map_err(cut)?;
            Ok(Item::Snapshot { manifest, receipt, bytes, application_key })
        }
        4 => Canonical::decode(reader).map(Item::Held).map_err(cut),
        _ => Err(Cut::Error(DecodeError::UnknownTag)),
    }
}

/// The next `length` bytes, or exactly how many bytes the item has when `tail` more follow them.
fn take_exactly<'a>(reader: &mut Reader<'a>, total: usize, length: usize, tail: usize) -> Result<&'a [u8], Cut> {
    let before = total - reader.remaining();
    reader.take(length).map_err(|_| Cut::Wants(before.saturating_add(length).saturating_add(tail)))
}
