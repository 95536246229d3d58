//! Whom to dial: what an endpoint's URI must be before a request leaves the browser.
//!
//! A registered URI is used exactly as registered (CIP-39 §13). A page cannot see the address that a name resolves to,
//! so it cannot revalidate it as §4.3 asks: it relies on TLS to reach the named host, and refuses redirects.
//!
//! The browser's own parser forgives much: it drops line breaks, turns `\` into `/`, skips extra slashes. Whatever it
//! would read differently from these rules is refused, so that both see the same host.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

use remuda_session::Transport;

/// Whether the caller opted in to plain HTTP and WebSockets on this very machine, for development and tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlainLoopback {
    /// Only over TLS.
    Refuse,
    /// Also `http://` and `ws://` on 127.0.0.0/8, `localhost` and `[::1]`.
    Allow,
}

/// A URI that may be dialled, exactly as it was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint(String);

impl Endpoint {
    /// Judges a URI that is dialled over `transport`: `https://` for long-poll and chain reads, `wss://` for a WebSocket.
    ///
    /// # Errors
    /// [`DialRefused`], by what is wrong with it.
    pub fn admit(uri: &str, transport: Transport, plain: PlainLoopback) -> Result<Self, DialRefused> {
        if uri.bytes().any(|byte| byte <= b' ' || byte == 0x7f || byte == b'\\') {
            return Err(DialRefused::Character);
        }
        let (scheme, rest) = uri.split_once("://").ok_or(DialRefused::Scheme)?;
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let host = host(authority)?;
        let (secure_scheme, plain_scheme) = match transport {
            Transport::LongPoll => ("https", "http"),
            Transport::WebSocket => ("wss", "ws"),
        };
        if scheme.eq_ignore_ascii_case(secure_scheme) {
            return Ok(Self(uri.to_owned()));
        }
        if !scheme.eq_ignore_ascii_case(plain_scheme) {
            return Err(DialRefused::Scheme);
        }
        match (is_loopback(host), plain) {
            (true, PlainLoopback::Allow) => Ok(Self(uri.to_owned())),
            (true, PlainLoopback::Refuse) => Err(DialRefused::PlainLoopback),
            (false, _) => Err(DialRefused::Plain),
        }
    }

    /// The URI.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The host of an authority of the form `host` or `host:port`.
fn host(authority: &str) -> Result<&str, DialRefused> {
    // Credentials: `https://trusted@other` goes to `other`, and fetch would refuse them anyway.
    if authority.contains('@') {
        return Err(DialRefused::Authority);
    }
    let bracketed = authority.find(']').map(|end| authority.split_at(end + 1));
    let (host, port) = bracketed.unwrap_or_else(|| authority.split_at(authority.find(':').unwrap_or(authority.len())));
    let port_is_sound = port.is_empty() || port.strip_prefix(':').is_some_and(|port| port.parse::<u16>().is_ok());
    // One dot may end a name; an empty label inside one is resolved differently from place to place.
    if host.is_empty() || host.starts_with('.') || host.contains("..") || !port_is_sound {
        return Err(DialRefused::Authority);
    }
    Ok(host)
}

/// Only in the forms that every parser reads the same: no `127.1`, no `0x7f.0.0.1`, no mapped address.
fn is_loopback(host: &str) -> bool {
    let v6 = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    host.eq_ignore_ascii_case("localhost")
        || host.parse::<Ipv4Addr>().is_ok_and(|address| address.is_loopback())
        || v6.is_some_and(|address| address.parse() == Ok(Ipv6Addr::LOCALHOST))
}

/// Why a URI is not dialled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DialRefused {
    /// A space, a control character or a backslash.
    Character,
    /// Not a scheme of the transport.
    Scheme,
    /// No host, credentials, an empty label, or a port that is none.
    Authority,
    /// Without TLS, to another machine.
    Plain,
    /// Without TLS, to this machine, and without the caller's leave.
    PlainLoopback,
}

impl fmt::Display for DialRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Character => "an endpoint's URI holds a space, a control character or a backslash",
            Self::Scheme => "an endpoint's URI has another scheme than its transport",
            Self::Authority => "an endpoint's URI names no host that can be dialled",
            Self::Plain => "another machine is never dialled without TLS",
            Self::PlainLoopback => "to dial this machine without TLS needs the caller's leave",
        })
    }
}

