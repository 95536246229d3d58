//! Admission of a provider endpoint to the letter of §4.3, and what a client additionally refuses to dial.
//!
//! The algorithm is consensus-critical: the parser is the pinned `url` crate, never a browser's `URL`, since browsers
//! disagree with it and with each other. Admission stores the URI as registered and normalizes nothing.
//!
//! What neither can establish is DNS: a dialling client that sees addresses checks each by [`check_address`]; a page
//! sees none.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use remuda_wire::bound::MAX_PROVIDER_ENDPOINT_URI_BYTES;
use remuda_wire::chain::EndpointTransport;
use remuda_wire::verdict::EndpointRefused;
use url::{Host, Url};

/// The networks that an IPv4 literal must not fall in: first address and prefix length.
const REFUSED_IPV4: [(Ipv4Addr, u32); 14] = [
    (Ipv4Addr::new(0, 0, 0, 0), 8),
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 0, 0, 0), 24),
    (Ipv4Addr::new(192, 0, 2, 0), 24),
    (Ipv4Addr::new(192, 88, 99, 0), 24),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    (Ipv4Addr::new(203, 0, 113, 0), 24),
    (Ipv4Addr::new(224, 0, 0, 0), 3),
];

/// Global unicast: every IPv6 address outside is refused.
const GLOBAL_UNICAST: (Ipv6Addr, u32) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);

/// The networks inside [`GLOBAL_UNICAST`] that are refused all the same.
const REFUSED_IPV6: [(Ipv6Addr, u32); 5] = [
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32),
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16),
    (Ipv6Addr::new(0x3ffe, 0, 0, 0, 0, 0, 0, 0), 16),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20),
];

/// Admits a provider's endpoints. `max_provider_endpoints` is the live bound.
///
/// # Errors
/// [`EndpointRefused::ListCount`], then the first failure of [`admit`] in list order.
pub fn admit_list<'a>(
    endpoints: impl ExactSizeIterator<Item = (EndpointTransport, &'a str)>,
    max_provider_endpoints: usize,
) -> Result<(), EndpointRefused> {
    if !(1..=max_provider_endpoints).contains(&endpoints.len()) {
        return Err(EndpointRefused::ListCount);
    }
    endpoints.into_iter().try_for_each(|(transport, uri)| admit(transport, uri))
}

/// Admits one endpoint.
///
/// # Errors
/// In this order: [`EndpointRefused::Uri`], [`EndpointRefused::Scheme`], [`EndpointRefused::Parse`],
/// [`EndpointRefused::Userinfo`], [`EndpointRefused::RawAtSign`], then by its host [`EndpointRefused::Localhost`],
/// [`EndpointRefused::Ipv4`] or [`EndpointRefused::Ipv6`].
pub fn admit(transport: EndpointTransport, uri: &str) -> Result<(), EndpointRefused> {
    admit_parsed(transport, uri).map(drop)
}

/// Admits one endpoint for dialling: §4.3, and nothing that two parsers could read as two hosts.
///
/// Refused beyond admission: an authority that is not where the scheme prefix ends (`https:///@host/`, where the raw
/// `@` check sees nothing and the parser still finds a host), and a host with an empty label, of which `.` is one and
/// `localhost..` another.
///
/// # Errors
/// As [`admit`]; then [`EndpointRefused::RawAtSign`], [`EndpointRefused::Localhost`], [`EndpointRefused::Parse`].
pub fn check_dial(transport: EndpointTransport, uri: &str) -> Result<(), EndpointRefused> {
    let parsed = admit_parsed(transport, uri)?;
    let after_prefix = uri.get(transport.scheme_prefix().len()..).ok_or(EndpointRefused::Scheme)?;
    // The parser skips any number of slashes of either kind, and ends an authority at a backslash too.
    if after_prefix.starts_with(['/', '\\']) || raw_authority(after_prefix).contains('\\') {
        return Err(EndpointRefused::RawAtSign);
    }
    match parsed.host() {
        Some(Host::Domain(domain)) if is_localhost(domain.trim_end_matches('.')) => Err(EndpointRefused::Localhost),
        Some(Host::Domain(domain)) if one_dot_stripped(domain).split('.').any(str::is_empty) => {
            Err(EndpointRefused::Parse)
        }
        _ => Ok(()),
    }
}

/// The literal-address policy, for addresses that a host resolves to.
///
/// # Errors
/// [`EndpointRefused::Ipv4`], [`EndpointRefused::Ipv6`].
pub fn check_address(address: IpAddr) -> Result<(), EndpointRefused> {
    match address {
        IpAddr::V4(address) => check_ipv4(address),
        IpAddr::V6(address) => check_ipv6(address),
    }
}

