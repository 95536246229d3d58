//! One HTTP exchange with bounds: what a peer can send is cut at a cap while it arrives, and time is limited.
//!
//! ```text
//! dialled ──▶ status ──▶ body, piece by piece ──▶ Ok(bytes)
//!    └────────────┴──────────────┴── timeout, the caller's signal, too many bytes: the request is aborted ──▶ Err
//! ```
//! Dropping the future aborts the request. No credentials are sent, no redirect is followed, nothing is cached.

use std::cell::Cell;
use std::fmt;
use std::rc::Rc;

use js_sys::{Promise, Uint8Array};
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;
use web_sys::{
    AbortController, AbortSignal, Headers, ReadableStreamDefaultReader, ReferrerPolicy, RequestCache,
    RequestCredentials, RequestInit, RequestRedirect, Response, ResponseType,
};

use crate::clock::Timer;
use crate::dial::Endpoint;
use crate::event::Listener;
use crate::script::{fault_message, fault_name, global_function, member};

/// What bodies of requests are, and responses should be (CIP-39 §13).
const OCTETS: &str = "application/octet-stream";

/// How much one exchange may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExchangeLimits {
    /// Bytes of the response's body.
    pub max_body_bytes: usize,
    /// Milliseconds until the last byte.
    pub timeout_ms: u64,
}

impl Default for ExchangeLimits {
    /// 16 MiB within a minute.
    fn default() -> Self {
        Self { max_body_bytes: 16 * 1024 * 1024, timeout_ms: 60_000 }
    }
}

/// Why there is no response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HttpFault {
    /// No connection, or it broke. A browser does not say whether the host, its certificate, its CORS headers or a
    /// redirect were the reason.
    Offline,
    /// A status other than 2xx.
    Http {
        /// The status.
        status: u16,
    },
    /// The body is longer than the limit; no more of it was kept.
    BodyTooLarge,
    /// The response came from somewhere else: through a service worker, which need not keep to the request's mode.
    Redirected,
    /// The caller's signal.
    Aborted,
    /// It took longer than the limit.
    Timeout,
    /// What the browser threw, in its words.
    Other(String),
}

impl fmt::Display for HttpFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Offline => f.write_str("the host cannot be reached, or refuses this page"),
            Self::Http { status } => write!(f, "the host answered with status {status}"),
            Self::BodyTooLarge => f.write_str("the response is longer than the limit"),
            Self::Redirected => f.write_str("the response was redirected"),
            Self::Aborted => f.write_str("the request was aborted"),
            Self::Timeout => f.write_str("the request took too long"),
            Self::Other(words) => write!(f, "the request failed: {words}"),
        }
    }
}

impl std::error::Error for HttpFault {}

/// Posts `body` as octets; returns the body of the response. Aborted by `abort`, or by dropping the future.
///
/// # Errors
/// [`HttpFault`].
pub async fn post(
    endpoint: &Endpoint,
    body: &[u8],
    limits: ExchangeLimits,
    abort: Option<&AbortSignal>,
) -> Result<Vec<u8>, HttpFault> {
    let answer = exchange(endpoint, &post_init(OCTETS, body)?, &[], limits, abort).await?;
    Ok(answer.body)
}

/// What a host answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The status: 2xx, or one of those that were asked for.
    pub status: u16,
    /// The body.
    pub body: Vec<u8>,
}

/// Posts `body` of this media type to a host whose refusals of the statuses `refusals` have a body that says more.
///
/// # Errors
/// [`HttpFault`].
pub async fn ask(
    endpoint: &Endpoint,
    media_type: &str,
    body: &[u8],
    refusals: &[u16],
    limits: ExchangeLimits,
) -> Result<Answer, HttpFault> {
    exchange(endpoint, &post_init(media_type, body)?, refusals, limits, None).await
}

/// Gets the body at `endpoint`. Aborted by `abort`, or by dropping the future.
///
/// # Errors
/// [`HttpFault`].
pub async fn get(
    endpoint: &Endpoint,
    limits: ExchangeLimits,
    abort: Option<&AbortSignal>,
) -> Result<Vec<u8>, HttpFault> {
    let answer = exchange(endpoint, &request_init("GET"), &[], limits, abort).await?;
    Ok(answer.body)
}

fn post_init(media_type: &str, body: &[u8]) -> Result<RequestInit, HttpFault> {
    let init = request_init("POST");
    let headers = Headers::new().map_err(|thrown| other(&thrown))?;
    headers.set("content-type", media_type).map_err(|thrown| other(&thrown))?;
    init.set_headers(&headers);
    // A copy: memory may grow, and move, while the browser still reads.
    init.set_body(&Uint8Array::from(body));
    Ok(init)
}

