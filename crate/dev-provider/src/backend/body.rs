//! Faults below the messages: in the head of a response and in the bytes of its body.

use std::time::Duration;

use axum::body::{Body, BodyDataStream, Bytes};
use axum::extract::Request;
use axum::http::HeaderValue;
use axum::middleware::Next;
use axum::response::Response;
use futures_util::{stream, StreamExt};

use super::fault::Fault;

/// How long a head is withheld: longer than anyone waits.
const WITHHELD: Duration = Duration::from_secs(3_600);
/// Flag and length in front of each frame.
const HEADER_BYTES: usize = 5;

/// What is done to one response; it travels in the response's extensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyFault {
    /// See [`Fault::Cut`].
    Cut,
    /// See [`Fault::OversizedLength`].
    OversizedLength,
    /// See [`Fault::EndWithoutTrailers`].
    EndWithoutTrailers,
    /// See [`Fault::NoEarlyHeader`].
    NoEarlyHeader,
    /// See [`Fault::HeadersOnlyError`].
    HeadersOnlyError,
}

impl BodyFault {
    /// The part of a fault that is told here.
    pub const fn of(fault: Fault) -> Option<Self> {
        match fault {
            Fault::Cut => Some(Self::Cut),
            Fault::OversizedLength => Some(Self::OversizedLength),
            Fault::EndWithoutTrailers => Some(Self::EndWithoutTrailers),
            Fault::NoEarlyHeader => Some(Self::NoEarlyHeader),
            Fault::HeadersOnlyError => Some(Self::HeadersOnlyError),
            Fault::Silence
            | Fault::Reorder
            | Fault::Duplicate
            | Fault::WrongTargets
            | Fault::UnsetOneof
            | Fault::RacingPublication => None,
        }
    }
}

/// Applies what the service left in the response's extensions.
pub async fn distort(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let Some(fault) = response.extensions_mut().remove::<BodyFault>() else { return response };
    match fault {
        BodyFault::NoEarlyHeader => tokio::time::sleep(WITHHELD).await,
        BodyFault::HeadersOnlyError => {
            let headers = response.headers_mut();
            headers.insert("grpc-status", HeaderValue::from_static("14"));
            headers.insert("grpc-message", HeaderValue::from_static("not%20now"));
            *response.body_mut() = Body::empty();
        }
        BodyFault::Cut | BodyFault::OversizedLength | BodyFault::EndWithoutTrailers => {
            let body = std::mem::take(response.body_mut());
            *response.body_mut() = after_first_frame(body, fault);
        }
    }
    response
}

/// The body's first frame, and then what the fault makes of the second.
fn after_first_frame(body: Body, fault: BodyFault) -> Body {
    let frames = Frames { body: body.into_data_stream(), waiting: Vec::new() };
    Body::from_stream(stream::unfold(Some((frames, 0)), move |state| async move {
        let (mut frames, told) = state?;
        if told == 0 {
            let first = frames.next().await?;
            return Some((Ok(first), Some((frames, 1))));
        }
        match (fault, told) {
            (BodyFault::OversizedLength, 1) => Some((Ok(Bytes::from_static(&[0, 0xff, 0xff, 0xff, 0xff])), None)),
            (BodyFault::Cut, 1) => {
                let second = frames.next().await?;
                let half = second.slice(..second.len().div_ceil(2));
                Some((Ok(half), Some((frames, 2))))
            }
            (BodyFault::Cut, _) => Some((Err(std::io::Error::from(std::io::ErrorKind::ConnectionReset)), None)),
            _ => None,
        }
    }))
}

/// A body frame by frame, however its bytes come.
struct Frames {
    body: BodyDataStream,
    waiting: Vec<u8>,
}

impl Frames {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some((_, length)) = self
                .waiting
                .split_first_chunk::<1>()
                .and_then(|(flag, rest)| rest.first_chunk::<4>().map(|length| (flag, u32::from_be_bytes(*length))))
            {
                let whole = HEADER_BYTES + usize::try_from(length).ok()?;
                if self.waiting.len() >= whole {
                    let rest = self.waiting.split_off(whole);
                    return Some(std::mem::replace(&mut self.waiting, rest).into());
                }
            }
            self.waiting.extend(self.body.next().await?.ok()?);
        }
    }
}
