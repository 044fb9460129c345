//! Names of clusters.

use crate::{families, layout::Layout};

/// Why a fleet cannot have these clusters.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Not an RFC 1123 label, which cluster IDs and directories here have to be.
    #[error(
        "`{0}` cannot name a cluster: at most 63 lower case letters, digits and `-`, with a letter or digit \
         at both ends"
    )]
    NoLabel(String),
    /// A file of the fleet has that name.
    #[error("`{0}` cannot name a cluster: the fleet keeps a file of its own under that name")]
    Reserved(String),
    /// Most likely the families of the cluster before.
    #[error("`{0}` cannot name a cluster: a cluster of both IP families is NAME=dual")]
    FamilyAsName(String),
    /// Not ipv4, ipv6 or dual.
    #[error("cluster `{cluster}`: {source}")]
    Families {
        /// The cluster's name.
        cluster: String,
        /// The text in place of the families.
        source: families::Unknown,
    },
    /// Named twice.
    #[error("the cluster `{0}` is named twice")]
    Twice(String),
    /// None, or too many.
    #[error("a fleet has 1 to {most} clusters, not {found}")]
    Count {
        /// At most.
        most: usize,
        /// How many were named.
        found: usize,
    },
    /// Too many to have nodes.
    #[error("a fleet with nodes has at most {most} clusters, not {found}")]
    NodeCount {
        /// At most.
        most: usize,
        /// How many were named.
        found: usize,
    },
}

/// Checks one name.
pub(crate) fn check(name: &str) -> Result<(), Error> {
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let is_label = (1..=63).contains(&name.len())
        && name.chars().all(inner)
        && !name.starts_with('-')
        && !name.ends_with('-');
    if !is_label {
        return Err(Error::NoLabel(name.to_owned()));
    }
    if Layout::RESERVED.contains(&name) {
        return Err(Error::Reserved(name.to_owned()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_only() {
        for good in ["a", "east", "west-2", "0"] {
            assert_eq!(check(good), Ok(()));
        }
        for bad in ["", "-a", "a-", "A", "a.b", "a/b", "..", "a b", &"a".repeat(64)] {
            assert_eq!(check(bad), Err(Error::NoLabel(bad.to_owned())));
        }
        assert_eq!(check("kubeconfig"), Err(Error::Reserved("kubeconfig".into())));
    }
}
