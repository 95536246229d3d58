//! §4.1: what every key stream is.

use remuda_testkit::builder::Provider;
use remuda_verify::chain_view::ChainView;
use remuda_wire::chain::{BrokerState, DeliveryClass, Purpose, StreamRecord};
use remuda_wire::preimage::key_stream_id;
use remuda_wire::verdict::VerifyError;
use remuda_wire::{Address, Bytes32};

#[test]
fn a_key_stream_is_standard_unencrypted_free_and_linked_back() {
    let provider = Provider::new();
    let key_stream = key_stream_id(&provider.stream_id);
    let honest = BrokerState {
        stream: provider.broker_state().stream.map(|main| StreamRecord {
            stream_id: key_stream,
            purpose: Purpose::Key,
            delivery_class: DeliveryClass::Standard,
            linked_stream_id: Some(main.stream_id),
            rate_per_block: 0,
            ..main
        }),
        ..provider.broker_state()
    };
    let judge = |bend: &dyn Fn(&mut StreamRecord)| {
        let mut read = honest.clone();
        bend(read.stream.as_mut().expect("a stream"));
        ChainView::admit(read, &provider.context, &key_stream).map(drop)
    };
    assert_eq!(judge(&|_| {}), Ok(()));
    let bends: [&dyn Fn(&mut StreamRecord); 8] = [
        &|stream| stream.delivery_class = DeliveryClass::Fast,
        &|stream| stream.encrypted = true,
        &|stream| stream.rate_per_block = 1,
        &|stream| stream.linked_stream_id = None,
        &|stream| stream.linked_stream_id = Some(Bytes32([9; 32])),
        &|stream| stream.owner = Address([9; 20]),
        &|stream| stream.owner_nonce += 1,
        &|stream| stream.purpose = Purpose::Main,
    ];
    for (number, bend) in bends.iter().enumerate() {
        assert_eq!(judge(bend), Err(VerifyError::StreamMismatch), "the bend of number {number}");
    }
}
