//! `freeport offload accept` and `freeport offload use`: the two consents that are needed until one cluster is a node in another. Each
//! writes one half of an OffloadPeer; who uses a cluster waits until it is a node.

#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, time::Duration};

use api::{
    name,
    offload::{
        label::{REMOTE_CLUSTER_ID, is_reserved},
        names,
        peer::{OffloadPeer, READY},
        view::{NamespaceOffloadingView, OffloadPeerView},
    },
};
use k8s_openapi::api::core::v1::Node;
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions},
};
use serde_json::{Value, json};

use super::{
    condition, is_set_up,
    twins::{clusters, goes},
};
use crate::{
    Error, KubeContext,
    cluster::{Cluster, known},
    eraser::Say,
    install::MANAGER,
    objects::SYSTEM,
    rollout,
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
}

/// Which other cluster becomes a node.
#[derive(Clone, Debug)]
pub struct UseOptions {
    /// The cluster in which it becomes one.
    pub cluster: KubeContext,
    /// ID of the cluster that becomes a node.
    pub peer: String,
    /// It shall be none any more.
    pub remove: bool,
    /// Remove it also where twins go with it; otherwise only say which.
    pub yes: bool,
    /// Wait until it is one.
    pub wait: bool,
    /// Limit of that wait.
    pub timeout: Duration,
}

/// Allows another cluster to bring Namespaces and Pods, or takes that back. Safe to run again: it changes only what differs.
///
/// # Errors
/// Those of [`Error`].
pub async fn accept(options: &AcceptOptions, say: &mut (dyn FnMut(&str) + Send)) -> Result<(), Error> {
    let AcceptOptions { peer, remove, .. } = options;
    let incoming = incoming(options)?;
    let (cluster, us) = ours(&options.cluster, peer).await?;
    let mut consent = Consent { cluster: &cluster, peer, say };
    if *remove {
        consent.take_back("incoming").await?;
        consent.say(&format!(
            "nothing new of cluster {peer} comes here; its Namespaces that are here stay until it gives them up"
        ));
        return Ok(());
    }
    consent.give("incoming", &incoming).await?;
    (consent.say)(&format!("next, in cluster {peer}: freeport offload use {us}"));
    Ok(())
}

/// Makes another cluster a node of this one, or takes that back. Waits until it is. Safe to run again.
///
/// # Errors
/// Those of [`Error`]. [`Error::Timeout`] says what is missing.
pub async fn use_peer(options: &UseOptions, say: &mut (dyn FnMut(&str) + Send)) -> Result<(), Error> {
    let UseOptions { peer, remove, yes, wait, timeout, .. } = options;
    check(peer)?;
    let (cluster, _) = ours(&options.cluster, peer).await?;
    let mut consent = Consent { cluster: &cluster, peer, say };
    if *remove {
        let twins = consent.twins().await?;
        twins.iter().for_each(|twin| consent.say(twin));
        let is_node = consent.is_node().await?;
        if is_node && twins.is_empty() {
            consent.say(
                "no NamespaceOffloading has a twin there; one whose NamespaceOffloading was lost goes, too",
            );
        }
        if (is_node || !twins.is_empty()) && !yes {
            (consent.say)("next: nothing was changed; run it again with --yes");
            return Ok(());
        }
        consent.take_back("outgoing").await?;
        consent.say(&format!("when no twin is left there, the Node of cluster {peer} goes"));
        return Ok(());
    }
    consent.give("outgoing", &json!({})).await?;
    if *wait {
        consent.is_ready(*timeout).await?;
    }
    (consent.say)("next: freeport offload namespace NAME");
    Ok(())
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
    let mut incoming = json!({});
    if !options.labels.is_empty() {
        incoming["nodeLabels"] = json!(options.labels);
    }
    if !options.namespaces.is_empty() {
        incoming["namespaces"] = json!(options.namespaces);
    }
    Ok(incoming)
}

/// The cluster, and its own ID, which is another one than `peer`.
async fn ours(context: &KubeContext, peer: &str) -> Result<(Cluster, String), Error> {
    let cluster = Cluster::connect(context).await?;
    is_set_up(&cluster).await?;
    let sets: Api<ClusterSetView> = Api::namespaced(cluster.client.clone(), SYSTEM);
    let found = cluster.request("list ClusterSets", known(sets.list(&<_>::default()))).await?;
    let id = found.iter().flatten().find_map(|set| set.cluster_id().map(str::to_owned));
    match id {
        None => Err(cluster.refuse("not a member of a ClusterSet: run freeport join --offload first".into())),
        Some(id) if id == peer => {
            Err(cluster.refuse(format!("{peer} is the ID of this cluster itself; name another cluster")))
        }
        Some(id) => Ok((cluster, id)),
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

    /// Whether the other cluster is a node here: then it may have twins of which no NamespaceOffloading tells.
    async fn is_node(&self) -> Result<bool, Error> {
        let node = names::virtual_node(self.peer);
        let nodes = Api::<Node>::all(self.cluster.client.clone());
        let found = self.cluster.request(format!("read Node {node}"), nodes.get_metadata_opt(&node)).await?;
        Ok(found.is_some_and(|node| node.labels().contains_key(REMOTE_CLUSTER_ID)))
    }

    /// What goes when the other cluster is used no more, a sentence for each Namespace.
    async fn twins(&self) -> Result<Vec<String>, Error> {
        let offloadings = Api::<NamespaceOffloadingView>::all(self.cluster.client.clone());
        let offloadings = self.cluster.all(&offloadings, "").await?;
        let goes = |offloading: &NamespaceOffloadingView| match &offloading.status.0 {
            Ok(status) => clusters(status).contains(&self.peer).then(|| goes(status, &[self.peer])),
            // What cannot be read may have one.
            Err(_) => offloading
                .namespace()
                .map(|name| format!("the twin of {name} there goes, with all that is in it")),
        };
        Ok(offloadings.iter().filter_map(goes).collect())
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
        let spec = there.spec.0.unwrap_or_default();
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

    /// Waits until the member says that what was asked for works.
    async fn is_ready(&mut self, limit: Duration) -> Result<(), Error> {
        let (cluster, peer) = (self.cluster, self.peer);
        let probe = async || Ok(ready(read(cluster, peer).await?.as_ref()));
        let say = &mut *self.say;
        let waiting =
            |message: &str| say(&format!("{}: waiting for OffloadPeer {peer}: {message}", cluster.name));
        match rollout::wait(limit, probe, waiting).await? {
            Ok(message) => {
                self.say(&format!("OffloadPeer {peer} is ready: {message}"));
                Ok(())
            }
            Err(message) => Err(Error::Timeout {
                cluster: cluster.name.clone(),
                missing: format!(
                    "OffloadPeer {peer} is not ready: {message}; it was asked for, and needs no further command once that is mended, still"
                ),
                limit,
            }),
        }
    }
}

/// What the member says of it: that it works, or what is missing.
fn ready(peer: Option<&OffloadPeerView>) -> Result<String, String> {
    let Some(peer) = peer else { return Err("it is not there any more".into()) };
    let conditions = peer.status.0.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    match condition(conditions, READY) {
        Some(ready)
            if ready.observed_generation.is_some_and(|seen| Some(seen) < peer.metadata.generation) =>
        {
            Err("freeport-member has not seen it yet".into())
        }
        Some(ready) if ready.status == "True" => Ok(ready.message.clone()),
        Some(ready) => Err(format!("{}: {}", ready.reason, ready.message)),
        None => Err("freeport-member has not seen it yet".into()),
    }
}
