//! `freeport offload accept` and `freeport offload use`: the two consents that are needed until one cluster is a node in another. Each
//! writes one half of an OffloadPeer; who uses a cluster waits until it is a node, or none any more.

#[cfg(test)]
mod tests;
mod using;

use std::collections::{BTreeMap, BTreeSet};

use api::{
    label as general, name,
    offload::{
        label::{REMOTE_CLUSTER_ID, is_reserved},
        peer::OffloadPeer,
        twin::check_twin,
        view::OffloadPeerView,
    },
    view::Meta,
};
use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions},
};
use serde_json::{Value, json};

pub use self::using::{UseOptions, use_peer};
use super::{is_set_up, own_set};
use crate::{
    Error, KubeContext, cluster::Cluster, eraser::Say, install::MANAGER, objects::SYSTEM,
    view::ClusterSetView,
};

/// What one cluster allows another.
#[derive(Clone, Debug)]
pub struct AcceptOptions {
    /// The cluster that allows it.
    pub cluster: KubeContext,
    /// ID of the cluster that is allowed.
    pub peer: String,
    /// Take it back.
    pub remove: bool,
    /// Labels that this cluster has as a node there, besides those that were set before.
    pub labels: BTreeMap<String, String>,
    /// Names that twins may have besides those of strategy DefaultName; none: as before.
    pub namespaces: Vec<String>,
    /// Do it also where twins may go with the labels of an earlier consent; otherwise refuse, and say which.
    pub yes: bool,
}

/// Allows another cluster to bring Namespaces and Pods, or takes that back. Safe to run again: it changes only what differs.
///
/// # Errors
/// Those of [`Error`].
pub async fn accept(options: &AcceptOptions, say: &mut (dyn FnMut(&str) + Send)) -> Result<(), Error> {
    let AcceptOptions { peer, remove, .. } = options;
    let incoming = incoming(options)?;
    let (cluster, set) = ours(&options.cluster, peer).await?;
    let mut consent = Consent { cluster: &cluster, peer, say };
    if *remove {
        let lost = read(&cluster, peer).await?.map(|there| given(&there)).unwrap_or_default();
        consent.take_back("incoming").await?;
        if !lost.is_empty() {
            consent.say(&format!(
                "to give it again as it was: freeport offload accept {peer} {} --yes",
                lost.join(" ")
            ));
        }
        consent.say(&format!(
            "nothing new of cluster {peer} comes here; its Namespaces that are here stay until it gives them up"
        ));
        return Ok(());
    }
    if !options.yes {
        keeps_twins(&cluster, options).await?;
    }
    consent.give("incoming", &incoming).await?;
    if let Some(stranger) = stranger(&set, peer) {
        consent.say(&stranger);
    }
    (consent.say)(&format!(
        "next, in cluster {peer}, unless that was done before: freeport offload use {}",
        set.cluster_id().unwrap_or_default()
    ));
    Ok(())
}

/// Whether a member has an ID.
#[derive(Debug, PartialEq, Eq)]
enum Belongs {
    Yes,
    No,
    /// A ClusterSet that is not Ready does not hear of its members.
    Unknown,
}

fn belongs(set: &ClusterSetView, peer: &str) -> Belongs {
    let is_ready = set.ready().is_some_and(|ready| ready.status.as_deref() == Some("True"));
    match members(set).any(|member| member == peer) {
        true => Belongs::Yes,
        false if is_ready => Belongs::No,
        false => Belongs::Unknown,
    }
}

/// IDs of the members, as far as they are known.
fn members(set: &ClusterSetView) -> impl Iterator<Item = &str> {
    let members = set.status.0.as_ref().map(|status| status.cluster_statuses.as_slice()).unwrap_or_default();
    members.iter().filter_map(|member| member.cluster_id.as_deref())
}

/// What there is to say where no member has this ID, or where that is not known.
fn stranger(set: &ClusterSetView, peer: &str) -> Option<String> {
    let what = match belongs(set, peer) {
        Belongs::Yes => return None,
        Belongs::No => format!("no member of this ClusterSet has the ID {peer}: unless it joins later"),
        Belongs::Unknown => format!(
            "whether a member has the ID {peer} is not known, since the ClusterSet is not Ready (freeport status): if none has"
        ),
    };
    Some(format!("{what}, undo this with: freeport offload accept {peer} --remove"))
}

