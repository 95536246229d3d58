//! Every lie that the broker, or the node before it, tells on request, and what must catch it.

use clap::ValueEnum;
use remuda_bps::signature::LocalSigner;
use remuda_bps::soc::UnsignedChunk;
use remuda_bps::topic::{session_topic, update_id, KIND_AUTH, KIND_DATA};
use remuda_bps::{Broadcast, Cohort};
use remuda_wire::Bytes32;

/// A lie by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum BrokerLie {
    /// A payload is changed. Caught by `bps/signer`.
    AlterPayload,
    /// An update is signed by a stranger. Caught by `bps/signer`.
    ForgeUpdate,
    /// An update comes under the next index. Caught by `bps/id`.
    RelabelIndex,
    /// An update comes under another challenge. Caught by `bps/id`.
    RelabelChallenge,
    /// A chunk is cut. Caught by `bps/soc-length`.
    CutChunk,
    /// Every update comes twice. Dropped as `bps/replayed-index`.
    Replay,
    /// Every second update is withheld. Reported as a gap.
    Withhold,
    /// The offer names another broker. Caught by `bps/broker`.
    OtherBroker,
    /// The offer names other topics than the challenge gives. Caught by `bps/offered-topics`.
    OtherTopics,
}

impl BrokerLie {
    /// The code that a client must report, or count; `None` for a gap.
    pub const fn verdict(self) -> Option<&'static str> {
        match self {
            Self::AlterPayload | Self::ForgeUpdate => Some("bps/signer"),
            Self::RelabelIndex | Self::RelabelChallenge => Some("bps/id"),
            Self::CutChunk => Some("bps/soc-length"),
            Self::Replay => Some("bps/replayed-index"),
            Self::Withhold => None,
            Self::OtherBroker => Some("bps/broker"),
            Self::OtherTopics => Some("bps/offered-topics"),
        }
    }

    /// What a subscriber is told of an update.
    pub fn bend(self, cohort: &Cohort, mut broadcast: Broadcast) -> Vec<Broadcast> {
        match self {
            Self::AlterPayload => {
                if let Some(last) = broadcast.soc.last_mut() {
                    *last ^= 1;
                }
            }
            Self::ForgeUpdate => {
                if let Some(forged) = forge(cohort, &broadcast) {
                    broadcast.soc = forged;
                }
            }
            Self::RelabelIndex => broadcast.index = broadcast.index.wrapping_add(1),
            Self::RelabelChallenge => {
                if let Some(first) = broadcast.challenge.first_mut() {
                    *first ^= 1;
                }
            }
            Self::CutChunk => broadcast.soc.truncate(104),
            Self::Replay => return vec![broadcast.clone(), broadcast],
            Self::Withhold if broadcast.index % 2 == 1 => return Vec::new(),
            Self::Withhold | Self::OtherBroker | Self::OtherTopics => {}
        }
        vec![broadcast]
    }
}

/// The same identifier, signed by a stranger.
fn forge(cohort: &Cohort, broadcast: &Broadcast) -> Option<Vec<u8>> {
    let stranger = LocalSigner::new(&[0x57; 32])?;
    let challenge = Bytes32(broadcast.challenge.as_slice().try_into().ok()?);
    let id = update_id(&session_topic(&cohort.topic, KIND_DATA, &challenge), broadcast.index);
    let chunk = UnsignedChunk::new(id, b"forged").ok()?;
    chunk.sign(&stranger.address(), &stranger.sign(&chunk.message())?).ok()
}

/// The text with which the publish bridge begins, honest or not.
pub fn offer(lie: Option<BrokerLie>, topic: &Bytes32, broker: &Bytes32, challenge: &Bytes32) -> String {
    let bent = |bytes: &Bytes32| {
        let mut bytes = *bytes;
        bytes.0[0] ^= 1;
        bytes
    };
    let broker = if lie == Some(BrokerLie::OtherBroker) { bent(broker) } else { *broker };
    let signed = if lie == Some(BrokerLie::OtherTopics) { bent(topic) } else { *topic };
    let [data, auth] = [KIND_DATA, KIND_AUTH].map(|kind| session_topic(&signed, kind, challenge));
    serde_json::json!({
        "type": "challenge",
        "challenge": challenge.to_string(),
        "broker": broker.to_string(),
        "dataTopic": data.to_string(),
        "authTopic": auth.to_string(),
    })
    .to_string()
}
