//! freeport-leader: owns Common Areas and merges the exports of their members into imports. It never dials a member.
//!
//! | part | watches | writes |
//! |---|---|---|
//! | [`run`] | Namespaces that are Common Areas | nothing; starts and stops an [`area`] for each |
//! | [`area`] | everything in one Common Area | Lease `freeport-leader` |
//! | [`cluster_set`] | ClusterSets and Leases of the Common Area | `status` of the ClusterSets |
//! | [`service::merge`] | records of kind `Service`, ResourceImports, Leases | ResourceImports; deletes withdrawn records |
//! | [`service::judge`] | all records | `status` of records that cannot be judged |

pub mod area;
pub mod cluster_set;
pub mod service;

use std::collections::HashMap;

use api::label;
use k8s_openapi::api::core::v1::Namespace;
use kit::{
    args::Common,
    boot::Env,
    index::Change,
    view::lean,
    watch::{Source, Watches},
};
use kube::{Api, Resource, ResourceExt, api::ObjectMeta, runtime::watcher};
use serde::Deserialize;
use tokio::{sync::mpsc, task::JoinSet};
use tokio_util::sync::CancellationToken;

/// freeport-leader merges the exports of a ClusterSet's members into imports. It serves every Namespace of its cluster
/// that is labelled multicluster.freeport.dev/common-area=true.
#[derive(clap::Parser, Clone, Debug)]
#[command(name = "freeport-leader", version)]
pub struct Args {
    /// Flags both daemons share.
    #[command(flatten)]
    pub common: Common,
}

#[derive(Resource, Clone, Debug, Deserialize)]
#[resource(inherit = Namespace)]
struct CommonArea {
    #[serde(deserialize_with = "lean")]
    metadata: ObjectMeta,
}

/// Serves every Common Area until the daemon shall stop. Each has its own tasks, so none can stall another.
pub async fn run(env: Env) {
    let (told, mut changes) = mpsc::unbounded_channel();
    let (watches, mut tasks) = (Watches::default(), JoinSet::new());
    tasks.spawn(watches.watch(
        Api::<CommonArea>::all(env.client.clone()),
        watcher::Config::default().labels(&format!("{}={}", label::COMMON_AREA, label::TRUE)),
        Source { cluster: "local", kind: "Namespace" },
        env.metrics.clone(),
        move |change| drop(told.send(change)),
    ));
    let mut areas: HashMap<String, CancellationToken> = HashMap::new();
    loop {
        tokio::select! {
            () = env.stop.cancelled() => break,
            Some(change) = changes.recv() => {
                env.ready.set(true);
                let now = names(&areas, change);
                areas.retain(|name, stop| now.contains(name) || { stop.cancel(); false });
                for name in now {
                    areas.entry(name.clone()).or_insert_with(|| {
                        let stop = env.stop.child_token();
                        tasks.spawn(area::run(env.clone(), name, stop.clone()));
                        stop
                    });
                }
            }
            Some(Err(error)) = tasks.join_next() => kit::drive::resume(error),
        }
    }
    // The watch never ends by itself; the areas do, once their running writes are done.
    while tasks.len() > 1 {
        if let Some(Err(error)) = tasks.join_next().await {
            kit::drive::resume(error);
        }
    }
}

/// The Common Areas there are, given those there were.
fn names(had: &HashMap<String, CancellationToken>, change: Change<CommonArea>) -> Vec<String> {
    let had = had.keys().cloned();
    let live = |area: &CommonArea| area.metadata.deletion_timestamp.is_none();
    match change {
        Change::Reset(areas) => areas.iter().filter(|area| live(area)).map(ResourceExt::name_any).collect(),
        Change::Apply(area) if live(&area) => had.chain([area.name_any()]).collect(),
        Change::Apply(area) | Change::Remove(area) => had.filter(|name| *name != area.name_any()).collect(),
    }
}
