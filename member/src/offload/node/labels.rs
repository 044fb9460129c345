//! Labels of a virtual node: pure. What an administrator sets stays and wins, so which values are ours is noted on the Node.

use std::collections::BTreeMap;

use api::{
    label as general,
    name::{is_label_value, is_qualified_name},
    offload::{label, names},
};
use serde::{Deserialize, Serialize};

pub(in crate::offload) type Labels = BTreeMap<String, String>;

/// What is noted in annotation [`EXPORTED_METADATA`](general::EXPORTED_METADATA): the keys, which go when they are not set any more,
/// and with which values they were set.
#[derive(Default, Serialize, Deserialize)]
struct Noted {
    labels: Vec<String>,
    #[serde(default)]
    values: Labels,
}

/// The labels to set on the Node of `cluster`, and the note that goes with them, where it has the labels `have` and the note `noted`.
pub(super) fn labels(
    cluster: &str,
    offered: &Labels,
    have: &Labels,
    noted: Option<&str>,
) -> (Labels, String) {
    let noted: Noted = noted.and_then(|noted| serde_json::from_str(noted).ok()).unwrap_or_default();
    let is_ours = |key: &String| match (have.get(key), noted.values.get(key)) {
        (None, _) => true,
        (Some(now), Some(set)) => now == set,
        (Some(_), None) => false,
    };
    let mut all = defaults(cluster);
    let may_claim = |(key, value): &(&String, &String)| may_claim(key, value);
    all.extend(offered.iter().filter(may_claim).map(|(key, value)| (key.clone(), value.clone())));
    all.retain(|key, _| is_ours(key));
    let note = Noted { labels: all.keys().cloned().collect(), values: all.clone() };
    // What was ours and is the administrator's now must not go with the old note.
    let taken_over = noted.labels.iter().filter(|key| !is_ours(key));
    all.extend(taken_over.filter_map(|key| Some((key.clone(), have.get(key)?.clone()))));
    all.extend(identity(cluster));
    (all, serde_json::to_string(&note).unwrap_or_default())
}

/// Whether a host may set this label on its Node: any that a Node can have, but for those that say what it is.
pub(in crate::offload) fn may_claim(key: &str, value: &str) -> bool {
    !label::is_reserved(key) && is_qualified_name(key) && is_label_value(value)
}

/// Labels that others have set on a Node with this note.
pub(super) fn of_others(have: &Labels, noted: Option<&str>) -> Labels {
    let noted: Noted = noted.and_then(|noted| serde_json::from_str(noted).ok()).unwrap_or_default();
    let others = have.iter().filter(|(key, value)| noted.values.get(*key) != Some(*value));
    others.map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// The same, without those of which nobody else has a say, and no more than an OffloadPeer takes.
pub(super) fn to_remember(have: &Labels, noted: Option<&str>) -> Labels {
    let others = of_others(have, noted).into_iter().filter(|(key, _)| !IDENTITY.contains(&key.as_str()));
    others.take(REMEMBERED_MAX).collect()
}

/// As its CRD says of any map.
const REMEMBERED_MAX: usize = 100;

/// What says which cluster it is the virtual node of.
const IDENTITY: [&str; 3] = [label::TYPE, label::REMOTE_CLUSTER_ID, general::MANAGED_BY];

/// What makes it the virtual node of that cluster: nobody else has a say.
fn identity(cluster: &str) -> Labels {
    let values = [label::VIRTUAL_NODE, cluster, general::FREEPORT];
    IDENTITY.into_iter().zip(values).map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

fn defaults(cluster: &str) -> Labels {
    let hostname = names::hostname(cluster);
    let pairs = [
        (label::AUTOSCALER_TYPE, label::VIRTUAL_KUBELET),
        (label::HOSTNAME, hostname.as_str()),
        (label::OS, label::LINUX),
        (label::ARCH, label::AMD64),
        (label::ROLE, label::AGENT),
        (label::NO_LOAD_BALANCER[0], general::TRUE),
        (label::NO_LOAD_BALANCER[1], general::TRUE),
        (label::STORAGE, general::FALSE),
    ];
    pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pairs: &[(&str, &str)]) -> Labels {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn an_administrators_labels_win_and_others_follow_the_offer() {
        let offered = of(&[("region", "us"), ("liqo.io/type", "x"), ("bad key", "x"), ("tier", "gold")]);
        let (first, note) = labels("east", &offered, &Labels::new(), None);
        assert_eq!(first["region"], "us");
        assert_eq!(
            (first[label::TYPE].as_str(), first[label::REMOTE_CLUSTER_ID].as_str()),
            ("virtual-node", "east")
        );
        assert!(!first.contains_key("bad key"));
        let (again, same) = labels("east", &offered, &first, Some(&note));
        assert_eq!((&again, &same), (&first, &note), "a second pass writes nothing");

        let mut edited = first.clone();
        edited.extend(of(&[("region", "eu"), (label::ARCH, "arm64"), (label::TYPE, "mine"), ("own", "1")]));
        let changed = of(&[("region", "asia"), ("own", "2")]);
        let (third, note) = labels("east", &changed, &edited, Some(&note));
        assert_eq!((third["region"].as_str(), third[label::ARCH].as_str()), ("eu", "arm64"), "they stay");
        assert!(!third.contains_key("own"), "it was there before it was offered");
        assert_eq!(third[label::TYPE], "virtual-node");
        assert!(
            !note.contains("tier") && !note.contains("region"),
            "one that is not offered any more goes: {note}"
        );
    }
}
