//! A recording of one subscription (`RESOLUTIONS.md` §8): what it asked, and every frame as it was judged.
//!
//! An audit applies a transition to every open fast subscription, while a client's are at different places and each is sent
//! its own copy: so a file is of one of them, and has each frame where this one judged it. Opened again in a later session it
//! keeps its id, by which an audit knows that the earlier opening is over.

use remuda_position::PositionKey;
use remuda_wire::audit::HeldObject;
use remuda_wire::frame::ServerMessage;
use remuda_wire::response::ResponseBody;

use super::Engine;
use crate::event::Event;
use crate::group::GroupUpdate;
use crate::recorder::Recorder;
use crate::subscription::SubscriptionState;
use crate::work::Work;

impl Engine {
    /// Begins a recording of at most `max_bytes` of what a subscription is sent; one that is under way is dropped. It starts
    /// again at its durable boundary and every key is read again, so that the file has all that a verdict needs.
    pub fn start_recording(&mut self, key: PositionKey, max_bytes: usize, now_ms: u64) {
        let mut recorder = Recorder::new(max_bytes);
        if let Some(latest) = self.keys.latest() {
            recorder.chain_read(latest.clone());
        }
        self.keys.forget_views();
        self.leave(key, now_ms);
        self.recorder = Some((key, recorder));
        if let Some(subscription) = self.subscriptions.get_mut(&key).filter(|it| it.state == SubscriptionState::Live) {
            let attempt = subscription.attempts;
            subscription.state = SubscriptionState::Due { attempt, at_ms: now_ms };
        }
        self.open_due(now_ms);
        self.handle_channel(now_ms);
    }

    /// Ends the recording: told by [`Event::Recorded`], with `None` when there is none.
    pub fn stop_recording(&mut self) {
        let recorder = self.recorder.take();
        let recording = recorder.map(|(_, recorder)| recorder.finish(&self.config.context, self.config.stream_id));
        self.tell(Event::Recorded(recording));
    }

    /// The recording of this subscription.
    pub(super) fn recorder_of(&mut self, key: &PositionKey) -> Option<&mut Recorder> {
        self.recorder.as_mut().filter(|(recorded, _)| recorded == key).map(|(_, recorder)| recorder)
    }

    /// What is about to be judged.
    pub(super) fn record_work(&mut self, key: &PositionKey, work: &Work) {
        let Some(recorder) = self.recorder_of(key) else { return };
        if let Work::TooOld(_, too_old) = work {
            recorder.held(too_old.anchor);
        }
        recorder.frame(match work {
            Work::Delivery(delivery) => ServerMessage::Delivery((**delivery).clone()),
            Work::Checkpoint(checkpoint) => ServerMessage::Checkpoint(checkpoint.clone()),
            Work::Adopt(_, transition) => ServerMessage::BrokerEpochTransition((**transition).clone()),
            Work::Group(_, GroupUpdate::Group(update)) => ServerMessage::GroupState(update.clone()),
            Work::Group(_, GroupUpdate::Record(update)) => ServerMessage::DeliveryState(update.clone()),
            // Not reached yet, or no frame.
            Work::Transition(..) | Work::Ended(..) | Work::TooOld(..) | Work::Begin(..) | Work::Answer(..) => return,
        });
    }

    /// The receipt in an answer.
    pub(super) fn record_answer(&mut self, answer: &ResponseBody) {
        let Some((_, recorder)) = &mut self.recorder else { return };
        match answer {
            ResponseBody::Append(result) => {
                result
                    .append_receipt
                    .iter()
                    .for_each(|receipt| recorder.held(HeldObject::AppendReceipt(receipt.clone())));
            }
            ResponseBody::CreateLane(lane) | ResponseBody::CloseLane(lane) => {
                recorder.held(HeldObject::AppendReceipt(lane.receipt.clone()));
            }
            ResponseBody::CommitKeyBatch(receipt) => recorder.held(HeldObject::KeyBatchReceipt(receipt.clone())),
            _ => {}
        }
    }
}
