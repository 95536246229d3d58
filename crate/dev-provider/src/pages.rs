//! Static pages, under a policy that allows what the client needs and nothing more.

use std::path::Path;

use axum::http::{header, HeaderName, HeaderValue, Response};
use axum::middleware::map_response;
use axum::Router;
use tower_http::services::ServeDir;

/// WebAssembly, workers and requests to loopback nodes; no inline script, no other origin.
const POLICY: &str = "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; connect-src 'self' http://127.0.0.1:* \
                      http://localhost:* ws://127.0.0.1:* ws://localhost:*; worker-src 'self'; style-src 'self'; img-src 'self' data:; object-src 'none'; \
                      base-uri 'none'";

/// Files of `directory` wherever no other route answers. HTML is revalidated each time; hashed files may be kept.
pub fn serve(router: Router, directory: &Path) -> Router {
    router.fallback_service(Router::new().fallback_service(ServeDir::new(directory)).layer(map_response(with_headers)))
}

/// The pages of a directory by the last part of their address, `index.html` by none; empty where it cannot be read.
pub fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut names: Vec<_> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.retain(|name| name.ends_with(".html"));
    names.iter_mut().filter(|name| *name == "index.html").for_each(String::clear);
    names.sort();
    names
}

async fn with_headers<B>(mut response: Response<B>) -> Response<B> {
    let headers = response.headers_mut();
    let is_html = headers.get(header::CONTENT_TYPE).is_some_and(|mime| mime.as_bytes().starts_with(b"text/html"));
    if is_html {
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    }
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
    ] {
        headers.insert::<HeaderName>(name, HeaderValue::from_static(value));
    }
    response
}
