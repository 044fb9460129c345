//! `freeport offload use`: makes another cluster a node of this one, or ends that, and waits for either.

use std::time::{Duration, Instant};

use api::offload::{
    label::REMOTE_CLUSTER_ID,
    names,
    peer::READY,
    view::{NamespaceOffloadingView, OffloadPeerView},
};
use k8s_openapi::api::core::v1::Node;
use kube::{Api, ResourceExt};
use serde_json::json;

use super::{Belongs, Consent, belongs, check, members, ours, read};
use crate::{
    Error, KubeContext,
    cluster::Cluster,
    offload::{
        away::explained,
        condition, refused,
        twins::{clusters, goes},
        vanished::Vanished,
    },
    rollout,
    view::ClusterSetView,
};

/// Which other cluster becomes a node.
#[derive(Clone, Debug)]
pub struct UseOptions {
    /// The cluster in which it becomes one.
    pub cluster: KubeContext,
    /// ID of the cluster that becomes a node.
    pub peer: String,
    /// Do it also where no member of the ClusterSet has this ID.
    pub force: bool,
    /// It shall be none any more.
    pub remove: bool,
    /// Remove it also where twins go with it; otherwise only say which.
    pub yes: bool,
    /// Wait until it is one, or none any more.
    pub wait: bool,
    /// Limit of that wait.
    pub timeout: Duration,
}

/// Makes another cluster a node of this one, or takes that back. Waits until it is, or is none any more. Safe to run again.
///
/// # Errors
/// Those of [`Error`]. [`Error::Refused`] where twins would go and nobody said so; [`Error::Timeout`] says what is missing.
pub async fn use_peer(options: &UseOptions, say: &mut (dyn FnMut(&str) + Send)) -> Result<(), Error> {
    let UseOptions { peer, force, remove, wait, timeout, .. } = options;
    check(peer)?;
    let (cluster, set) = ours(&options.cluster, peer).await?;
    let mut consent = Consent { cluster: &cluster, peer, say };
    if *remove {
        return consent.end_use(options).await;
    }
    if let Some(nobody) = nobody(&set, peer).filter(|_| !force)
        && !is_used(read(&cluster, peer).await?.as_ref())
    {
        return Err(cluster.refuse(nobody));
    }
    consent.give("outgoing", &json!({})).await?;
    if *wait {
        consent.is_ready(*timeout).await?;
    }
    (consent.say)("next: freeport offload namespace NAME");
    Ok(())
}

