//! The demo lanes: named, and there from the start.

use remuda_wire::preimage::{keccak256, lane_id};
use remuda_wire::Bytes32;

const NAMES: [&str; 16] = [
    "amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heron", "indigo", "juniper", "kelp", "larch",
    "meadow", "north", "ochre", "pine",
];

/// One lane of the demo stream.
#[derive(Clone, Debug)]
pub struct DemoLane {
    /// §8: derived from the stream and a nonce.
    pub id: Bytes32,
    /// What a page calls it.
    pub name: String,
}

/// The first `count` demo lanes of a stream; the same for ever.
pub fn demo_lanes(stream_id: &Bytes32, count: u32) -> Vec<DemoLane> {
    (0..count)
        .map(|index| {
            let nonce = keccak256(&[b"remuda-dev-lane:".as_slice(), &index.to_be_bytes()].concat());
            let name = usize::try_from(index).ok().and_then(|index| NAMES.get(index));
            let name = name.map_or_else(|| format!("lane-{}", index + 1), |name| (*name).to_owned());
            DemoLane { id: lane_id(stream_id, &nonce), name }
        })
        .collect()
}
