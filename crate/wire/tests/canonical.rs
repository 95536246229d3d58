//! What decodes re-encodes to itself, so one value has one encoding, and no bit of an encoding is without meaning.

mod support;

use std::collections::BTreeSet;
use std::sync::OnceLock;

use proptest::prelude::*;
use remuda_testkit::vector::op::decode::{recode_as, type_names};
use remuda_wire::checkpoint::{bit, check_siblings, set_bits, LaneProof};
use remuda_wire::preimage::empty_subtree;
use remuda_wire::{Bytes32, Canonical, DecodeError, List};

use support::Accepted;

const SMALL: usize = 2_048;

fn corpus() -> &'static [Accepted] {
    static CORPUS: OnceLock<Vec<Accepted>> = OnceLock::new();
    CORPUS.get_or_init(|| support::accepted(SMALL))
}

/// Refused, or a value of exactly these bytes.
fn is_canonical(of: &str, bytes: &[u8]) -> bool {
    recode_as(of, bytes).expect("a known type").map_or(true, |again| again == bytes)
}

/// Types whose bytes occur in the vectors only inside those of others.
const ONLY_INSIDE_OTHERS: [&str; 5] = [
    "BaseRateAdmissionV1",
    "BaseRateClassV1",
    "BaseRateReservationTotalsV1",
    "CbqsRequestBodyV1",
    "CbqsResponseBodyV1",
];
/// Types that are a tag and nothing else, so that trying every tag tries everything; and how many tags each has.
const TAGS: [(&str, usize); 6] = [
    ("CbqsRequestMethodV1", 18),
    ("DeliveryStateActionV1", 12),
    ("ProviderEndpointTransportV1", 2),
    ("RecordKindV1", 5),
    ("RecordOriginV1", 2),
    ("VerificationModeV1", 3),
];

#[test]
fn every_type_has_an_accepted_vector() {
    let covered: BTreeSet<_> = corpus().iter().map(|accepted| accepted.of.as_str()).collect();
    let elsewhere: Vec<_> = TAGS.iter().map(|(name, _)| *name).chain(ONLY_INSIDE_OTHERS).collect();
    let missing: Vec<_> = type_names().filter(|name| !covered.contains(name) && !elsewhere.contains(name)).collect();
    assert!(missing.is_empty(), "types without an accepted vector: {missing:?}");
}

#[test]
fn tags_are_dense_from_one_and_no_other_is_accepted() {
    for (of, count) in TAGS {
        let width = if of == "CbqsRequestMethodV1" { 2 } else { 1 };
        let tags = 0..=if width == 2 { u16::MAX } else { u16::from(u8::MAX) };
        let accepted: Vec<_> = tags
            .map(usize::from)
            .filter(|tag| {
                let bytes = &tag.to_be_bytes()[size_of::<usize>() - width..];
                match recode_as(of, bytes).expect("a known type") {
                    Ok(again) => again == bytes,
                    Err(refusal) => {
                        assert_eq!(refusal, DecodeError::UnknownTag, "{of}: tag {tag}");
                        false
                    }
                }
            })
            .collect();
        assert_eq!(accepted, (1..=count).collect::<Vec<_>>(), "{of}");
    }
}

#[test]
fn a_single_bit_change_is_refused_or_another_value() {
    let mut changed = 0u32;
    for accepted in corpus() {
        let mut bent = accepted.bytes.clone();
        for at in 0..bent.len() * 8 {
            bent[at / 8] ^= 1 << (at % 8);
            assert!(is_canonical(&accepted.of, &bent), "{}: bit {at} has no meaning", accepted.name);
            bent[at / 8] ^= 1 << (at % 8);
            changed += 1;
        }
    }
    assert!(changed > 100_000, "only {changed} bits were changed");
}

/// The types that begin with their version.
const VERSIONED: [&str; 6] = [
    "BrokerStateV1",
    "CbqsClientFrameV1",
    "CbqsServerFrameV1",
    "CbqsSigningContextV1",
    "ProviderRecordV1",
    "StreamRecordV1",
];

