//! `freeport join`: makes a cluster a member of a ClusterSet.

mod credential;
mod token;

use api::{label, ranges::Ranges};

use crate::{
    AddressRanges, Error, Installed, KubeContext, Offloading, Part, Probe, Run,
    cluster::Cluster,
    install::Installer,
    kubeconfig,
    objects::{
        access, crds,
        member::{self, Credential},
    },
    offload, outside, precondition, probe,
    ranges::{self, Noted},
    warning,
};

/// Who joins what, and where.
#[derive(Clone, Debug)]
pub struct JoinOptions {
    /// Name of the ClusterSet.
    pub cluster_set: String,
    /// ID of the member, unique in the set.
    pub cluster_id: String,
    /// The cluster that joins.
    pub cluster: KubeContext,
    /// The cluster that leads.
    pub leader: KubeContext,
    /// URL of the leader's API server as the member sees it, when the kubeconfig has another.
    pub leader_server: Option<String>,
    /// Set up offloading as well; none: only where it is set up already.
    pub offload: Option<Offloading>,
    /// Whether the member connects to endpoints of other clusters; none: as it was said before, else it does.
    pub probe: Option<Probe>,
    /// Which addresses the endpoints of the member may have; none: as it was said before, else any.
    pub ranges: Option<AddressRanges>,
    /// How it is done.
    pub run: Run,
}

/// Gives the member access to the Common Area on the leader, and installs CRDs, the member, the credential and the
/// ClusterSet in the member. Safe to run again: it changes only what differs.
///
/// `say` gets one line for each thing done.
///
/// # Errors
/// Those of [`Error`]. Arguments and the state of both clusters are checked before anything is changed.
pub async fn join(options: &JoinOptions, say: &mut (dyn FnMut(&str) + Send)) -> Result<Installed, Error> {
    let (set, id, run) = (&options.cluster_set, &options.cluster_id, &options.run);
    precondition::cluster_set_name(set)?;
    precondition::cluster_id(id)?;
    precondition::leader_server(options.leader_server.as_deref())?;
    let asked = options.offload.as_ref();
    offload::check(asked, run)?;
    probe::check(options.probe, run)?;
    ranges::check(options.ranges.as_ref(), run)?;
    run.is_of_one_cluster()?;

    // Both kubeconfigs before any request.
    let (leader, cluster) = (Cluster::open(&options.leader).await?, Cluster::open(&options.cluster).await?);
    let (leader, cluster) = (leader.identified().await?, cluster.identified().await?);
    let leader_id = precondition::leader_id(&leader, set, "run `freeport init` there first").await?;
    precondition::is_itself(&leader, &leader_id, &cluster, set, id)?;
    let known = precondition::may_be_member(&cluster, set, &leader_id, id, "").await?;
    precondition::is_free(&leader, &cluster, set, id).await?;
    if asked.is_some() {
        offload::is_without_liqo(&cluster).await?;
    }
    // A member keeps the address it has, unless another one is given.
    let server = options.leader_server.clone().or(known);
    let membership = Membership::new(set, id, &leader_id, &leader, server.as_deref())?;
    let membership = membership.within(ranges::of(&cluster, options.ranges.as_ref()).await?);
    kubeconfig::folder_is_of(&cluster, run)?;
    outside::is_no_member(&cluster, run).await?;
    warning::policy_is_off(&leader, run).await;
    if asked.is_some() {
        offload::leader_lacks_records(&leader, run).await;
    }
    if options.leader_server.is_none() {
        warning::is_loopback(&leader, &membership.server, run);
    }

    let mut there = Installer::new(&leader, run, say);
    let credential = enroll(&mut there, &membership, &cluster).await?;
    there.sum_up();

    let mut here = Installer::new(&cluster, run, say);
    let installed =
        settle(&mut here, &membership, &leader, credential.as_ref(), (asked, options.probe)).await?;
    here.sum_up();
    if here.is_to_wait(Part::Member) {
        here.member_is_ready(set).await?;
        if installed.offloads {
            here.webhook_is_ready().await?;
        }
    }
    if credential.is_some() {
        here.retire_token(&leader, set, id).await?;
    }
    Ok(installed)
}

