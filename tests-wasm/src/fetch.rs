//! Fetch: against the server that serves the tests, a port where nothing listens, and responses made by hand.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Waker};

use js_sys::{Array, Function, Reflect};
use remuda_session::Transport;
use remuda_web::dial::{Endpoint, PlainLoopback};
use remuda_web::fetch::{get, post, ExchangeLimits, HttpFault};
use wasm_bindgen::JsValue;
use web_sys::AbortController;

use crate::harness::{in_time, sleep, Spy, Started};

const LIMITS: ExchangeLimits = ExchangeLimits { max_body_bytes: 1_000, timeout_ms: 4_000 };

fn endpoint(uri: &str) -> Endpoint {
    Endpoint::admit(uri, Transport::LongPoll, PlainLoopback::Allow).expect("an endpoint of a test")
}

/// A path of the server that served this very test.
fn here(path: &str) -> Endpoint {
    let origin = script("return self.location.origin").call0(&JsValue::UNDEFINED).expect("an origin");
    endpoint(&format!("{}{path}", origin.as_string().expect("an origin is text")))
}

fn script(body: &str) -> Function {
    Function::new_with_args("url, init", body)
}

/// Replaces `fetch` by a script over `url` and `init`.
fn answer(body: &'static str) -> Spy {
    let script = script(body);
    Spy::on(js_sys::global().into(), "fetch", move |_, this, arguments: &Array| script.apply(this, arguments))
}

async fn posted(limits: ExchangeLimits) -> Result<Vec<u8>, HttpFault> {
    let endpoint = endpoint("https://a.example/");
    in_time(async move { post(&endpoint, b"request", limits, None).await }).await.expect("it does not hang")
}

/// A port where nothing listens is offline, at once.
pub async fn a_refused_port_is_offline() {
    let nobody = endpoint("http://127.0.0.1:47/");
    assert_eq!(get(&nobody, LIMITS, None).await, Err(HttpFault::Offline));
    assert_eq!(post(&nobody, b"x", LIMITS, None).await, Err(HttpFault::Offline));
}

/// A real body arrives whole, a status is told, and a body above the limit is not kept.
pub async fn a_real_server_answers() {
    let generous = ExchangeLimits { max_body_bytes: 1 << 20, ..LIMITS };
    let page = get(&here("/"), generous, None).await.expect("the page of the tests");
    assert!(page.len() > 100);
    let exact = ExchangeLimits { max_body_bytes: page.len(), ..LIMITS };
    assert_eq!(get(&here("/"), exact, None).await, Ok(page.clone()));
    let short = ExchangeLimits { max_body_bytes: page.len() - 1, ..LIMITS };
    assert_eq!(get(&here("/"), short, None).await, Err(HttpFault::BodyTooLarge));
    assert_eq!(get(&here("/there-is-no-such-file"), generous, None).await, Err(HttpFault::Http { status: 404 }));
}

/// Every request says what it must: no credentials, no redirect, no cache, octets.
pub async fn requests_say_what_they_must() {
    let spy = answer(
        "if (init.redirect !== 'error' || init.credentials !== 'omit' || init.cache !== 'no-store' || init.method !== 'POST' \
         || init.headers.get('content-type') !== 'application/octet-stream' || init.referrerPolicy !== 'no-referrer' \
         || url !== 'https://a.example/' || new TextDecoder().decode(init.body) !== 'request' || !init.signal) \
         throw new Error('a request that says something else'); \
         return Promise.resolve(new Response(new Uint8Array([1, 2, 3])))",
    );
    assert_eq!(posted(LIMITS).await, Ok(vec![1, 2, 3]));
    drop(spy);
}

/// A body without end is cut at the limit, and its stream is cancelled.
pub async fn an_endless_body_is_cut() {
    let spy = answer(
        "self.remudaPulled = 0; return Promise.resolve(new Response(new ReadableStream({ \
         pull(controller) { self.remudaPulled += 1; controller.enqueue(new Uint8Array(300)); } })))",
    );
    assert_eq!(posted(LIMITS).await, Err(HttpFault::BodyTooLarge));
    let pulled = Reflect::get(&js_sys::global(), &"remudaPulled".into()).ok().and_then(|pulled| pulled.as_f64());
    assert!(pulled.is_some_and(|pulled| pulled <= 6.0), "read on after the limit: {pulled:?}");
    drop(spy);
    let spy = answer("return Promise.resolve(new Response('x', { headers: { 'content-length': '1001' } }))");
    assert_eq!(posted(LIMITS).await, Err(HttpFault::BodyTooLarge), "a declared length is believed when it condemns");
    drop(spy);
    let spy = answer("return Promise.resolve(new Response('four', { headers: { 'content-length': '1' } }))");
    assert_eq!(posted(LIMITS).await, Ok(b"four".to_vec()), "and not otherwise");
    drop(spy);
    let spy = answer("return Promise.resolve(new Response(null, { status: 204 }))");
    assert_eq!(posted(LIMITS).await, Ok(vec![]), "no body is an empty one");
    drop(spy);
}

