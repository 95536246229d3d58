//! gRPC-Web: one frame to ask, and the body of an answer, read chunk by chunk under a bound.
//!
//! ```text
//! frame = flag (00 data, 80 trailers) || u32 big-endian length || bytes
//! body  = data frame* || trailers frame?          trailers = "name: value" lines
//! ```
//! A declared length above the bound is refused when the five bytes of its header are there, before any byte of it is
//! kept; nothing is reserved that has not come.

use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;

use prost::bytes::Bytes;

use crate::status::GrpcStatus;
use crate::verdict::StreamRefused;

/// What a request is sent as, and the only content type beside its bare form that an answer may have.
pub const CONTENT_TYPE: &str = "application/grpc-web+proto";

/// Every header that a request may carry: what CORS has to allow (STR-055).
pub const REQUEST_HEADERS: [&str; 4] = ["content-type", "authorization", "x-app-version", "x-grpc-web"];

const HEADER_BYTES: usize = 5;
const COMPRESSED: u8 = 0x01;
const DATA: u8 = 0x00;
const TRAILERS: u8 = 0x80;

/// The body of a request: one data frame. `None` when the message is longer than a frame can say.
pub fn request_body(message: &[u8]) -> Option<Vec<u8>> {
    let length = u32::try_from(message.len()).ok()?;
    let mut body = Vec::with_capacity(HEADER_BYTES + message.len());
    body.push(DATA);
    body.extend_from_slice(&length.to_be_bytes());
    body.extend_from_slice(message);
    Some(body)
}

/// Where the reader is in the body.
#[derive(Debug)]
enum Reading {
    /// In a frame's header.
    Header(Vec<u8>),
    /// In a frame: its flag, how many bytes it has, those that have come.
    Frame { flag: u8, length: usize, bytes: Vec<u8> },
    /// Behind the trailers, where nothing may come.
    Ended,
}

/// An answer's body. Messages come out in order; the status only at the end.
#[derive(Debug)]
pub struct GrpcWebBody {
    max_message_bytes: usize,
    reading: Reading,
    messages: VecDeque<Bytes>,
    headers_status: Option<GrpcStatus>,
    trailers_status: Option<GrpcStatus>,
}

impl GrpcWebBody {
    /// Judges what is known before the body: HTTP status and headers, with names in any case. No frame may declare more
    /// than `max_message_bytes`, trailers included.
    ///
    /// # Errors
    /// [`StreamRefused::HttpStatus`], [`StreamRefused::TextContentType`], [`StreamRefused::ContentType`]: the body is not to
    /// be read.
    pub fn new<'a>(
        http_status: u16,
        headers: impl Iterator<Item = (&'a str, &'a str)> + Clone,
        max_message_bytes: usize,
    ) -> Result<Self, StreamRefused> {
        if http_status != 200 {
            return Err(StreamRefused::HttpStatus);
        }
        let mut types = headers.clone().filter(|(name, _)| name.eq_ignore_ascii_case("content-type"));
        let essence = types.next().and_then(|(_, value)| value.split(';').next()).unwrap_or_default();
        let essence = essence.trim().to_ascii_lowercase();
        match essence.as_str() {
            "application/grpc-web" | CONTENT_TYPE => {}
            text if text.starts_with("application/grpc-web-text") => return Err(StreamRefused::TextContentType),
            _ => return Err(StreamRefused::ContentType),
        }
        Ok(Self {
            max_message_bytes,
            reading: Reading::Header(Vec::new()),
            messages: VecDeque::new(),
            headers_status: GrpcStatus::from_pairs(headers.map(|(name, value)| (name.trim(), value.trim()))),
            trailers_status: None,
        })
    }

    /// Reads the next bytes, cut anywhere.
    ///
    /// # Errors
    /// [`StreamRefused::AfterTrailers`], [`StreamRefused::Compressed`], [`StreamRefused::FrameFlag`],
    /// [`StreamRefused::MessageTooLarge`]: the rest is not to be read. Messages before it stay good.
    pub fn handle_chunk(&mut self, mut chunk: &[u8]) -> Result<(), StreamRefused> {
        while !chunk.is_empty() {
            chunk = match &mut self.reading {
                Reading::Ended => return Err(StreamRefused::AfterTrailers),
                Reading::Header(header) => {
                    let rest = move_bytes(chunk, header, HEADER_BYTES);
                    self.open_frame()?;
                    rest
                }
                Reading::Frame { length, bytes, .. } => {
                    let rest = move_bytes(chunk, bytes, *length);
                    self.close_frame();
                    rest
                }
            };
        }
        Ok(())
    }

    /// The next whole message.
    pub fn poll_message(&mut self) -> Option<Bytes> {
        self.messages.pop_front()
    }

    /// The body has ended. A status other than 0 is a well-formed answer.
    ///
    /// # Errors
    /// [`StreamRefused::NoStatus`] when neither trailers nor headers had one, or when the body broke off inside a frame:
    /// never a success.
    pub fn end(self) -> Result<GrpcStatus, StreamRefused> {
        let whole = match &self.reading {
            Reading::Header(header) => header.is_empty(),
            Reading::Frame { .. } => false,
            Reading::Ended => true,
        };
        let status = self.trailers_status.or(self.headers_status);
        status.filter(|_| whole).ok_or(StreamRefused::NoStatus)
    }

    /// With a whole header, goes on to its frame.
    fn open_frame(&mut self) -> Result<(), StreamRefused> {
        let Reading::Header(header) = &self.reading else { return Ok(()) };
        let [flag, length @ ..] = header.as_slice() else { return Ok(()) };
        if flag & COMPRESSED != 0 {
            return Err(StreamRefused::Compressed);
        }
        if !matches!(*flag, DATA | TRAILERS) {
            return Err(StreamRefused::FrameFlag);
        }
        let Ok(length) = <[u8; 4]>::try_from(length) else { return Ok(()) };
        let length = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
        if length > self.max_message_bytes {
            return Err(StreamRefused::MessageTooLarge);
        }
        self.reading = Reading::Frame { flag: *flag, length, bytes: Vec::new() };
        // One of no bytes is whole already.
        self.close_frame();
        Ok(())
    }

    /// With a whole frame, goes on behind it.
    fn close_frame(&mut self) {
        match &mut self.reading {
            Reading::Frame { flag, length, bytes } if bytes.len() == *length => {
                let bytes = core::mem::take(bytes);
                if *flag == DATA {
                    self.messages.push_back(bytes.into());
                    self.reading = Reading::Header(Vec::new());
                } else {
                    self.trailers_status = status_of_trailers(&bytes);
                    self.reading = Reading::Ended;
                }
            }
            _ => {}
        }
    }
}

/// Moves as much of `chunk` as `to` lacks of `length`; returns the rest.
fn move_bytes<'a>(chunk: &'a [u8], to: &mut Vec<u8>, length: usize) -> &'a [u8] {
    let missing = length.saturating_sub(to.len()).min(chunk.len());
    let (taken, rest) = chunk.split_at_checked(missing).unwrap_or((chunk, &[]));
    to.extend_from_slice(taken);
    rest
}

fn status_of_trailers(bytes: &[u8]) -> Option<GrpcStatus> {
    let text = String::from_utf8_lossy(bytes);
    let lines = text.split('\n').filter_map(|line| line.split_once(':'));
    GrpcStatus::from_pairs(lines.map(|(name, value)| (name.trim(), value.trim())))
}
