//! Addresses to listen on or to dial: `host:port` or `unix:/path`.

use std::net::IpAddr;

/// Gives the addresses of a target, in the order in which they are preferred. Several
/// daemons of one store are named with commas.
pub(crate) fn addresses_of(target: &str) -> Vec<String> {
    let parts = target.split(',').map(str::trim).filter(|address| !address.is_empty());
    let addresses: Vec<String> = parts.map(str::to_string).collect();
    if addresses.is_empty() { vec![target.to_string()] } else { addresses }
}

/// Where an address leads.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Address {
    Tcp { host: String, port: Option<u16> },
    Unix(String),
}

impl Address {
    pub fn parse(text: &str) -> Self {
        for scheme in ["unix://", "unix:"] {
            if let Some(path) = text.strip_prefix(scheme) {
                return Address::Unix(path.to_string());
            }
        }
        let text = text.strip_prefix("dns:///").or(text.strip_prefix("dns:")).unwrap_or(text);
        let (host, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((host, rest)) => (host, rest.strip_prefix(':')),
            None => match text.split_once(':') {
                Some((host, port)) if !port.contains(':') => (host, Some(port)),
                Some(_) => (text, None),
                None => (text, None),
            },
        };
        let port = port.and_then(|digits| digits.parse().ok());
        Address::Tcp { host: host.to_string(), port }
    }

    /// Whether it cannot leave this machine.
    pub fn is_loopback(&self) -> bool {
        match self {
            Address::Unix(_) => true,
            Address::Tcp { host, .. } => {
                host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tcp(host: &str, port: impl Into<Option<u16>>) -> Address {
        Address::Tcp { host: host.into(), port: port.into() }
    }

    #[test]
    fn addresses_are_taken_apart() {
        assert_eq!(Address::parse("127.0.0.1:0"), tcp("127.0.0.1", 0));
        assert_eq!(Address::parse("[::1]:50051"), tcp("::1", 50051));
        assert_eq!(Address::parse("dns:///host:1"), tcp("host", 1));
        assert_eq!(Address::parse("host"), tcp("host", None));
        assert_eq!(Address::parse("::1"), tcp("::1", None));
        assert_eq!(Address::parse("host:port"), tcp("host", None));
        assert_eq!(Address::parse("unix:/a"), Address::Unix("/a".into()));
        assert_eq!(Address::parse("unix:///a"), Address::Unix("/a".into()));
    }

    #[test]
    fn several_addresses_are_told_apart_by_commas() {
        assert_eq!(addresses_of("a:1"), ["a:1"]);
        assert_eq!(addresses_of("a:1, [::1]:2,"), ["a:1", "[::1]:2"]);
        assert_eq!(addresses_of(""), [""]);
    }

    #[test]
    fn only_addresses_of_this_machine_are_loopback() {
        for text in ["127.0.0.1:1", "[::1]:1", "localhost:1", "unix:/a"] {
            assert!(Address::parse(text).is_loopback(), "{text}");
        }
        for text in ["0.0.0.0:1", "[::]:1", "example.org:1", "10.0.0.1:1"] {
            assert!(!Address::parse(text).is_loopback(), "{text}");
        }
    }
}
