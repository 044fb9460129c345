//! Names of records and of virtual nodes.
//!
//! A cluster ID is one DNS label or two with a dot between, so `a.b.c` could be two pairs. The number of labels of the first ID comes
//! before them: `1.a.b.c` is `a` and `b.c`, `2.a.b.c` is `a.b` and `c`. An admission policy can say the same.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::label;
use crate::{
    label::MEMBER,
    name::{check_cluster_id, hash, is_dns_label},
    view::is_written_by,
};

/// Name of the NamespaceMap of a home and a host: `1.<origin>.<destination>`, or `2.` if the origin has two labels.
pub fn namespace_map(origin: &str, destination: &str) -> String {
    pair(origin, destination)
}

/// Origin and destination of the NamespaceMap of this name: the inverse of [`namespace_map`].
pub fn of_namespace_map(record: &str) -> Option<(&str, &str)> {
    of_pair(record)
}

/// Reports whether a Namespace is a twin that the member of cluster `us` made: its label and the map in its annotation agree about the home,
/// the map is for `us`, and the member wrote it (`managedFields`). A copy of a twin is none, in this cluster or in another one. The metadata
/// is complete, or was decoded with [`ours_annotated`](crate::view::ours_annotated).
pub fn is_twin(namespace: &ObjectMeta, us: &str) -> bool {
    let says =
        |of: &Option<BTreeMap<String, String>>, key: &str| of.as_ref().and_then(|of| of.get(key)).cloned();
    let home = says(&namespace.labels, label::REMOTE_CLUSTER_ID);
    let map = says(&namespace.annotations, label::MANAGED_BY_NAMESPACE_MAP);
    map.as_deref()
        .and_then(of_namespace_map)
        .is_some_and(|(origin, host)| home.as_deref() == Some(origin) && us == host)
        && is_written_by(namespace, MEMBER)
}

/// Name of the OffloadOffer of a host to a home: `1.<host>.<home>`, or `2.` if the host has two labels.
pub fn offer(host: &str, home: &str) -> String {
    pair(host, home)
}

/// Host and home of the OffloadOffer of this name: the inverse of [`offer`].
pub fn of_offer(record: &str) -> Option<(&str, &str)> {
    of_pair(record)
}

/// Name of the ShadowPod of the Pod with this uid: as [`namespace_map`], then a dot and the uid.
///
/// Not the name of the Pod: that may have 253 characters, and a Pod made anew under it is another one, whose record must not wait until
/// the old one has gone.
pub fn shadow_pod(origin: &str, destination: &str, uid: &str) -> String {
    format!("{}.{uid}", pair(origin, destination))
}

/// Origin, destination and uid of the ShadowPod of this name: the inverse of [`shadow_pod`].
pub fn of_shadow_pod(record: &str) -> Option<(&str, &str, &str)> {
    let (clusters, uid) = record.rsplit_once('.')?;
    let (origin, destination) = of_pair(clusters)?;
    is_dns_label(uid).then_some((origin, destination, uid))
}

fn pair(first: &str, second: &str) -> String {
    format!("{}.{first}.{second}", first.split('.').count())
}

fn of_pair(record: &str) -> Option<(&str, &str)> {
    let (labels, ids) = record.split_once('.')?;
    let end = match labels {
        "1" => ids.find('.')?,
        "2" => ids.match_indices('.').nth(1)?.0,
        _ => return None,
    };
    let (first, second) = (ids.get(..end)?, ids.get(end + 1..)?);
    [first, second].into_iter().all(|id| check_cluster_id(id).is_ok()).then_some((first, second))
}

/// Before the ID of a cluster, the name of its virtual node.
const NODE_PREFIX: &str = "freeport-";

/// Name of the virtual node that stands for a cluster.
pub fn virtual_node(cluster: &str) -> String {
    format!("{NODE_PREFIX}{cluster}")
}

/// The cluster that a virtual node of this name stands for: the inverse of [`virtual_node`].
pub fn of_virtual_node(node: &str) -> Option<&str> {
    node.strip_prefix(NODE_PREFIX).filter(|cluster| check_cluster_id(cluster).is_ok())
}

