//! The report of `freeport offload status`, in a shape that stays.

#[cfg(test)]
pub(super) mod tests;

use std::collections::{BTreeMap, BTreeSet};

use api::{
    condition::AntreaCondition,
    offload::{
        label, names,
        namespace::{
            NamespaceOffloadingStatus, OFFLOADING_REQUIRED, PLACEMENT_ENFORCED, PODS_ACCEPTED, READY, VALID,
        },
        phase::Phase,
        view::{NamespaceOffloadingView, OffloadPeerView},
    },
    view::Meta,
};
use k8s_openapi::{api::core::v1::Namespace, apimachinery::pkg::apis::meta::v1::Condition};
use kube::{Resource, ResourceExt};
use serde::Serialize;

use super::{Read, pods::misplaced};
use crate::{
    offload::{
        condition,
        refused::{reported, reported_by_node},
        unmapped::Unmapped,
    },
    view::NodeView,
};

/// What a cluster offloads, and what is offloaded to it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OffloadReport {
    /// Context of the cluster.
    pub context: String,
    /// Other clusters that may come here or are nodes here.
    pub peers: Vec<Peer>,
    /// Virtual nodes.
    pub nodes: Vec<VirtualNode>,
    /// Offloaded Namespaces.
    pub namespaces: Vec<Offloaded>,
    /// Twins of other clusters' Namespaces.
    pub twins: Vec<Twin>,
    /// The CRD of NamespaceOffloadings, where it is missing: which Namespaces are offloaded is not known then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lacks: Option<String>,
    /// What is wrong with the cluster as a whole, or with Namespaces of which no NamespaceOffloading tells.
    pub problems: Vec<String>,
}

/// What somebody says: whether it is so, and why.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Said {
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// Why, in one word.
    pub reason: String,
    /// Why, in a sentence.
    pub message: String,
}

/// An OffloadPeer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Peer {
    /// ID of the other cluster.
    pub cluster: String,
    /// Its Namespaces may come here.
    pub incoming: bool,
    /// It is to be a node here.
    pub outgoing: bool,
    /// Whether that works.
    pub ready: Said,
}

/// A virtual node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VirtualNode {
    /// Its name.
    pub name: String,
    /// ID of the cluster that it stands for.
    pub cluster: String,
    /// Whether that cluster answers.
    pub ready: Said,
}

/// An offloaded Namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Offloaded {
    /// Its name.
    pub namespace: String,
    /// Where its new Pods may run.
    pub strategy: String,
    /// How far it is.
    pub phase: String,
    /// Name of the twins.
    pub twin: String,
    /// What selected clusters, and those that still have a twin, say of it, by ID.
    pub clusters: BTreeMap<String, Said>,
    /// Why it offloads nothing, where it cannot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub invalid: Option<Said>,
    /// Whether new Pods are placed as the strategy says.
    pub placement: Said,
    /// Which Pods are refused at virtual nodes, where some are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<Said>,
    /// Pods that are where the strategy puts no new ones: they are older than it.
    pub older_pods: Vec<String>,
    /// Pods that are younger than the strategy and not where it puts them: they were created while the webhook was not asked.
    pub unplaced_pods: Vec<String>,
}

/// A twin.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Twin {
    /// Name of the Namespace here.
    pub namespace: String,
    /// ID of its home.
    pub home: String,
    /// Name of the Namespace at home.
    pub original: String,
    /// It is being deleted.
    pub terminating: bool,
}

impl OffloadReport {
    /// Whether all that was asked for works. Pods that are older than their strategy are as they were asked for once.
    pub fn is_well(&self) -> bool {
        self.problems.is_empty()
            && self.peers.iter().all(|peer| peer.ready.is_true())
            && self.nodes.iter().all(|node| node.ready.is_true())
            && self.namespaces.iter().all(Offloaded::is_well)
    }
}

impl Said {
    pub(in crate::offload) fn is_true(&self) -> bool {
        self.status == "True"
    }

