//! `freeport offload maps`: which Namespace has which twin in which cluster, in both directions, as the objects of this cluster say. Reads only;
//! asks this cluster alone. NamespaceMaps themselves are in the Common Area, which is in another cluster mostly.
//!
//! | of | what says it |
//! |---|---|
//! | Namespaces of this cluster | NamespaceOffloadings, and OffloadPeers (`status.lostOffloadings`) |
//! | Namespaces of other clusters | their twins here, and OffloadPeers (`status.refusedNamespaces`) |

use api::{
    offload::{
        map::{CREATION_LOOP_BACK_OFF, TERMINATING},
        namespace::NamespaceOffloading,
        peer::REFUSED_MAX,
        phase::{HOST_SILENT, WITHDRAWN},
        view::{NamespaceOffloadingView, OffloadPeerView},
    },
    view::Meta,
};
use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, ResourceExt};
use serde::Serialize;

use super::{
    away::away,
    is_set_up, lacks,
    status::{Said, about, twin, twins, unknown},
    vanished::Vanished,
};
use crate::{
    Error, KubeContext,
    cluster::Cluster,
    printable::{printable, table},
};

/// All twins that a cluster knows of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OffloadMaps {
    /// Context of the cluster.
    pub context: String,
    /// Namespaces of this cluster first.
    pub maps: Vec<Mapping>,
    /// Why this may not be all, or not be so any more.
    pub problems: Vec<String>,
}

/// A Namespace, and the twin that it has or is to have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Mapping {
    /// ID of the cluster with the Namespace. Empty where this cluster does not know its own.
    pub home: String,
    /// ID of the cluster with the twin. Empty where this cluster does not know its own.
    pub host: String,
    /// Name of the Namespace at home.
    pub namespace: String,
    /// Name of the twin at the host.
    pub twin: String,
    /// How far it is.
    pub state: MapState,
    /// Why, in a sentence. Empty where the twin exists.
    pub message: String,
}

/// How far a twin is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum MapState {
    /// The host has the twin.
    Accepted,
    /// The host makes no twin.
    Refused,
    /// The host has not answered yet.
    Waiting,
    /// The home has withdrawn the twin, and the host has not confirmed that.
    Withdrawn,
    /// The host is deleting the twin.
    Terminating,
    /// The host does not renew its Lease.
    HostSilent,
    /// The host has the twin, and its NamespaceOffloading is missing.
    OffloadingMissing,
}

impl MapState {
    /// As the home reads it in condition `Ready` of the host.
    fn of(ready: &Said) -> Self {
        match ready.reason.as_str() {
            _ if ready.is_true() => Self::Accepted,
            CREATION_LOOP_BACK_OFF => Self::Refused,
            WITHDRAWN => Self::Withdrawn,
            TERMINATING => Self::Terminating,
            HOST_SILENT => Self::HostSilent,
            _ => Self::Waiting,
        }
    }
}

/// Reads the cluster and lists the twins.
///
/// # Errors
/// Those of [`Error`].
pub async fn offload_maps(context: &KubeContext) -> Result<OffloadMaps, Error> {
    let cluster = Cluster::open(context).await?;
    is_set_up(&cluster).await?;
    let offloadings = Api::<NamespaceOffloadingView>::all(cluster.client.clone());
    let offloadings = cluster.all(&offloadings, "").await?;
    let peers = cluster.all(&Api::<OffloadPeerView>::all(cluster.client.clone()), "").await?;
    let twins = twins(&cluster).await?;
    let vanished = Vanished::read(&cluster).await?;
    let maps = own(&offloadings, &vanished).into_iter().chain(hosted(&twins, &peers, &vanished)).collect();
    let gaps = gaps(&offloadings, &peers);
    let lacks = lacks::<NamespaceOffloading>(&cluster).await?;
    let away = if peers.is_empty() && offloadings.is_empty() { None } else { away(&cluster).await };
    let problems = lacks.as_deref().map(unknown).into_iter().chain(away).chain(gaps).collect();
    Ok(OffloadMaps { context: cluster.name.clone(), maps, problems })
}

/// What is not in the list.
fn gaps(offloadings: &[NamespaceOffloadingView], peers: &[OffloadPeerView]) -> Vec<String> {
    let unread = offloadings.iter().filter(|offloading| offloading.status.0.is_err());
    let unread = unread.map(|offloading| {
        let namespace = offloading.namespace().unwrap_or_default();
        format!("twins of Namespace {namespace} are not listed: the status of its NamespaceOffloading cannot be read")
    });
    let peers = peers.iter().filter_map(|peer| {
        let name = peer.name_any();
        match &peer.status.0 {
            Err(_) => Some(format!(
                "Namespaces of cluster {name} that are refused here are not listed: the status of its OffloadPeer cannot be read"
            )),
            Ok(status) if status.refused_namespaces.len() >= REFUSED_MAX => Some(format!(
                "of the Namespaces of cluster {name} that are refused here only the first {REFUSED_MAX} are listed: `freeport offload maps` in that \
                 cluster lists all"
            )),
            Ok(_) => None,
        }
    });
    unread.chain(peers).collect()
}