/// The flags by which this consent is given, as far as there are flags for it.
fn given(there: &OffloadPeerView) -> Vec<String> {
    let incoming = there.spec.0.as_ref().ok().and_then(|spec| spec.incoming.as_ref());
    let labels = incoming.into_iter().flat_map(|incoming| &incoming.node_labels);
    let namespaces = incoming.into_iter().flat_map(|incoming| &incoming.namespaces);
    let labels = labels.map(|(key, value)| format!("--label {key}={value}"));
    labels.chain(namespaces.map(|pattern| format!("--namespace '{pattern}'"))).collect()
}

/// Refuses a consent with other labels than the one before, by which twins were selected that are here.
async fn keeps_twins(cluster: &Cluster, options: &AcceptOptions) -> Result<(), Error> {
    let peer = &options.peer;
    if !narrows(read(cluster, peer).await?.as_ref(), options) {
        return Ok(());
    }
    let labels = format!("{}={},{REMOTE_CLUSTER_ID}={peer}", general::MANAGED_BY, general::FREEPORT);
    let twins = cluster.all(&Api::<Meta<Namespace>>::all(cluster.client.clone()), &labels).await?;
    match twins.iter().map(ResourceExt::name_any).collect::<Vec<_>>() {
        twins if twins.is_empty() => Ok(()),
        twins => Err(cluster.unconfirmed(format!(
            "twins of cluster {peer} are here: {}; those that it selected by a label that this consent does not give go, with all that is \
             in them; nothing was changed; run it again with the same labels as before, and with --yes",
            twins.join(", ")
        ))),
    }
}

/// Whether the consent may lack labels that this cluster had as a node there: of one that was taken back nothing is known, and of one that
/// is there, labels that are not named stay.
fn narrows(there: Option<&OffloadPeerView>, options: &AcceptOptions) -> bool {
    let incoming = match there.map(|there| there.spec.0.as_ref()) {
        Some(Ok(spec)) => spec.incoming.as_ref(),
        Some(Err(_)) | None => None,
    };
    incoming.is_none_or(|incoming| {
        incoming.node_labels.iter().any(|(key, had)| options.labels.get(key).is_some_and(|to| to != had))
    })
}

fn check(peer: &str) -> Result<(), Error> {
    name::check_cluster_id(peer).map_err(|error| Error::Argument(format!("cluster ID: {error}")))
}

/// What is allowed, as a merge patch.
fn incoming(options: &AcceptOptions) -> Result<Value, Error> {
    check(&options.peer)?;
    for (key, value) in &options.labels {
        if !name::is_qualified_name(key) || !name::is_label_value(value) {
            return Err(Error::Argument(format!("--label {key}={value}: no Node can have that label")));
        }
        if is_reserved(key) {
            return Err(Error::Argument(format!(
                "--label {key}: labels of Kubernetes and Liqo that say what a Node is cannot be set; topology.kubernetes.io/region can"
            )));
        }
    }
    let is_pattern = |pattern: &&String| {
        let label = pattern.replace('*', "a");
        !name::is_dns_label(&label)
    };
    if let Some(pattern) = options.namespaces.iter().find(is_pattern) {
        return Err(Error::Argument(format!(
            "--namespace {pattern:?} must be the name of a Namespace, in which * stands for any text"
        )));
    }
    let never = |pattern: &&String| check_twin(pattern, &BTreeSet::new()).is_err();
    if let Some(pattern) = options.namespaces.iter().find(never) {
        return Err(Error::Argument(format!(
            "--namespace {pattern:?} matches no twin: kube-*, default and {SYSTEM} never are twins"
        )));
    }
    let mut incoming = json!({});
    if !options.labels.is_empty() {
        incoming["nodeLabels"] = json!(options.labels);
    }
    if !options.namespaces.is_empty() {
        incoming["namespaces"] = json!(options.namespaces);
    }
    Ok(incoming)
}

