//! Fair bounded turns (STR-016): who is served next on one stream, and how much of it.

use std::collections::{HashMap, VecDeque};

use remuda_streaming::{proto, Topic};

use super::rows::{Budget, Rows};

/// Rows that a topic gets before the next one has its turn.
const TURN_ROWS: usize = 32;
/// Bytes of rows in one frame: where a turn is cut off. Every legal envelope fits.
pub const FRAME_BYTES: usize = 2 * 1024 * 1024;

const _: () = assert!(FRAME_BYTES > remuda_streaming::bound::MAX_ENVELOPE_BYTES + 1024, "STR-031");

/// The topics of one stream.
#[derive(Debug)]
pub struct Turns {
    /// The last place served of each.
    floors: HashMap<Topic, u64>,
    /// Those that may have more, in the order in which they are served.
    ready: VecDeque<Topic>,
}

impl Turns {
    /// Every topic is ready: its history is owed.
    pub fn new(topics: &[(Topic, u64)]) -> Self {
        Self { floors: topics.iter().copied().collect(), ready: topics.iter().map(|(topic, _)| *topic).collect() }
    }

    /// A row of this topic became visible. A topic that waits already keeps its place; one of another stream is ignored.
    pub fn notify(&mut self, topics: impl IntoIterator<Item = Topic>) {
        let waiting: std::collections::HashSet<_> = self.ready.iter().copied().collect();
        let mut joined = std::collections::HashSet::new();
        for topic in topics {
            if self.floors.contains_key(&topic) && !waiting.contains(&topic) && joined.insert(topic) {
                self.ready.push_back(topic);
            }
        }
    }

    /// The next frame's rows: one turn each from the front, until the bytes are used up. A topic that has more goes to the
    /// back; one that was not reached keeps its place at the front. Empty when nobody has anything.
    pub fn next_frame(&mut self, rows: &Rows) -> Vec<proto::ServerEnvelope> {
        let mut frame = Vec::new();
        let mut bytes = FRAME_BYTES;
        let mut returning = VecDeque::new();
        while let Some(topic) = self.ready.pop_front() {
            let Some(floor) = self.floors.get_mut(&topic) else { continue };
            let read = rows.after(&topic, *floor, Budget { rows: TURN_ROWS, bytes });
            if read.rows.is_empty() && read.more {
                self.ready.push_front(topic);
                break;
            }
            for row in &read.rows {
                bytes -= row.bytes;
                *floor = row.sequence_id;
                frame.push(row.envelope.clone());
            }
            if read.more {
                returning.push_back(topic);
            }
        }
        self.ready.append(&mut returning);
        frame
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use remuda_streaming::proto::client_envelope::Payload;
    use remuda_streaming::proto::{ClientEnvelope, GroupMessage};
    use remuda_streaming::{Bytes, Topic, TopicKind};

    use super::{Rows, Turns, TURN_ROWS};

    fn group(number: u8) -> Topic {
        Topic::new(TopicKind::Group, &[number; 16]).expect("a group")
    }

    fn publish(rows: &Rows, number: u8, count: usize, bytes: usize) {
        for _ in 0..count {
            let message = GroupMessage { data: Bytes::from(vec![number; bytes]), ..Default::default() };
            rows.publish(&group(number), ClientEnvelope { payload: Some(Payload::GroupMessage(message)) });
        }
    }

    fn served(turns: &mut Turns, rows: &Rows) -> Vec<u8> {
        let frame = turns.next_frame(rows);
        frame
            .iter()
            .map(|row| row.meta.as_ref().and_then(|meta| meta.topic.as_ref()).expect("a topic").topic[1])
            .collect()
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_waits_its_turn() {
        let rows = Rows::new(3, Duration::ZERO);
        publish(&rows, 1, 3 * TURN_ROWS, 20);
        publish(&rows, 2, 1, 20);
        let mut turns = Turns::new(&[(group(1), 0), (group(2), 0)]);
        let first = served(&mut turns, &rows);
        assert_eq!(first.len(), TURN_ROWS + 1, "one turn of the flood, and the trickle in the same frame");
        assert_eq!(first.last(), Some(&2));
        // What is new joins at the back, behind the flood's next turn and not behind all of it.
        publish(&rows, 2, 1, 20);
        turns.notify([group(2), group(2), group(3)]);
        assert_eq!(served(&mut turns, &rows).iter().filter(|topic| **topic == 2).count(), 1);
        assert_eq!(served(&mut turns, &rows).len(), TURN_ROWS, "the rest of the flood");
        assert!(served(&mut turns, &rows).is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn who_was_cut_off_by_bytes_is_first_in_the_next_frame() {
        let rows = Rows::new(0, Duration::ZERO);
        publish(&rows, 1, 4, 700_000);
        publish(&rows, 2, 1, 700_000);
        publish(&rows, 3, 1, 20);
        let mut turns = Turns::new(&[(group(1), 0), (group(2), 0), (group(3), 0)]);
        assert_eq!(served(&mut turns, &rows), [1, 1], "the third would not fit, and neither would topic 2");
        assert_eq!(served(&mut turns, &rows), [2, 3, 1], "those who were not reached come first");
        assert_eq!(served(&mut turns, &rows), [1]);
    }
}
