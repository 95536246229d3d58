//! A node's WebSocket bridge: where it is, what its messages are, and the offer that a publisher signs under.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use remuda_wire::{Address, Bytes32};
use serde::Deserialize;

use crate::broadcast::Cohort;
use crate::message::Broadcast;
use crate::refusal::BpsRefusal;
use crate::topic::{session_topic, KIND_AUTH, KIND_DATA};

/// The path of the subscribe bridge, query included. Each binary message is one update; nothing is sent.
pub fn subscribe_path(cohort: &Cohort, broker: &Bytes32, identity: &Address, cursor: Option<u64>) -> String {
    let Cohort { topic, admin } = cohort;
    let path = format!("/bps/subscribe/{admin}/{topic}?broker={broker}&identity={identity}");
    match cursor {
        Some(cursor) => format!("{path}&cursor={cursor}"),
        None => path,
    }
}

/// The path of the publish bridge, query included. The node offers a challenge; frames follow.
pub fn publish_path(cohort: &Cohort, broker: &Bytes32) -> String {
    let Cohort { topic, admin } = cohort;
    format!("/bps/publish/{admin}/{topic}?broker={broker}")
}

/// Reads a message of the subscribe bridge, `challenge(32) || index(8, big-endian) || soc`: always DATA.
///
/// # Errors
/// [`BpsRefusal::Frame`].
pub fn read_subscribed(message: &[u8]) -> Result<Broadcast, BpsRefusal> {
    let (challenge, rest) = message.split_first_chunk::<32>().ok_or(BpsRefusal::Frame)?;
    let (index, soc) = rest.split_first_chunk().ok_or(BpsRefusal::Frame)?;
    Ok(Broadcast {
        soc: soc.into(),
        kind: KIND_DATA.into(),
        challenge: challenge.as_slice().into(),
        index: u64::from_be_bytes(*index),
    })
}

/// A message of the publish bridge: `kind(1) || index(8, big-endian) || soc`.
pub fn published(kind: u8, index: u64, soc: &[u8]) -> Vec<u8> {
    [&[kind], index.to_be_bytes().as_slice(), soc].concat()
}

/// The first text of the publish bridge. Members that are not known are ignored.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OfferText {
    r#type: String,
    challenge: String,
    broker: String,
    data_topic: String,
    auth_topic: String,
}

/// An offer that was found to be what we derive ourselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// The challenge of the stream.
    pub challenge: Bytes32,
    /// Where updates are signed.
    pub data_topic: Bytes32,
    /// Where claims are signed.
    pub auth_topic: Bytes32,
}

impl Offer {
    /// Judges an offer. The broker and the topics are compared as lower-case hexadecimal.
    ///
    /// # Errors
    /// [`BpsRefusal::Frame`], [`BpsRefusal::Broker`], [`BpsRefusal::OfferedTopics`]: then nothing may be signed.
    pub fn from_text(text: &str, topic: &Bytes32, broker: &Bytes32) -> Result<Self, BpsRefusal> {
        let offer: OfferText = serde_json::from_str(text).map_err(|_| BpsRefusal::Frame)?;
        let mut challenge = Bytes32::ZERO;
        hex::decode_to_slice(&offer.challenge, &mut challenge.0).map_err(|_| BpsRefusal::Frame)?;
        if offer.r#type != "challenge" {
            return Err(BpsRefusal::Frame);
        }
        if offer.broker != format!("{broker}") {
            return Err(BpsRefusal::Broker);
        }
        let [data_topic, auth_topic] = [KIND_DATA, KIND_AUTH].map(|kind| session_topic(topic, kind, &challenge));
        if offer.data_topic != format!("{data_topic}") || offer.auth_topic != format!("{auth_topic}") {
            return Err(BpsRefusal::OfferedTopics);
        }
        Ok(Self { challenge, data_topic, auth_topic })
    }
}