/// Faults by their kind.
pub async fn faults_are_told_apart() {
    let cases: [(&str, HttpFault); 6] = [
        ("return Promise.resolve(new Response('', { status: 429 }))", HttpFault::Http { status: 429 }),
        ("return Promise.reject(new TypeError('Failed to fetch'))", HttpFault::Offline),
        ("throw new RangeError('odd')", HttpFault::Other("RangeError: odd".to_owned())),
        (
            "const response = new Response('x'); Object.defineProperty(response, 'redirected', { value: true }); \
             return Promise.resolve(response)",
            HttpFault::Redirected,
        ),
        (
            "return Promise.resolve(new Response(new ReadableStream({ start(c) { c.enqueue(new Uint8Array(3)); \
             setTimeout(() => c.error(new TypeError('network error')), 10); } })))",
            HttpFault::Offline,
        ),
        (
            "return Promise.resolve(new Response(new ReadableStream({ start(c) { c.enqueue('text'); c.close(); } })))",
            HttpFault::Other("a body of something but bytes".to_owned()),
        ),
    ];
    for (body, fault) in cases {
        let spy = answer(body);
        assert_eq!(posted(LIMITS).await, Err(fault), "{body}");
        drop(spy);
    }
}

/// `fetch` as a peer that accepts and never answers; it counts how often it was aborted.
const SILENT: &str = "return new Promise((_, reject) => init.signal.addEventListener('abort', () => { \
     self.remudaAborted = (self.remudaAborted ?? 0) + 1; reject(init.signal.reason); }))";

fn aborted() -> f64 {
    Reflect::get(&js_sys::global(), &"remudaAborted".into()).ok().and_then(|count| count.as_f64()).unwrap_or(0.0)
}

/// Silence ends in a timeout, also in the middle of a body.
pub async fn silence_times_out() {
    let brief = ExchangeLimits { timeout_ms: 50, ..LIMITS };
    let spy = answer(SILENT);
    assert_eq!(posted(brief).await, Err(HttpFault::Timeout));
    drop(spy);
    let spy = answer(
        "return Promise.resolve(new Response(new ReadableStream({ start(c) { c.enqueue(new Uint8Array(3)); \
         init.signal.addEventListener('abort', () => c.error(init.signal.reason)); } })))",
    );
    assert_eq!(posted(brief).await, Err(HttpFault::Timeout));
    drop(spy);
}

/// The caller's signal aborts, before and during.
pub async fn the_callers_signal_aborts() {
    let spy = answer(SILENT);
    let controller = AbortController::new().expect("a controller");
    let signal = controller.signal();
    let running = Started::new(async move { post(&endpoint("https://a.example/"), b"x", LIMITS, Some(&signal)).await });
    sleep(20).await;
    controller.abort();
    assert_eq!(running.end().await, Some(Err(HttpFault::Aborted)));
    let late = get(&endpoint("https://a.example/"), LIMITS, Some(&controller.signal())).await;
    assert_eq!(late, Err(HttpFault::Aborted), "a signal that was given before");
    drop(spy);
}

/// A dropped request is aborted; a finished one is not.
pub async fn dropping_aborts_only_the_unfinished() {
    let spy = answer(SILENT);
    let before = aborted();
    {
        let target = endpoint("https://a.example/");
        let mut pending = pin!(get(&target, LIMITS, None));
        assert!(pending.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        assert_eq!(aborted(), before, "it runs");
    }
    assert_eq!(aborted(), before + 1.0, "dropped, it is aborted");
    drop(spy);
    let spy = answer(
        "init.signal.addEventListener('abort', () => { self.remudaAborted = (self.remudaAborted ?? 0) + 1 }); \
         return Promise.resolve(new Response('x'))",
    );
    assert_eq!(posted(LIMITS).await, Ok(b"x".to_vec()));
    assert_eq!(aborted(), before + 1.0, "finished, it is not");
    drop(spy);
}

/// The cases, as tests of the file that calls it: the mode is per file.
#[macro_export]
macro_rules! fetch_cases {
    () => {
        $crate::cases!(fetch:
            a_refused_port_is_offline,
            a_real_server_answers,
            requests_say_what_they_must,
            an_endless_body_is_cut,
            faults_are_told_apart,
            silence_times_out,
            the_callers_signal_aborts,
            dropping_aborts_only_the_unfinished,
        );
    };
}
