//! A range of addresses of one family.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

/// A network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Subnet {
    first: IpAddr,
    bits: u8,
}

impl Subnet {
    pub(crate) fn new(first: impl Into<IpAddr>, bits: u8) -> Self {
        Self { first: first.into(), bits }
    }

    /// The address at a distance from the network's first.
    pub(crate) fn address(self, offset: u8) -> IpAddr {
        match self.first {
            IpAddr::V4(first) => Ipv4Addr::from(u32::from(first) + u32::from(offset)).into(),
            IpAddr::V6(first) => Ipv6Addr::from(u128::from(first) + u128::from(offset)).into(),
        }
    }

    /// How many bits of its addresses are the network's.
    pub(crate) fn bits(self) -> u8 {
        self.bits
    }

    /// All addresses of its family.
    pub(crate) fn everywhere(self) -> Self {
        match self.first {
            IpAddr::V4(_) => Self::new(Ipv4Addr::UNSPECIFIED, 0),
            IpAddr::V6(_) => Self::new(Ipv6Addr::UNSPECIFIED, 0),
        }
    }

    /// Whether an address is in both.
    pub(crate) fn overlaps(self, other: Self) -> bool {
        let common = u32::from(128 - self.bits.min(other.bits));
        let differs = match (self.first, other.first) {
            (IpAddr::V4(one), IpAddr::V4(other)) => u128::from(u32::from(one) ^ u32::from(other)) << 96,
            (IpAddr::V6(one), IpAddr::V6(other)) => u128::from(one) ^ u128::from(other),
            _ => return false,
        };
        differs.checked_shr(common).unwrap_or_default() == 0
    }
}

impl fmt::Display for Subnet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.first, self.bits)
    }
}

/// As flags take networks of two families.
pub(crate) fn list(subnets: &[Subnet]) -> String {
    subnets.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subnet(text: &str) -> Subnet {
        let (first, bits) = text.split_once('/').unwrap();
        Subnet::new(first.parse::<IpAddr>().unwrap(), bits.parse().unwrap())
    }

    #[test]
    fn overlap_is_by_the_shorter_prefix() {
        for (one, other, expected) in [
            ("10.1.0.0/16", "10.1.255.0/24", true),
            ("10.1.0.0/16", "10.2.0.0/24", false),
            ("0.0.0.0/0", "10.2.0.0/24", true),
            ("fd00::/64", "fd00::1:0/112", true),
            ("fd00::/64", "fd00:0:0:1::/64", false),
            ("::/0", "fd00::/64", true),
            ("::/0", "0.0.0.0/0", false),
        ] {
            assert_eq!(subnet(one).overlaps(subnet(other)), expected, "{one} {other}");
            assert_eq!(subnet(other).overlaps(subnet(one)), expected, "{other} {one}");
        }
    }

    #[test]
    fn everywhere_is_of_the_family() {
        assert_eq!(subnet("10.1.0.0/16").everywhere().to_string(), "0.0.0.0/0");
        assert_eq!(subnet("fd00::/64").everywhere().to_string(), "::/0");
    }

    #[test]
    fn addresses_are_counted_from_the_first() {
        assert_eq!(subnet("10.1.0.0/16").address(10).to_string(), "10.1.0.10");
        assert_eq!(subnet("fd00::/64").address(10).to_string(), "fd00::a");
    }
}
