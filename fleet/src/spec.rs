//! A cluster that is wanted, as users name it: `NAME[=ipv4|ipv6|dual]`.

use std::{fmt, str::FromStr};

use crate::{
    families::Families,
    name::{self, Error},
    network,
};

/// At most this many clusters: each takes one of the Service networks 10.96.0.0/16 to 10.159.0.0/16.
pub(crate) const MOST_CLUSTERS: usize = 64;

/// A cluster to bring up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterSpec {
    /// An RFC 1123 label.
    pub name: String,
    /// Of its Pods and Services.
    pub families: Families,
}

impl FromStr for ClusterSpec {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let (name, families) = match text.split_once('=') {
            None if text.parse::<Families>().is_ok() => return Err(Error::FamilyAsName(text.to_owned())),
            None => (text, Families::default()),
            Some((name, families)) => {
                let families = families.parse();
                (name, families.map_err(|source| Error::Families { cluster: name.to_owned(), source })?)
            }
        };
        name::check(name)?;
        Ok(Self { name: name.to_owned(), families })
    }
}

impl fmt::Display for ClusterSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        match self.families {
            Families::Ipv4 => Ok(()),
            other => write!(f, "={other}"),
        }
    }
}

/// Checks the names of a fleet's clusters.
pub(crate) fn check_all(clusters: &[ClusterSpec], nodes: bool) -> Result<(), Error> {
    if clusters.is_empty() || clusters.len() > MOST_CLUSTERS {
        return Err(Error::Count { most: MOST_CLUSTERS, found: clusters.len() });
    }
    let most = network::MOST_CLUSTERS.into();
    if nodes && clusters.len() > most {
        return Err(Error::NodeCount { most, found: clusters.len() });
    }
    for (index, ClusterSpec { name, .. }) in clusters.iter().enumerate() {
        name::check(name)?;
        if clusters[..index].iter().any(|other| other.name == *name) {
            return Err(Error::Twice(name.clone()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn said_and_read() {
        for (text, families) in
            [("east", Families::Ipv4), ("east=dual", Families::Dual), ("east=ipv6", Families::Ipv6)]
        {
            let spec = ClusterSpec { name: "east".into(), families };
            assert_eq!(text.parse(), Ok(spec.clone()));
            assert_eq!(spec.to_string(), text);
        }
        assert_eq!("east=ipv4".parse::<ClusterSpec>().unwrap().to_string(), "east");
        assert_eq!("ipv6".parse::<ClusterSpec>(), Err(Error::FamilyAsName("ipv6".into())));
        assert_eq!("dual=dual".parse::<ClusterSpec>().unwrap().name, "dual", "if it is said on purpose");
    }

    #[test]
    fn mistakes_are_named() {
        let said = |text: &str| text.parse::<ClusterSpec>().unwrap_err().to_string();
        assert_eq!(said("east=both"), "cluster `east`: `both` is none of ipv4, ipv6 and dual");
        assert!(said("=dual").starts_with("`` cannot name a cluster"), "{}", said("=dual"));
        assert!(said("East=dual").starts_with("`East` cannot name a cluster"));
    }

    #[test]
    fn each_once() {
        let specs = |names: &[&str]| names.iter().map(|name| name.parse().unwrap()).collect::<Vec<_>>();
        assert_eq!(check_all(&specs(&["east", "west"]), false), Ok(()));
        assert_eq!(
            check_all(&specs(&["east", "west", "east=dual"]), false),
            Err(Error::Twice("east".into()))
        );
        assert_eq!(check_all(&[], false), Err(Error::Count { most: 64, found: 0 }));
        let many: Vec<_> = (0..16).map(|n| n.to_string().parse().unwrap()).collect();
        assert_eq!(check_all(&many, false), Ok(()));
        assert_eq!(check_all(&many, true), Err(Error::NodeCount { most: 15, found: 16 }));
    }
}
