//! `freeport leave`: ends a cluster's membership in its ClusterSet.
//!
//! | module | holds |
//! |---|---|
//! | `own` | the member's side: waits for the member to leave, or does its work |
//! | `removal` | the leader's side, for a member that will not return |
//! | `revocation` | the leader's side, for a member whose access is revoked |
//! | `departure` | what a member's cluster holds of its membership: pure |
//! | `known` | the members that objects in the Common Area name: pure |
//! | `offloading` | what offloading leaves behind, on both sides |
//! | `remainder` | what the Common Area still holds of a cluster: pure |
//!
//! The order is always: announce the removal, wait until all others have acted on it, and only then delete. Others keep what is
//! deleted without an announcement.

mod departure;
mod known;
mod offloading;
mod own;
mod remainder;
mod removal;
mod revocation;

use std::time::Duration;

use api::{lease::LeaseView, name};
use k8s_openapi::api::core::v1::Secret;
use kube::Api;

use crate::{
    Error, KubeContext,
    cluster::Cluster,
    eraser::{Eraser, Say, called},
    objects::{access, area},
};

/// Which cluster ends its membership, and how.
#[derive(Clone, Debug)]
pub struct LeaveOptions {
    /// Which cluster leaves, and how.
    pub departure: Departure,
    /// How long to wait without any progress for a daemon to do its part.
    pub timeout: Duration,
    /// Say what would be deleted or changed, and change nothing.
    pub dry_run: bool,
}

/// How a cluster leaves its set.
#[derive(Clone, Debug)]
pub enum Departure {
    /// The member withdraws its exports and removes its imports.
    Withdraw {
        /// The cluster that leaves.
        cluster: KubeContext,
        /// The cluster that leads, to delete the member's access there as well.
        leader: Option<KubeContext>,
    },
    /// The leader is gone: what was imported is removed, with or without the member.
    Force {
        /// The cluster that leaves.
        cluster: KubeContext,
    },
    /// The member will not return: its records are removed at the leader.
    Remove {
        /// The cluster that leads.
        leader: KubeContext,
        /// Name of the ClusterSet.
        cluster_set: String,
        /// ID of the member.
        cluster_id: String,
        /// Also if its daemon is running: that loses its access, and keeps its imports.
        even_if_alive: bool,
    },
    /// The member shall have no say any more: its access ends at once, then its records are removed at the leader.
    Revoke {
        /// The cluster that leads.
        leader: KubeContext,
        /// Name of the ClusterSet.
        cluster_set: String,
        /// ID of the member.
        cluster_id: String,
        /// Also if its daemon is running.
        yes: bool,
        /// What it exports stays, until the leader evicts it.
        keep: bool,
    },
}

/// Ends a cluster's membership. Safe to run again: it continues.
///
/// `say` gets one line for each thing done.
///
/// # Errors
/// Those of [`Error`]. [`Error::Timeout`] when a daemon that has to do its part does not; what was done stays, and running
/// it again goes on from there.
pub async fn leave(options: &LeaveOptions, say: &mut (dyn FnMut(&str) + Send)) -> Result<(), Error> {
    match &options.departure {
        Departure::Withdraw { cluster, leader } => {
            own::withdraw(cluster, leader.as_ref(), options, say).await
        }
        Departure::Force { cluster } => own::force(cluster, options, say).await,
        Departure::Remove { leader, cluster_set, cluster_id, even_if_alive } => {
            removal::remove(leader, cluster_set, cluster_id, *even_if_alive, options, say).await
        }
        Departure::Revoke { leader, cluster_set, cluster_id, yes, keep } => {
            revocation::revoke(leader, (cluster_set, cluster_id), (*yes, *keep), options, say).await
        }
    }
}

/// Deletes a member's access to the Common Area, as far as Freeport created it: its rights first, so that it writes nothing
/// meanwhile.
async fn take_access(
    leader: &Cluster,
    set: &str,
    id: &str,
    dry_run: bool,
    say: Say<'_>,
) -> Result<(), Error> {
    const ORDER: [&str; 4] = ["RoleBinding", "Secret", "ServiceAccount", "Role"];
    let mut objects = access::objects(set, id, None);
    objects.push(called::<Secret>(&area::name(set), &access::token_secret(id)));
    objects.sort_by_key(|object| ORDER.iter().position(|kind| *kind == object.resource.kind));
    let mut there = Eraser::new(leader, dry_run, say);
    for object in objects {
        there.delete_ours(&object).await?;
    }
    Ok(())
}

/// The Lease of member `id`.
async fn lease(cluster: &Cluster, area: &str, id: &str) -> Result<Option<LeaseView>, Error> {
    let (leases, name) = (Api::<LeaseView>::namespaced(cluster.client.clone(), area), name::member_lease(id));
    cluster.request(format!("read Lease {area}/{name}"), leases.get_opt(&name)).await
}

/// What the leader's administrator has to do if the member's side cannot do it.
fn for_the_leader(set: &str, id: &str) -> String {
    format!(
        "the leader's administrator runs: freeport leave --force --clusterset {set} --cluster-id {id} --leader-context LEADER"
    )
}
