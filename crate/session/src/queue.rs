//! Requests that wait their turn, each named until it is settled.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use remuda_wire::request::RequestBody;
use remuda_wire::Bytes32;

use crate::misuse::ApiMisuse;
use crate::output::{RequestHandle, Slot};

/// The requests of one session that were not sent yet, in order.
#[derive(Debug)]
pub(crate) struct RequestQueue {
    slot: Slot,
    capacity: usize,
    issued: u64,
    waiting: VecDeque<(RequestHandle, RequestBody)>,
}

impl RequestQueue {
    /// An empty queue.
    pub(crate) const fn new(slot: Slot, capacity: usize) -> Self {
        Self { slot, capacity, issued: 0, waiting: VecDeque::new() }
    }

    /// Queues one request. `is_known` says of a subscription whether it is open, or a request that was sent opens it.
    ///
    /// # Errors
    /// [`ApiMisuse::QueueFull`]; `SubscriptionExists` for the id of a subscription that is known or waits to be opened;
    /// `UnknownSubscription` for credit to, or the close of, one that is neither.
    pub(crate) fn push(
        &mut self,
        body: RequestBody,
        is_known: impl Fn(&Bytes32) -> bool,
    ) -> Result<RequestHandle, ApiMisuse> {
        if self.waiting.len() >= self.capacity {
            return Err(ApiMisuse::QueueFull);
        }
        let is_known = |id: &Bytes32| is_known(id) || self.opens(id);
        match &body {
            RequestBody::OpenSubscription(open) if is_known(&open.subscription_id) => {
                return Err(ApiMisuse::SubscriptionExists);
            }
            RequestBody::CloseSubscription(close) if !is_known(&close.subscription_id) => {
                return Err(ApiMisuse::UnknownSubscription);
            }
            RequestBody::Credit(request) if !is_known(&request.credit.subscription_id) => {
                return Err(ApiMisuse::UnknownSubscription);
            }
            _ => {}
        }
        self.issued = self.issued.saturating_add(1);
        let handle = RequestHandle { slot: self.slot, number: self.issued };
        self.waiting.push_back((handle, body));
        Ok(handle)
    }

    /// True when a request that waits opens `subscription_id`.
    fn opens(&self, subscription_id: &Bytes32) -> bool {
        self.waiting.iter().any(|(_, body)| match body {
            RequestBody::OpenSubscription(open) => open.subscription_id == *subscription_id,
            _ => false,
        })
    }

    /// Takes one out that was not sent. True when it was there.
    pub(crate) fn withdraw(&mut self, handle: RequestHandle) -> bool {
        let place = self.waiting.iter().position(|(waiting, _)| *waiting == handle);
        place.is_some_and(|place| self.waiting.remove(place).is_some())
    }

    /// Takes the first.
    pub(crate) fn pop(&mut self) -> Option<(RequestHandle, RequestBody)> {
        self.waiting.pop_front()
    }

    /// True when none waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// The session is over: takes out what meant something only in it, or everything when no other session follows.
    pub(crate) fn end_session(&mut self, another_follows: bool) -> Vec<RequestHandle> {
        let (kept, dropped): (VecDeque<_>, VecDeque<_>) = core::mem::take(&mut self.waiting)
            .into_iter()
            .partition(|(_, body)| another_follows && !is_of_session(body));
        self.waiting = kept;
        dropped.into_iter().map(|(handle, _)| handle).collect()
    }
}

/// True for a request that means something only in the session that it was submitted in.
const fn is_of_session(body: &RequestBody) -> bool {
    matches!(body, RequestBody::OpenSubscription(_) | RequestBody::CloseSubscription(_) | RequestBody::Credit(_))
}
