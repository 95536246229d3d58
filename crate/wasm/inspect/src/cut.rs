//! An audit file in chunks, cut into its head and its items.

use remuda_wire::audit::{AuditHead, AuditItem};
use remuda_wire::{bound, Canonical, DecodeError, Reader};

/// Where unknown lengths start to double.
const FIRST_ATTEMPT_BYTES: usize = 512;

/// A part that is complete.
#[derive(Debug)]
#[allow(clippy::large_enum_variant)] // It lives for one call.
pub(crate) enum Part<'a> {
    /// The head, and how many items the file says it has.
    Head { head: AuditHead, bytes: usize, declared: u32 },
    /// An item: which, at which byte of what was pushed, and its own bytes.
    Item { item: u32, offset: u64, bytes: &'a [u8], content: AuditItem },
}

#[derive(Debug)]
enum Stage {
    Head,
    Items { done: u32, declared: u32 },
    Failed(Fault),
}

/// Why the rest is not read, and the item at which that is so.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fault {
    pub item: Option<u32>,
    pub error: DecodeError,
}

/// What waits for the rest of its part: at most one part and one chunk.
#[derive(Debug)]
pub(crate) struct Cutter {
    stage: Stage,
    waiting: Vec<u8>,
    wanted: usize,
    offset: u64,
}

impl Cutter {
    /// From the first byte of a file.
    pub const fn whole() -> Self {
        Self { stage: Stage::Head, waiting: Vec::new(), wanted: 0, offset: 0 }
    }

    /// From the first byte of an item.
    pub const fn from_item(item: u32) -> Self {
        Self { stage: Stage::Items { done: item, declared: u32::MAX }, waiting: Vec::new(), wanted: 0, offset: 0 }
    }

    /// Takes a chunk, and hands on every part that is complete.
    pub fn push(&mut self, chunk: &[u8], each: &mut dyn FnMut(Part<'_>)) {
        if matches!(self.stage, Stage::Failed(_)) {
            return;
        }
        self.waiting.extend_from_slice(chunk);
        if self.waiting.len() >= self.wanted {
            self.run(each);
        }
    }

    /// The end of the file. Answers why it is none, where that is so.
    pub fn finish(&mut self, each: &mut dyn FnMut(Part<'_>)) -> Option<Fault> {
        self.run(each);
        match &self.stage {
            Stage::Failed(fault) => Some(*fault),
            Stage::Head => Some(Fault { item: None, error: DecodeError::Truncated }),
            Stage::Items { done, declared } if done == declared && self.waiting.is_empty() => None,
            Stage::Items { done, declared } if done == declared => {
                Some(Fault { item: None, error: DecodeError::TrailingBytes })
            }
            Stage::Items { done, .. } => Some(Fault { item: Some(*done), error: DecodeError::Truncated }),
        }
    }

    fn run(&mut self, each: &mut dyn FnMut(Part<'_>)) {
        let waiting = core::mem::take(&mut self.waiting);
        let mut rest = waiting.as_slice();
        loop {
            match self.part(rest, each) {
                Ok(0) => break,
                Ok(length) => {
                    rest = rest.get(length..).unwrap_or_default();
                    self.offset = self.offset.saturating_add(u64::try_from(length).unwrap_or(u64::MAX));
                }
                Err(DecodeError::Truncated) => break,
                Err(error) => {
                    let item = match &self.stage {
                        Stage::Items { done, .. } => Some(*done),
                        Stage::Head | Stage::Failed(_) => None,
                    };
                    self.stage = Stage::Failed(Fault { item, error });
                    return;
                }
            }
        }
        // A part is tried again when its bytes have doubled, so that the work is linear.
        self.wanted = rest.len().saturating_mul(2).max(FIRST_ATTEMPT_BYTES);
        self.waiting = rest.to_vec();
    }

    /// Reads one part; answers its length, 0 where there is none.
    fn part(&mut self, bytes: &[u8], each: &mut dyn FnMut(Part<'_>)) -> Result<usize, DecodeError> {
        let mut reader = Reader::new(bytes);
        match &mut self.stage {
            Stage::Head => {
                let head = AuditHead::read(&mut reader);
                let declared = reader.length(bound::MAX_AUDIT_ITEMS);
                reader.result()?;
                let length = bytes.len() - reader.remaining();
                let declared = u32::try_from(declared).unwrap_or(u32::MAX);
                self.stage = Stage::Items { done: 0, declared };
                each(Part::Head { head, bytes: length, declared });
                Ok(length)
            }
            Stage::Items { done, declared } if *done < *declared && !bytes.is_empty() => {
                let content = AuditItem::read(&mut reader);
                reader.result()?;
                let length = bytes.len() - reader.remaining();
                let item = *done;
                *done += 1;
                each(Part::Item { item, offset: self.offset, bytes: bytes.get(..length).unwrap_or_default(), content });
                Ok(length)
            }
            Stage::Items { .. } | Stage::Failed(_) => Ok(0),
        }
    }
}
