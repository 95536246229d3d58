//! §4.1: what every key stream is, and what no later read may say otherwise.

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

/// Judges a read at a greater height against an earlier one, of a main stream changed like this.
fn judge_later(bend: &dyn Fn(&mut StreamRecord)) -> Result<(), VerifyError> {
    let provider = Provider::new();
    let mut read = provider.broker_state();
    let stream = read.stream.as_mut().expect("a stream");
    (stream.authorization_generation, stream.encryption_generation, stream.pricing_generation) = (5, 6, 7);
    let mut later = read.clone();
    (later.view.height, later.view.block_hash) = (read.view.height + 1, Bytes32([9; 32]));
    bend(later.stream.as_mut().expect("a stream"));
    // What does not derive is refused before it is compared: two reads that each derive can still differ.
    let earlier = ChainView::admit(read, &provider.context, &provider.stream_id).expect("honest");
    ChainView::admit(later, &provider.context, &provider.stream_id)?.check_against(&earlier)
}

#[test]
fn what_is_immutable_never_changes_and_generations_never_fall() {
    let rises: [&dyn Fn(&mut StreamRecord); 5] = [
        &|_| {},
        &|stream| stream.authorization_generation += 1,
        &|stream| stream.encryption_generation += 1,
        &|stream| stream.pricing_generation += 1,
        &|stream| stream.escrow_balance = 0,
    ];
    for (number, bend) in rises.iter().enumerate() {
        assert_eq!(judge_later(bend), Ok(()), "the change of number {number}");
    }
    let bends: [&dyn Fn(&mut StreamRecord); 7] = [
        &|stream| stream.delivery_class = DeliveryClass::Standard,
        &|stream| (stream.encrypted, stream.linked_stream_id) = (true, Some(key_stream_id(&stream.stream_id))),
        &|stream| stream.provider = Address([9; 20]),
        &|stream| stream.provider_signing_key.0 = Bytes32([9; 32]),
        &|stream| stream.authorization_generation -= 1,
        &|stream| stream.encryption_generation -= 1,
        &|stream| stream.pricing_generation -= 1,
    ];
    for (number, bend) in bends.iter().enumerate() {
        assert_eq!(judge_later(bend), Err(VerifyError::ChainInconsistent), "the bend of number {number}");
    }
    // Another purpose or link does not derive from the same id.
    assert_eq!(judge_later(&|stream| stream.purpose = Purpose::Key), Err(VerifyError::StreamMismatch));
    assert_eq!(
        judge_later(&|stream| stream.linked_stream_id = Some(Bytes32([9; 32]))),
        Err(VerifyError::StreamMismatch)
    );
}