#[test]
fn a_frame_or_record_of_another_version_is_refused() {
    for of in VERSIONED {
        let mut tried = 0;
        for accepted in corpus().iter().filter(|accepted| accepted.of == of) {
            for version in [0, 2, 255] {
                let mut bent = accepted.bytes.clone();
                bent[0] = version;
                assert_eq!(recode_as(of, &bent), Some(Err(DecodeError::UnknownVersion)), "{}", accepted.name);
                tried += 1;
            }
        }
        assert!(tried > 0, "no {of}");
    }
}

#[test]
fn keys_have_one_algorithm_and_one_suite() {
    for of in ["SigningPublicKey", "HpkePublicKey"] {
        let accepted = corpus().iter().find(|accepted| accepted.of == of).expect("an accepted vector");
        let refused = (0..=u8::MAX).filter(|tag| *tag != 1).all(|tag| {
            let bent = [&[tag], &accepted.bytes[1..]].concat();
            recode_as(of, &bent) == Some(Err(DecodeError::UnknownTag))
        });
        assert!(refused && accepted.bytes[0] == 1, "{of} takes another tag than 1");
    }
}

/// The types that name a provider epoch in a field of their own.
const EPOCH_CARRIERS: [&str; 15] = [
    "BrokerEpochTransitionV1",
    "CheckpointReceiptV1",
    "DeliveryStateReceiptV1",
    "FastDurableWatermarkV1",
    "FastLineageV1",
    "FastRecordIdV1",
    "FastRetentionAnchorV1",
    "GroupRetentionAnchorV1",
    "KeyBatchReceiptV1",
    "SessionChallengeV1",
    "SessionOpenedV1",
    "SessionProofV1",
    "StandardRecordIdV1",
    "StandardRetentionAnchorV1",
    "StreamRecordV1",
];

#[test]
fn every_carrier_of_a_provider_epoch_refuses_any_but_zero() {
    for of in EPOCH_CARRIERS {
        let accepted = corpus().iter().find(|accepted| accepted.of == of).expect("an accepted vector");
        let refuses_at = |at: usize| {
            [1, u64::MAX].iter().all(|epoch| {
                let mut bent = accepted.bytes.clone();
                bent[at..at + 8].copy_from_slice(&epoch.to_be_bytes());
                recode_as(of, &bent) == Some(Err(DecodeError::NonzeroProviderEpoch))
            })
        };
        let is_zero = |at: &usize| accepted.bytes[*at..at + 8] == [0; 8];
        let places = (0..=accepted.bytes.len() - 8).filter(is_zero).filter(|at| refuses_at(*at)).count();
        assert!(places > 0, "{of} takes any provider epoch");
    }
}

#[test]
fn every_verb_above_the_sixth_is_refused() {
    let grants = corpus().iter().filter(|accepted| accepted.of == "StreamGrantV1");
    let mut tried = 0;
    for accepted in grants {
        // Context, stream, generation, nonce and holder key, then an optional key.
        let option = 41 + 32 + 8 + 32 + 33;
        let verbs = option + if accepted.bytes[option] == 0 { 1 } else { 34 };
        for bit in 7..16 {
            let mut bent = accepted.bytes.clone();
            bent[verbs + 1 - bit / 8] ^= 1 << (bit % 8);
            let refused = recode_as("StreamGrantV1", &bent);
            assert_eq!(refused, Some(Err(DecodeError::UnknownVerb)), "{}: bit {bit}", accepted.name);
            tried += 1;
        }
    }
    assert!(tried >= 9, "no grant");
}

#[test]
fn every_prefix_is_refused() {
    for accepted in corpus() {
        for length in 0..accepted.bytes.len() {
            let cut = recode_as(&accepted.of, &accepted.bytes[..length]).expect("a known type");
            assert!(cut.is_err(), "{}: its first {length} bytes are accepted", accepted.name);
        }
    }
}

#[test]
fn every_extension_is_refused() {
    for accepted in corpus() {
        let longer = [&accepted.bytes[..], &[0]].concat();
        let refused = recode_as(&accepted.of, &longer).expect("a known type");
        assert_eq!(refused, Err(DecodeError::TrailingBytes), "{}", accepted.name);
    }
}

/// One edit of some bytes, at a place given as a fraction of their length.
#[derive(Clone, Debug)]
enum Edit {
    Set(u16, u8),
    Insert(u16, u8),
    Remove(u16),
    /// A length or count field is four bytes somewhere.
    Length(u16, u32),
    /// The tail of another object.
    Splice(u16, u16),
}

