//! The known answers of `BPS.md`.

use remuda_bps::broadcast::{judge, Cohort, Judged};
use remuda_bps::chunk::chunk_address;
use remuda_bps::message::Broadcast;
use remuda_bps::signature::LocalSigner;
use remuda_bps::soc::{soc_address, UnsignedChunk};
use remuda_bps::topic::{session_topic, update_id, KIND_AUTH, KIND_DATA};
use remuda_bps::Address;
use remuda_wire::Bytes32;

fn bytes<const N: usize>(text: &str) -> [u8; N] {
    let mut bytes = [0; N];
    hex::decode_to_slice(text, &mut bytes).expect("hexadecimal");
    bytes
}

fn signer() -> LocalSigner {
    LocalSigner::new(&bytes("634fb5a872396d9693e5c9f9d7233cfa93f395c093371017ff44aa9ae6564cdd")).expect("a key")
}

fn owner() -> Address {
    Address(bytes("8d3766440f0d7b949a5e32995d09619a7f86e632"))
}

#[test]
fn the_owner_of_the_key() {
    assert_eq!(signer().address(), owner());
}

#[test]
fn addresses_of_chunks() {
    let chunk = |payload: &[u8]| [&u64::try_from(payload.len()).unwrap().to_le_bytes(), payload].concat();
    let known: [(&[u8], &str); 4] = [
        (b"foo", "2387e8e7d8a48c2a9339c97c1dc3461a9a7aa07e994c5cb8b38fd7c1b3e6ea48"),
        (&[1, 2, 3], "ca6357a08e317d15ec560fef34e4c45f8f19f01c372aa70f1da72bfa7f1a4338"),
        (&[], "b34ca8c22b9e982354f9c7f50b470d66db428d880c8a904d5fe4ec9713171526"),
        (&[0; 4096], "09ae927d0f3aaa37324df178928d3826820f3dd3388ce4aaebfc3af410bde23a"),
    ];
    for (payload, address) in known {
        assert_eq!(chunk_address(&chunk(payload)).unwrap().to_string(), address);
    }
}

#[test]
fn a_signed_chunk() {
    let chunk = UnsignedChunk::new(Bytes32::ZERO, b"foo").unwrap();
    let signature = signer().sign(&chunk.message()).unwrap();
    let known = "5acd384febc133b7b245e5ddc62d82d2cded9182d2716126cd8844509af65a053deb418208027f548e3e88343af6f84a8772fb3cebc0a183\
                 3a0ea7ec0c1348311b";
    assert_eq!(hex::encode(signature), known);
    assert!(chunk.sign(&owner(), &signature).is_ok());
    let address = soc_address(&Bytes32::ZERO, &owner());
    assert_eq!(address.to_string(), "9d453ebb73b2fedaaf44ceddcf7a0aa37f3e3d6453fea5841c31f0ea6d61dc85");
}

#[test]
fn identifiers_of_updates() {
    let topic = Bytes32(bytes("7e15a90abbff6ee821a98dfd278e2967c16a1f8d3fa62534bce0c231169befce"));
    let challenge = Bytes32(std::array::from_fn(|at| u8::try_from(at).unwrap()));
    let data = update_id(&session_topic(&topic, KIND_DATA, &challenge), 7);
    assert_eq!(data.to_string(), "4177b7efbfecad52db58bdac616b23feee55157afb7ec2b836f97f9afb97c041");
    let address = soc_address(&data, &owner());
    assert_eq!(address.to_string(), "7866179397dc4ae72a712257d4a6398023507e72dbb41b07f1bd3933566f7a7e");
    let auth = update_id(&session_topic(&topic, KIND_AUTH, &challenge), 0);
    assert_eq!(auth.to_string(), "8488a604a4f59efc8c3c847487ccc577e18b7d5237648e8309a46168695d044f");

    let chunk = UnsignedChunk::new(data, b"hello cohort").unwrap();
    let soc = chunk.sign(&owner(), &signer().sign(&chunk.message()).unwrap()).unwrap();
    let broadcast = Broadcast { soc, kind: KIND_DATA.into(), challenge: challenge.0.into(), index: 7 };
    let judged = judge(&Cohort { topic, admin: owner() }, &broadcast, None);
    assert_eq!(judged, Ok(Judged::Delivered { payload: b"hello cohort".to_vec(), gap: None }));
}