/// Everything that makes one cluster a member of one set.
pub(crate) struct Membership {
    set: String,
    id: String,
    leader_id: String,
    /// URL of the leader's API server as the member sees it.
    pub(crate) server: String,
    /// Authorities for that URL, PEM; none: those that Kubernetes names in each Namespace.
    ca: Option<Vec<u8>>,
    /// Which addresses its endpoints may have; none: as it is noted.
    ranges: Option<Ranges>,
}

impl Membership {
    /// `server` replaces the address in the leader's kubeconfig. The certificate of another address, for example one inside a
    /// network, may not be signed by the authority in that kubeconfig; then the one that Kubernetes names there is used.
    pub(crate) fn new(
        set: &str,
        id: &str,
        leader_id: &str,
        leader: &Cluster,
        server: Option<&str>,
    ) -> Result<Self, Error> {
        let server = server.unwrap_or(&leader.server);
        let ca = if server == leader.server { leader.ca.clone() } else { None };
        precondition::server(server)?;
        let (set, id, leader_id, server) = (set.into(), id.into(), leader_id.into(), server.into());
        Ok(Self { set, id, leader_id, server, ca, ranges: None })
    }

    /// With endpoints that have these addresses only, if that was said; any if there are none.
    pub(crate) fn within(self, ranges: Option<Ranges>) -> Self {
        Self { ranges, ..self }
    }
}

/// The leader's half: access to the Common Area for this cluster. Returns the credential; none in a dry run, and if the member's half is
/// not wanted.
pub(crate) async fn enroll(
    leader: &mut Installer<'_>,
    membership: &Membership,
    member: &Cluster,
) -> Result<Option<Credential>, Error> {
    let Membership { set, id, ca, ranges, .. } = membership;
    let noted = Noted::of(leader.cluster, member, set, id).await?;
    if let (None, Noted::Before(before)) = (ranges, &noted) {
        leader.say(&format!(
            "endpoints of member {id} are limited to {before}, as under the leader that it had before (freeport join --pod-cidrs \
             changes that)"
        ));
    }
    let ranges = match ranges {
        None => noted.text(),
        // Whoever wrote what is there: what is said last counts.
        Some(any) if any.is_empty() => noted.text().map(|_| String::new()),
        Some(ranges) => Some(ranges.to_string()),
    };
    let objects = access::objects_within(set, id, Some(&member.uid), ranges.as_deref());
    leader.install(Part::Leader, &objects).await?;
    if leader.run.dry_run || !leader.run.does(Part::Member) {
        return Ok(None);
    }
    let has = token::had(member, set).await?;
    leader.credential((set, id), ca.as_deref(), &has).await.map(Some)
}

/// The member's half. Returns the kubeconfigs of daemons that run outside.
pub(crate) async fn settle(
    member: &mut Installer<'_>,
    membership: &Membership,
    leader: &Cluster,
    credential: Option<&Credential>,
    (offload, probe): (Option<&Offloading>, Option<Probe>),
) -> Result<Installed, Error> {
    let Membership { set, id, leader_id, server, .. } = membership;
    member.install_crds(&crds::member()).await?;
    member.install(Part::Member, &member::objects()).await?;
    member.install(Part::Member, &member::credential(set)).await?;
    match credential {
        Some(credential) => member.hand_over(set, credential).await?,
        None if member.run.does(Part::Member) => member.say_how_to_hand_over(membership, leader),
        None => {}
    }
    // The ClusterSet after the Secret: a member that is running already finds the credential when it sees the set.
    member.install(Part::Member, &[member::cluster_set(set, id, leader_id, server)]).await?;
    let image = member.image(label::MEMBER).await?;
    let offloading = member.offloading(offload).await?;
    let mut installed = Installed { offloads: offloading.is_some(), ..Installed::default() };
    // Before the member, which expects its rights.
    if let Some(offloading) = offloading {
        installed.webhook = member.install_offloading(&offloading, image.as_deref()).await?;
        installed.webhook_url = offloading.webhook_url;
    }
    if let Some(image) = image {
        let told = probe::told(member.told(label::MEMBER).await?, probe);
        let replicas = member.replicas(label::MEMBER).await?;
        let workload = member::workload(&image, replicas, installed.offloads, &told);
        member.run_daemon(Part::Member, label::MEMBER, &workload).await?;
    }
    installed.member = member.kubeconfig(Part::Member, label::MEMBER).await?;
    Ok(installed)
}
