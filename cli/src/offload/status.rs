//! `freeport offload status`: the clusters that are nodes here or may come here, the Namespaces that are offloaded, and the twins of other
//! clusters' Namespaces. Reads only; asks this cluster alone.
//!
//! | module | holds |
//! |---|---|
//! | [`report`] | the report, which is also the shape of `-o json`, made of what was read: pure |
//! | `print` | the report as text: pure |

mod pods;
mod print;
mod report;

use api::{
    label as general,
    offload::{
        label,
        namespace::{NamespaceOffloading, NamespaceOffloadingSpec},
        view::{NamespaceOffloadingView, OffloadPeerView},
    },
    view::Meta,
};
use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, Resource};

use self::pods::{PodView, SpecsWritten, WrittenView};
pub(super) use self::report::{about, twin, unknown};
pub use self::{
    print::text,
    report::{OffloadReport, Offloaded, Peer, Said, Twin, VirtualNode},
};
use super::{away::away, is_set_up, lacks, vanished::Vanished};
use crate::{
    Error, KubeContext,
    cluster::{Cluster, known},
    view::NodeView,
};

/// What to look at.
#[derive(Clone, Debug, Default)]
pub struct OffloadStatusOptions {
    /// The cluster to ask.
    pub cluster: KubeContext,
    /// Only this Namespace.
    pub namespace: Option<String>,
}

/// What was read.
pub(super) struct Read {
    /// The Namespace that was asked for, if it was only one.
    only: Option<String>,
    peers: Vec<OffloadPeerView>,
    nodes: Vec<NodeView>,
    offloadings: Vec<NamespaceOffloadingView>,
    twins: Vec<Meta<Namespace>>,
    /// Of offloaded Namespaces.
    pods: Vec<PodView>,
    /// Since when their NamespaceOffloadings say what they say.
    written: SpecsWritten,
    /// Namespaces of whose Pods the webhook is asked.
    labelled: Vec<Meta<Namespace>>,
    /// Twins of Namespaces whose NamespaceOffloading vanished.
    vanished: Vanished,
    /// The CRD of NamespaceOffloadings, where it is missing.
    lacks: Option<String>,
    /// Why nobody acts for this cluster, where that is so.
    away: Option<String>,
}

/// Reads the cluster and makes a report.
///
/// # Errors
/// Those of [`Error`].
pub async fn offload_status(options: &OffloadStatusOptions) -> Result<OffloadReport, Error> {
    let cluster = Cluster::open(&options.cluster).await?;
    is_set_up(&cluster).await?;
    let client = || cluster.client.clone();
    let only = options.namespace.as_deref();
    if let Some(namespace) = only {
        let namespaces: Api<Meta<Namespace>> = Api::all(client());
        let there = known(namespaces.get(namespace));
        if cluster.request(format!("read Namespace {namespace}"), there).await?.is_none() {
            return Err(cluster.refuse(format!("there is no Namespace {namespace}")));
        }
    }
    let offloadings: Api<NamespaceOffloadingView> = match only {
        Some(namespace) => Api::namespaced(client(), namespace),
        None => Api::all(client()),
    };
    let offloadings = cluster.all(&offloadings, "").await?;
    let mut twins = twins(&cluster).await?;
    twins.retain(|twin| only.is_none_or(|only| twin.meta().name.as_deref() == Some(only)));
    let virtual_nodes = format!("{}={}", label::TYPE, label::VIRTUAL_NODE);
    let mut pods = Vec::new();
    for namespace in offloadings.iter().filter_map(|offloading| offloading.metadata.namespace.as_deref()) {
        pods.extend(cluster.all(&Api::<PodView>::namespaced(client(), namespace), "").await?);
    }
    let written = match only {
        _ if pods.is_empty() => Vec::new(),
        Some(namespace) => cluster.all(&Api::<WrittenView>::namespaced(client(), namespace), "").await?,
        None => cluster.all(&Api::<WrittenView>::all(client()), "").await?,
    };
    let labelled = format!("{}={}", label::SCHEDULING_ENABLED, general::TRUE);
    let mut labelled = cluster.all(&Api::<Meta<Namespace>>::all(client()), &labelled).await?;
    labelled.retain(|namespace| only.is_none_or(|only| namespace.meta().name.as_deref() == Some(only)));
    let read = Read {
        only: options.namespace.clone(),
        peers: cluster.all(&Api::all(client()), "").await?,
        nodes: cluster.all(&Api::all(client()), &virtual_nodes).await?,
        offloadings,
        twins,
        pods,
        written: written.iter().filter_map(WrittenView::spec_written).collect(),
        labelled,
        vanished: Vanished::read(&cluster).await?,
        lacks: lacks::<NamespaceOffloading>(&cluster).await?,
        away: away(&cluster).await,
    };
    Ok(report::report(&cluster.name, &read))
}

/// Twins in this cluster of other clusters' Namespaces.
pub(super) async fn twins(cluster: &Cluster) -> Result<Vec<Meta<Namespace>>, Error> {
    let twins = format!("{}={},{}", general::MANAGED_BY, general::FREEPORT, label::REMOTE_CLUSTER_ID);
    cluster.all(&Api::all(cluster.client.clone()), &twins).await
}

/// Names of the Pods of a Namespace that would be elsewhere, were they created now.
pub(super) async fn older_pods(
    cluster: &Cluster,
    namespace: &str,
    spec: &NamespaceOffloadingSpec,
) -> Result<Vec<String>, Error> {
    let pods = cluster.all(&Api::<PodView>::namespaced(cluster.client.clone(), namespace), "").await?;
    if pods.is_empty() {
        return Ok(Vec::new());
    }
    let virtual_nodes = format!("{}={}", label::TYPE, label::VIRTUAL_NODE);
    let nodes = cluster.all(&Api::<NodeView>::all(cluster.client.clone()), &virtual_nodes).await?;
    let nodes = nodes.iter().filter_map(|node| Some((node.metadata.name.as_deref()?, node))).collect();
    Ok(pods::misplaced(spec, None, namespace, &pods, &nodes).older)
}
