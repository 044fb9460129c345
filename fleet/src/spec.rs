//! A cluster that is wanted, as users name it: `NAME[=ipv4|ipv6|dual]`.

use std::{fmt, str::FromStr};

use crate::{
    families::Families,
    name::{self, Error},
};

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
}
