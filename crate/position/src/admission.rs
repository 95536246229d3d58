//! Planning: from evidence to a complete write set, before any transaction opens.

use alloc::vec::Vec;

use remuda_wire::codec::Canonical;
use remuda_wire::verdict::{AdmissionRefused, Refusal};

use crate::boundary::{Boundary, StoredPosition};
use crate::evidence::Evidence;
use crate::item::{pack, RowBytes};
use crate::outbox::OutboxChanges;
use crate::store::{Fence, WriteSet};

/// How much one admission may hold: it is one transaction, built in memory first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdmissionBudget {
    /// Items.
    pub max_items: usize,
    /// Bytes of all rows.
    pub max_bytes: usize,
}

impl Default for AdmissionBudget {
    /// The largest legal batch by count; 64 MiB of rows.
    fn default() -> Self {
        Self { max_items: 65_536, max_bytes: 64 * 1024 * 1024 }
    }
}

/// A write set and the boundary that holds once it is committed. Made only by [`Boundary::plan`].
#[derive(Clone, Debug)]
pub struct Admission {
    pub(crate) write: WriteSet,
    pub(crate) boundary: Boundary,
}

impl Admission {
    /// The boundary that it leads to, once committed.
    pub const fn planned(&self) -> &Boundary {
        &self.boundary
    }

    /// The same, and what its evidence says of our own appends.
    #[must_use]
    pub fn with_outbox(mut self, changes: OutboxChanges) -> Self {
        self.write.outbox = Some(changes);
        self
    }

    /// What will be written.
    pub const fn write_set(&self) -> &WriteSet {
        &self.write
    }
}

impl Boundary {
    /// Plans the advance that `evidence` allows, for the owner that holds `fence`. `None` when there is nothing to write.
    ///
    /// # Errors
    /// Those of [`Evidence::place`]; [`AdmissionRefused::BatchTooLarge`].
    pub fn plan(
        &self,
        evidence: impl Evidence,
        fence: Fence,
        budget: &AdmissionBudget,
    ) -> Result<Option<Admission>, Refusal> {
        let Some(place) = evidence.place(self)? else { return Ok(None) };
        let anchor = evidence.anchor(self);
        let items = evidence.into_items(self);
        if items.len() > budget.max_items {
            return Err(AdmissionRefused::BatchTooLarge.into());
        }
        let count = u64::try_from(items.len()).unwrap_or(u64::MAX);
        let rows = pack(self.last_item().saturating_add(1), items);
        check_bytes(&rows, budget)?;
        let revision = self.revision().map_or(1, |revision| revision.saturating_add(1));
        let stored = StoredPosition::at(place, revision, anchor, self.last_item().saturating_add(count));
        let write = WriteSet {
            key: self.key,
            expected: self.revision(),
            fence,
            position: stored.to_bytes(),
            rows,
            outbox: None,
        };
        Ok(Some(Admission { write, boundary: Self::stored(self.key, stored) }))
    }
}

fn check_bytes(rows: &[RowBytes], budget: &AdmissionBudget) -> Result<(), AdmissionRefused> {
    let lengths: Vec<_> = rows.iter().map(|row| row.bytes.len()).collect();
    if lengths.iter().sum::<usize>() > budget.max_bytes {
        Err(AdmissionRefused::BatchTooLarge)
    } else {
        Ok(())
    }
}
