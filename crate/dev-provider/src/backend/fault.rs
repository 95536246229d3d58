//! What the backend does wrong on request, by name, and what must become of it.

use clap::ValueEnum;
use remuda_streaming::proto::subscribe_static_response::Response;
use remuda_streaming::{proto, StreamRefused};

/// One fault of one static stream. `Started` comes first and is honest, unless the fault is about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Fault {
    /// Nothing comes after `Started`, not even a keepalive.
    Silence,
    /// The connection breaks inside the frame after `Started`.
    Cut,
    /// Two rows of one topic change places.
    Reorder,
    /// A row comes again.
    Duplicate,
    /// The last target is missing.
    WrongTargets,
    /// A response without any member, in place of the first after `Started`.
    UnsetOneof,
    /// The frame after `Started` declares 4 GiB.
    OversizedLength,
    /// Not even the response's head comes, as behind a proxy that buffers.
    NoEarlyHeader,
    /// Status 14 in the response's head, and no body.
    HeadersOnlyError,
    /// The body ends cleanly after `Started`, and its trailers are missing.
    EndWithoutTrailers,
    /// A row of the first topic is published between the capture of its target and the first turn.
    RacingPublication,
}

impl Fault {
    /// The verdict that must catch it. `None`: no message is wrong, and either silence or a status ends the stream, or
    /// nothing is the matter at all.
    pub const fn verdict(self) -> Option<StreamRefused> {
        match self {
            Self::Cut | Self::EndWithoutTrailers => Some(StreamRefused::NoStatus),
            Self::Reorder | Self::Duplicate => Some(StreamRefused::Order),
            Self::WrongTargets => Some(StreamRefused::Targets),
            Self::UnsetOneof => Some(StreamRefused::Oneof),
            Self::OversizedLength => Some(StreamRefused::MessageTooLarge),
            Self::Silence | Self::NoEarlyHeader | Self::HeadersOnlyError | Self::RacingPublication => None,
        }
    }

    /// Bends one response of a stream. `None` withholds it.
    pub(super) fn bend(self, mut response: Response) -> Option<Response> {
        match (self, &mut response) {
            (Self::Silence, Response::Messages(_) | Response::Keepalive(_)) => return None,
            (Self::Reorder, Response::Messages(messages)) => swap_two(&mut messages.envelopes),
            (Self::Duplicate, Response::Messages(messages)) => {
                let again = messages.envelopes.last().cloned();
                messages.envelopes.extend(again);
            }
            (Self::WrongTargets, Response::Started(started)) => {
                started.targets.pop();
            }
            _ => {}
        }
        Some(response)
    }
}

/// Swaps the first two rows that are of one topic.
fn swap_two(rows: &mut [proto::ServerEnvelope]) {
    let topic = |row: &proto::ServerEnvelope| row.meta.as_ref().and_then(|meta| meta.topic.clone());
    let pair = rows.windows(2).position(|pair| matches!(pair, [first, second] if topic(first) == topic(second)));
    if let Some(first) = pair {
        rows.swap(first, first + 1);
    }
}
