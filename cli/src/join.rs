//! `freeport join`: makes a cluster a member of a ClusterSet.

use std::{path::PathBuf, time::Duration};

use api::label;
use k8s_openapi::{ByteString, api::core::v1::Secret};
use kube::Api;

use crate::{
    Error, Installed, KubeContext, check,
    cluster::Cluster,
    install::Installer,
    objects::{
        access, area, crds,
        member::{self, Credential},
    },
};

/// Who joins what, and where.
#[derive(Clone, Debug)]
pub struct JoinOptions {
    /// Name of the ClusterSet.
    pub cluster_set: String,
    /// ID of the member, unique in the set.
    pub cluster_id: String,
    /// Folder for the daemon's kubeconfig.
    pub external: PathBuf,
    /// The cluster that joins.
    pub cluster: KubeContext,
    /// The cluster that leads.
    pub leader: KubeContext,
    /// URL of the leader's API server as the member sees it, when the kubeconfig has another.
    pub leader_server: Option<String>,
    /// Limit of each wait.
    pub timeout: Duration,
    /// Hand each object to the progress callback as a YAML document instead of applying it.
    pub dry_run: bool,
}

/// Gives the member access to the Common Area on the leader, and installs CRDs, the member's rights, the credential and
/// the ClusterSet in the member. Safe to run again: what is as it should be is left alone.
///
/// `say` gets one line for each thing done.
///
/// # Errors
/// Those of [`Error`]. Arguments and the state of both clusters are checked before anything is changed.
pub async fn join(options: &JoinOptions, say: &mut (dyn FnMut(&str) + Send)) -> Result<Installed, Error> {
    let (set, id) = (&options.cluster_set, &options.cluster_id);
    check::cluster_set_name(set)?;
    check::cluster_id(id)?;

    let leader = Cluster::connect(&options.leader).await?;
    let cluster = Cluster::connect(&options.cluster).await?;
    let leader_id = check::leader_id(&leader, set).await?;
    let membership = Membership::new(set, id, &leader_id, &leader, options.leader_server.as_deref())?;
    check::may_be_member(&cluster, set, &leader_id, id, "").await?;
    check::is_free(&leader, &leader_id, &cluster, set, id).await?;

    let mut there = Installer::new(&leader, options.dry_run, options.timeout, say);
    let credential = enroll(&mut there, &membership).await?;

    let mut here = Installer::new(&cluster, options.dry_run, options.timeout, say);
    settle(&mut here, &membership, credential.as_ref()).await?;
    let member = here.kubeconfig(label::MEMBER, &options.external).await?;
    Ok(Installed { leader: None, member })
}

/// Everything that makes one cluster a member of one set.
pub(crate) struct Membership {
    set: String,
    id: String,
    leader_id: String,
    /// URL of the leader's API server as the member sees it.
    server: String,
    /// Authorities for that URL, PEM; none: those that Kubernetes hands out with the token.
    ca: Option<Vec<u8>>,
}

impl Membership {
    /// `server` replaces the address in the leader's kubeconfig. What that kubeconfig trusts need not vouch for another
    /// address, say one inside; then the leader's own authority does, which comes with every token.
    pub(crate) fn new(
        set: &str,
        id: &str,
        leader_id: &str,
        leader: &Cluster,
        server: Option<&str>,
    ) -> Result<Self, Error> {
        let ca = if server.is_some() { None } else { leader.ca.clone() };
        let server = server.unwrap_or(&leader.server);
        check::server(server)?;
        Ok(Self { set: set.into(), id: id.into(), leader_id: leader_id.into(), server: server.into(), ca })
    }
}

/// The leader's half: access to the Common Area. Returns what proves it, or nothing in a dry run.
pub(crate) async fn enroll(
    leader: &mut Installer<'_>,
    membership: &Membership,
) -> Result<Option<Credential>, Error> {
    let Membership { set, id, ca, .. } = membership;
    leader.install(&access::objects(set, id)).await?;
    if leader.dry_run {
        return Ok(None);
    }
    let (area, name) = (area::name(set), access::token_secret(id));
    let missing =
        format!("no token in Secret {area}/{name} (kube-controller-manager writes it: does it run there?)");
    let mut credential = leader
        .until(&missing, async |leader| {
            let secrets: Api<Secret> = Api::namespaced(leader.client.clone(), &area);
            let secret = leader.request(format!("read Secret {area}/{name}"), secrets.get_opt(&name)).await?;
            Ok(secret.and_then(filled))
        })
        .await?;
    if let Some(ca) = ca {
        credential.ca.clone_from(ca);
    }
    Ok(Some(credential))
}

/// The member's half.
pub(crate) async fn settle(
    member: &mut Installer<'_>,
    membership: &Membership,
    credential: Option<&Credential>,
) -> Result<(), Error> {
    let Membership { set, id, leader_id, server, .. } = membership;
    member.install_crds(&crds::member()).await?;
    member.install(&member::objects()).await?;
    // The ClusterSet last: a member that is running already finds the Secret when it sees the set.
    member.install(&[member::secret(set, credential), member::cluster_set(set, id, leader_id, server)]).await
}

/// The credential in a token Secret, once Kubernetes has written it.
fn filled(secret: Secret) -> Option<Credential> {
    let mut data = secret.data?;
    let ByteString(ca) = data.remove("ca.crt")?;
    let ByteString(token) = data.remove("token")?;
    Some(Credential { ca, token })
}
