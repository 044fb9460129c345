//! The report as text: problems first, one line each, then what there is. Tables fit 100 columns.

use std::fmt::Write;

use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};
use picture::age;

use super::report::{
    ActiveReplica, Belonging, ClusterState, LeaderState, Leading, MemberState, Report, Role, Said, Tally,
};
use crate::printable::printable;

/// What an unknown value looks like.
const UNKNOWN: &str = "-";
/// Widths that keep the table within 100 columns: an ID may have 63 characters, a version is what a daemon says of itself.
const ID_WIDTH: usize = 40;
const VERSION_WIDTH: usize = 16;

/// The whole report, with a newline at the end.
pub fn text(report: &Report) -> String {
    let mut lines = Vec::new();
    for problem in &report.problems {
        lines.push(format!("problem: {}: {}; next: {}", problem.place, problem.what, problem.next));
    }
    lines.extend(report.notes.iter().map(|note| format!("note: {note}")));
    if report.is_well() {
        lines.push(format!("{}: all is well", report.cluster));
    }
    let now = report.as_of.0;
    for leading in &report.leads {
        lines.push(String::new());
        lead(&mut lines, leading, now);
    }
    for belonging in &report.belongs {
        lines.push(String::new());
        belong(&mut lines, belonging, now);
    }
    let Report { service_exports, service_imports, .. } = report;
    if report.belongs.is_empty() && (service_exports.is_some() || service_imports.is_some()) {
        lines.push(String::new());
        lines.push("belongs to a ClusterSet that cannot be read".into());
    }
    if !report.belongs.is_empty() || service_exports.is_some() || service_imports.is_some() {
        lines.push(format!(
            "  ServiceExports: {}",
            count(service_exports.as_ref(), "not ready or in conflict")
        ));
        lines.push(format!("  ServiceImports: {}", count(service_imports.as_ref(), "not ready")));
    }
    let active =
        |active: &ActiveReplica| format!("  {}: {} is the active replica", active.daemon, active.replica);
    lines.extend(report.active_replicas.iter().map(active));
    for (what, tally, wrong) in [
        ("OffloadPeers", &report.offload_peers, "not ready"),
        ("NamespaceOffloadings", &report.namespace_offloadings, "not ready"),
        ("contracts with consumers", &report.cluster_bindings, "not ready, not heard or going"),
        ("APIServiceBindings", &report.api_service_bindings, "not ready, not in step or going"),
    ] {
        lines.extend(tally.as_ref().map(|tally| format!("  {what}: {}", count(Some(tally), wrong))));
    }
    lines.iter().fold(String::new(), |mut text, line| {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{}", printable(line).trim_end());
        text
    })
}

fn lead(lines: &mut Vec<String>, leading: &Leading, now: Timestamp) {
    let Leading { cluster_set, cluster_id, namespace, leader, .. } = leading;
    lines.push(format!(
        "leads ClusterSet {} as cluster {} (Namespace {namespace})",
        or_unknown(cluster_set.as_deref()),
        or_unknown(cluster_id.as_deref()),
    ));
    let state = match leader.state {
        LeaderState::Present => "present",
        LeaderState::Stale => "stale",
        LeaderState::Missing => "missing",
        LeaderState::Unknown => "unknown",
    };
    let version = or_unknown(leader.version.as_deref());
    lines.push(format!(
        "  freeport-leader: {state}, renewed {}, version {version}",
        renewed(leader.renewed.as_ref(), leader.state == LeaderState::Unknown, now)
    ));
    lines.extend(leading.conditions.iter().map(|said| format!("  {}", condition(said, now))));
    lines.push(format!("  ResourceExports: {}", count(leading.resource_exports.as_ref(), "failed")));
    let imports = leading.imports.map(|imports| imports.to_string());
    lines.push(format!("  imported Services: {}", or_unknown(imports.as_deref())));
    if !leading.clusters.is_empty() {
        lines.push(String::new());
        table(lines, &leading.clusters, now);
    }
}

fn belong(lines: &mut Vec<String>, belonging: &Belonging, now: Timestamp) {
    lines.push(format!(
        "{} ClusterSet {} as cluster {} (leader {})",
        if belonging.leaving { "is leaving" } else { "belongs to" },
        belonging.cluster_set,
        or_unknown(belonging.cluster_id.as_deref()),
        or_unknown(belonging.leader.as_deref()),
    ));
    if let Some(ready) = &belonging.ready {
        // The condition stays when the daemon stops.
        let away = if belonging.stale { "is not running; it last reported" } else { "reports" };
        lines.push(format!("  freeport-member {away}: {}", condition(ready, now)));
    }
}

fn table(lines: &mut Vec<String>, clusters: &[ClusterState], now: Timestamp) {
    let mut rows = vec![["CLUSTER", "ROLE", "STATE", "RENEWED", "VERSION", "EXPORTS"].map(str::to_owned)];
    rows.extend(clusters.iter().map(|cluster| row(cluster, now)));
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let [w0, w1, w2, w3, w4] = [0, 1, 2, 3, 4].map(width);
    for [c0, c1, c2, c3, c4, c5] in &rows {
        lines.push(format!("  {c0:w0$}  {c1:w1$}  {c2:w2$}  {c3:w3$}  {c4:w4$}  {c5}"));
    }
}

fn row(cluster: &ClusterState, now: Timestamp) -> [String; 6] {
    let role = cluster.role.map(|role| match role {
        Role::Leader => "leader",
        Role::Member => "member",
    });
    let state = match cluster.state {
        MemberState::Ready => "Ready",
        MemberState::NotReady => "NotReady",
        MemberState::Left => "Left",
        MemberState::Unknown => "Unknown",
    };
    [
        cut(&cluster.cluster_id, ID_WIDTH),
        or_unknown(role).into(),
        state.into(),
        renewed(cluster.renewed.as_ref(), cluster.state == MemberState::Unknown, now),
        cut(or_unknown(cluster.version.as_deref()), VERSION_WIDTH),
        cluster.exports.map_or_else(|| UNKNOWN.into(), |exports| exports.to_string()),
    ]
}

fn condition(said: &Said, now: Timestamp) -> String {
    let since = said
        .since
        .as_ref()
        .map_or_else(String::new, |since| format!(" for {}", age::text(now.duration_since(since.0))));
    let why =
        Some(said.why()).filter(|why| !why.is_empty()).map_or_else(String::new, |why| format!(": {why}"));
    format!("{} is {}{since}{why}", said.type_, said.status)
}

fn count(tally: Option<&Tally>, wrong: &str) -> String {
    match tally {
        None => UNKNOWN.into(),
        Some(Tally { total, troubled: 0, .. }) => total.to_string(),
        Some(Tally { total, troubled, .. }) => format!("{total}, of which {troubled} {wrong}"),
    }
}

/// When a Lease was renewed. Without a time it was never renewed, unless the holder is `unknown`.
fn renewed(time: Option<&Time>, unknown: bool, now: Timestamp) -> String {
    match time.map(|time| now.duration_since(time.0)) {
        None if unknown => UNKNOWN.into(),
        None => "never".into(),
        Some(age) if age.as_secs() < -30 => format!("in {}", age::text(-age)),
        Some(age) => format!("{} ago", age::text(age)),
    }
}

fn or_unknown(text: Option<&str>) -> &str {
    text.unwrap_or(UNKNOWN)
}

/// At most `width` characters.
fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.into();
    }
    text.chars().take(width - 1).chain(['…']).collect()
}
