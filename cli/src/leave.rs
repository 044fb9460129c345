//! `freeport leave`: ends a cluster's membership in its ClusterSet.
//!
//! | module | holds |
//! |---|---|
//! | `own` | the member's side: the member withdraws and clears away, or it is done here in its place |
//! | `removal` | the leader's side, for a member that will not return |
//! | `departure` | what a member's cluster holds of its membership, decided from what was read |
//! | `known` | which members the Common Area knows, decided from what was read |
//! | `remainder` | what the Common Area still holds of a cluster, decided from what was read |
//!
//! The order is always: say that it goes, wait until all others have acted on that, and only then delete. What merely
//! vanishes is kept by everybody.

mod departure;
mod known;
mod own;
mod remainder;
mod removal;

use std::time::Duration;

use crate::{
    Error, KubeContext,
    cluster::Cluster,
    eraser::{Eraser, Say},
    objects::access,
};

/// Which cluster ends its membership, and how.
#[derive(Clone, Debug)]
pub struct LeaveOptions {
    /// Which one, and who does it.
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
        /// The cluster that leads, to take the member's access away as well.
        leader: Option<KubeContext>,
    },
    /// The leader is gone: what was imported is removed, with or without the member.
    Force {
        /// The cluster that leaves.
        cluster: KubeContext,
    },
    /// The member will not return: the leader's side is cleared in its place.
    Remove {
        /// The cluster that leads.
        leader: KubeContext,
        /// Name of the ClusterSet.
        cluster_set: String,
        /// ID of the member.
        cluster_id: String,
        /// Do so although its daemon is running: it is cut off, and keeps what it imports from others.
        even_if_alive: bool,
    },
}

/// Ends a cluster's membership. Safe to run again: what is gone already is passed over.
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
    }
}

/// Takes a member's way into the Common Area away, as far as Freeport made it: its rights first, so that nothing is written
/// while the rest goes.
async fn take_access(
    leader: &Cluster,
    set: &str,
    id: &str,
    dry_run: bool,
    say: Say<'_>,
) -> Result<(), Error> {
    const ORDER: [&str; 4] = ["RoleBinding", "Secret", "ServiceAccount", "Role"];
    let mut objects = access::objects(set, id, None);
    objects.sort_by_key(|object| ORDER.iter().position(|kind| *kind == object.resource.kind));
    let mut there = Eraser::new(leader, dry_run, say);
    for object in objects {
        there.delete_ours(&object).await?;
    }
    Ok(())
}

/// What remains to be done at the leader when the member's side cannot do it.
fn for_the_leader(set: &str, id: &str) -> String {
    format!(
        "the leader's administrator runs: freeport leave --force --clusterset {set} --cluster-id {id} --leader-context LEADER"
    )
}
