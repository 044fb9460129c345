//! Judges whole clusters and the set that they are: what `freeport check` shows.
//!
//! | module | holds |
//! |---|---|
//! | [`cluster`] | what is known of a cluster |
//! | [`report`] | the lines of the report |
//! | `scene` | all clusters, and who leads which set |
//! | `api` | the API server, its version and its clock |
//! | `crds` | the CustomResourceDefinitions |
//! | `daemons` | whether the daemons run |
//! | `link` | membership, and the connection with the leader |
//! | `services` | exports and imports |
//! | `between` | what clusters must not have in common: IDs, addresses; and versions that differ too much |
//! | `causes` | one cause gives one line, and what follows from it is skipped |
//!
//! What is broken is FAILED, what may be meant or may become a problem is WARN.

mod api;
mod between;
mod causes;
pub mod cluster;
pub mod crds;
mod daemons;
mod link;
pub mod report;
mod scene;
mod services;

use jiff::Timestamp;

use self::{
    causes::{Causes, Item},
    cluster::Cluster,
    report::{Group, Place, Report},
    scene::Scene,
};
use crate::dns::Names;

/// Judges all clusters; `now` is by the clock of whoever asks.
pub fn check(clusters: &[Cluster], now: Timestamp) -> Report {
    let scene = Scene::of(clusters, now);
    let mut causes = Causes::default();
    for cluster in clusters {
        let place = Place { title: cluster.title().to_owned(), context: cluster.context.clone() };
        for group in Group::OF_CLUSTER {
            causes.look(&place, group, || of_cluster(&scene, cluster, group));
        }
    }
    causes.look_between(between::look(&scene));
    let seen = clusters.iter().filter(|cluster| cluster.is_seen()).count();
    Report { lines: causes.lines(), seen }
}

fn of_cluster(scene: &Scene<'_>, cluster: &Cluster, group: Group) -> Vec<Item> {
    match group {
        Group::Api => api::look(scene, cluster),
        Group::Crds => crds::look(scene, cluster),
        Group::Daemons => daemons::look(scene, cluster),
        Group::Link => link::look(scene, cluster),
        Group::Exports => services::exports(scene, cluster),
        Group::Imports => services::imports(scene, cluster),
        Group::Dns => dns(scene, cluster),
        Group::Set => vec![],
    }
}

/// CoreDNS of a cluster that imports.
fn dns(scene: &Scene<'_>, cluster: &Cluster) -> Vec<Item> {
    if cluster.member.set().is_none() {
        return vec![];
    }
    vec![match cluster.dns.names() {
        Names::Given => Item::Well("CoreDNS gives imports names".into()),
        Names::Missing(code, what) => Item::found(scene.broken(code, cluster, what)),
        Names::Unknown(why) => Item::Unknown(why),
    }]
}

#[cfg(test)]
mod tests;
