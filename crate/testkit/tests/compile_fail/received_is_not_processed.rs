//! F, P and H are places of different kinds.

use remuda_position::topic::place::{Processed, Received};
use remuda_streaming::{SequenceId, Target};

fn processed(received: Received) -> Processed {
    received
}

fn received(target: Target) -> Received {
    target.into()
}

fn made(place: SequenceId) -> Received {
    Received(place)
}

fn main() {}