fn admit_parsed(transport: EndpointTransport, uri: &str) -> Result<Url, EndpointRefused> {
    let out_of_bounds = uri.is_empty() || uri.len() > MAX_PROVIDER_ENDPOINT_URI_BYTES;
    // Before the parser, which strips some of these bytes silently: TAB, CR and LF anywhere, others at the ends.
    if out_of_bounds || uri.bytes().any(|byte| byte.is_ascii_control() || byte.is_ascii_whitespace()) {
        return Err(EndpointRefused::Uri);
    }
    let prefix = transport.scheme_prefix();
    if !transport.matches_scheme(uri) {
        return Err(EndpointRefused::Scheme);
    }
    let parsed = Url::parse(uri).map_err(|_| EndpointRefused::Parse)?;
    if prefix.strip_suffix("://") != Some(parsed.scheme()) || parsed.cannot_be_a_base() {
        return Err(EndpointRefused::Parse);
    }
    if !parsed.username().is_empty() || parsed.password().is_some() {
        return Err(EndpointRefused::Userinfo);
    }
    // On the raw bytes: the parser normalizes an empty userinfo (`@host`) away.
    if uri.get(prefix.len()..).is_some_and(|rest| raw_authority(rest).contains('@')) {
        return Err(EndpointRefused::RawAtSign);
    }
    match parsed.host().ok_or(EndpointRefused::Parse)? {
        Host::Domain(domain) if is_localhost(one_dot_stripped(domain)) => return Err(EndpointRefused::Localhost),
        Host::Domain(_) => {}
        Host::Ipv4(address) => check_ipv4(address)?,
        Host::Ipv6(address) => check_ipv6(address)?,
    }
    Ok(parsed)
}

/// What lies between the scheme prefix and the first `/`, `?` or `#`. A backslash does not end it here.
fn raw_authority(after_prefix: &str) -> &str {
    after_prefix.split(['/', '?', '#']).next().unwrap_or_default()
}

fn one_dot_stripped(domain: &str) -> &str {
    domain.strip_suffix('.').unwrap_or(domain)
}

/// `localhost`, or any name that ends in it.
fn is_localhost(domain: &str) -> bool {
    domain.rsplit('.').next().is_some_and(|label| label.eq_ignore_ascii_case("localhost"))
}

fn check_ipv4(address: Ipv4Addr) -> Result<(), EndpointRefused> {
    let inside =
        |(network, prefix): &(Ipv4Addr, u32)| (address.to_bits() ^ network.to_bits()).leading_zeros() >= *prefix;
    if REFUSED_IPV4.iter().any(inside) {
        Err(EndpointRefused::Ipv4)
    } else {
        Ok(())
    }
}

fn check_ipv6(address: Ipv6Addr) -> Result<(), EndpointRefused> {
    let inside =
        |(network, prefix): &(Ipv6Addr, u32)| (address.to_bits() ^ network.to_bits()).leading_zeros() >= *prefix;
    if inside(&GLOBAL_UNICAST) && !REFUSED_IPV6.iter().any(inside) {
        Ok(())
    } else {
        Err(EndpointRefused::Ipv6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use EndpointTransport::Https;

    #[test]
    fn what_is_admitted_to_the_letter_is_not_always_dialled() {
        for (uri, refusal) in [
            ("https:///@provider.example/", EndpointRefused::RawAtSign),
            ("https:////provider.example/", EndpointRefused::RawAtSign),
            ("https://\\provider.example/", EndpointRefused::RawAtSign),
            ("https://provider.example\\x", EndpointRefused::RawAtSign),
            ("https://localhost../", EndpointRefused::Localhost),
            ("https://a.localhost.../", EndpointRefused::Localhost),
            ("https://./", EndpointRefused::Parse),
            ("https://a..example/", EndpointRefused::Parse),
        ] {
            assert_eq!(admit(Https, uri), Ok(()), "{uri}");
            assert_eq!(check_dial(Https, uri), Err(refusal), "{uri}");
        }
        assert_eq!(check_dial(Https, "https://provider.example./a//b@c"), Ok(()));
        assert_eq!(check_dial(Https, "https://8.8.8.8:8443"), Ok(()));
    }

    #[test]
    fn what_is_not_admitted_is_not_dialled() {
        for uri in ["http://provider.example/", "https://localhost/", "https://@provider.example/", "https://[::1]/"] {
            assert_eq!(check_dial(Https, uri), admit(Https, uri));
            assert!(admit(Https, uri).is_err());
        }
    }

    #[test]
    fn every_range_is_refused_from_its_first_to_its_last_address() {
        for (network, prefix) in REFUSED_IPV4 {
            let last = Ipv4Addr::from_bits(network.to_bits() | (u32::MAX >> prefix));
            assert_eq!([check_ipv4(network), check_ipv4(last)], [Err(EndpointRefused::Ipv4); 2], "{network}/{prefix}");
        }
        for (network, prefix) in REFUSED_IPV6 {
            let last = Ipv6Addr::from_bits(network.to_bits() | (u128::MAX >> prefix));
            assert_eq!([check_ipv6(network), check_ipv6(last)], [Err(EndpointRefused::Ipv6); 2], "{network}/{prefix}");
        }
    }

    #[test]
    fn resolved_addresses_are_held_to_the_same_policy() {
        assert_eq!(check_address(IpAddr::V4(Ipv4Addr::LOCALHOST)), Err(EndpointRefused::Ipv4));
        assert_eq!(check_address(IpAddr::V6(Ipv4Addr::new(8, 8, 8, 8).to_ipv6_mapped())), Err(EndpointRefused::Ipv6));
        assert_eq!(check_address(IpAddr::V4(Ipv4Addr::new(8, 8, 8, 8))), Ok(()));
    }
}
