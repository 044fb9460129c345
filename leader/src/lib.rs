//! freeport-leader: owns Common Areas and merges the exports of their members into imports. It never dials a member.
//!
//! | part | watches | writes |
//! |---|---|---|
//! | [`serve_areas`] | Namespaces that are Common Areas | nothing; starts and stops an [`area`] for each |
//! | [`schemas`] | CRDs of the records | nothing; what it knows is said on the Lease of each area |
//! | [`area`] | Leases, announces and ServiceAccounts of one Common Area | Lease `freeport-leader` |
//! | [`bind`] | requests of consumers, what is offered, cluster namespaces and what is in them | cluster namespaces with credentials, BoundSchemas, APIServiceExports, Namespaces for those of consumers, rights in them |
//! | [`bounds`] | | nothing; what is noted on ServiceAccounts is said on the Lease of each area |
//! | [`cluster_set`] | ClusterSets of the Common Area | `status` of the ClusterSets |
//! | [`antrea::leaving`] | announces of members that run Antrea's controllers | a finalizer on them; deletes the records of a member that leaves |
//! | [`fairness`] | how many members there are, now and then | their shares of the API server |
//! | [`feature`] | what the area asks of a feature | |
//! | [`service::report`] | all records | `status` of records that are refused |
//! | [`service::merge`] | records of kind `Service`, ResourceImports, Leases | ResourceImports; deletes withdrawn records |
//! | [`eviction`] | names of records of members that are silent for too long | withdraws, empties and deletes these records |
//! | [`silences`] | | nothing; what it counts is said on the Lease of each area |
//! | [`restored`] | the version of this cluster, now and then | nothing; has what is watched of it listed again |
//! | [`reports`] | names of ClusterReports, now and then | nothing; deletes those of clusters that left or are evicted |
//! | [`offload`] | names of NamespaceMaps, OffloadOffers and ShadowPods, now and then | nothing; deletes what clusters left behind |

mod absent;
mod account;
mod antrea;
mod area;
mod bind;
mod bounds;
mod cluster_set;
mod eviction;
mod fairness;
mod feature;
mod limits;
mod offload;
mod reports;
mod restored;
mod schemas;
mod service;
mod silences;

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use api::{label, quota::Quota, view::lean};
use k8s_openapi::api::core::v1::Namespace;
use kit::{
    args::DaemonArgs,
    boot::Env,
    objects::{Change, Objects},
    watch::{Source, Watches},
};
use kube::{Api, Resource, ResourceExt, api::ObjectMeta, runtime::watcher};
use serde::Deserialize;
use tokio::{sync::mpsc, task::JoinSet};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

pub use self::{bind::BindArgs, limits::Limits};
use self::{
    eviction::Evictions,
    feature::{Access, Feature, Unwatched},
    offload::Offloading,
    reports::LeftReports,
    service::Services,
};

/// freeport-leader merges the exports of a ClusterSet's members into imports. It serves every Namespace of its cluster
/// that is labelled multicluster.freeport.dev/common-area=true.
#[derive(clap::Parser, Clone, Debug)]
#[command(name = "freeport-leader", version)]
pub struct Args {
    /// Flags both daemons share.
    #[command(flatten)]
    pub daemon: DaemonArgs,
    /// What a member may have.
    #[command(flatten)]
    pub limits: Limits,
    /// Seconds for which a member may renew its Lease no more until its exports are withdrawn in its place. Time in which this
    /// daemon does not run, or hears no other member, does not count.
    #[arg(long, env = "FREEPORT_EVICT_AFTER", value_name = "SECONDS", default_value_t = 24 * 3600, value_parser = clap::value_parser!(u32).range(10..))]
    pub evict_after: u32,
    /// API binding.
    #[command(flatten)]
    pub bind: BindArgs,
}

#[derive(Resource, Clone, Debug, Deserialize)]
#[resource(inherit = Namespace)]
struct CommonArea {
    #[serde(deserialize_with = "lean")]
    metadata: ObjectMeta,
}

/// The features of the leader: a line for each.
fn features(access: &Access) -> Vec<Box<dyn Feature>> {
    vec![
        Box::new(Services::new(access.clone())),
        Box::new(Unwatched::new(Offloading::new(access.clone()))),
        Box::new(Unwatched::new(Evictions::new(access.clone()))),
        Box::new(Unwatched::new(LeftReports::new(access.clone()))),
    ]
}

