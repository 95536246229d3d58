//! §7: the window of a grant.

use ed25519_dalek::{Signer, SigningKey};
use remuda_testkit::builder::Provider;
use remuda_verify::grant::{GrantBounds, VerifiedGrant};
use remuda_wire::grant::{StreamGrant, Verb, Verbs};
use remuda_wire::key::SigningPublicKey;
use remuda_wire::scope::{GroupScope, LaneScope};
use remuda_wire::verdict::{AdmissionRefused, Refusal};
use remuda_wire::{Bytes32, Signature, Signed};

const SKEW_MS: u64 = 1_000;
const EXPIRES_AT_MS: u64 = 100_000;

#[test]
fn a_window_that_ends_before_it_begins_is_never_open() {
    let admin = SigningKey::from_bytes(&[3; 32]);
    let admin_key = SigningPublicKey(Bytes32(admin.verifying_key().to_bytes()));
    let provider = Provider::new();
    let mut stream = provider.broker_state().stream.expect("a stream");
    stream.admin_key = admin_key;
    let bounds = GrantBounds { max_clock_skew_ms: SKEW_MS, max_grant_ttl_ms: 1, max_lane_creates_per_min: 0 };
    let judge = |not_before_ms, now_ms| {
        let mut grant = StreamGrant {
            context: provider.context.clone(),
            stream_id: provider.stream_id,
            authorization_generation: stream.authorization_generation,
            grant_nonce: Bytes32([4; 32]),
            holder_signing_key: admin_key,
            holder_hpke_key: None,
            verbs: Verbs::of(&[Verb::Consume]),
            lane_scope: LaneScope::Any,
            group_scope: GroupScope::Any,
            not_before_ms,
            expires_at_ms: EXPIRES_AT_MS,
            max_message_bytes: 1,
            max_append_bytes_per_sec: 1,
            max_in_flight: 1,
            max_lane_creates_per_min: 0,
            signature: Signature::ZERO,
        };
        grant.signature = Signature(admin.sign(&grant.digest().0).to_bytes());
        VerifiedGrant::verify(grant, &provider.context, &stream, now_ms, &bounds).map(drop)
    };
    // The widest hole that the skew on both ends still bridges, and one millisecond more.
    let bridged = EXPIRES_AT_MS + 2 * SKEW_MS;
    assert_eq!(judge(bridged, EXPIRES_AT_MS + SKEW_MS), Ok(()));
    let expected = |now_ms| -> Result<(), Refusal> {
        let early = now_ms <= EXPIRES_AT_MS + SKEW_MS;
        Err(if early { AdmissionRefused::GrantNotYetValid } else { AdmissionRefused::GrantExpired }.into())
    };
    for now_ms in (EXPIRES_AT_MS - 2)..(bridged + 2 * SKEW_MS) {
        assert_eq!(judge(bridged + 1, now_ms), expected(now_ms), "at {now_ms}");
    }
}
