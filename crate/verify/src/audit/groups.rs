//! The groups that subscriptions follow: one chain each, shared, since state frames name a group and no subscription.

use alloc::vec::Vec;

use remuda_wire::Bytes32;

use super::subscription::GroupPlace;
use crate::group::{GroupChain, GroupName};
use crate::sorted::SortedMap;

/// Every group that a subscription ever named.
#[derive(Debug, Default)]
pub(super) struct Groups(SortedMap<GroupPlace, Group>);

#[derive(Debug, Default)]
struct Group {
    /// `None`: nobody open follows it any more, and its frames say nothing.
    chain: Option<GroupChain>,
    /// Every subscription that followed it since there is this chain.
    followers: Vec<usize>,
    /// How many of them still do.
    following: usize,
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
        let group = self.0.get_or_insert_with((name.lane_id, name.group_id), Group::default);
        group.chain.get_or_insert_with(|| GroupChain::new(name, after));
        group.followers.push(subscription);
        group.following += 1;
    }

    /// A subscription ended. The next one may name an older cursor, so a chain that nobody follows is judged no further.
    pub fn leave(&mut self, place: &GroupPlace) {
        if let Some(group) = self.0.get_mut(place) {
            group.following -= 1;
            if group.following == 0 {
                *group = Group::default();
            }
        }
    }

    /// Whoever follows a group, and some who no longer do.
    pub fn followers(&self, place: &GroupPlace) -> Vec<usize> {
        self.0.get(place).map(|group| group.followers.clone()).unwrap_or_default()
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