    /// Nothing was said.
    fn nothing() -> Self {
        Self {
            status: "Unknown".into(),
            reason: "NotSaid".into(),
            message: "freeport-member has said nothing yet".into(),
        }
    }

    fn of(condition: Option<&Condition>) -> Self {
        condition.map_or_else(Self::nothing, |said| Self {
            status: said.status.clone(),
            reason: said.reason.clone(),
            message: said.message.clone(),
        })
    }

    fn of_node(condition: Option<&AntreaCondition>) -> Self {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        condition.map_or_else(Self::nothing, |said| Self {
            status: text(&said.status),
            reason: text(&said.reason),
            message: text(&said.message),
        })
    }
}

impl Offloaded {
    fn is_well(&self) -> bool {
        self.phase == Phase::Ready.as_str()
            && self.placement.is_true()
            && self.refused.is_none()
            && self.unplaced_pods.is_empty()
    }
}

/// The report of what was read.
pub(super) fn report(context: &str, read: &Read) -> OffloadReport {
    let nodes = read.nodes.iter().filter_map(|node| Some((node.metadata.name.as_deref()?, node))).collect();
    OffloadReport {
        context: context.to_owned(),
        peers: read.peers.iter().map(peer).collect(),
        nodes: read.nodes.iter().map(node).collect(),
        namespaces: read.offloadings.iter().map(|offloading| offloaded(offloading, read, &nodes)).collect(),
        twins: read.twins.iter().map(twin).collect(),
        lacks: read.lacks.clone(),
        problems: problems(read),
    }
}

/// The problem that the CRD of NamespaceOffloadings is missing.
pub(in crate::offload) fn unknown(crd: &str) -> String {
    format!(
        "which Namespaces are offloaded is not known, CustomResourceDefinition {crd} is missing: run `freeport join --offload` again"
    )
}

fn problems(read: &Read) -> Vec<String> {
    let crd = read.lacks.as_deref().map(unknown);
    let is_told = |name: &str| {
        read.offloadings.iter().any(|offloading| offloading.namespace().as_deref() == Some(name))
    };
    // Without the kind none is told, and that is said already.
    let is_asked = |name: &str| crd.is_none() && read.only.as_deref().is_none_or(|only| only == name);
    let placed: BTreeSet<_> = read.labelled.iter().map(ResourceExt::name_any).collect();
    let lost = read.vanished.namespaces().map(str::to_owned);
    let untold = placed.iter().cloned().chain(lost).collect::<BTreeSet<_>>().into_iter();
    let untold: Vec<_> = untold
        .filter(|name| is_asked(name) && !is_told(name))
        .map(|name| {
            let (what, next) = read.vanished.trouble(&name, placed.contains(&name));
            format!("Namespace {name} {what}; next: {next}")
        })
        .collect();
    let refused = read.peers.iter().filter_map(|peer| {
        let status = peer.status.0.as_ref().ok()?;
        Some((format!("OffloadPeer {}", peer.name_any()), reported(&status.conditions)?))
    });
    let refused_here = read.offloadings.iter().filter_map(|offloading| {
        let (namespace, status) = (offloading.namespace()?, offloading.status.0.as_ref().ok()?);
        Some((format!("Namespace {namespace}"), reported(&status.conditions)?))
    });
    // An OffloadPeer that exists says it, too.
    let has_peer = |node: &&NodeView| {
        let host = names::of_virtual_node(node.metadata.name.as_deref().unwrap_or_default());
        read.peers.iter().any(|peer| peer.metadata.name.as_deref() == host)
    };
    let refused_nodes = read.nodes.iter().filter(|node| !has_peer(node));
    let refused_nodes =
        refused_nodes.filter_map(|node| Some((format!("Node {}", node.name_any()), reported_by_node(node)?)));
    let refused = refused.chain(refused_here).chain(refused_nodes).map(|(of, words)| {
        format!("{of}: {words}; next: change the quota, policy, webhook or right that refuses it; freeport-member tries again within a minute")
    });
    let unmapped = Unmapped::all(&read.peers).into_iter();
    let unmapped = unmapped.filter(|of| read.only.as_deref().is_none_or(|only| only == of.twin)).map(|of| {
        let (what, next) = of.trouble();
        format!("Namespace {} {what}; next: {next}", of.twin)
    });
    let says_something = !read.peers.is_empty() || !read.nodes.is_empty() || !read.offloadings.is_empty();
    let away = read.away.clone().filter(|_| says_something);
    away.into_iter().chain(crd).chain(untold).chain(unmapped).chain(refused).collect()
}