impl Consent<'_> {
    async fn end_use(&mut self, options: &UseOptions) -> Result<(), Error> {
        let (cluster, peer) = (self.cluster, self.peer);
        let twins = twins(cluster, peer).await?;
        twins.iter().for_each(|twin| self.say(twin));
        let is_node = is_node(cluster, peer).await?;
        if is_node && twins.is_empty() {
            self.say(
                "no NamespaceOffloading has a twin there; one whose NamespaceOffloading was lost goes, too",
            );
        }
        if (is_node || !twins.is_empty()) && !options.yes {
            return Err(cluster.unconfirmed("nothing was changed; run it again with --yes".into()));
        }
        self.take_back("outgoing").await?;
        match (is_node, options.wait) {
            (false, _) => self.say(&format!("cluster {peer} is no node here")),
            (true, false) => {
                self.say(&format!("when no twin is left there, the Node of cluster {peer} goes"))
            }
            (true, true) => self.is_no_node(options.timeout).await?,
        }
        Ok(())
    }

    /// Waits until the other cluster is no node here: its twins go first.
    async fn is_no_node(&mut self, limit: Duration) -> Result<(), Error> {
        let (cluster, peer, node) = (self.cluster, self.peer, names::virtual_node(self.peer));
        let begun = Instant::now();
        let probe = async || {
            if !is_node(cluster, peer).await? {
                return Ok(Ok(()));
            }
            let refused = refused::keeps_node(cluster, peer).await?;
            let left = what_is_left(&twins(cluster, peer).await?);
            let left = refused.iter().fold(left, |left, refused| format!("{left}; {refused}"));
            refused::stop(cluster, refused, begun, limit)?;
            Ok(Err(explained(cluster, left).await))
        };
        let say = &mut *self.say;
        let waiting =
            |message: &str| say(&format!("{}: waiting for Node {node} to go: {message}", cluster.name));
        match rollout::wait(limit, probe, waiting).await? {
            Ok(()) => {
                self.say(&format!("cluster {peer} is no node here any more"));
                Ok(())
            }
            Err(message) => Err(Error::Timeout {
                cluster: cluster.name.clone(),
                missing: format!(
                    "{message}; the Node goes by itself after that, and needs no further command: Node {node} is still there"
                ),
                limit,
            }),
        }
    }

    /// Waits until the member says that what was asked for works.
    async fn is_ready(&mut self, limit: Duration) -> Result<(), Error> {
        let (cluster, peer) = (self.cluster, self.peer);
        let begun = Instant::now();
        let probe = async || {
            let there = read(cluster, peer).await?;
            let missing = match ready(there.as_ref()) {
                Err(missing) => missing,
                done => return Ok(done),
            };
            let status = there.as_ref().and_then(|there| there.status.0.as_ref().ok());
            let refused = status.and_then(|status| refused::reported(&status.conditions));
            let missing = refused.iter().fold(missing, |missing, refused| format!("{missing}; {refused}"));
            refused::stop(cluster, refused, begun, limit)?;
            Ok(Err(explained(cluster, missing).await))
        };
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
                    "OffloadPeer {peer} is not ready: {message}; it was asked for, and needs no further command once that is mended"
                ),
                limit,
            }),
        }
    }
}

/// Whether the use of the other cluster was asked for before, which may be asked for again whatever became of it.
fn is_used(peer: Option<&OffloadPeerView>) -> bool {
    peer.is_some_and(|peer| peer.spec.0.as_ref().is_ok_and(|spec| spec.outgoing.is_some()))
}

/// Why a cluster is not used that nobody knows, with the IDs that there are.
fn nobody(set: &ClusterSetView, peer: &str) -> Option<String> {
    let others: Vec<_> = members(set).filter(|member| set.cluster_id() != Some(*member)).collect();
    let members = match others.as_slice() {
        [] => "there is no other member".to_owned(),
        others => format!("the others are {}", others.join(", ")),
    };
    (belongs(set, peer) == Belongs::No).then(|| {
        format!(
            "no member of ClusterSet {} has the ID {peer}, {members}: nothing was changed; if {peer} joins later, run it again with --force",
            set.name_any()
        )
    })
}

/// Whether the other cluster is a node here: then it may have twins of which no NamespaceOffloading tells.
async fn is_node(cluster: &Cluster, peer: &str) -> Result<bool, Error> {
    let node = names::virtual_node(peer);
    let nodes = Api::<Node>::all(cluster.client.clone());
    let found = cluster.request(format!("read Node {node}"), nodes.get_metadata_opt(&node)).await?;
    Ok(found.is_some_and(|node| node.labels().contains_key(REMOTE_CLUSTER_ID)))
}

/// What goes when the other cluster is used no more, a sentence for each Namespace.
async fn twins(cluster: &Cluster, peer: &str) -> Result<Vec<String>, Error> {
    let offloadings = Api::<NamespaceOffloadingView>::all(cluster.client.clone());
    let offloadings = cluster.all(&offloadings, "").await?;
    let goes = |offloading: &NamespaceOffloadingView| match &offloading.status.0 {
        Ok(status) => clusters(status).contains(&peer).then(|| goes(status, &[peer])),
        // What cannot be read may have one.
        Err(_) => offloading
            .namespace()
            .map(|name| format!("the twin of {name} there goes, with all that is in it")),
    };
    let lost = lost(read(cluster, peer).await?.as_ref(), &offloadings);
    Ok(offloadings.iter().filter_map(goes).chain(lost).collect())
}

