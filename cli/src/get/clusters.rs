//! Rows of clusters: those that a leader among the clusters knows, and those that were looked at besides.

use futures::future::join_all;
use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};
use serde::Serialize;

use super::Looked;
use crate::{
    Error,
    cluster::Cluster,
    look::{each_once, uid},
    status::{
        self,
        report::{Belonging, MemberState, Report, Role},
    },
};

/// A cluster of a ClusterSet.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterRow {
    /// ID in the set.
    #[serde(rename = "clusterID")]
    pub cluster_id: String,
    /// Context that leads to it, if one was given.
    pub context: Option<String>,
    /// Name of the ClusterSet.
    pub cluster_set: Option<String>,
    /// Whether it leads; not known without a look at the leader.
    pub role: Option<Role>,
    /// Whether its member is connected: in the leader's words, or in its own.
    pub state: MemberState,
    /// Last renewal of its Lease at the leader, by its own clock.
    pub renewed: Option<Time>,
    /// Version of its member.
    pub version: Option<String>,
    /// Number of Services it exports.
    pub exports: Option<usize>,
}

/// The rows by ClusterSet and ID.
pub(super) async fn clusters(all: &[Cluster], now: Timestamp) -> (Vec<ClusterRow>, Looked) {
    let look = async |cluster: &Cluster| {
        let (uid, report) = tokio::join!(Box::pin(uid(cluster)), Box::pin(status::of(cluster, None, now)));
        (cluster.name.clone(), uid.ok(), report)
    };
    combined(join_all(all.iter().map(|cluster| Box::pin(look(cluster)))).await)
}

/// Context, uid of Namespace kube-system if it may be read, and report of a cluster.
type Look = (String, Option<String>, Result<Report, Error>);

/// Each cluster once, whatever the number of its contexts.
fn combined(looks: Vec<Look>) -> (Vec<ClusterRow>, Looked) {
    let (once, notes) = each_once(looks, |(context, uid, _)| (context.clone(), uid.clone()));
    let (mut reports, mut looked) = (Vec::new(), Looked { gaps: notes, is_seen: false });
    for (context, _, report) in once {
        match report {
            Ok(report) => reports.push(report),
            Err(error) => looked.gaps.push(format!("{context} was not looked at: {error}")),
        }
    }
    looked.is_seen = !reports.is_empty();
    (rows(&reports), looked)
}

fn rows(reports: &[Report]) -> Vec<ClusterRow> {
    let mut rows: Vec<ClusterRow> = reports.iter().flat_map(led).collect();
    for report in reports {
        for belonging in &report.belongs {
            note(&mut rows, report, belonging);
        }
    }
    rows.sort_by(|a, b| (&a.cluster_set, &a.cluster_id).cmp(&(&b.cluster_set, &b.cluster_id)));
    rows
}

/// Clusters of the sets that this one leads.
fn led(report: &Report) -> Vec<ClusterRow> {
    let of = |leading: &status::report::Leading| {
        let row = |cluster: &status::report::ClusterState| ClusterRow {
            cluster_id: cluster.cluster_id.clone(),
            context: None,
            cluster_set: leading.cluster_set.clone(),
            role: cluster.role,
            state: cluster.state,
            renewed: cluster.renewed.clone(),
            version: cluster.version.clone(),
            exports: cluster.exports,
        };
        leading.clusters.iter().map(row).collect::<Vec<_>>()
    };
    report.leads.iter().flat_map(of).collect()
}

/// Notes the context of a member. One that no leader named gets a row of its own.
fn note(rows: &mut Vec<ClusterRow>, report: &Report, belonging: &Belonging) {
    let Some(id) = &belonging.cluster_id else { return };
    let is_it = |row: &&mut ClusterRow| {
        row.cluster_id == *id && row.cluster_set.as_ref() == Some(&belonging.cluster_set)
    };
    if let Some(row) = rows.iter_mut().find(is_it) {
        row.context = Some(report.cluster.clone());
        return;
    }
    let is_ready = belonging.ready.as_ref().map(|ready| ready.status == "True" && !belonging.stale);
    rows.push(ClusterRow {
        cluster_id: id.clone(),
        context: Some(report.cluster.clone()),
        cluster_set: Some(belonging.cluster_set.clone()),
        role: None,
        state: match is_ready {
            Some(true) => MemberState::Ready,
            Some(false) => MemberState::NotReady,
            None => MemberState::Unknown,
        },
        renewed: None,
        version: None,
        exports: report.service_exports.as_ref().map(|exports| exports.total),
    });
}
