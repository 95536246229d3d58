//! What is seen of an append before it is sent for the first time (§10, §11.1): every broker would refuse it.

use remuda_wire::bound::MAX_CLOCK_SKEW_MS;
use remuda_wire::chain::{DeliveryClass, Purpose, StreamRecord};
use remuda_wire::request::AppendRequest;
use remuda_wire::Remedy;

use crate::failure::Failure;

/// Checks a new message for a stream. Live clock skews are at most [`MAX_CLOCK_SKEW_MS`], so nothing is refused here that a
/// broker with this clock would take. A message that was sent before is not asked about: it may have been taken.
///
/// # Errors
/// `client/key-stream`: a key stream takes batches, never appends. `encryption/generation-stale`: sealed under a key that is no
/// longer the active one; under a later one than was read it may be right, and the broker knows. `client/clock-window`: to a standard stream, with a
/// clock ahead of ours, or older than messages are remembered.
pub(crate) fn check_append(append: &AppendRequest, stream: &StreamRecord, now_ms: u64) -> Result<(), Failure> {
    if stream.purpose == Purpose::Key {
        return Err(refusal("client/key-stream", "CIP-39 §10", "a key stream takes key batches and no appends"));
    }
    if stream.encrypted && append.encryption_generation < stream.encryption_generation {
        let meaning = "the record was sealed under a data key that is no longer the active one: append it again";
        return Err(refusal("encryption/generation-stale", "CIP-39 §9.4", meaning));
    }
    let oldest = now_ms.saturating_sub(stream.config.idempotency_horizon_ms.saturating_add(MAX_CLOCK_SKEW_MS));
    let latest = now_ms.saturating_add(MAX_CLOCK_SKEW_MS);
    if stream.delivery_class == DeliveryClass::Standard && !(oldest..=latest).contains(&append.client_created_at_ms) {
        let meaning = "the message was made outside the window in which a broker can tell it from a repeated one";
        return Err(refusal("client/clock-window", "CIP-39 §11.1", meaning));
    }
    Ok(())
}

fn refusal(code: &str, rule: &str, meaning: &str) -> Failure {
    Failure { code: code.into(), remedy: Remedy::FixRequest, rule: rule.into(), meaning: meaning.into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use remuda_testkit::builder::Provider;
    use remuda_wire::{Bytes, Bytes24, Bytes32};

    const NOW_MS: u64 = 1_800_000_000_000;

    fn stream(purpose: Purpose, delivery_class: DeliveryClass) -> StreamRecord {
        StreamRecord { purpose, delivery_class, ..Provider::new().broker_state().stream.expect("a stream") }
    }

    fn code_at(stream: &StreamRecord, client_created_at_ms: u64) -> Option<alloc::string::String> {
        let append = AppendRequest {
            stream_id: stream.stream_id,
            lane_id: Bytes32::ZERO,
            client_message_id: Bytes32([3; 32]),
            client_created_at_ms,
            visible_after_ms: 0,
            expires_at_ms: 0,
            encryption_generation: 0,
            nonce: Bytes24::ZERO,
            payload: Bytes::new(alloc::vec![1]).expect("short"),
        };
        check_append(&append, stream, NOW_MS).err().map(|failure| failure.code)
    }

    #[test]
    fn a_key_stream_takes_no_append() {
        let key_stream = stream(Purpose::Key, DeliveryClass::Standard);
        assert_eq!(code_at(&key_stream, NOW_MS).as_deref(), Some("client/key-stream"));
        assert_eq!(code_at(&stream(Purpose::Main, DeliveryClass::Standard), NOW_MS), None);
    }

    #[test]
    fn nothing_is_sent_under_a_generation_that_is_over() {
        let active = |encryption_generation| StreamRecord {
            encrypted: true,
            encryption_generation,
            ..stream(Purpose::Main, DeliveryClass::Fast)
        };
        // The record is sealed under generation zero.
        assert_eq!(code_at(&active(0), NOW_MS), None);
        assert_eq!(code_at(&active(1), NOW_MS).as_deref(), Some("encryption/generation-stale"));
    }

    #[test]
    fn a_message_outside_the_clock_window_is_not_sent() {
        let standard = stream(Purpose::Main, DeliveryClass::Standard);
        let behind_ms = standard.config.idempotency_horizon_ms + MAX_CLOCK_SKEW_MS;
        assert_eq!(code_at(&standard, NOW_MS + MAX_CLOCK_SKEW_MS), None);
        assert_eq!(code_at(&standard, NOW_MS - behind_ms), None);
        for created_at_ms in [NOW_MS + MAX_CLOCK_SKEW_MS + 1, NOW_MS - behind_ms - 1, u64::MAX, 0] {
            assert_eq!(code_at(&standard, created_at_ms).as_deref(), Some("client/clock-window"), "{created_at_ms}");
        }
        // A fast stream remembers no messages: its window is open.
        assert_eq!(code_at(&stream(Purpose::Main, DeliveryClass::Fast), 0), None);
    }
}