fn request_init(method: &str) -> RequestInit {
    let init = RequestInit::new();
    init.set_method(method);
    init.set_redirect(RequestRedirect::Error);
    init.set_credentials(RequestCredentials::Omit);
    init.set_cache(RequestCache::NoStore);
    init.set_referrer_policy(ReferrerPolicy::NoReferrer);
    init
}

async fn exchange(
    endpoint: &Endpoint,
    init: &RequestInit,
    refusals: &[u16],
    limits: ExchangeLimits,
    abort: Option<&AbortSignal>,
) -> Result<Answer, HttpFault> {
    let mut attempt = Attempt::new(limits.timeout_ms, abort)?;
    init.set_signal(Some(&attempt.controller.signal()));
    let fetch = global_function("fetch").ok_or_else(|| HttpFault::Other("there is no fetch".to_owned()))?;
    let asked = fetch.call2(&js_sys::global(), &JsValue::from_str(endpoint.as_str()), init);
    let response: Response = attempt.value(asked).await?.unchecked_into();
    if response.redirected() || response.type_() == ResponseType::Opaqueredirect {
        return Err(HttpFault::Redirected);
    }
    let status = response.status();
    if !response.ok() && !refusals.contains(&status) {
        return Err(HttpFault::Http { status });
    }
    let body = read(&response, limits.max_body_bytes, &attempt).await?;
    attempt.finished = true;
    Ok(Answer { status, body })
}

/// Reads to the end, or to the first byte above the limit.
async fn read(response: &Response, limit: usize, attempt: &Attempt) -> Result<Vec<u8>, HttpFault> {
    let declared = response.headers().get("content-length").ok().flatten();
    if declared.and_then(|length| length.parse::<usize>().ok()).is_some_and(|length| length > limit) {
        return Err(HttpFault::BodyTooLarge);
    }
    let Some(stream) = response.body() else { return Ok(Vec::new()) };
    let reader: ReadableStreamDefaultReader = stream.get_reader().unchecked_into();
    let mut body = Vec::new();
    loop {
        let step = attempt.value(Ok(reader.read().into())).await?;
        if member(&step, "done").is_truthy() {
            return Ok(body);
        }
        let piece: Uint8Array = member(&step, "value")
            .dyn_into()
            .map_err(|_| HttpFault::Other("a body of something but bytes".to_owned()))?;
        let length = usize::try_from(piece.length()).unwrap_or(usize::MAX);
        if length > limit.saturating_sub(body.len()) {
            return Err(HttpFault::BodyTooLarge);
        }
        body.extend_from_slice(&piece.to_vec());
    }
}

/// One request and what can end it early. Dropped unfinished, it aborts the request.
struct Attempt {
    controller: AbortController,
    /// Why we aborted it, where we did: what the browser then throws does not say.
    cause: Rc<Cell<Option<Cause>>>,
    finished: bool,
    _timer: Timer,
    _signal: Option<Listener>,
}

#[derive(Clone, Copy)]
enum Cause {
    Signal,
    Timeout,
}

impl Attempt {
    fn new(timeout_ms: u64, abort: Option<&AbortSignal>) -> Result<Self, HttpFault> {
        if abort.is_some_and(AbortSignal::aborted) {
            return Err(HttpFault::Aborted);
        }
        let controller = AbortController::new().map_err(|thrown| other(&thrown))?;
        let cause = Rc::new(Cell::new(None));
        let end = |because: Cause| {
            let (controller, cause) = (controller.clone(), Rc::clone(&cause));
            move || {
                cause.set(cause.get().or(Some(because)));
                controller.abort();
            }
        };
        let timer = Timer::after(timeout_ms, end(Cause::Timeout));
        let signal = abort.map(|signal| {
            let aborted = end(Cause::Signal);
            Listener::new(signal, "abort", move |_| aborted())
        });
        Ok(Self { controller, cause, finished: false, _timer: timer, _signal: signal })
    }

    /// Waits for a promise of this request.
    async fn value(&self, promised: Result<JsValue, JsValue>) -> Result<JsValue, HttpFault> {
        let value = match promised {
            Ok(promise) => JsFuture::from(Promise::resolve(&promise)).await,
            Err(thrown) => Err(thrown),
        };
        value.map_err(|thrown| match self.cause.get() {
            Some(Cause::Signal) => HttpFault::Aborted,
            Some(Cause::Timeout) => HttpFault::Timeout,
            // What fetch throws for all that has to do with the network.
            None if fault_name(&thrown) == "TypeError" => HttpFault::Offline,
            None if fault_name(&thrown) == "AbortError" => HttpFault::Aborted,
            None => other(&thrown),
        })
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        if !self.finished {
            self.controller.abort();
        }
    }
}

fn other(thrown: &JsValue) -> HttpFault {
    HttpFault::Other(format!("{}: {}", fault_name(thrown), fault_message(thrown)))
}
