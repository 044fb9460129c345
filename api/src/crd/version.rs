//! Which version of the Multi-Cluster Services API a CRD has the schema of, by the labels its releases carry since v0.4.0.
//!
//! Several implementations install these CRDs, and none may take fields away from another: whoever installs compares, and leaves
//! a newer one alone.

use std::{collections::BTreeMap, fmt};

/// Label of a CRD: release of the Multi-Cluster Services API its schema is of.
pub(super) const RELEASE: &str = "multicluster.x-k8s.io/release-version";
/// Label of a CRD: number of the change of the schema within that release.
pub(super) const REVISION: &str = "multicluster.x-k8s.io/crd-schema-revision";
/// The release whose schema [`member`](super::member) gives.
pub(super) const OUR_RELEASE: &str = "v0.5.2";
/// Its revision.
pub(super) const OUR_REVISION: &str = "0";

/// Age of a schema: a greater one is newer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SchemaVersion {
    release: Release,
    revision: u64,
}

/// In the order of age.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Release {
    /// Before there were labels.
    Unlabelled,
    Numbered {
        numbers: [u64; 3],
        /// Releases come after what leads to them, as `v0.6.0-rc.1`.
        is_final: bool,
    },
    /// Of a scheme to come: never to be replaced by us.
    Unreadable,
}

impl SchemaVersion {
    /// The version that labels of a CRD tell.
    pub fn of(labels: Option<&BTreeMap<String, String>>) -> Self {
        let label = |key: &str| labels.and_then(|labels| labels.get(key)).map(String::as_str);
        let release = match label(RELEASE) {
            None => Release::Unlabelled,
            Some(text) => numbered(text).unwrap_or(Release::Unreadable),
        };
        Self { release, revision: label(REVISION).and_then(|text| text.parse().ok()).unwrap_or_default() }
    }

    /// The version of the schemas that [`member`](super::member) gives.
    pub fn ours() -> Self {
        Self::of(Some(&labels()))
    }
}

/// The labels of a CRD with our schema.
pub(super) fn labels() -> BTreeMap<String, String> {
    [(RELEASE, OUR_RELEASE), (REVISION, OUR_REVISION)].map(|(key, value)| (key.into(), value.into())).into()
}

fn numbered(text: &str) -> Option<Release> {
    let text = text.strip_prefix('v')?;
    let (text, is_final) = text.split_once('-').map_or((text, true), |(numbers, _)| (numbers, false));
    let numbers: Vec<u64> = text.split('.').map(|part| part.parse().ok()).collect::<Option<_>>()?;
    Some(Release::Numbered { numbers: numbers.try_into().ok()?, is_final })
}

/// As in `v0.5.2 revision 0`.
impl fmt::Display for SchemaVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.release {
            Release::Unlabelled => f.write_str("older than v0.4.0"),
            Release::Numbered { numbers: [major, minor, patch], is_final } => {
                let before = if *is_final { "" } else { "before " };
                write!(f, "{before}v{major}.{minor}.{patch} revision {}", self.revision)
            }
            Release::Unreadable => f.write_str("of an unknown release"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(release: &str, revision: &str) -> SchemaVersion {
        let labels = [(RELEASE, release), (REVISION, revision)];
        SchemaVersion::of(Some(&labels.map(|(key, value)| (key.into(), value.into())).into()))
    }

    #[test]
    fn r78_releases_then_revisions_tell_what_is_newer() {
        let ascending = [
            SchemaVersion::of(None),
            version("v0.4.0", "9"),
            version("v0.5.2-rc.1", "0"),
            SchemaVersion::ours(),
            version("v0.5.2", "1"),
            version("v0.5.10", "0"),
            version("v1.0.0", "0"),
            version("2030-01", "0"),
        ];
        for pair in ascending.windows(2) {
            assert!(pair[0] < pair[1], "{} is not older than {}", pair[0], pair[1]);
        }
        assert_eq!(SchemaVersion::ours().to_string(), "v0.5.2 revision 0");
        assert_eq!(version("v0.5.2", "0"), SchemaVersion::ours());
    }
}
