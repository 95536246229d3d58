//! §13.2: what waits for a checkpoint is bounded by its bytes as well as by its number.

use remuda_testkit::builder::{Provider, Record};
use remuda_verify::fast::{FastState, FastSubscription, FastSubscriptionConfig, Verification};
use remuda_wire::bound::{MAX_BATCH_PAYLOAD_BYTES, MAX_INLINE_MESSAGE_BYTES};
use remuda_wire::delivery::RecordDelivery;
use remuda_wire::frame::{ServerFrame, ServerMessage};
use remuda_wire::record::{FastRecordId, RecordId};
use remuda_wire::verdict::AdmissionRefused;
use remuda_wire::{Bytes32, ProviderEpoch};

#[test]
fn a_batch_is_bounded_by_its_bytes() {
    let mut provider = Provider::new();
    let (lane, subscription_id) = (provider.lane(0), Bytes32([1; 32]));
    let batch = provider.commit(vec![Record { lane_id: lane, payload: vec![0; MAX_INLINE_MESSAGE_BYTES] }]);
    let first = batch.frames(subscription_id, &[lane]).next().expect("a record");
    let ServerMessage::Delivery(first) = ServerFrame::from_bytes(&first).expect("a frame").0 else {
        panic!("a record")
    };
    let config = FastSubscriptionConfig {
        context: provider.context.clone(),
        stream_id: provider.stream_id,
        encrypted: false,
        subscription_id,
        verification: Verification::FullStream,
    };
    let mut subscription = FastSubscription::new(config, FastState::default());
    let most = MAX_BATCH_PAYLOAD_BYTES / u64::try_from(MAX_INLINE_MESSAGE_BYTES).expect("small");
    let mut delivery = first;
    let mut hand = |delivery: &mut RecordDelivery, sequence| {
        delivery.record_id = RecordId::Fast(FastRecordId { provider_epoch: ProviderEpoch, broker_epoch: 0, sequence });
        subscription.handle_delivery(delivery, ())
    };
    for sequence in 0..most {
        hand(&mut delivery, sequence).expect("within the bound");
    }
    let refused = hand(&mut delivery, most);
    assert_eq!(refused, Err(AdmissionRefused::BatchTooLarge.into()));
    assert_eq!(u64::try_from(subscription.waiting()), Ok(most), "nothing of it is kept");
}
