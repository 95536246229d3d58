//! The groups that subscriptions follow: one chain each, shared, since state frames name a group and no subscription.

use alloc::collections::BTreeMap;

use remuda_wire::context::SigningContext;
use remuda_wire::Bytes32;

use super::subscription::GroupPlace;
use crate::group::{GroupChain, GroupName};

/// Every group that a subscription named. `None`: nobody open follows it any more, and its frames say nothing.
#[derive(Debug, Default)]
pub(super) struct Groups(BTreeMap<GroupPlace, Option<GroupChain>>);

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
    /// Follows a group from here, unless somebody does already.
    pub fn follow(&mut self, context: &SigningContext, stream_id: Bytes32, place: GroupPlace, after: Option<Bytes32>) {
        let chain = self.0.entry(place).or_default();
        if chain.is_none() {
            let (lane_id, group_id) = place;
            let name = GroupName { context: context.clone(), stream_id, lane_id, group_id };
            *chain = Some(GroupChain::new(name, after));
        }
    }

    /// Ends a group's judgement.
    pub fn end(&mut self, place: &GroupPlace) {
        if let Some(chain) = self.0.get_mut(place) {
            *chain = None;
        }
    }

    /// The chain of a group.
    pub fn find(&mut self, place: &GroupPlace) -> Followed<'_> {
        match self.0.get_mut(place) {
            None => Followed::Unknown,
            Some(None) => Followed::Ended,
            Some(Some(chain)) => Followed::Chain(chain),
        }
    }
}
