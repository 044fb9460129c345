//! `freeport init`: makes a cluster the leader of a ClusterSet.

use std::{path::PathBuf, time::Duration};

use api::label;

use crate::{
    Error, Installed, KubeContext, check,
    cluster::Cluster,
    install::Installer,
    join::{Membership, enroll, settle},
    objects::{area, crds, leader},
};

/// What to set up, and where.
#[derive(Clone, Debug)]
pub struct InitOptions {
    /// Name of the ClusterSet.
    pub cluster_set: String,
    /// ID of the leader's cluster.
    pub cluster_id: String,
    /// Lead only; do not join the set as a member.
    pub dedicated: bool,
    /// Folder for the daemons' kubeconfigs.
    pub external: PathBuf,
    /// The cluster that is to lead.
    pub cluster: KubeContext,
    /// URL of the leader's API server as the daemons see it, when the kubeconfig has another.
    pub leader_server: Option<String>,
    /// Limit of each wait.
    pub timeout: Duration,
    /// Hand each object to the progress callback as a YAML document instead of applying it.
    pub dry_run: bool,
}

/// Installs CRDs, the leader's rights, the Common Area and its ClusterSet, and joins the cluster to its own set unless it
/// is dedicated. Safe to run again: what is as it should be is left alone.
///
/// `say` gets one line for each thing done.
///
/// # Errors
/// Those of [`Error`]. Arguments and the state of the cluster are checked before anything is changed.
pub async fn init(options: &InitOptions, say: &mut (dyn FnMut(&str) + Send)) -> Result<Installed, Error> {
    let (set, id) = (&options.cluster_set, &options.cluster_id);
    check::cluster_set_name(set)?;
    check::cluster_id(id)?;

    let cluster = Cluster::connect(&options.cluster).await?;
    let membership = Membership::new(set, id, id, &cluster, options.leader_server.as_deref())?;
    check::may_lead(&cluster, set, id).await?;
    if !options.dedicated {
        check::may_be_member(&cluster, set, id, id, ", or lead only, with --dedicated").await?;
    }

    let mut here = Installer::new(&cluster, options.dry_run, options.timeout, say);
    here.install_crds(&crds::leader()).await?;
    here.install(&leader::objects()).await?;
    here.install(&area::objects(set, id)).await?;
    let leader = here.kubeconfig(label::LEADER, &options.external).await?;
    let member = if options.dedicated {
        None
    } else {
        let credential = enroll(&mut here, &membership).await?;
        settle(&mut here, &membership, credential.as_ref()).await?;
        here.kubeconfig(label::MEMBER, &options.external).await?
    };
    Ok(Installed { leader, member })
}
