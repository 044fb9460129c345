//! The IP families of a cluster: which addresses its Pods and Services have.

use std::{
    fmt,
    net::{Ipv4Addr, Ipv6Addr},
    str::FromStr,
};

use serde::{Deserialize, Serialize};

/// IPv4 or IPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// `IPv4` in Kubernetes.
    Ipv4,
    /// `IPv6` in Kubernetes.
    Ipv6,
}

impl Family {
    /// Whether the text is an address of this family.
    pub fn is_of(self, address: &str) -> bool {
        match self {
            Self::Ipv4 => address.parse::<Ipv4Addr>().is_ok(),
            Self::Ipv6 => address.parse::<Ipv6Addr>().is_ok(),
        }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ipv4 => "IPv4",
            Self::Ipv6 => "IPv6",
        })
    }
}

/// The families of one cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Families {
    /// IPv4 alone.
    #[default]
    Ipv4,
    /// IPv6 alone.
    Ipv6,
    /// Both, IPv4 first: a Service that names no family gets IPv4.
    Dual,
}

/// Not [`Families`].
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is none of ipv4, ipv6 and dual")]
pub struct Unknown(String);

impl Families {
    const ALL: [Self; 3] = [Self::Ipv4, Self::Ipv6, Self::Dual];

    /// Each family, the one that Services have by default first.
    pub fn list(self) -> &'static [Family] {
        match self {
            Self::Ipv4 => &[Family::Ipv4],
            Self::Ipv6 => &[Family::Ipv6],
            Self::Dual => &[Family::Ipv4, Family::Ipv6],
        }
    }

    /// The one that Services have by default.
    pub fn primary(self) -> Family {
        match self {
            Self::Ipv4 | Self::Dual => Family::Ipv4,
            Self::Ipv6 => Family::Ipv6,
        }
    }

    /// Whether it is among them.
    pub fn has(self, family: Family) -> bool {
        self.list().contains(&family)
    }

    /// The first of these that the other cluster has, too.
    pub fn shared_with(self, other: Self) -> Option<Family> {
        self.list().iter().copied().find(|family| other.has(*family))
    }
}

impl fmt::Display for Families {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ipv4 => "ipv4",
            Self::Ipv6 => "ipv6",
            Self::Dual => "dual",
        })
    }
}

impl FromStr for Families {
    type Err = Unknown;

    fn from_str(text: &str) -> Result<Self, Unknown> {
        let named = Self::ALL.into_iter().find(|families| families.to_string() == text);
        named.ok_or_else(|| Unknown(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn said_and_read() {
        for families in Families::ALL {
            assert_eq!(families.to_string().parse(), Ok(families));
            let json = serde_json::to_value(families).unwrap();
            assert_eq!(json, families.to_string(), "a record says it as users do");
            assert_eq!(families.list().first(), Some(&families.primary()));
        }
        assert_eq!("IPv4".parse::<Families>(), Err(Unknown("IPv4".into())));
    }

    #[test]
    fn what_two_clusters_share() {
        let [ipv4, ipv6, dual] = Families::ALL;
        assert_eq!(dual.shared_with(dual), Some(Family::Ipv4));
        assert_eq!(dual.shared_with(ipv6), Some(Family::Ipv6));
        assert_eq!(ipv6.shared_with(dual), Some(Family::Ipv6));
        assert_eq!(ipv4.shared_with(ipv6), None);
    }
}
