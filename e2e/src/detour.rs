//! How a daemon finds proxies in place of API servers.

use std::fs;

use api::cluster_set::ClusterSet;
use fleet::{Cluster, cluster_set::Daemon};
use serde_json::json;

use crate::fixture::{SET, SYSTEM, World};

const KUBECONFIG: &str = "--kubeconfig";

/// Lets a daemon reach its own cluster's API server by this URL.
pub(crate) fn detour(daemon: &mut Daemon, cluster: &Cluster, server: &str) {
    let at = daemon.spec.args.iter().position(|arg| arg == KUBECONFIG).unwrap() + 1;
    let kubeconfig = fs::read_to_string(&daemon.spec.args[at]).unwrap();
    let file = format!("{}.proxied", daemon.spec.args[at]);
    fs::write(&file, kubeconfig.replace(&cluster.server(), server)).unwrap();
    daemon.spec.args[at] = file;
}

impl World {
    /// Lets the member of a cluster reach the leader by this URL.
    pub async fn leader_is_at(&self, cluster: &str, server: &str) {
        let cluster = self.cluster(cluster);
        let set: ClusterSet = cluster.api(SYSTEM).get(SET).await.unwrap();
        let mut leaders = json!(set.spec.leaders);
        leaders[0]["server"] = json!(server);
        let _: ClusterSet = cluster.patch(SYSTEM, SET, &json!({"spec": {"leaders": leaders}})).await;
    }
}
