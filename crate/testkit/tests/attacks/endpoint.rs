//! §4.3: hosts and bytes that a parser would quietly repair.

use remuda_verify::endpoint::admit;
use remuda_wire::chain::EndpointTransport::Https;
use remuda_wire::verdict::EndpointRefused;

#[test]
fn a_control_or_whitespace_byte_anywhere_is_refused() {
    for byte in (0..=0x20u8).chain([0x7f]) {
        for uri in ["https://provider.exa*mple/x", "*https://provider.example/x", "https://provider.example/x*"] {
            let uri = uri.replace('*', &char::from(byte).to_string());
            assert_eq!(admit(Https, &uri), Err(EndpointRefused::Uri), "{uri:?}");
        }
    }
}

#[test]
fn hosts_that_hide_are_seen() {
    for (uri, refusal) in [
        ("https://loc\u{ad}alhost/", EndpointRefused::Localhost),
        ("https://127\u{3002}0\u{3002}0\u{3002}1/", EndpointRefused::Ipv4),
        ("https://0x7f.0.0.1/", EndpointRefused::Ipv4),
        ("https://\\@provider.example/", EndpointRefused::RawAtSign),
        ("https://a\\@b/", EndpointRefused::RawAtSign),
    ] {
        assert_eq!(admit(Https, uri), Err(refusal), "{uri}");
    }
}

#[test]
fn outside_global_unicast_is_refused() {
    for host in ["::", "::1", "1fff:ffff::", "4000::", "fd00::1", "fe80::1", "ff02::1", "::ffff:8.8.8.8", "64:ff9b::1"]
    {
        assert_eq!(admit(Https, &format!("https://[{host}]/")), Err(EndpointRefused::Ipv6), "{host}");
    }
    for host in ["2000::", "2606:4700::1111", "3ffd::"] {
        assert_eq!(admit(Https, &format!("https://[{host}]/")), Ok(()), "{host}");
    }
}