/// Serves every Common Area, and consumers of APIs, until the daemon shall stop.
pub async fn run(env: Env, args: Args) {
    let evict_after = Duration::from_secs(args.evict_after.into());
    let areas = serve_areas(env.clone(), args.limits.into(), evict_after);
    tokio::join!(areas, fairness::run(&env), Box::pin(bind::run(env.clone(), args.bind)));
}

/// Serves every Common Area. Each has its own tasks, so none can stall another.
async fn serve_areas(env: Env, quota: Quota, evict_after: Duration) {
    let (sender, mut changes) = mpsc::unbounded_channel();
    let (watches, mut watching) = (Watches::default(), JoinSet::new());
    watching.spawn(watches.watch(
        Api::<CommonArea>::all(env.client.clone()),
        watcher::Config::default().labels(&format!("{}={}", label::COMMON_AREA, label::TRUE)),
        Source { cluster: "local", kind: "Namespace" },
        env.metrics.clone(),
        move |change| drop(sender.send(change)),
    ));
    let schemas = schemas::watch(&env, &watches, &mut watching);
    let again = env.clone();
    watching.spawn(async move {
        loop {
            restored::restored(&again).await;
            tracing::warn!("this cluster was restored from a backup: listing Common Areas and CRDs again");
            watches.list_again();
        }
    });
    let (mut areas, mut serving) = (Areas::default(), JoinSet::new());
    loop {
        tokio::select! {
            // First, so that an area that ends because of it does not begin again.
            biased;
            () = env.stop.cancelled() => break,
            Some(change) = changes.recv() => {
                env.ready.set(Ok(()));
                areas.change(change);
            }
            Some(ended) = serving.join_next() => {
                ended.map_or_else(kit::drive::resume, |name: String| areas.ended(&name));
            }
            Some(Err(error)) = watching.join_next() => kit::drive::resume(error),
        }
        for (name, stop) in areas.begin(&env.stop) {
            let span = tracing::error_span!("area", common_area = name);
            let env = Env { metrics: env.metrics.in_area(&name), ..env.clone() };
            let of = area::Of { quota, evict_after, table: features, schemas: schemas.clone() };
            serving.spawn(area::run(env, name, of, stop).instrument(span));
        }
    }
    // Once their running writes are done.
    while let Some(ended) = serving.join_next().await {
        ended.map_or_else(kit::drive::resume, drop);
    }
}

/// Which Common Areas exist, and which are served.
#[derive(Default)]
struct Areas {
    existing: Objects<CommonArea>,
    served: HashMap<String, CancellationToken>,
}

impl Areas {
    fn change(&mut self, change: Change<CommonArea>) {
        self.existing.change(change);
        let live: HashSet<String> = self.live().collect();
        self.served.iter().filter(|(name, _)| !live.contains(*name)).for_each(|(_, stop)| stop.cancel());
    }

    fn live(&self) -> impl Iterator<Item = String> {
        self.existing
            .iter()
            .filter(|area| area.metadata.deletion_timestamp.is_none())
            .map(ResourceExt::name_any)
    }

    /// Areas to begin serving now. One that was deleted and created again has to end first: it is never served twice.
    fn begin(&mut self, all: &CancellationToken) -> Vec<(String, CancellationToken)> {
        let new = self.live().filter(|name| !self.served.contains_key(name));
        let new: Vec<_> = new.map(|name| (name, all.child_token())).collect();
        self.served.extend(new.iter().cloned());
        new
    }

    fn ended(&mut self, name: &str) {
        self.served.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn area(name: &str) -> CommonArea {
        serde_json::from_value(json!({"metadata": {"name": name}})).unwrap()
    }

    #[test]
    fn one_that_comes_back_begins_when_it_has_ended() {
        let (mut areas, all) = (Areas::default(), CancellationToken::new());
        areas.change(Change::Reset(vec![area("a"), area("b")]));
        let begun = areas.begin(&all);
        assert_eq!(begun.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
        areas.change(Change::Remove(area("a")));
        assert!(begun[0].1.is_cancelled() && !begun[1].1.is_cancelled());
        areas.change(Change::Apply(area("a")));
        assert!(areas.begin(&all).is_empty(), "it still ends");
        areas.ended("a");
        assert_eq!(areas.begin(&all).len(), 1);
        let mut going = area("b");
        going.metadata.deletion_timestamp = serde_json::from_value(json!("2026-11-01T12:00:00Z")).unwrap();
        areas.change(Change::Apply(going));
        assert!(begun[1].1.is_cancelled(), "a Namespace that is being deleted is none");
    }
}
