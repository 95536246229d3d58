//! From verified to delivered, and what comes next.

use super::{Batch, Content, Feed, Gap, Item, Moment, Output, Phase, Waiting};
use crate::content_key::{open, OpenRefused};
use crate::verifier::{Cursor, VerifiedMessage};

impl Feed {
    /// Goes on at another sequence, whose message is not known.
    pub(super) fn jump(&mut self, to: u64, gap: Option<Gap>) {
        self.verifier.cursor = Cursor { last_sequence: to, last_digest: None };
        self.last_message = None;
        self.advanced = true;
        self.waiting.push_back(Waiting::Jump { to, gap });
    }

    /// Delivers what can be, in order, as one batch.
    pub(super) fn deliver(&mut self) {
        if let Some(Waiting::Message(last)) = self.waiting.back() {
            self.last_message = Some((***last).clone());
        }
        let mut batch = Batch::default();
        let (mut moved, mut missing) = (false, None);
        while let Some(next) = self.waiting.pop_front() {
            match next {
                Waiting::Jump { to, gap } => {
                    batch.cursor = Cursor { last_sequence: to, last_digest: None };
                    batch.gaps.extend(gap);
                }
                Waiting::Message(message) => match self.content(&message) {
                    Ok(content) => {
                        batch.cursor = message.cursor();
                        batch.items.extend(content.map(|content| Item { message: *message, content }));
                    }
                    Err(key_epoch) => {
                        self.waiting.push_front(Waiting::Message(message));
                        missing = Some(key_epoch).filter(|epoch| self.epochs_asked.insert(*epoch));
                        break;
                    }
                },
            }
            moved = true;
        }
        if moved {
            self.outputs.push_back(Output::Store(batch));
        }
        self.outputs.extend(missing.map(|key_epoch| Output::StreamAccessRequired { key_epoch }));
    }

    /// The content of a message; `None` when the filter does not want it, an epoch whose key is missing as error.
    fn content(&mut self, message: &VerifiedMessage) -> Result<Option<Content>, u64> {
        if !self.filter.matches(&**message) {
            self.counters.filtered = self.counters.filtered.saturating_add(1);
            return Ok(None);
        }
        match open(&self.keys, message) {
            Ok(opened) => Ok(Some(Content::Plain(opened.plaintext))),
            Err(OpenRefused::Aead) => Ok(Some(Content::Unopened)),
            Err(OpenRefused::StreamAccessRequired { key_epoch }) => Err(key_epoch),
        }
    }

    /// Delivers, and settles when to ask again.
    pub(super) fn settle(&mut self, at: Moment) {
        self.deliver();
        self.history_is_fresh = false;
        let again = core::mem::take(&mut self.pull_again);
        // Whoever sends full answers of what is known already is not asked at once.
        if !self.advanced && !again {
            self.sleep(at);
            self.idle = self.idle.saturating_add(1);
            return;
        }
        self.idle = 0;
        if self.full || again {
            self.pull();
        } else {
            self.sleep(at);
        }
    }

    fn sleep(&mut self, at: Moment) {
        let delay_ms = self.cadence.delay_ms(self.idle, at.random);
        self.phase = Phase::Idle { due_ms: at.now_ms.saturating_add(delay_ms) };
    }
}
