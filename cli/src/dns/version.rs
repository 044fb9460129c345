//! Which CoreDNS an image holds, as far as its tag says.

use std::fmt;

/// The first that knows the option `multicluster`. An older one does not start with it.
pub(super) const FIRST: Version = Version([1, 12, 2]);

/// Major, minor, patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Version([u32; 3]);

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self([major, minor, patch]) = self;
        write!(f, "{major}.{minor}.{patch}")
    }
}

/// Distributions add words of their own behind the version. None for a digest, and for a tag that is something else.
pub(super) fn of_image(image: &str) -> Option<Version> {
    let name = image.split_once('@').map_or(image, |(name, _)| name);
    let (_, tag) = name.rsplit('/').next()?.split_once(':')?;
    let tag = tag.strip_prefix('v').unwrap_or(tag);
    let mut parts = tag.splitn(3, '.');
    let [major, minor, last] = [parts.next()?, parts.next()?, parts.next()?];
    let digits = last.find(|c: char| !c.is_ascii_digit()).unwrap_or(last.len());
    let (patch, more) = last.split_at(digits);
    if more.starts_with(|c: char| c.is_alphanumeric()) {
        return None;
    }
    Some(Version([major.parse().ok()?, minor.parse().ok()?, patch.parse().ok()?]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_of_distributions_say_the_version() {
        for (image, version) in [
            ("registry.k8s.io/coredns/coredns:v1.11.3", [1, 11, 3]),
            ("602401143452.dkr.ecr.eu-west-1.amazonaws.com/eks/coredns:v1.12.2-eksbuild.1", [1, 12, 2]),
            (
                "602401143452.dkr.ecr.us-west-2.amazonaws.com/eks/coredns:v1.11.4-minimal-eksbuild.14",
                [1, 11, 4],
            ),
            ("rancher/mirrored-coredns-coredns:1.12.3", [1, 12, 3]),
            ("rancher/hardened-coredns:v1.14.0-build20260101", [1, 14, 0]),
            ("mcr.microsoft.com/oss/v2/kubernetes/coredns:v1.9.4-hotfix.20240704", [1, 9, 4]),
            ("registry:5000/coredns:1.13.1_custom@sha256:0123", [1, 13, 1]),
            ("localhost/coredns:v1.14.7", [1, 14, 7]),
        ] {
            assert_eq!(of_image(image), Some(Version(version)), "{image}");
        }
        assert!(Version([1, 11, 4]) < FIRST && Version([1, 14, 0]) > FIRST && Version([1, 12, 2]) >= FIRST);
    }

    #[test]
    fn other_tags_say_nothing() {
        for image in [
            "coredns",
            "registry:5000/coredns",
            "registry/coredns@sha256:0123",
            "coredns/coredns:latest",
            "coredns/coredns:1.12",
            "coredns/coredns:1.12.x",
            "coredns/coredns:1.12.3rc1",
            "mine/dns:build-1.11.3",
        ] {
            assert_eq!(of_image(image), None, "{image}");
        }
    }
}
