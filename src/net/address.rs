//! Hosts, and the local addresses that objects may not name.
//!
//! Services at such an address trust everything that reaches them: other containers of the pod, a debugger, the cloud's
//! metadata server, which gives credentials away.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The policy for addresses of this machine and of its link in objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LocalAddresses {
    /// They are allowed.
    Allowed,
    /// They are refused.
    Refused,
}

/// The host of a URL, read as curl, ssh and the system's resolver read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Host {
    /// An address in any notation: `127.1`, `0x7f000001` and `2130706433` are the same.
    Address(IpAddr),
    /// A name, in lower case.
    Name(String),
}

impl Host {
    /// Reads a host; an IPv6 address is in brackets.
    pub fn read(text: &str) -> Self {
        match url::Host::parse(text) {
            Ok(url::Host::Ipv4(address)) => Self::Address(address.into()),
            Ok(url::Host::Ipv6(address)) => Self::Address(address.into()),
            Ok(url::Host::Domain(name)) => Self::Name(name),
            Err(_) => Self::Name(text.to_ascii_lowercase()),
        }
    }

    /// Returns true if it is local by itself, without a lookup of its name.
    pub fn is_local(&self) -> bool {
        match self {
            Self::Address(address) => is_local(*address),
            Self::Name(name) => {
                let name = name.trim_end_matches('.');
                name == "localhost" || name.ends_with(".localhost")
            }
        }
    }

    /// Returns true if it is local or private without a lookup of its name.
    pub fn is_internal(&self) -> bool {
        match self {
            Self::Address(address) => is_local(*address) || is_private(*address),
            Self::Name(_) => self.is_local(),
        }
    }
}

/// Returns true if an address belongs to a network that the internet does not reach.
fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_private_v4(address),
        IpAddr::V6(address) => address.is_unique_local() || embedded(address).is_some_and(is_private_v4),
    }
}

/// Includes 100.64.0.0/10, shared address space (RFC 6598), from which clouds number pods, nodes and services.
fn is_private_v4(address: Ipv4Addr) -> bool {
    let [first, second, ..] = address.octets();
    address.is_private() || first == 100 && second & 0xc0 == 0x40
}

/// Returns true for an address of this machine or of its own network link.
pub(super) fn is_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_local_v4(address),
        IpAddr::V6(address) => {
            address.is_loopback()
                || address.is_unspecified()
                || address.is_unicast_link_local()
                || embedded(address).is_some_and(is_local_v4)
        }
    }
}

/// Includes the whole of 0.0.0.0/8, which is "this host" or "this network".
fn is_local_v4(address: Ipv4Addr) -> bool {
    address.is_loopback() || address.is_link_local() || address.octets()[0] == 0
}

/// Returns the IPv4 address in an IPv6 address: mapped, compatible, translated (NAT64) or tunnelled (6to4).
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let [a, b, c, d] = match address.segments() {
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low]
        | [0, 0, 0, 0, 0xffff, 0, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0x2002, high, low, ..] => [high.to_be_bytes(), low.to_be_bytes()].concat().try_into().ok()?,
        _ => return None,
    };
    Some(Ipv4Addr::new(a, b, c, d))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_hosts_are_recognized_in_any_spelling() {
        for local in [
            "localhost",
            "LOCALHOST",
            "localhost.",
            "a.localhost",
            "a.b.LocalHost.",
            "127.0.0.1",
            "127.0.0.1.",
            "127.255.3.4",
            "127.1",
            "127.0.1",
            "0x7f.1",
            "0x7f000001",
            "0177.0.0.1",
            "017700000001",
            "2130706433",
            "0",
            "0.0.0.0",
            "0.1.2.3",
            "169.254.169.254",
            "0xa9fea9fe",
            "2852039166",
            "[::1]",
            "[::]",
            "[0:0:0:0:0:0:0:1]",
            "[fe80::1]",
            "[febf::1]",
            "[::ffff:127.0.0.1]",
            "[::ffff:a9fe:a9fe]",
            "[::127.0.0.1]",
            "[::ffff:0:127.0.0.1]",
            "[64:ff9b::169.254.169.254]",
            "[2002:7f00:1::]",
        ] {
            assert!(Host::read(local).is_local(), "{local}");
        }
    }

    #[test]
    fn other_hosts_are_not_local() {
        for other in [
            "git.example.com",
            "localhost.example.com",
            "notlocalhost",
            "local.host",
            "10.0.0.1",
            "192.168.1.1",
            "172.16.0.1",
            "126.255.255.255",
            "128.0.0.1",
            "169.253.1.1",
            "1.0.0.0",
            "[2001:db8::1]",
            "[fc00::1]",
            "[fec0::1]",
            "[::ffff:10.0.0.1]",
            "[64:ff9b::808:808]",
            "[2002:0a00:1::]",
            "127.0.0.1.example.com",
        ] {
            assert!(!Host::read(other).is_local(), "{other}");
        }
    }

    #[test]
    fn private_networks_are_inside_and_not_local() {
        for inside in [
            "10.0.0.1",
            "172.31.255.255",
            "192.168.0.1",
            "100.64.0.0",
            "100.127.255.255",
            "0x64400001",
            "[fd00::1]",
            "[::ffff:100.64.0.1]",
            "[64:ff9b::10.0.0.1]",
        ] {
            assert!(Host::read(inside).is_internal() && !Host::read(inside).is_local(), "{inside}");
        }
        for outside in ["100.63.255.255", "100.128.0.0", "172.32.0.1", "[2001:db8::1]", "example.com"] {
            assert!(!Host::read(outside).is_internal(), "{outside}");
        }
        assert!(Host::read("localhost").is_internal() && Host::read("169.254.169.254").is_internal());
    }
}
