//! `freeport init`: makes a cluster the leader of a ClusterSet.

use api::label;

use crate::{
    AddressRanges, Error, Installed, KubeContext, Offloading, Part, Probe, Run,
    cluster::Cluster,
    install::Installer,
    join::{Membership, enroll, settle},
    kubeconfig,
    objects::{area, crds, leader, offload::leader_crds},
    offload, outside, precondition, probe, ranges, warning,
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
    /// The cluster that is to lead.
    pub cluster: KubeContext,
    /// URL of the leader's API server as the daemons see it, when the kubeconfig has another.
    pub leader_server: Option<String>,
    /// Set up offloading as well; none: only where it is set up already.
    pub offload: Option<Offloading>,
    /// Whether the member connects to endpoints of other clusters; none: as it was said before, else it does.
    pub probe: Option<Probe>,
    /// Which addresses the endpoints of its member may have; none: as it was said before, else any.
    pub ranges: Option<AddressRanges>,
    /// How it is done.
    pub run: Run,
}

/// Installs CRDs, the leader, the Common Area and its ClusterSet, and joins the cluster to its own set unless it is
/// dedicated. Safe to run again: it changes only what differs.
///
/// `say` gets one line for each thing done.
///
/// # Errors
/// Those of [`Error`]. Arguments and the state of the cluster are checked before anything is changed.
pub async fn init(options: &InitOptions, say: &mut (dyn FnMut(&str) + Send)) -> Result<Installed, Error> {
    let (set, id, run) = (&options.cluster_set, &options.cluster_id, &options.run);
    precondition::cluster_set_name(set)?;
    precondition::cluster_id(id)?;
    precondition::leader_server(options.leader_server.as_deref())?;
    let asked = options.offload.as_ref();
    offload::check(asked, run)?;
    probe::check(options.probe, run)?;
    ranges::check(options.ranges.as_ref(), run)?;
    if options.dedicated && options.ranges.is_some() {
        return Err(Error::Argument(
            "--pod-cidrs are those of a member, and with --dedicated there is none".into(),
        ));
    }

    let cluster = Cluster::connect(&options.cluster).await?;
    precondition::may_lead(&cluster, set, id).await?;
    let known = if options.dedicated {
        None
    } else {
        precondition::may_be_member(&cluster, set, id, id, ", or lead only, with --dedicated").await?
    };
    if asked.is_some() {
        offload::is_without_liqo(&cluster).await?;
    }
    let server = options.leader_server.clone().or(known);
    let membership = Membership::new(set, id, id, &cluster, server.as_deref())?;
    let membership = membership.within(ranges::of(&cluster, options.ranges.as_ref()).await?);
    kubeconfig::folder_is_of(&cluster, run)?;
    outside::is_no_leader(&cluster, run).await?;
    if !options.dedicated {
        outside::is_no_member(&cluster, run).await?;
    }
    if !options.dedicated && options.leader_server.is_none() {
        warning::is_loopback(&cluster, &membership.server, run);
    }

    let mut here = Installer::new(&cluster, run, say);
    here.install_crds(&crds::leader()).await?;
    if here.has_offload_records(asked).await? {
        here.install_crds(&leader_crds()).await?;
    }
    here.install(Part::Leader, &leader::objects()).await?;
    here.install(Part::Leader, &area::objects(set, id)).await?;
    if let Some(image) = here.image(label::LEADER).await? {
        let told = here.told(label::LEADER).await?;
        let replicas = here.replicas(label::LEADER).await?;
        let workload = leader::workload(&image, replicas, &told);
        here.run_daemon(Part::Leader, label::LEADER, &workload).await?;
    }
    let leader = here.kubeconfig(Part::Leader, label::LEADER).await?;
    let (mut installed, mut enrolled) = (Installed::default(), false);
    if !options.dedicated {
        let credential = enroll(&mut here, &membership, &cluster).await?;
        enrolled = credential.is_some();
        installed =
            settle(&mut here, &membership, &cluster, credential.as_ref(), (asked, options.probe)).await?;
    }
    here.sum_up();
    if here.is_to_wait(Part::Leader) {
        here.leader_is_ready(set).await?;
    }
    if !options.dedicated && here.is_to_wait(Part::Member) {
        here.member_is_ready(set).await?;
        if installed.offloads {
            here.webhook_is_ready().await?;
        }
    }
    if enrolled {
        here.retire_token(&cluster, set, id).await?;
    }
    Ok(Installed { leader, ..installed })
}
