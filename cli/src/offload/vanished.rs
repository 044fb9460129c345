//! Namespaces that have twins and no NamespaceOffloading any more, as the member says in its OffloadPeers, and what is to be done about them.

use std::collections::BTreeMap;

use api::{
    label::TRUE,
    offload::{label::SCHEDULING_ENABLED, twin::default_name, view::OffloadPeerView},
};
use kube::{Api, ResourceExt};

use crate::{
    Error,
    cluster::{Cluster, known, list},
    objects::SYSTEM,
    view::ClusterSetView,
};

/// Twins of Namespaces whose NamespaceOffloading vanished.
#[derive(Clone, Debug, Default)]
pub(crate) struct Vanished {
    /// ID of the home, as far as its ClusterSet says it.
    home: Option<String>,
    /// By Namespace: the names of its twins, and the clusters in which they are called so.
    twins: BTreeMap<String, BTreeMap<String, Vec<String>>>,
}

impl Vanished {
    /// Those that these OffloadPeers name.
    pub(crate) fn new<'a>(home: Option<&str>, peers: impl IntoIterator<Item = &'a OffloadPeerView>) -> Self {
        let mut twins: BTreeMap<String, BTreeMap<String, Vec<String>>> = BTreeMap::new();
        for peer in peers {
            let lost = peer.status.0.as_ref().ok().into_iter().flat_map(|status| &status.lost_offloadings);
            for (namespace, twin) in lost {
                let called = twins.entry(namespace.clone()).or_default();
                called.entry(twin.clone()).or_default().push(peer.name_any());
            }
        }
        Self { home: home.map(str::to_owned), twins }
    }

    /// Reads them.
    pub(super) async fn read(cluster: &Cluster) -> Result<Self, Error> {
        let home = home(cluster).await?;
        let peers = cluster.all(&Api::<OffloadPeerView>::all(cluster.client.clone()), "").await?;
        Ok(Self::new(home.as_deref(), &peers))
    }

    /// The Namespaces.
    pub(crate) fn namespaces(&self) -> impl Iterator<Item = &str> {
        self.twins.keys().map(String::as_str)
    }

    /// ID of the home, as far as its ClusterSet says it.
    pub(super) fn home(&self) -> Option<&str> {
        self.home.as_deref()
    }

    /// Names of the twins of a Namespace.
    pub(super) fn names(&self, namespace: &str) -> impl Iterator<Item = &str> {
        self.twins.get(namespace).into_iter().flat_map(BTreeMap::keys).map(String::as_str)
    }

    /// The twins of a Namespace, in words; none if none is known.
    pub(super) fn in_words(&self, namespace: &str) -> Option<String> {
        let called = self.twins.get(namespace)?;
        let one = |(twin, clusters): (&String, &Vec<String>)| format!("{twin} in {}", list(clusters));
        let called: Vec<_> = called.iter().map(one).collect();
        Some(format!("twin {}", called.join(", and ")))
    }

    /// The command that offloads a Namespace again with the twins that it has.
    pub(super) fn again(&self, namespace: &str) -> String {
        let command = format!("freeport offload namespace {namespace}");
        let is_default =
            |twin: &str| self.home().is_some_and(|home| default_name(namespace, home).as_deref() == Ok(twin));
        match self.names(namespace).next() {
            Some(twin) if twin == namespace => {
                format!("{command} --namespace-mapping-strategy EnforceSameName")
            }
            Some(twin) if !is_default(twin) => {
                format!("{command} --namespace-mapping-strategy SelectedName --remote-namespace-name {twin}")
            }
            _ => command,
        }
    }

    /// What is wrong with a Namespace without NamespaceOffloading, and what to do. `is_placed`: the webhook is asked of its Pods.
    pub(crate) fn trouble(&self, namespace: &str, is_placed: bool) -> (String, String) {
        let (twins, placed) = (self.in_words(namespace), format!("label {SCHEDULING_ENABLED}={TRUE}"));
        let what = match (is_placed, &twins) {
            (true, Some(twins)) => {
                format!(
                    "has {placed} and no NamespaceOffloading, which vanished: no new Pod is made in it; it has {twins}"
                )
            }
            (true, None) => format!(
                "has {placed} and no NamespaceOffloading, which vanished: no new Pod is made in it, and twins that it had may be left"
            ),
            (false, twins) => {
                let twins = twins.as_deref().unwrap_or("twins that it had");
                format!("has no NamespaceOffloading any more, which vanished; {twins} may run on")
            }
        };
        let name = if twins.is_some() { "" } else { " and --namespace-mapping-strategy" };
        let next = format!(
            "{}, with the --pod-offloading-strategy and --selector{name} that it had, which are not known any more (without them Pods may run \
             here and in each cluster that is used); to offload it no more, freeport unoffload namespace {namespace} --yes after that",
            self.again(namespace)
        );
        (what, next)
    }
}