/// The cluster, and its ClusterSet, in which it has another ID than `peer`.
async fn ours(context: &KubeContext, peer: &str) -> Result<(Cluster, ClusterSetView), Error> {
    let cluster = Cluster::connect(context).await?;
    is_set_up(&cluster).await?;
    match own_set(&cluster).await?.filter(|set| set.cluster_id().is_some()) {
        None => Err(cluster.refuse("not a member of a ClusterSet: run freeport join --offload first".into())),
        Some(set) if set.cluster_id() == Some(peer) => {
            Err(cluster.refuse(format!("{peer} is the ID of this cluster itself; name another cluster")))
        }
        Some(set) => Ok((cluster, set)),
    }
}

/// The OffloadPeer; none if there is none.
async fn read(cluster: &Cluster, peer: &str) -> Result<Option<OffloadPeerView>, Error> {
    let peers: Api<OffloadPeerView> = Api::all(cluster.client.clone());
    cluster.request(format!("read OffloadPeer {peer}"), peers.get_opt(peer)).await
}

/// One half of an OffloadPeer.
struct Consent<'a> {
    cluster: &'a Cluster,
    peer: &'a str,
    say: Say<'a>,
}

impl Consent<'_> {
    fn say(&mut self, line: &str) {
        (self.say)(&format!("{}: {line}", self.cluster.name));
    }

    fn api<K: kube::Resource<DynamicType = (), Scope = k8s_openapi::ClusterResourceScope>>(&self) -> Api<K> {
        Api::all(self.cluster.client.clone())
    }

    /// Merges `what` into this half.
    async fn give(&mut self, half: &str, what: &Value) -> Result<(), Error> {
        let (peer, there) = (self.peer, read(self.cluster, self.peer).await?);
        let done = match there {
            None => {
                let body = json!({"metadata": {"name": peer}, "spec": {half: what}});
                let params = PostParams { field_manager: Some(MANAGER.into()), ..PostParams::default() };
                let create = async {
                    let body: OffloadPeer = serde_json::from_value(body).map_err(kube::Error::SerdeError)?;
                    self.api::<OffloadPeer>().create(&params, &body).await
                };
                self.cluster.request(format!("create OffloadPeer {peer}"), create).await?;
                "created"
            }
            Some(there) => {
                let after = self.patch(&json!({"spec": {half: what}})).await?;
                let is_same = there.metadata.generation == after.metadata.generation;
                if is_same { "unchanged" } else { "changed" }
            }
        };
        self.say(&format!("{done} OffloadPeer {peer}: {half}"));
        Ok(())
    }

    async fn patch(&self, change: &Value) -> Result<OffloadPeerView, Error> {
        let params = PatchParams { field_manager: Some(MANAGER.into()), ..PatchParams::default() };
        let (peers, change) = (self.api::<OffloadPeerView>(), Patch::Merge(change));
        let doing = format!("change OffloadPeer {}", self.peer);
        self.cluster.request(doing, peers.patch(self.peer, &params, &change)).await
    }

    /// Takes this half out. Without the other nothing is left to say.
    async fn take_back(&mut self, half: &str) -> Result<(), Error> {
        let peer = self.peer;
        let Some(there) = read(self.cluster, peer).await? else {
            self.say(&format!("there is no OffloadPeer {peer}"));
            return Ok(());
        };
        // Of what it cannot read it may be the whole that is lost.
        let spec = there.spec.0.map_err(|error| {
            self.cluster.refuse(format!(
                "OffloadPeer {peer} cannot be read by this version of freeport ({error}), and nothing was changed: take spec.{half} out with \
                 kubectl edit offloadpeer {peer}"
            ))
        })?;
        let (has, has_other) = match half {
            "incoming" => (spec.incoming.is_some(), spec.outgoing.is_some()),
            _ => (spec.outgoing.is_some(), spec.incoming.is_some()),
        };
        if !has && has_other {
            self.say(&format!("unchanged OffloadPeer {peer}: it has no {half}"));
        } else if has_other {
            self.patch(&json!({"spec": {half: null}})).await?;
            self.say(&format!("changed OffloadPeer {peer}: no {half}"));
        } else {
            let only =
                Preconditions { uid: there.metadata.uid, resource_version: there.metadata.resource_version };
            let delete = DeleteParams::default().preconditions(only);
            let peers = self.api::<OffloadPeer>();
            self.cluster.request(format!("delete OffloadPeer {peer}"), peers.delete(peer, &delete)).await?;
            self.say(&format!("deleted OffloadPeer {peer}"));
        }
        Ok(())
    }
}
