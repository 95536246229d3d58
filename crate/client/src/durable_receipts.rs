//! The receipts at which a position stood lately: what a snapshot is bound to (§15).

use alloc::collections::VecDeque;

use remuda_wire::audit::HeldObject;

/// Places that are remembered: a replica that is further behind than so many commits waits for its end.
const MAX_PLACES: usize = 64;

/// The latest places where a position stood, each by its last item, with the receipt that ends it.
#[derive(Debug, Default)]
pub(crate) struct DurableReceipts(VecDeque<(u64, HeldObject)>);

impl DurableReceipts {
    /// The position is durable through `last_item`, which `receipt` covers.
    pub(crate) fn push(&mut self, last_item: u64, receipt: HeldObject) {
        // The same records, and further: the later receipt is as good, and keeps longer.
        if self.0.back().is_some_and(|(item, _)| *item == last_item) {
            self.0.pop_back();
        }
        if self.0.len() >= MAX_PLACES {
            self.0.pop_front();
        }
        self.0.push_back((last_item, receipt));
    }

    /// The receipt that covers exactly the items through `last_item`.
    pub(crate) fn at(&self, last_item: u64) -> Option<&HeldObject> {
        self.0.iter().rev().find(|(item, _)| *item == last_item).map(|(_, receipt)| receipt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use remuda_testkit::builder::Provider;
    use remuda_wire::Bytes32;

    #[test]
    fn the_latest_of_each_place_is_kept_and_no_more_than_a_few() {
        let provider = Provider::new();
        let mut receipts = DurableReceipts::default();
        let held = |number: u8| HeldObject::CheckpointReceipt(provider.checkpoint_of_one(&Bytes32([number; 32])));
        receipts.push(1, held(1));
        receipts.push(1, held(2));
        assert_eq!(receipts.at(1), Some(&held(2)));
        assert_eq!(receipts.at(2), None, "between two places there is none");
        for item in 2..2 + 64 {
            receipts.push(u64::from(item), held(item));
        }
        assert_eq!(receipts.at(1), None);
        assert_eq!(receipts.at(65), Some(&held(65)));
    }
}