/// ID of a cluster, as far as its ClusterSet says it.
async fn home(cluster: &Cluster) -> Result<Option<String>, Error> {
    let sets: Api<ClusterSetView> = Api::namespaced(cluster.client.clone(), SYSTEM);
    let sets = cluster.request("list ClusterSets", known(sets.list(&<_>::default()))).await?;
    let id = |set: ClusterSetView| set.cluster_id().map(str::to_owned);
    Ok(sets.into_iter().flatten().find_map(id))
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::json;

    use super::*;

    /// Of home `west`: `web`, which has twin `web` in `east` and `north`; `shop` with that of DefaultName; `bar` with another one.
    pub(in crate::offload) fn example() -> Vanished {
        let peer = |name: &str, lost: serde_json::Value| -> OffloadPeerView {
            let peer = json!({"metadata": {"name": name}, "spec": {}, "status": {"lostOffloadings": lost}});
            serde_json::from_value(peer).unwrap()
        };
        let east = peer("east", json!({"web": "web", "shop": "shop-west", "bar": "foo"}));
        Vanished::new(Some("west"), &[east, peer("north", json!({"web": "web"}))])
    }

    #[test]
    fn it_is_offloaded_again_by_the_name_of_its_twins() {
        let vanished = example();
        let flags = |namespace| {
            let command = format!("freeport offload namespace {namespace}");
            vanished.again(namespace).strip_prefix(&command).unwrap().to_owned()
        };
        assert_eq!(flags("web"), " --namespace-mapping-strategy EnforceSameName");
        assert_eq!(flags("shop"), "");
        assert_eq!(flags("bar"), " --namespace-mapping-strategy SelectedName --remote-namespace-name foo");
        assert_eq!(flags("other"), "", "nothing is known of it");
        let nameless = Vanished { home: None, ..vanished.clone() };
        assert!(nameless.again("shop").ends_with("--remote-namespace-name shop-west"), "that is right, too");
        assert_eq!(vanished.in_words("web").unwrap(), "twin web in east, north");
        assert_eq!(vanished.in_words("other"), None);
    }

    #[test]
    fn what_is_left_is_said_with_what_nobody_knows() {
        let vanished = example();
        let (what, next) = vanished.trouble("web", true);
        assert!(what.contains("no new Pod is made in it; it has twin web in east, north"), "{what}");
        assert!(
            next.contains("EnforceSameName, with the --pod-offloading-strategy and --selector that"),
            "{next}"
        );
        let (what, next) = vanished.trouble("shop", false);
        assert!(what.contains("twin shop-west in east may run on") && !what.contains("label"), "{what}");
        assert!(next.ends_with("freeport unoffload namespace shop --yes after that"), "{next}");
        let (what, next) = vanished.trouble("other", true);
        assert!(what.ends_with("twins that it had may be left"), "{what}");
        assert!(next.contains("--selector and --namespace-mapping-strategy that it had"), "{next}");
    }
}