fn peer(peer: &OffloadPeerView) -> Peer {
    let spec = peer.spec.0.as_ref().ok();
    let conditions = peer.status.0.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    Peer {
        cluster: peer.name_any(),
        incoming: spec.is_some_and(|spec| spec.incoming.is_some()),
        outgoing: spec.is_some_and(|spec| spec.outgoing.is_some()),
        ready: Said::of(condition(conditions, api::offload::peer::READY)),
    }
}

fn node(node: &NodeView) -> VirtualNode {
    let conditions = node.status.0.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let ready = conditions.iter().find(|condition| condition.type_.as_deref() == Some("Ready"));
    VirtualNode {
        name: node.name_any(),
        cluster: node.labels().get(label::REMOTE_CLUSTER_ID).cloned().unwrap_or_default(),
        ready: Said::of_node(ready),
    }
}

fn offloaded(
    offloading: &NamespaceOffloadingView,
    read: &Read,
    nodes: &BTreeMap<&str, &NodeView>,
) -> Offloaded {
    let namespace = offloading.namespace().unwrap_or_default();
    let spec = offloading.spec.0.as_ref().ok();
    let status = offloading.status.0.clone().unwrap_or_default();
    // What was said of an older spec says nothing of this one.
    let is_seen = status.observed_generation == offloading.meta().generation;
    // One that is being deleted places no Pods.
    let places = spec.filter(|_| offloading.metadata.deletion_timestamp.is_none());
    let status = if is_seen { status } else { NamespaceOffloadingStatus::default() };
    let written = read.written.get(&namespace).copied();
    let misplaced = places.map(|spec| misplaced(spec, written, &namespace, &read.pods, nodes));
    let misplaced = misplaced.unwrap_or_default();
    Offloaded {
        strategy: spec.map(|spec| spec.pod_offloading_strategy.to_string()).unwrap_or_default(),
        phase: status.offloading_phase.clone().unwrap_or_else(|| "Unknown".into()),
        twin: status.remote_namespace_name.clone().unwrap_or_default(),
        clusters: status.remote_namespaces_conditions.iter().filter_map(about).collect(),
        invalid: condition(&status.conditions, VALID).map(|valid| Said::of(Some(valid))),
        placement: Said::of(condition(&status.conditions, PLACEMENT_ENFORCED)),
        refused: condition(&status.conditions, PODS_ACCEPTED)
            .map(|accepted| Said::of(Some(accepted)))
            .filter(|accepted| !accepted.is_true()),
        older_pods: misplaced.older,
        unplaced_pods: misplaced.unplaced,
        namespace,
    }
}

/// What is said of one cluster; none if it has nothing to do with the Namespace.
pub(in crate::offload) fn about((id, conditions): (&String, &Vec<Condition>)) -> Option<(String, Said)> {
    let required =
        condition(conditions, OFFLOADING_REQUIRED).is_some_and(|required| required.status == "True");
    let ready = condition(conditions, READY);
    (required || ready.is_some()).then(|| (id.clone(), Said::of(ready)))
}

/// What a twin says of itself.
pub(in crate::offload) fn twin(twin: &Meta<Namespace>) -> Twin {
    let value = |values: &BTreeMap<String, String>, key: &str| values.get(key).cloned().unwrap_or_default();
    Twin {
        namespace: twin.name_any(),
        home: value(twin.labels(), label::REMOTE_CLUSTER_ID),
        original: value(twin.annotations(), label::ORIGINAL_NAME),
        terminating: twin.meta().deletion_timestamp.is_some(),
    }
}
