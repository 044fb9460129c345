//! Namespaces that have twins and no NamespaceOffloading any more, as the member says in its OffloadPeers, and what is to be done about them.

use std::collections::{BTreeMap, BTreeSet};

use api::{
    label::TRUE,
    offload::{label::SCHEDULING_ENABLED, namespace::NAME, twin::default_name, view::OffloadPeerView},
    view::Named,
};
use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, ResourceExt};

use super::own_set;
use crate::{
    Error,
    cluster::{Cluster, list},
    view::ClusterSetView,
};

/// Twins of Namespaces whose NamespaceOffloading vanished.
#[derive(Clone, Debug, Default)]
pub(crate) struct Vanished {
    /// ID of this cluster, as far as its ClusterSet says it.
    us: Option<String>,
    /// By Namespace: the names of its twins, and the clusters in which they are called so.
    twins: BTreeMap<String, BTreeMap<String, Vec<String>>>,
    /// Those of the Namespaces that are not there.
    missing: BTreeSet<String>,
}

impl Vanished {
    /// Those that these OffloadPeers name. `us`: ID of this cluster.
    pub(crate) fn new<'a>(us: Option<&str>, peers: impl IntoIterator<Item = &'a OffloadPeerView>) -> Self {
        let mut twins: BTreeMap<String, BTreeMap<String, Vec<String>>> = BTreeMap::new();
        for peer in peers {
            let lost = peer.status.0.as_ref().ok().into_iter().flat_map(|status| &status.lost_offloadings);
            for (namespace, twin) in lost {
                let called = twins.entry(namespace.clone()).or_default();
                called.entry(twin.clone()).or_default().push(peer.name_any());
            }
        }
        Self { us: us.map(str::to_owned), twins, missing: BTreeSet::new() }
    }

    /// Reads them.
    pub(super) async fn read(cluster: &Cluster) -> Result<Self, Error> {
        let set = own_set(cluster).await?;
        let peers = cluster.all(&Api::<OffloadPeerView>::all(cluster.client.clone()), "").await?;
        let mut vanished = Self::new(set.as_ref().and_then(ClusterSetView::cluster_id), &peers);
        if vanished.is_empty() {
            return Ok(vanished);
        }
        let there = cluster.all(&Api::<Named<Namespace>>::all(cluster.client.clone()), "").await?;
        vanished.find_missing(there.iter().map(ResourceExt::name_any));
        Ok(vanished)
    }

    /// Notes which of the Namespaces are not among these, which are all that are there.
    pub(crate) fn find_missing(&mut self, there: impl IntoIterator<Item = String>) {
        self.missing = self.twins.keys().cloned().collect();
        for namespace in there {
            self.missing.remove(&namespace);
        }
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.twins.is_empty()
    }

    /// The Namespaces.
    pub(crate) fn namespaces(&self) -> impl Iterator<Item = &str> {
        self.twins.keys().map(String::as_str)
    }

    /// Each twin: its Namespace, its name, and the cluster that has it.
    pub(super) fn each(&self) -> impl Iterator<Item = (&str, &str, &str)> {
        let named = self.twins.iter().flat_map(|(of, twins)| twins.iter().map(move |twin| (of, twin)));
        named.flat_map(|(of, (twin, hosts))| {
            hosts.iter().map(move |host| (of.as_str(), twin.as_str(), host.as_str()))
        })
    }

    /// ID of this cluster, as far as its ClusterSet says it.
    pub(super) fn us(&self) -> Option<&str> {
        self.us.as_deref()
    }

    /// Names of the twins of a Namespace.
    pub(super) fn names(&self, namespace: &str) -> impl Iterator<Item = &str> {
        self.twins.get(namespace).into_iter().flat_map(BTreeMap::keys).map(String::as_str)
    }

    /// The clusters with a twin of a Namespace.
    pub(super) fn clusters(&self, namespace: &str) -> Vec<&str> {
        let all = self.twins.get(namespace).into_iter().flat_map(BTreeMap::values).flatten();
        all.map(String::as_str).collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// The twins of a Namespace, in words; none if none is known.
    pub(super) fn in_words(&self, namespace: &str) -> Option<String> {
        self.words(namespace, |_| true)
    }

    /// What goes of a Namespace where its twins in these clusters go, in words; none if it has none there.
    pub(super) fn goes(&self, namespace: &str, clusters: &[&str]) -> Option<String> {
        let twins = self.words(namespace, |id| clusters.contains(&id))?;
        Some(format!("{twins} goes, with all that is in it: NamespaceOffloading {namespace}/{NAME} vanished"))
    }

    /// The twins of a Namespace in those clusters that `is_asked` takes.
    fn words(&self, namespace: &str, is_asked: impl Fn(&str) -> bool) -> Option<String> {
        let one = |(twin, clusters): (&String, &Vec<String>)| {
            let clusters: Vec<_> = clusters.iter().filter(|id| is_asked(id)).collect();
            (!clusters.is_empty()).then(|| format!("{twin} in {}", list(&clusters)))
        };
        let called: Vec<_> = self.twins.get(namespace)?.iter().filter_map(one).collect();
        (!called.is_empty()).then(|| format!("twin {}", called.join(", and ")))
    }

    /// The command that offloads a Namespace again with the twins that it has.
    pub(super) fn again(&self, namespace: &str) -> String {
        let command = format!("freeport offload namespace {namespace}");
        let is_default =
            |twin: &str| self.us().is_some_and(|us| default_name(namespace, us).as_deref() == Ok(twin));
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
        let is_missing = self.missing.contains(namespace);
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
                let lacks = if is_missing { "does not exist any more, and has no" } else { "has no" };
                format!("{lacks} NamespaceOffloading any more, which vanished; {twins} may run on")
            }
        };
        let first =
            if is_missing { format!("kubectl create namespace {namespace}, then ") } else { String::new() };
        let name = if twins.is_some() { "" } else { " and --namespace-mapping-strategy" };
        let narrow = match &*self.clusters(namespace) {
            [] => String::new(),
            clusters => format!("; a selector that does not match {} takes the twin there", list(clusters)),
        };
        let next = format!(
            "to delete its twins, {first}freeport unoffload namespace {namespace} --yes; to keep them, {first}{}, with the \
             --pod-offloading-strategy and --selector{name} that it had (without them Pods may run here and in each cluster that is \
             used{narrow})",
            self.again(namespace)
        );
        (what, next)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::json;

    use super::*;

    /// Of `west`: `web`, which has twin `web` in `east` and `north`; `shop` with that of DefaultName; `bar` with another one.
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
        let nameless = Vanished { us: None, ..vanished.clone() };
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
        assert!(next.contains("that does not match east, north takes the twin there"), "{next}");
        let (what, next) = vanished.trouble("shop", false);
        assert!(what.contains("twin shop-west in east may run on") && !what.contains("label"), "{what}");
        assert!(
            next.starts_with("to delete its twins, freeport unoffload namespace shop --yes; to keep"),
            "{next}"
        );
        let (what, next) = vanished.trouble("other", true);
        assert!(what.ends_with("twins that it had may be left"), "{what}");
        assert!(next.contains("--selector and --namespace-mapping-strategy that it had"), "{next}");
        assert!(!next.contains("takes the twin"), "{next}");
    }
    #[test]
    fn where_the_namespace_is_gone_too_it_is_made_first() {
        let mut vanished = example();
        vanished.find_missing(["shop".to_owned()]);
        let (what, next) = vanished.trouble("web", false);
        assert!(
            what.starts_with("does not exist any more") && what.contains("twin web in east, north"),
            "{what}"
        );
        assert!(
            next.contains(
                "to keep them, kubectl create namespace web, then freeport offload namespace web --"
            ),
            "{next}"
        );
        let (what, next) = vanished.trouble("shop", false);
        assert!(
            what.starts_with("has no") && next.contains("to keep them, freeport offload namespace shop"),
            "{what} {next}"
        );
    }

    #[test]
    fn what_goes_with_a_cluster_is_named() {
        let goes = |namespace: &str, clusters: &[&str]| example().goes(namespace, clusters);
        let said = goes("web", &["north", "south"]).unwrap();
        assert!(said.starts_with("twin web in north goes, with all that is in it"), "{said}");
        assert_eq!(goes("shop", &["north"]), None);
        assert_eq!(goes("other", &["north"]), None);
    }
}
