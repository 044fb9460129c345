//! What there is of offloading.

use api::{
    label as general,
    offload::{
        label,
        view::{NamespaceOffloadingView, OffloadPeerView},
    },
    view::{Meta, Named},
};
use k8s_openapi::api::{core::v1::Namespace, rbac::v1::ClusterRole};
use kube::{Api, ResourceExt};

use super::{checks, deployment, gap, list, policy};
use crate::{
    Error,
    cluster::Cluster,
    error::Failure,
    objects::offload::{self, webhook},
    offload::{twins::with_twin, unmapped::Unmapped, vanished::Vanished},
    status::found::{Entry, Gap, Offloading, Part, Why},
};

/// Offloading, where it is set up. `us`: ID of this cluster, as far as it is known.
pub(super) async fn offloading(cluster: &Cluster, us: Option<&str>) -> Result<Option<Offloading>, Error> {
    let all: Api<OffloadPeerView> = Api::all(cluster.client.clone());
    let peers = list(cluster, &all, "offloadpeers".into(), "", |peer| peer).await?;
    let mut vanished = Vanished::new(us, peers.iter().flatten());
    let unmapped = Unmapped::all(peers.iter().flatten());
    let peers = peers.map(|peers| peers.into_iter().map(Entry::from).collect());
    // Who may not list them is refused before it is known whether there are any.
    let is_there = match &peers {
        Err(Gap { why: Why::Forbidden(_), .. }) => false,
        // Rights outlive the kind.
        Err(Gap { why: Why::NoCrd, .. }) => has_rights(cluster).await,
        _ => true,
    };
    if !is_there {
        return Ok(None);
    }
    let configuration = webhook::configuration(None);
    let webhook = match cluster.read(&configuration).await {
        Ok(there) => Ok(there),
        Err(error) => Err(gap(configuration.to_string(), error)?),
    };
    let checks = checks(cluster, true, &offload::checks()).await?;
    let Some(policy) = policy(cluster, true, &offload::policy()).await? else { return Ok(None) };
    let all: Api<NamespaceOffloadingView> = Api::all(cluster.client.clone());
    let offloadings = list(cluster, &all, "namespaceoffloadings".into(), "", |it| it).await?;
    let twins_elsewhere = offloadings.iter().flatten().flat_map(twins_elsewhere).collect();
    let namespaces = offloadings.map(|all| all.into_iter().map(Entry::from).collect());
    let twins = format!("{}={},{}", general::MANAGED_BY, general::FREEPORT, label::REMOTE_CLUSTER_ID);
    let all: Api<Meta<Namespace>> = Api::all(cluster.client.clone());
    let home = |twin: &Meta<Namespace>| twin.labels().get(label::REMOTE_CLUSTER_ID).cloned();
    let twins_here =
        list(cluster, &all, "namespaces".into(), &twins, |it| (home(&it).unwrap_or_default(), it.name_any()))
            .await?;
    let labelled = format!("{}={}", label::SCHEDULING_ENABLED, general::TRUE);
    let all: Api<Named<Namespace>> = Api::all(cluster.client.clone());
    let placed =
        list(cluster, &all, "namespaces".into(), &labelled, |namespace| namespace.name_any()).await?;
    if !vanished.is_empty()
        // Who may not list them was refused above as well.
        && let Ok(there) = list(cluster, &all, "namespaces".into(), "", |it| it.name_any()).await?
    {
        vanished.find_missing(there);
    }
    let server = deployment(cluster, true, webhook::NAME).await?;
    Ok(Some(Offloading {
        policy,
        checks,
        peers,
        namespaces,
        vanished,
        unmapped,
        twins_here,
        twins_elsewhere,
        placed,
        webhook,
        server,
    }))
}

/// The clusters where a Namespace has twins, each with its name.
fn twins_elsewhere(offloading: &NamespaceOffloadingView) -> Vec<(String, String)> {
    let namespace = offloading.metadata.namespace.clone().unwrap_or_default();
    let Ok(status) = &offloading.status.0 else { return Vec::new() };
    with_twin(status).into_iter().map(|host| (host.to_owned(), namespace.clone())).collect()
}

/// CRDs of the records of offloading that are missing, where this cluster leads and they were there: some are, or its member offloads.
pub(super) async fn lost_records(
    cluster: &Cluster,
    leads: bool,
    offloads: bool,
) -> Result<Part<Vec<String>>, Error> {
    let (crds, mut missing) = (offload::leader_crds(), Vec::new());
    if !leads {
        return Ok(Ok(missing));
    }
    for crd in &crds {
        match cluster.read(crd).await {
            Ok(Some(_)) => {}
            Ok(None) => missing.push(crd.name.clone()),
            // It is nothing to miss where nobody offloads.
            Err(error) if !offloads && matches!(error.failure(), Failure::Forbidden(_)) => {
                return Ok(Ok(Vec::new()));
            }
            Err(error) => return gap(crd.to_string(), error).map(Err),
        }
    }
    let were_there = offloads || missing.len() < crds.len();
    Ok(Ok(if were_there { missing } else { Vec::new() }))
}

/// Whether the member has the rights of offloading, as far as that may be read.
async fn has_rights(cluster: &Cluster) -> bool {
    let roles: Api<ClusterRole> = Api::all(cluster.client.clone());
    let read = roles.get_metadata_opt(offload::ROLE);
    let read = cluster.request(format!("read ClusterRole {}", offload::ROLE), read).await;
    matches!(read, Ok(Some(_)))
}
