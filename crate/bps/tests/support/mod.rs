//! An admin who signs, and what a broker passes on.
#![allow(dead_code)] // Each test file uses a part.

use remuda_bps::broadcast::Cohort;
use remuda_bps::connection::{Moment, Transport};
use remuda_bps::message::{Ack, Broadcast, Status};
use remuda_bps::signature::LocalSigner;
use remuda_bps::soc::UnsignedChunk;
use remuda_bps::topic::{session_topic, update_id, KIND_AUTH, KIND_DATA};
use remuda_bps::Address;
use remuda_wire::Bytes32;

pub const TOPIC: Bytes32 = Bytes32([0x7e; 32]);
pub const BROKER: Bytes32 = Bytes32([0x37; 32]);
pub const CHALLENGE: Bytes32 = Bytes32([0xc1; 32]);
pub const BRIDGE: Transport = Transport::Bridge { broker: BROKER };
pub const TRANSPORTS: [Transport; 2] = [BRIDGE, Transport::Direct];
pub const IDENTITY: Address = Address([0x1d; 20]);

pub fn at(now_ms: u64) -> Moment {
    Moment { now_ms, random: 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(now_ms + 1) }
}

pub fn admin() -> LocalSigner {
    LocalSigner::new(&[0x63; 32]).expect("a key")
}

pub fn cohort() -> Cohort {
    Cohort { topic: TOPIC, admin: admin().address() }
}

pub fn broadcast_by(signer: &LocalSigner, kind: u8, challenge: Bytes32, index: u64, payload: &[u8]) -> Broadcast {
    let id = update_id(&session_topic(&TOPIC, kind, &challenge), index);
    let chunk = UnsignedChunk::new(id, payload).expect("short enough");
    let signature = signer.sign(&chunk.message()).expect("signed");
    let soc = chunk.sign(&signer.address(), &signature).expect("by its owner");
    Broadcast { soc, kind: kind.into(), challenge: challenge.0.into(), index }
}

pub fn data(index: u64, payload: &[u8]) -> Broadcast {
    broadcast_by(&admin(), KIND_DATA, CHALLENGE, index, payload)
}

pub fn auth() -> Broadcast {
    broadcast_by(&admin(), KIND_AUTH, CHALLENGE, 0, &[])
}

/// A broadcast as a transport carries it to a subscriber.
pub fn carried(transport: Transport, broadcast: &Broadcast) -> Vec<u8> {
    match transport {
        Transport::Direct => broadcast.to_bytes(),
        Transport::Bridge { .. } => [&broadcast.challenge[..], &broadcast.index.to_be_bytes(), &broadcast.soc].concat(),
    }
}

pub fn ack(status: Status, challenge: Bytes32) -> Vec<u8> {
    Ack { status, challenge: challenge.0.into() }.to_bytes()
}

pub fn offer(challenge: Bytes32) -> String {
    let [data, auth] = [KIND_DATA, KIND_AUTH].map(|kind| session_topic(&TOPIC, kind, &challenge));
    format!(
        r#"{{"type":"challenge","challenge":"{challenge}","broker":"{BROKER}","dataTopic":"{data}","authTopic":"{auth}"}}"#
    )
}
