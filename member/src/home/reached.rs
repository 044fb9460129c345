//! Which clusters' endpoints have answered from here, as the Lease has it: their IDs. Pure.

use std::collections::BTreeSet;

use api::{label, lease::LeaseView};
use kube::ResourceExt;

/// What was noted before.
pub(super) fn noted(found: Option<&LeaseView>) -> BTreeSet<String> {
    let noted = found.and_then(|lease| lease.annotations().get(label::REACHED));
    noted.into_iter().flat_map(|noted| noted.split_whitespace()).map(str::to_owned).collect()
}

/// The value of annotation [`REACHED`](label::REACHED).
pub(super) fn text(clusters: BTreeSet<String>) -> String {
    Vec::from_iter(clusters).join(" ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn clusters_that_answered_are_known_by_the_lease() {
        let lease = |annotations| {
            let metadata = json!({"name": "freeport-member", "annotations": annotations});
            serde_json::from_value::<LeaseView>(json!({"metadata": metadata})).unwrap()
        };
        for clusters in [BTreeSet::new(), ["east", "west"].map(str::to_owned).into()] {
            let noted_so = lease(json!({label::REACHED: text(clusters.clone())}));
            assert_eq!(noted(Some(&noted_so)), clusters);
        }
        assert!(noted(Some(&lease(json!({})))).is_empty() && noted(None).is_empty());
    }
}
