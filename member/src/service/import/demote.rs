//! Endpoints that get no traffic since nothing of their cluster answers from here: pure.
//!
//! A slice is demoted if for each of its ports this cluster, or another one that answers, has an endpoint that is ready. So nobody is left
//! without endpoints, whatever the probes say; and where all others are away as well, or never answered, all stays as it is.

use std::collections::BTreeSet;

use super::mark;
use crate::service::index::{entry::source_cluster, known::Known, links::Links, view::Slice};

/// What a slice serves: a family, and the name and protocol of a port, which a headless Service need not have.
type Served = (String, Option<(String, String)>);

/// Makes endpoints of clusters that are not reached not ready where others among these slices serve the same. The clusters that lose
/// something by it.
pub(super) fn demote<'a>(slices: impl IntoIterator<Item = &'a mut Slice>, known: &Known) -> BTreeSet<String> {
    let Links { unreached, reached, .. } = &known.cluster.links;
    let answers = |from: &String| from == known.us() || reached.contains(from);
    let mut elsewhere = BTreeSet::<Served>::new();
    let mut lost = Vec::new();
    for slice in slices {
        let Some(from) = source_cluster(slice).cloned() else { continue };
        if let Some(since) = unreached.get(&from) {
            lost.push(((from, *since), slice));
        } else if answers(&from) && slice.endpoints.iter().any(|endpoint| endpoint.shared.is_ready()) {
            elsewhere.extend(serves(slice));
        }
    }
    let mut demoted = BTreeSet::new();
    for ((cluster, since), slice) in lost {
        if serves(slice).iter().all(|served| elsewhere.contains(served)) {
            mark::demote(slice, since);
            demoted.insert(cluster);
        }
    }
    demoted
}

fn serves(slice: &Slice) -> Vec<Served> {
    let family = &slice.address_type;
    if slice.ports.is_empty() {
        return vec![(family.clone(), None)];
    }
    let port = |name: &Option<String>, protocol: &Option<String>| {
        (name.clone().unwrap_or_default(), protocol.clone().unwrap_or_else(|| "TCP".to_owned()))
    };
    slice.ports.iter().map(|of| (family.clone(), Some(port(&of.name, &of.protocol)))).collect()
}

#[cfg(test)]
mod tests {
    use api::label;
    use jiff::Timestamp;
    use serde_json::json;

    use super::*;
    use crate::service::{
        index::entry::ServiceEntry,
        offer::fixture::{Settings, known_with},
    };

    /// A slice of a cluster with one endpoint, and ports of these names.
    fn slice(cluster: &str, family: &str, ports: &[&str], ready: bool) -> Slice {
        let ports: Vec<_> =
            ports.iter().map(|name| json!({"name": name, "protocol": "TCP", "port": 80})).collect();
        serde_json::from_value(json!({
            "metadata": {
                "name": cluster,
                "labels": {
                    label::MANAGED_BY: label::FREEPORT,
                    label::SLICE_MANAGED_BY: label::FREEPORT,
                    label::MCS_SOURCE_CLUSTER: cluster,
                },
            },
            "addressType": family,
            "endpoints": [{"addresses": ["10.0.0.1"], "conditions": {"ready": ready, "serving": true}}],
            "ports": ports,
        }))
        .unwrap()
    }

    /// What `here` knows, where these are not reached, and of `west` and `east` one that is not among them answers.
    fn known(away: &[&str]) -> Known {
        let unreached = away.iter().map(|cluster| ((*cluster).to_owned(), Timestamp::UNIX_EPOCH));
        let reached = ["east", "west"].into_iter().filter(|cluster| !away.contains(cluster));
        let links = Links {
            unreached: unreached.collect(),
            reached: reached.map(str::to_owned).collect(),
            ..Links::default()
        };
        known_with("here", &ServiceEntry::default(), Settings { links, ..Settings::default() })
    }

    /// Whether each of the slices is ready in the end, and who was demoted.
    fn demoted(mut slices: Vec<Slice>, away: &[&str]) -> (Vec<bool>, Vec<String>) {
        let demoted = demote(&mut slices, &known(away));
        let ready = slices.iter().map(|slice| slice.endpoints[0].shared.is_ready()).collect();
        (ready, demoted.into_iter().collect())
    }

    #[test]
    fn an_endpoint_is_demoted_where_another_cluster_serves_and_never_to_none() {
        let (east, west) = (slice("east", "IPv4", &["http"], true), slice("west", "IPv4", &["http"], true));
        let both = || vec![east.clone(), west.clone()];
        assert_eq!(demoted(both(), &["east"]), (vec![false, true], vec!["east".to_owned()]));
        assert_eq!(demoted(both(), &[]), (vec![true, true], vec![]));
        assert_eq!(demoted(both(), &["east", "west"]), (vec![true, true], vec![]), "all are away");
        let alone = demoted(vec![east.clone()], &["east"]);
        assert_eq!(alone, (vec![true], vec![]), "nobody else");
        let not_ready = slice("west", "IPv4", &["http"], false);
        assert_eq!(demoted(vec![east.clone(), not_ready], &["east"]).0, [true, false]);
        let mut slices = both();
        demote(&mut slices, &known(&["east"]));
        let conditions = slices[0].endpoints[0].shared.conditions.clone().unwrap();
        assert_eq!((conditions.ready, conditions.serving), (Some(false), Some(false)));
    }

    #[test]
    fn only_this_cluster_and_those_that_answer_take_the_place_of_another() {
        let with =
            |other| vec![slice("east", "IPv4", &["http"], true), slice(other, "IPv4", &["http"], true)];
        assert_eq!(demoted(with("here"), &["east"]).0, [false, true]);
        assert_eq!(demoted(with("north"), &["east"]).0, [true, true], "it never answered");
    }

    #[test]
    fn each_port_and_family_has_to_be_served_elsewhere() {
        let of = |cluster, family, ports: &[&str]| slice(cluster, family, ports, true);
        for (ours, theirs, ready) in [
            (of("east", "IPv4", &["http", "admin"]), of("west", "IPv4", &["http"]), true),
            (of("east", "IPv4", &["http"]), of("west", "IPv4", &["http", "admin"]), false),
            (of("east", "IPv6", &["http"]), of("west", "IPv4", &["http"]), true),
            (of("east", "IPv4", &[]), of("west", "IPv4", &[]), false),
            (of("east", "IPv4", &[]), of("west", "IPv4", &["http"]), true),
        ] {
            assert_eq!(demoted(vec![ours, theirs], &["east"]).0[0], ready);
        }
    }
}