impl std::error::Error for DialRefused {}

#[cfg(test)]
mod tests {
    use remuda_session::Transport;

    use super::{DialRefused, Endpoint, PlainLoopback};

    fn judge(uri: &str, plain: PlainLoopback) -> Result<(), DialRefused> {
        Endpoint::admit(uri, Transport::LongPoll, plain)
            .map(|endpoint| assert_eq!(endpoint.as_str(), uri, "a URI is used as registered"))
    }

    #[test]
    fn https_is_dialled_as_registered() {
        for uri in [
            "https://a.example",
            "HTTPS://a.example:8443/poll?x=1#y",
            "https://a.example.",
            "https://[2001:db8::1]:443/",
        ] {
            assert_eq!(judge(uri, PlainLoopback::Refuse), Ok(()), "{uri}");
        }
    }

    #[test]
    fn plain_http_is_dialled_on_loopback_alone_and_by_leave() {
        for uri in [
            "http://127.0.0.1:8080/x",
            "http://127.255.0.9",
            "http://localhost:1",
            "http://LocalHost/",
            "http://[::1]:8080/",
        ] {
            assert_eq!(judge(uri, PlainLoopback::Allow), Ok(()), "{uri}");
            assert_eq!(judge(uri, PlainLoopback::Refuse), Err(DialRefused::PlainLoopback), "{uri}");
        }
        let elsewhere = [
            "http://a.example/",
            "http://128.0.0.1/",
            "http://127.0.0.1.example/",
            "http://localhost.example/",
            "http://localhost./",
            "http://127.1/",
            "http://0x7f.0.0.1/",
            "http://0177.0.0.1/",
            "http://2130706433/",
            "http://[::]/",
            "http://[::ffff:127.0.0.1]/",
        ];
        for uri in elsewhere {
            assert_eq!(judge(uri, PlainLoopback::Allow), Err(DialRefused::Plain), "{uri}");
        }
    }

    #[test]
    fn a_web_socket_has_schemes_of_its_own() {
        let judge = |uri, plain| Endpoint::admit(uri, Transport::WebSocket, plain).map(|_| ());
        assert_eq!(judge("wss://a.example/stream", PlainLoopback::Refuse), Ok(()));
        assert_eq!(judge("ws://127.0.0.1:9/stream", PlainLoopback::Allow), Ok(()));
        assert_eq!(judge("ws://127.0.0.1:9/stream", PlainLoopback::Refuse), Err(DialRefused::PlainLoopback));
        assert_eq!(judge("ws://a.example/stream", PlainLoopback::Allow), Err(DialRefused::Plain));
        assert_eq!(judge("https://a.example/stream", PlainLoopback::Allow), Err(DialRefused::Scheme));
        assert_eq!(judge("wss:///@host/", PlainLoopback::Allow), Err(DialRefused::Authority));
    }

    #[test]
    fn what_parsers_read_differently_is_refused() {
        let cases = [
            ("https:///@host/", DialRefused::Authority),
            ("https:///host/", DialRefused::Authority),
            ("https://", DialRefused::Authority),
            ("https://localhost../", DialRefused::Authority),
            ("https://.example/", DialRefused::Authority),
            ("https://a@b.example/", DialRefused::Authority),
            ("http://127.0.0.1@b.example/", DialRefused::Authority),
            ("https://a.example:", DialRefused::Authority),
            ("https://a.example:65536", DialRefused::Authority),
            ("https://a.example:8x", DialRefused::Authority),
            ("https://[::1]x/", DialRefused::Authority),
            ("https://a.example\\@b.example/", DialRefused::Character),
            ("https://a.exa\nmple/", DialRefused::Character),
            (" https://a.example/", DialRefused::Character),
            ("https:a.example", DialRefused::Scheme),
            ("wss://a.example/", DialRefused::Scheme),
            ("javascript://a/", DialRefused::Scheme),
            ("", DialRefused::Scheme),
        ];
        for (uri, refused) in cases {
            assert_eq!(judge(uri, PlainLoopback::Allow), Err(refused), "{uri}");
        }
    }
}
