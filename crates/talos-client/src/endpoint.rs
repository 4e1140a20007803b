//! Where a node is dialled.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

/// The port on which Talos serves its API (its `constants.ApidPort`).
pub const DEFAULT_PORT: u16 = 50000;

/// The address of one node: an IP address, and a port if it is not Talos' own. Names are refused, since a
/// name could be answered by another machine tomorrow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Endpoint(SocketAddr);

/// A text that is not `IP[:port]`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Not a node's address: `{0}`; write an IP address, or `IP:port` (`[IP]:port` for IPv6)")]
pub struct EndpointError(String);

impl Endpoint {
    /// The node at `ip`, on Talos' own port.
    pub fn new(ip: IpAddr) -> Self {
        Self(SocketAddr::new(ip, DEFAULT_PORT))
    }

    /// What is dialled.
    pub fn socket(self) -> SocketAddr {
        self.0
    }

    /// The address, which the node's certificate must name.
    pub fn ip(self) -> IpAddr {
        self.0.ip()
    }
}

impl From<SocketAddr> for Endpoint {
    fn from(address: SocketAddr) -> Self {
        Self(address)
    }
}

impl FromStr for Endpoint {
    type Err = EndpointError;

    fn from_str(text: &str) -> Result<Self, EndpointError> {
        let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
        let address = match bare.parse::<IpAddr>() {
            Ok(ip) => SocketAddr::new(ip, DEFAULT_PORT),
            Err(_) => text.parse().map_err(|_| EndpointError(crate::text::short(text)))?,
        };
        if address.port() == 0 || address.ip().is_unspecified() || address.ip().is_multicast() {
            return Err(EndpointError(crate::text::short(text)));
        }
        Ok(Self(address))
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_with_and_without_port() {
        for (text, shown) in [
            ("10.0.0.4", "10.0.0.4:50000"),
            ("10.0.0.4:6000", "10.0.0.4:6000"),
            ("fd00::1", "[fd00::1]:50000"),
            ("[fd00::1]", "[fd00::1]:50000"),
            ("[fd00::1]:6000", "[fd00::1]:6000"),
        ] {
            assert_eq!(text.parse::<Endpoint>().unwrap().to_string(), shown);
        }
    }

    #[test]
    fn names_and_half_addresses_are_refused() {
        for text in [
            "",
            "node-1",
            "node-1:50000",
            "10.0.0.4:",
            "10.0.0.4:0",
            "0.0.0.0",
            "https://10.0.0.4",
            "224.0.0.1",
        ] {
            assert!(text.parse::<Endpoint>().is_err(), "{text}");
        }
    }
}