/// Namespaces of this cluster.
fn own(offloadings: &[NamespaceOffloadingView], vanished: &Vanished) -> Vec<Mapping> {
    let home = vanished.us().unwrap_or_default();
    let mut own = Vec::new();
    for offloading in offloadings {
        let Ok(status) = &offloading.status.0 else { continue };
        for (host, ready) in status.remote_namespaces_conditions.iter().filter_map(about) {
            own.push(Mapping {
                home: home.to_owned(),
                host,
                namespace: offloading.namespace().unwrap_or_default(),
                twin: status.remote_namespace_name.clone().unwrap_or_default(),
                state: MapState::of(&ready),
                message: if ready.is_true() { String::new() } else { ready.message },
            });
        }
    }
    let is_told = |name: &str| offloadings.iter().any(|it| it.namespace().as_deref() == Some(name));
    let lost = vanished.each().filter(|(namespace, ..)| !is_told(namespace));
    own.extend(lost.map(|(namespace, twin, host)| Mapping {
        home: home.to_owned(),
        host: host.to_owned(),
        namespace: namespace.to_owned(),
        twin: twin.to_owned(),
        state: MapState::OffloadingMissing,
        message: "freeport offload status has the commands that keep the twin or delete it".to_owned(),
    }));
    own
}

/// Namespaces of other clusters.
fn hosted(twins: &[Meta<Namespace>], peers: &[OffloadPeerView], vanished: &Vanished) -> Vec<Mapping> {
    let host = vanished.us().unwrap_or_default();
    let there = twins.iter().map(twin).map(|twin| Mapping {
        home: twin.home,
        host: host.to_owned(),
        namespace: twin.original,
        twin: twin.namespace,
        state: if twin.terminating { MapState::Terminating } else { MapState::Accepted },
        message: String::new(),
    });
    let refused = peers.iter().flat_map(|peer| {
        let status = peer.status.0.as_ref().ok();
        let refused = status.into_iter().flat_map(|status| &status.refused_namespaces);
        refused.map(|(namespace, entry)| {
            let why = [entry.reason.as_deref(), entry.message.as_deref()].into_iter().flatten();
            Mapping {
                home: peer.name_any(),
                host: host.to_owned(),
                namespace: namespace.clone(),
                twin: entry.remote_namespace.clone(),
                state: MapState::Refused,
                message: why.collect::<Vec<_>>().join(": "),
            }
        })
    });
    let refused: Vec<_> = refused.collect();
    // A twin may exist and be refused, where what a later change asks for is not allowed.
    let is_refused =
        |map: &Mapping| refused.iter().any(|it| it.home == map.home && it.namespace == map.namespace);
    let there: Vec<_> = there.filter(|map| !is_refused(map)).collect();
    there.into_iter().chain(refused).collect()
}

