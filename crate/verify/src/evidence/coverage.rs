//! Which of many ranges overlaps a new one, earliest first.

use crate::sorted::SortedMap;

/// For every sequence the earliest range that covers it, as disjoint segments.
///
/// A later range fills only what is still free: an earlier one always wins the answer. Segments are at most twice as
/// many as ranges, since filling leaves no gap inside.
#[derive(Clone, Debug, Default)]
pub(super) struct Coverage {
    /// First sequence to last sequence and the range's number.
    segments: SortedMap<u64, (u64, u32)>,
}

impl Coverage {
    /// The earliest range that shares a sequence with `first..=last`.
    pub fn earliest_overlap(&self, first: u64, last: u64) -> Option<u32> {
        let before = self.segments.before(&first).filter(|(_, (end, _))| *end >= first);
        let inside = self.segments.from(&first).take_while(|(start, _)| **start <= last);
        before.into_iter().chain(inside).map(|(_, (_, number))| *number).min()
    }

    /// Adds a range whose number is above all before it.
    pub fn insert(&mut self, first: u64, last: u64, number: u32) {
        let mut free_from = Some(first);
        if let Some((_, (end, _))) = self.segments.before(&first) {
            if *end >= first {
                free_from = end.checked_add(1);
            }
        }
        let mut gaps = alloc::vec::Vec::new();
        for (start, (end, _)) in self.segments.from(&first).take_while(|(start, _)| **start <= last) {
            if let Some(from) = free_from.filter(|from| from < start) {
                gaps.push((from, start - 1));
            }
            free_from = end.checked_add(1);
        }
        if let Some(from) = free_from.filter(|from| *from <= last) {
            gaps.push((from, last));
        }
        for (from, to) in gaps {
            self.segments.insert(from, (to, number));
        }
    }
}
