//! What an import says of the clusters that take part: whether they are there, and answer from here. Pure.

use api::{
    condition::{Status, Verdict},
    mcs::CLUSTERS_REACHABLE,
    resource_import::Evicted,
};
use jiff::Timestamp;

use super::plan::DesiredImport;
use crate::service::index::{known::Known, links::Links};

/// Endpoints of a cluster are not ready here, since none of them answers.
const DEMOTED: &str = "ClustersDemoted";
/// The same, but nobody else serves all of it.
const UNREACHED: &str = "ClustersUnreached";
/// A cluster was silent for so long that the leader withdrew what it exported.
const EVICTED: &str = "ClustersEvicted";
/// Nothing of all that.
const REACHABLE: &str = "Reachable";
/// A cluster does not renew its Lease.
const KEPT: &str = "ClustersKept";

/// How it stands with those who take part, and with those who were `evicted`.
fn reachable(desired: &DesiredImport, links: &Links, evicted: &[Evicted]) -> Verdict {
    let of_these = |cluster: &&String| desired.clusters.contains(cluster);
    let (mut demoted, mut unreached) = (vec![], vec![]);
    for (cluster, since) in links.unreached.iter().filter(|(cluster, _)| of_these(cluster)) {
        let is_demoted = desired.demoted.contains(cluster);
        let these = if is_demoted { &mut demoted } else { &mut unreached };
        these.push(format!("{cluster} since {}", said(*since)));
    }
    let is_kept = |cluster: &String| !links.unreached.contains_key(cluster);
    let kept = links.silent.iter().filter(|(cluster, _)| of_these(cluster) && is_kept(cluster));
    let kept: Vec<_> = kept
        .map(|(cluster, since)| format!("{cluster} since {}", since.map_or("it joined".to_owned(), said)))
        .collect();
    let evicted = evicted.iter().map(|of| format!("{} since {}", of.cluster_id, said(of.since.0)));
    let all = [
        (
            Status::False,
            DEMOTED,
            demoted,
            "no endpoint answers from here, so they get no traffic where other clusters serve the same:",
        ),
        (
            Status::False,
            UNREACHED,
            unreached,
            "no endpoint answers from here, and they are kept, since no other cluster serves all their ports:",
        ),
        (
            Status::False,
            EVICTED,
            evicted.collect(),
            "no renewal of the Lease for so long that the exports were withdrawn:",
        ),
        (Status::True, KEPT, kept, "no renewal of the Lease, and what was imported is kept:"),
    ];
    let all: Vec<_> = all.into_iter().filter(|(_, _, these, _)| !these.is_empty()).collect();
    let Some((status, reason, ..)) = all.first() else {
        let message = "no exporting cluster is known to be unreachable";
        return Verdict::new(CLUSTERS_REACHABLE, Status::True, REACHABLE, message);
    };
    let messages: Vec<_> =
        all.iter().map(|(_, _, these, what)| format!("{what} {}", these.join(", "))).collect();
    Verdict::new(CLUSTERS_REACHABLE, *status, *reason, messages.join("; "))
}

/// What an import has to say of the clusters, and whether it is to be looked at again soon: while it is not known whether a cluster that
/// was silent is so still, what was said of it stands.
pub(super) fn standing(known: &Known, desired: &DesiredImport) -> (Verdict, bool) {
    let (entry, links) = (&known.entry, &known.cluster.links);
    let evicted = entry.leader_import.as_ref().map(|import| import.spec.evicted.as_slice());
    let verdict = reachable(desired, links, evicted.unwrap_or_default());
    let status = entry.own_import().and_then(|import| import.status.0.as_ref().ok());
    let mut had = status.into_iter().flat_map(|status| &status.conditions);
    let had = had.find(|had| had.type_ == CLUSTERS_REACHABLE && had.reason == KEPT);
    let is_unheard = desired.clusters.iter().any(|cluster| links.unheard.contains(cluster));
    match had.filter(|_| is_unheard && verdict.reason == REACHABLE) {
        Some(had) => (Verdict { reason: had.reason.clone(), message: had.message.clone(), ..verdict }, true),
        None => (verdict, false),
    }
}

fn said(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
