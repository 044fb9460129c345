//! Whether a daemon runs outside of its cluster. A Deployment beside it would be a second one.
//!
//! A member renews Lease `freeport-member` in its cluster, wherever it runs; a leader one in each Common Area, and none where it leads no
//! ClusterSet. So whoever sets a daemon up to run outside notes that on its ServiceAccount.

use api::{label, lease::LeaseView, name};
use k8s_openapi::{
    api::{apps::v1::Deployment, core::v1::ServiceAccount},
    jiff::Timestamp,
};
use kube::{
    Api, ResourceExt,
    api::{ListParams, PartialObjectMeta, Patch, PatchParams},
};
use serde_json::json;

use crate::{
    Daemons, Error, Part, Run, cluster::Cluster, install::MANAGER, objects::SYSTEM, view::live_holder,
};

/// Annotation of a daemon's ServiceAccount: `true` where the daemon runs outside of the cluster.
const RUNS_OUTSIDE: &str = "multicluster.freeport.dev/runs-outside";

/// Refuses a Deployment of the member where one runs outside.
pub(crate) async fn is_no_member(cluster: &Cluster, run: &Run) -> Result<(), Error> {
    if !run.does(Part::Member) || is_deployed(cluster, run, label::MEMBER).await? {
        return Ok(());
    }
    let leases: Api<LeaseView> = Api::namespaced(cluster.client.clone(), SYSTEM);
    let doing = format!("read Lease {SYSTEM}/{}", label::MEMBER);
    let lease = cluster.request(doing, leases.get_opt(label::MEMBER)).await?;
    refuse(cluster, label::MEMBER, lease.as_slice())?;
    is_not_set_up(cluster, label::MEMBER).await
}

/// Refuses a Deployment of the leader where one runs outside.
pub(crate) async fn is_no_leader(cluster: &Cluster, run: &Run) -> Result<(), Error> {
    if !run.does(Part::Leader) || is_deployed(cluster, run, label::LEADER).await? {
        return Ok(());
    }
    let leases: Api<LeaseView> = Api::all(cluster.client.clone());
    let named = ListParams::default().fields(&format!("metadata.name={}", name::LEADER_LEASE));
    let found = cluster.request("list the leader's Leases", leases.list(&named)).await?;
    refuse(cluster, label::LEADER, &found.items)?;
    is_not_set_up(cluster, label::LEADER).await
}

/// Refuses a Deployment of a daemon that was set up to run outside, though nothing tells whether it runs.
async fn is_not_set_up(cluster: &Cluster, daemon: &str) -> Result<(), Error> {
    let accounts: Api<ServiceAccount> = Api::namespaced(cluster.client.clone(), SYSTEM);
    let doing = format!("read ServiceAccount {SYSTEM}/{daemon}");
    let account = cluster.request(doing, accounts.get_metadata_opt(daemon)).await?;
    if account.is_none_or(|account| !account.annotations().contains_key(RUNS_OUTSIDE)) {
        return Ok(());
    }
    Err(cluster.refuse(format!(
        "{daemon} was set up to run outside of this cluster, and a Deployment would be a second one: run it again with --external DIR; or end that \
         one, and run it again after kubectl -n {SYSTEM} annotate serviceaccount {daemon} {RUNS_OUTSIDE}-"
    )))
}

/// Notes that a daemon runs outside of the cluster.
pub(crate) async fn note(
    cluster: &Cluster,
    account: &PartialObjectMeta<ServiceAccount>,
) -> Result<(), Error> {
    if account.annotations().contains_key(RUNS_OUTSIDE) {
        return Ok(());
    }
    let accounts: Api<ServiceAccount> = Api::namespaced(cluster.client.clone(), SYSTEM);
    let params = PatchParams { field_manager: Some(MANAGER.into()), ..PatchParams::default() };
    let patch = Patch::Merge(json!({"metadata": {"annotations": {RUNS_OUTSIDE: label::TRUE}}}));
    let name = account.name_any();
    let doing = format!("annotate ServiceAccount {SYSTEM}/{name}");
    cluster.request(doing, accounts.patch_metadata(&name, &params, &patch)).await.map(drop)
}

/// Whether it runs inside, or is to run outside.
async fn is_deployed(cluster: &Cluster, run: &Run, daemon: &str) -> Result<bool, Error> {
    if matches!(run.daemons, Daemons::Outside(_)) {
        return Ok(true);
    }
    let deployments: Api<Deployment> = Api::namespaced(cluster.client.clone(), SYSTEM);
    let doing = format!("read Deployment {SYSTEM}/{daemon}");
    Ok(cluster.request(doing, deployments.get_metadata_opt(daemon)).await?.is_some())
}

fn refuse(cluster: &Cluster, daemon: &str, leases: &[LeaseView]) -> Result<(), Error> {
    said(daemon, leases, Timestamp::now()).map_or(Ok(()), |why| Err(cluster.refuse(why)))
}

/// What a daemon that lives without a Deployment is told; nothing where none lives.
fn said(daemon: &str, leases: &[LeaseView], now: Timestamp) -> Option<String> {
    let (lease, holder) = leases.iter().find_map(|lease| Some((lease, live_holder(lease, now)?)))?;
    let place = format!("{}/{}", lease.namespace().unwrap_or_default(), lease.name_any());
    Some(format!(
        "{daemon} runs outside of this cluster (Lease {place}, holder {holder:?}), and a Deployment would be a second one: run it again with \
         --external DIR; or end that one, wait until its Lease is not renewed any more, and run it again"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_daemon_that_renews_its_lease_lives() {
        let lease = serde_json::from_value::<LeaseView>(json!({
            "metadata": {"name": "freeport-member", "namespace": "freeport-system"},
            "spec": {"holderIdentity": "uid/1", "renewTime": "2026-11-01T12:00:00.000000Z", "leaseDurationSeconds": 30},
        }))
        .unwrap();
        let at = |time: &str| said(label::MEMBER, std::slice::from_ref(&lease), time.parse().unwrap());
        let lives = at("2026-11-01T12:00:10Z").unwrap();
        assert!(lives.contains("freeport-member runs outside") && lives.contains("--external"), "{lives}");
        assert_eq!(at("2026-11-01T12:10:00Z"), None, "it has ended");
        assert_eq!(said(label::MEMBER, &[], Timestamp::now()), None, "it never ran");
    }
}
