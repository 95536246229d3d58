//! The groups that subscriptions follow: one chain each, shared, since state frames name a group and no subscription.

use alloc::collections::{BTreeMap, BTreeSet};

use remuda_wire::Bytes32;

use super::subscription::GroupPlace;
use crate::group::{GroupChain, GroupName};

/// Every group that a subscription ever named.
#[derive(Debug, Default)]
pub(super) struct Groups(BTreeMap<GroupPlace, Group>);

#[derive(Debug, Default)]
struct Group {
    /// `None`: nobody open follows it any more, and its frames say nothing.
    chain: Option<GroupChain>,
    followers: BTreeSet<usize>,
}

/// What a state frame's group is to the audit.
#[derive(Debug)]
pub(super) enum Followed<'a> {
    /// No subscription ever named it.
    Unknown,
    /// Its judgement has ended.
    Ended,
    /// Somebody follows it.
    Chain(&'a mut GroupChain),
}

impl Groups {
    /// A subscription follows a group: from its own cursor, unless somebody follows it already.
    pub fn follow(&mut self, subscription: usize, name: GroupName, after: Option<Bytes32>) {
        let group = self.0.entry((name.lane_id, name.group_id)).or_default();
        group.chain.get_or_insert_with(|| GroupChain::new(name, after));
        group.followers.insert(subscription);
    }

    /// A subscription ended. The next one may name an older cursor, so a chain that nobody follows is judged no further.
    pub fn leave(&mut self, subscription: usize, place: &GroupPlace) {
        if let Some(group) = self.0.get_mut(place) {
            group.followers.remove(&subscription);
            if group.followers.is_empty() {
                group.chain = None;
            }
        }
    }

    /// Whoever follows a group.
    pub fn followers(&self, place: &GroupPlace) -> alloc::vec::Vec<usize> {
        self.0.get(place).map(|group| group.followers.iter().copied().collect()).unwrap_or_default()
    }

    /// The chain of a group.
    pub fn find(&mut self, place: &GroupPlace) -> Followed<'_> {
        match self.0.get_mut(place) {
            None => Followed::Unknown,
            Some(Group { chain: None, .. }) => Followed::Ended,
            Some(Group { chain: Some(chain), .. }) => Followed::Chain(chain),
        }
    }
}
