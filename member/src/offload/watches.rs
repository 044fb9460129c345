//! Everything that offloading watches, in this cluster and in the Common Area.

use std::{fmt::Debug, time::Instant};

use api::offload::{
    label, twin,
    view::{NamespaceOffloadingView, OffloadPeerView},
};
use kit::{
    boot::Env,
    objects::Change,
    watch::{Source, Watches},
};
use kube::{Api, Resource, runtime::watcher};
use serde::de::DeserializeOwned;
use tokio::task::JoinSet;

use super::{
    knowledge::Knowledge,
    room::gather::Gathered,
    view::{
        HostedPod, Namespace, OwnMap, OwnOffer, PeerMap, PeerOffer, PeerPod, TwinAccount, TwinBinding,
        VirtualNode,
    },
};
use crate::feature::Access;

/// Watches the OffloadPeers: with them alone it can be said what is missing.
pub(super) fn watch_peers(env: &Env, known: &Knowledge, watches: &Watches, tasks: &mut JoinSet<()>) {
    let peers = Api::<OffloadPeerView>::all(env.client.clone());
    let sink = sink(known, |known, change| known.change_peers(change));
    watch(env, watches, (peers, watcher::Config::default()), local("OffloadPeer"), sink, tasks);
}

/// Watches Namespaces, and what users say of them.
pub(super) fn watch_local(env: &Env, known: &Knowledge, watches: &Watches, tasks: &mut JoinSet<()>) {
    let client = || env.client.clone();
    let all = watcher::Config::default;
    let namespaces = Api::<Namespace>::all(client());
    let sink_of = sink(known, |known, change| known.change_namespaces(change));
    watch(env, watches, (namespaces, all()), local("Namespace"), sink_of, tasks);
    let offloadings = Api::<NamespaceOffloadingView>::all(client());
    let sink_of = sink(known, |known, change| known.change_offloadings(change));
    watch(env, watches, (offloadings, all()), local("NamespaceOffloading"), sink_of, tasks);
}

/// Watches the Pods that were made for other clusters, and what it takes to make them.
pub(super) fn watch_hosted(env: &Env, known: &Knowledge, watches: &Watches, tasks: &mut JoinSet<()>) {
    let pods = Api::<HostedPod>::all(env.client.clone());
    let hosted = watcher::Config::default().labels(&format!("{}={}", label::MANAGED_BY, label::SHADOW_POD));
    let sink_of = sink(known, |known, change| known.shadows.change(change));
    watch(env, watches, (pods, hosted), local("Pod"), sink_of, tasks);
    let bindings = Api::<TwinBinding>::all(env.client.clone());
    let ours = watcher::Config::default().fields(&format!("metadata.name={}", twin::BINDING));
    let sink_of = sink(known, |known, change| known.change_bindings(change));
    watch(env, watches, (bindings, ours), local("RoleBinding"), sink_of, tasks);
    let accounts = Api::<TwinAccount>::all(env.client.clone());
    let named = watcher::Config::default().fields(&format!("metadata.name={}", twin::ACCOUNT));
    let sink_of = sink(known, |known, change| known.change_accounts(change));
    watch(env, watches, (accounts, named), local("ServiceAccount"), sink_of, tasks);
}

/// Watches the virtual nodes.
pub(super) fn watch_nodes(env: &Env, known: &Knowledge, watches: &Watches, tasks: &mut JoinSet<()>) {
    let nodes = Api::<VirtualNode>::all(env.client.clone());
    let virtual_ones = watcher::Config::default().labels(&format!("{}={}", label::TYPE, label::VIRTUAL_NODE));
    let sink = sink(known, |known, change| known.change(change));
    watch(env, watches, (nodes, virtual_ones), local("Node"), sink, tasks);
}

/// Watches the Common Area: what is ours there, and what is for us. Which Pods have room here the `accepted` say.
pub(super) fn watch_leader(
    access: &Access,
    known: &Knowledge,
    (watches, accepted): (&Watches, &Watches),
    tasks: &mut JoinSet<()>,
) {
    let Access { env, us, leader, .. } = access;
    let is_us = |field: &str| watcher::Config::default().fields(&format!("{field}={}", us.cluster));
    let area = us.common_area.as_str();
    let own = Api::<OwnMap>::namespaced(leader.clone(), area);
    let sink_of = sink(known, |known, change| known.change_own_maps(change));
    watch(env, watches, (own, is_us("spec.origin")), common_area("own NamespaceMap"), sink_of, tasks);
    let peers = Api::<PeerMap>::namespaced(leader.clone(), area);
    let sink_of = sink(known, |known, change| known.change_peer_maps(change, Instant::now()));
    watch(env, watches, (peers, is_us("spec.destination")), common_area("NamespaceMap"), sink_of, tasks);
    let own = Api::<OwnOffer>::namespaced(leader.clone(), area);
    let sink_of = sink(known, |known, change| known.clusters.change(change));
    watch(env, watches, (own, is_us("spec.host")), common_area("own OffloadOffer"), sink_of, tasks);
    let peers = Api::<PeerOffer>::namespaced(leader.clone(), area);
    let sink_of = sink(known, |known, change| known.clusters.change(change));
    watch(env, watches, (peers, is_us("spec.home")), common_area("OffloadOffer"), sink_of, tasks);
    let pods = (Api::<PeerPod>::namespaced(leader.clone(), area), is_us("spec.destination"));
    let sink_of = {
        let (known, watches) = (known.clone(), watches.clone());
        move |change| {
            if known.change_records(change) {
                watches.list_again();
            }
        }
    };
    let (gathered, metrics) = (Gathered::new(known.room.clone()), env.metrics.clone());
    let watching = watches.watch_gathering(pods, common_area("ShadowPod"), metrics, gathered, sink_of);
    let accepted = accepted.clone();
    tasks.spawn(async move {
        // Before that no home is known to be accepted.
        accepted.listed().await;
        watching.await;
    });
}

fn sink<P>(known: &Knowledge, take_in: fn(&Knowledge, Change<P>)) -> impl FnMut(Change<P>) + Send + use<P> {
    let known = known.clone();
    move |change| take_in(&known, change)
}

fn watch<P>(
    env: &Env,
    watches: &Watches,
    (api, config): (Api<P>, watcher::Config),
    source: Source,
    sink: impl FnMut(Change<P>) + Send + 'static,
    tasks: &mut JoinSet<()>,
) where
    P: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
{
    tasks.spawn(watches.watch(api, config, source, env.metrics.clone(), sink));
}

fn local(kind: &'static str) -> Source {
    Source { cluster: "local", kind }
}

fn common_area(kind: &'static str) -> Source {
    Source { cluster: "leader", kind }
}