/// Value of label `kubernetes.io/hostname` of a virtual node: its name, or where that is too long for a label its beginning and a hash.
pub fn hostname(cluster: &str) -> String {
    const MAX: usize = 63;
    let (node, hash) = (virtual_node(cluster), hash(cluster));
    if node.len() <= MAX {
        return node;
    }
    let beginning = node.floor_char_boundary(MAX - 1 - hash.len());
    format!("{}-{hash}", &node[..beginning])
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;
    use proptest::prelude::*;

    use super::*;
    use crate::name::is_label_value;

    const UID: &str = "0b0e3a5c-9f61-4b9e-8f5e-3a1de4b2a001";

    #[test]
    fn a_copy_of_a_twin_is_none() {
        let of = |home: Option<&str>, map: Option<&str>| {
            let one = |key: &str, value: &str| [(key.to_owned(), value.to_owned())].into();
            let by = ManagedFieldsEntry { manager: Some(MEMBER.into()), ..Default::default() };
            ObjectMeta {
                managed_fields: Some(vec![by]),
                labels: home.map(|home| one(label::REMOTE_CLUSTER_ID, home)),
                annotations: map.map(|map| one(label::MANAGED_BY_NAMESPACE_MAP, map)),
                ..ObjectMeta::default()
            }
        };
        let twin = of(Some("west"), Some("1.west.east"));
        assert!(is_twin(&twin, "east"));
        assert!(!is_twin(&twin, "north"), "restored from a backup of east");
        let by = ManagedFieldsEntry { manager: Some("kubectl".into()), ..Default::default() };
        assert!(!is_twin(&ObjectMeta { managed_fields: Some(vec![by]), ..twin }, "east"), "a copy");
        assert!(!is_twin(&of(Some("south"), Some("1.west.east")), "east"));
        assert!(
            !is_twin(&of(Some("west"), None), "east") && !is_twin(&of(None, Some("1.west.east")), "east")
        );
        assert!(!is_twin(&of(Some("west"), Some("west.east")), "east"));
    }

    #[test]
    fn ids_with_a_dot_are_told_apart() {
        assert_eq!(namespace_map("west", "east"), "1.west.east");
        assert_eq!(
            (namespace_map("a", "b.c"), namespace_map("a.b", "c")),
            ("1.a.b.c".into(), "2.a.b.c".into())
        );
        assert_eq!(offer("east", "west"), "1.east.west");
        assert_eq!(shadow_pod("west", "eu.east", UID), format!("1.west.eu.east.{UID}"));
        assert_eq!(of_namespace_map("2.a.b.c.d"), Some(("a.b", "c.d")));
        for other in
            ["", "1", "1.a", "2.a.b", "3.a.b.c", "1.a.b.c.d", "a.b", "1..a", "1.a.", "01.a.b", "1.A.b"]
        {
            assert_eq!(of_namespace_map(other), None, "{other}");
        }
        assert_eq!((of_shadow_pod("1.west.east"), of_shadow_pod("1.west.east.")), (None, None));
    }

    #[test]
    fn every_name_fits_its_object() {
        let long = "c".repeat(63);
        assert!(shadow_pod(&long, &long, UID).len() <= 253);
        assert_eq!(of_virtual_node(&virtual_node("eu.east")), Some("eu.east"));
        assert_eq!((of_virtual_node("east"), of_virtual_node("freeport-")), (None, None));
        assert_eq!(hostname("east"), "freeport-east");
        assert!(is_label_value(&hostname(&long)) && hostname(&long) != hostname(&"c".repeat(62)));
        let dotted = format!("{}.x", "c".repeat(60));
        assert!(is_label_value(&hostname(&dotted)), "{}", hostname(&dotted));
        let cut_at_a_dot = format!("{}.{}", "c".repeat(36), "d".repeat(26));
        assert!(is_label_value(&hostname(&cut_at_a_dot)), "{}", hostname(&cut_at_a_dot));
    }

    fn id() -> impl Strategy<Value = String> {
        "[a-b0-2](-?[a-b0-2]){0,3}(\\.[a-b0-2](-?[a-b0-2]){0,2})?"
    }

    proptest! {
        #[test]
        fn names_split_back(origin in id(), destination in id(), uid in "[a-f0-9](-?[a-f0-9]){0,8}") {
            let both = Some((origin.as_str(), destination.as_str()));
            let record = namespace_map(&origin, &destination);
            prop_assert_eq!(of_namespace_map(&record), both);
            prop_assert_eq!(offer(&origin, &destination), record.clone());
            prop_assert_eq!(of_offer(&record), both);
            let all = Some((origin.as_str(), destination.as_str(), uid.as_str()));
            let record = shadow_pod(&origin, &destination, &uid);
            prop_assert_eq!(of_shadow_pod(&record), all);
        }

        #[test]
        fn what_splits_is_canonical(record in "[0-3](\\.[a-b]{0,2}){0,6}") {
            if let Some((origin, destination)) = of_namespace_map(&record) {
                prop_assert_eq!(namespace_map(origin, destination), record.clone());
            }
            if let Some((origin, destination, uid)) = of_shadow_pod(&record) {
                prop_assert_eq!(shadow_pod(origin, destination, uid), record);
            }
        }
    }
}
