//! All clusters, and who leads which set.

use jiff::Timestamp;

use super::cluster::{Area, Cluster};
use crate::{finding::Finding, view::ClusterSetView};

/// All clusters.
pub(super) struct Scene<'a> {
    pub(super) clusters: &'a [Cluster],
    pub(super) now: Timestamp,
}

impl<'a> Scene<'a> {
    pub(super) fn of(clusters: &'a [Cluster], now: Timestamp) -> Self {
        Self { clusters, now }
    }

    /// The cluster that leads the set, and its Common Area.
    pub(super) fn leader(&self, set: &str) -> Option<(&'a Cluster, &'a Area)> {
        let of = |cluster: &'a Cluster| cluster.areas.iter().flatten().map(move |area| (cluster, area));
        self.clusters.iter().flat_map(of).find(|(_, area)| area.set().as_deref() == Some(set))
    }

    /// The set that a cluster without one most likely is to join: the only one that is known.
    fn only_set(&self) -> Option<String> {
        let mut sets: Vec<_> = self.clusters.iter().filter_map(Cluster::set).collect();
        sets.sort();
        sets.dedup();
        (sets.len() == 1).then(|| sets.remove(0))
    }

    /// The first context whose API server does not answer.
    pub(super) fn unreached(&self) -> Option<&'a str> {
        self.clusters.iter().find(|cluster| !cluster.is_reached()).map(|cluster| cluster.context.as_str())
    }

    /// A finding about a cluster.
    pub(super) fn broken(&self, code: u16, cluster: &Cluster, what: impl Into<String>) -> Finding {
        let mut finding = Finding::broken(code, what).with("context", &cluster.context);
        if let Some(id) = cluster.member.set().and_then(ClusterSetView::cluster_id) {
            finding = finding.with("id", id);
        }
        let Some(set) = cluster.set().or_else(|| self.only_set()) else { return finding };
        if let Some((leader, area)) = self.leader(&set) {
            finding = finding.with("leader", &leader.context);
            let first = area.sets.as_ref().ok().and_then(|sets| sets.first());
            if let Some(id) = first.and_then(ClusterSetView::cluster_id) {
                finding = finding.with("leaderid", id);
            }
        }
        finding.with("set", set)
    }

    /// Whether the cluster of this ID, or of a context of this name, was looked at itself.
    pub(super) fn is_looked_at(&self, id: &str) -> bool {
        self.clusters.iter().any(|cluster| cluster.title() == id || cluster.context == id)
    }
}
