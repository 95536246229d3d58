//! A row alone, such as a push brings, is no ordered prefix, and nothing makes it one.

use remuda_streaming::{OrderedPrefix, ReceivedEnvelope, SequenceId, Topic};

fn prefix(topic: Topic, row: ReceivedEnvelope) -> OrderedPrefix {
    OrderedPrefix { topic, after: SequenceId::BEGINNING, rows: vec![row] }
}

fn main() {}