fn edit() -> impl Strategy<Value = Edit> {
    prop_oneof![
        (any::<u16>(), any::<u8>()).prop_map(|(at, byte)| Edit::Set(at, byte)),
        (any::<u16>(), any::<u8>()).prop_map(|(at, byte)| Edit::Insert(at, byte)),
        any::<u16>().prop_map(Edit::Remove),
        (any::<u16>(), prop_oneof![Just(u32::MAX), 0..1_024u32, any::<u32>()])
            .prop_map(|(at, length)| Edit::Length(at, length)),
        (any::<u16>(), any::<u16>()).prop_map(|(at, other)| Edit::Splice(at, other)),
    ]
}

fn place(fraction: u16, length: usize) -> usize {
    usize::from(fraction) * length / (usize::from(u16::MAX) + 1)
}

fn apply(edit: &Edit, bytes: &mut Vec<u8>) {
    if bytes.is_empty() {
        return;
    }
    match *edit {
        Edit::Set(at, byte) => {
            let at = place(at, bytes.len());
            bytes[at] = byte;
        }
        Edit::Insert(at, byte) => bytes.insert(place(at, bytes.len()), byte),
        Edit::Remove(at) => {
            bytes.remove(place(at, bytes.len()));
        }
        Edit::Length(at, length) => {
            let at = place(at, bytes.len());
            for (byte, new) in bytes[at..].iter_mut().zip(length.to_be_bytes()) {
                *byte = new;
            }
        }
        Edit::Splice(at, other) => {
            let other = &corpus()[place(other, corpus().len())].bytes;
            bytes.truncate(place(at, bytes.len()));
            bytes.extend_from_slice(&other[other.len() / 2..]);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_decodes_encodes_to_itself(
        of in any::<u16>(),
        edits in proptest::collection::vec(edit(), 1..6),
    ) {
        let accepted = &corpus()[place(of, corpus().len())];
        let mut bytes = accepted.bytes.clone();
        edits.iter().for_each(|edit| apply(edit, &mut bytes));
        prop_assert!(is_canonical(&accepted.of, &bytes), "{} bent by {edits:?}", accepted.name);
    }

    #[test]
    fn any_bytes_are_refused_or_encode_to_themselves(of in any::<u16>(), bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let accepted = &corpus()[place(of, corpus().len())];
        prop_assert!(is_canonical(&accepted.of, &bytes));
    }

    #[test]
    fn bits_are_read_from_the_most_significant(key in any::<[u8; 32]>(), depth in any::<u8>()) {
        // §12.2's formula, said in another way: the key as one big-endian number, its top bit first.
        let number = key.iter().fold(String::new(), |digits, byte| digits + &format!("{byte:08b}"));
        prop_assert_eq!(bit(&Bytes32(key), depth), number.as_bytes()[usize::from(depth)] == b'1');
    }
}

/// RESOLUTIONS §9: the mirrored reading of a bitmap fails.
#[test]
fn the_mirrored_bit_order_fails() {
    let mut first = Bytes32::ZERO;
    first.0[0] = 0x80;
    let mut mirrored = Bytes32::ZERO;
    mirrored.0[0] = 0x01;
    assert_eq!(set_bits(&first).collect::<Vec<_>>(), [0]);
    assert_eq!(set_bits(&mirrored).collect::<Vec<_>>(), [7]);
    // The default of depth 1 may not be sent beside depth 0, and may beside depth 7, whose default is another.
    let sibling = [empty_subtree(1)];
    assert_eq!(check_siblings(&first, &sibling), Err(DecodeError::ProofShape));
    assert_eq!(check_siblings(&mirrored, &sibling), Ok(()));
    let proof = |bitmap| LaneProof {
        lane_id: first,
        payload: None,
        bitmap,
        siblings: List::new(sibling.to_vec()).expect("one sibling"),
    };
    assert_eq!(LaneProof::from_bytes(&proof(first).to_bytes()), Err(DecodeError::ProofShape));
    assert!(LaneProof::from_bytes(&proof(mirrored).to_bytes()).is_ok());
}