/// A table for people.
pub fn maps_text(maps: &OffloadMaps) -> String {
    let OffloadMaps { context, maps, problems } = maps;
    let mut lines: Vec<_> = problems.iter().map(|problem| format!("problem: {problem}")).collect();
    let head = ["HOME", "HOST", "NAMESPACE", "TWIN", "STATE"].map(str::to_owned);
    let or_none = |text: &str| if text.is_empty() { "-".to_owned() } else { text.to_owned() };
    let row = |map: &Mapping| {
        let Mapping { home, host, namespace, twin, state, message } = map;
        let why = if message.is_empty() { String::new() } else { format!(": {message}") };
        [or_none(home), or_none(host), or_none(namespace), or_none(twin), format!("{state:?}{why}")]
    };
    match maps.is_empty() {
        true => lines.push(format!("cluster {context} knows of no twins")),
        false => {
            let rows: Vec<_> = std::iter::once(head).chain(maps.iter().map(row)).collect();
            lines.extend(table(&rows));
        }
    }
    // Some of the words are another cluster's.
    lines.iter().map(|line| printable(line) + "\n").collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::offload::vanished::tests::example;

    fn offloading(namespace: &str, host: &str, status: &str, reason: &str) -> NamespaceOffloadingView {
        let ready = json!({
            "type": "Ready", "status": status, "reason": reason, "message": "m",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        });
        let status = json!({
            "remoteNamespaceName": format!("{namespace}-west"), "remoteNamespacesConditions": {host: [ready]},
        });
        let metadata = json!({"name": "offloading", "namespace": namespace});
        serde_json::from_value(json!({"metadata": metadata, "spec": {}, "status": status})).unwrap()
    }

    #[test]
    fn each_answer_of_a_host_is_a_state() {
        for (status, reason, state) in [
            ("True", "NamespaceCreated", MapState::Accepted),
            ("False", "CreationLoopBackOff", MapState::Refused),
            ("False", "Creating", MapState::Waiting),
            ("False", "MapFull", MapState::Waiting),
            ("False", "Withdrawn", MapState::Withdrawn),
            ("False", "Terminating", MapState::Terminating),
            ("Unknown", "HostSilent", MapState::HostSilent),
        ] {
            let own = own(&[offloading("db", "east", status, reason)], &Vanished::default());
            assert_eq!(own.len(), 1, "{own:?}");
            assert_eq!((own[0].state, own[0].twin.as_str()), (state, "db-west"), "{reason}");
            assert_eq!(own[0].message.is_empty(), state == MapState::Accepted, "{reason}");
        }
    }

    #[test]
    fn what_cannot_be_listed_is_a_problem() {
        let peer = |status: Value| -> OffloadPeerView {
            serde_json::from_value(json!({"metadata": {"name": "north"}, "spec": {}, "status": status}))
                .unwrap()
        };
        let refused: serde_json::Map<_, _> = (0..REFUSED_MAX)
            .map(|n| (format!("ns-{n}"), json!({"remoteNamespace": "x", "phase": "P"})))
            .collect();
        let unread = json!({"metadata": {"name": "offloading", "namespace": "db"}, "spec": {}, "status": 7});
        let unread = serde_json::from_value(unread).unwrap();
        let gaps =
            gaps(&[unread], &[peer(json!(7)), peer(json!({"refusedNamespaces": refused})), peer(json!({}))]);
        assert_eq!(gaps.len(), 3, "{gaps:?}");
        assert!(gaps[0].contains("Namespace db") && gaps[2].contains("only the first 100"), "{gaps:?}");
    }

    #[test]
    fn a_twin_that_is_refused_a_change_is_listed_once() {
        let labels = json!({"liqo.io/remote-cluster-id": "north"});
        let twin = json!({"metadata": {"name": "api-north", "labels": labels, "annotations": {"liqo.io/original-name": "api"}}});
        let refused = json!({"api": {"remoteNamespace": "api-north", "phase": "CreationLoopBackOff", "reason": "Refused"}});
        let peer =
            json!({"metadata": {"name": "north"}, "spec": {}, "status": {"refusedNamespaces": refused}});
        let (twin, peer) = (serde_json::from_value(twin).unwrap(), serde_json::from_value(peer).unwrap());
        let listed = hosted(&[twin], &[peer], &Vanished::default());
        assert_eq!(listed.iter().map(|map| map.state).collect::<Vec<_>>(), [MapState::Refused]);
    }

    #[test]
    fn both_directions_are_in_one_table() {
        let read = |object: Value| serde_json::from_value(object).unwrap();
        let labels = json!({"liqo.io/remote-cluster-id": "north"});
        let twin = read(json!({"metadata": {
            "name": "api-north", "labels": labels, "annotations": {"liqo.io/original-name": "api"},
        }}));
        let refused = json!({"job": {
            "remoteNamespace": "job", "phase": "CreationLoopBackOff", "reason": "NameNotAllowed", "message": "no",
        }});
        let peer: OffloadPeerView = serde_json::from_value(json!({
            "metadata": {"name": "north"}, "spec": {"incoming": {}}, "status": {"refusedNamespaces": refused},
        }))
        .unwrap();
        // Of `shop` there is a NamespaceOffloading after all.
        let vanished = example();
        let mut maps = own(&[offloading("shop", "east", "True", "NamespaceCreated")], &vanished);
        maps.extend(hosted(&[twin], &[peer], &vanished));
        let text = maps_text(&OffloadMaps { context: "west".into(), maps, problems: vec!["p".into()] });
        let missing =
            "OffloadingMissing: freeport offload status has the commands that keep the twin or delete it";
        let want = format!(
            "problem: p
HOME   HOST   NAMESPACE  TWIN       STATE
west   east   shop       shop-west  Accepted
west   east   bar        foo        {missing}
west   east   web        web        {missing}
west   north  web        web        {missing}
north  west   api        api-north  Accepted
north  west   job        job        Refused: NameNotAllowed: no
"
        );
        assert_eq!(text, want);
        let none = maps_text(&OffloadMaps { context: "west".into(), ..OffloadMaps::default() });
        assert_eq!(none, "cluster west knows of no twins\n");
    }
}