/// What goes there of Namespaces without NamespaceOffloading, as far as the member has said it.
fn lost(peer: Option<&OffloadPeerView>, offloadings: &[NamespaceOffloadingView]) -> Vec<String> {
    let Some(peer) = peer else { return Vec::new() };
    let vanished = Vanished::new(None, [peer]);
    let is_told = |name: &str| offloadings.iter().any(|it| it.namespace().as_deref() == Some(name));
    let lost = vanished.namespaces().filter(|name| !is_told(name));
    lost.filter_map(|name| vanished.goes(name, &[&peer.name_any()])).collect()
}

/// What has to go before the Node does.
fn what_is_left(twins: &[String]) -> String {
    match twins {
        [] => "freeport-member has to delete it, which it does when the host has no twin any more".to_owned(),
        twins => twins.join("; "),
    }
}

/// What the member says of it: that it works, or what is missing.
fn ready(peer: Option<&OffloadPeerView>) -> Result<String, String> {
    let Some(peer) = peer else { return Err("it does not exist any more".into()) };
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twins_are_what_a_node_waits_for() {
        let twin = "Namespace shop-west goes in east, with all that is in it".to_owned();
        assert_eq!(what_is_left(std::slice::from_ref(&twin)), twin);
        assert!(what_is_left(&[]).contains("freeport-member"));
    }

    #[test]
    fn a_cluster_that_nobody_knows_is_not_used() {
        let set = |ready: &str| -> ClusterSetView {
            let status = json!({
                "conditions": [{"type": "Ready", "status": ready}],
                "clusterStatuses": [{"clusterID": "west"}, {"clusterID": "east"}],
            });
            let spec = json!({"clusterID": "west", "leaders": []});
            serde_json::from_value(json!({"metadata": {"name": "demo"}, "spec": spec, "status": status}))
                .unwrap()
        };
        let why = nobody(&set("True"), "eats").unwrap();
        assert!(why.contains("has the ID eats, the others are east:") && why.contains("--force"), "{why}");
        assert_eq!(nobody(&set("True"), "east"), None);
        assert_eq!(nobody(&set("Unknown"), "eats"), None, "it may be one");
        let peer = |spec: serde_json::Value| -> OffloadPeerView {
            serde_json::from_value(json!({"metadata": {"name": "east"}, "spec": spec})).unwrap()
        };
        assert!(is_used(Some(&peer(json!({"outgoing": {}})))));
        assert!(!is_used(Some(&peer(json!({"incoming": {}})))) && !is_used(None));
    }

    #[test]
    fn twins_of_vanished_offloadings_go_too() {
        let peer = |lost: serde_json::Value| -> OffloadPeerView {
            let status = json!({"lostOffloadings": lost});
            serde_json::from_value(json!({"metadata": {"name": "east"}, "spec": {}, "status": status}))
                .unwrap()
        };
        let told = json!({"metadata": {"name": "offloading", "namespace": "shop"}, "spec": {}});
        let told: Vec<NamespaceOffloadingView> = serde_json::from_value(json!([told])).unwrap();
        let said = lost(Some(&peer(json!({"shop": "shop-west", "web": "web"}))), &told);
        assert!(
            said.len() == 1 && said[0].starts_with("twin web in east goes"),
            "of shop it is told: {said:?}"
        );
        assert!(lost(None, &told).is_empty());
    }

    #[test]
    fn an_old_word_of_the_member_does_not_count() {
        let peer = |status: &str, seen: i64| -> OffloadPeerView {
            let said = json!({
                "type": "Ready", "status": status, "reason": "NotOffered", "message": "m", "observedGeneration": seen,
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            });
            let metadata = json!({"name": "east", "generation": 2});
            serde_json::from_value(
                json!({"metadata": metadata, "spec": {}, "status": {"conditions": [said]}}),
            )
            .unwrap()
        };
        assert_eq!(ready(Some(&peer("True", 2))), Ok("m".into()));
        assert!(ready(Some(&peer("True", 1))).unwrap_err().contains("not seen"));
        assert_eq!(ready(Some(&peer("False", 2))), Err("NotOffered: m".into()));
    }
}
