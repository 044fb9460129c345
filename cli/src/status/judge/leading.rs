//! A ClusterSet this cluster leads: who takes part, and whether their daemons run.
//!
//! A daemon is alive if its Lease is not stale by our clock. A renewal in our future shows only that clocks differ.

use std::collections::{BTreeMap, BTreeSet};

use api::{label, lease::LeaseView, name, resource_export::FAILURE};
use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::SignedDuration};
use kube::ResourceExt;
use picture::age;

use super::{TRUE, Verdict, line, objects, said};
use crate::{
    objects::access,
    status::{
        found::{Area, member_of},
        report::{ClusterState, Leader, LeaderState, Leading, MemberState, Role, Said},
    },
    view::{ClusterSetView, Sign, sign},
};

impl Verdict<'_> {
    pub(super) fn leading(&mut self, area: &Area) -> Leading {
        let set = self.set_of(area);
        let leader = self.leader(area);
        let clusters = self.clusters(area, set.and_then(ClusterSetView::cluster_id));
        self.versions(area, &leader, &clusters);
        self.long_lived(area);
        let resource_exports = self
            .part(&area.records, "init")
            .map(|records| objects::tally(records.iter().map(|r| &r.entry), |c| objects::named(c, FAILURE)));
        if let Some(tally) = &resource_exports {
            self.troubles("ResourceExport", tally);
        }
        Leading {
            cluster_set: set.map(ResourceExt::name_any),
            namespace: area.namespace.clone(),
            cluster_id: set.and_then(ClusterSetView::cluster_id).map(Into::into),
            conditions: set.map(|set| set.conditions().iter().map(said).collect()).unwrap_or_default(),
            leader,
            clusters,
            resource_exports,
            imports: self.part(&area.imports, "init").copied(),
        }
    }

    /// A token that counts for ever is worth stealing, and its member has no need of it.
    fn long_lived(&mut self, area: &Area) {
        for id in &area.long_lived {
            let (namespace, secret) = (&area.namespace, access::token_secret(id));
            self.problem(
                format!("Secret {namespace}/{secret}"),
                format!("holds a token of member {id} that counts until it is deleted"),
                format!(
                    "when `freeport status` in that cluster does not say LongLived: kubectl -n {namespace} delete secret {secret}; or `freeport \
                     join` again, which does it"
                ),
            );
        }
    }

    /// The one ClusterSet of the area.
    fn set_of<'a>(&mut self, area: &'a Area) -> Option<&'a ClusterSetView> {
        let namespace = &area.namespace;
        let sets = self.part(&area.sets, "init")?;
        match sets.as_slice() {
            [] => self.problem(
                format!("Namespace {namespace}"),
                "is a Common Area without a ClusterSet",
                "run `freeport init` again, or delete the Namespace",
            ),
            [_] => {}
            [first, others @ ..] => {
                let names: Vec<String> = others.iter().map(|set| set.name_any()).collect();
                self.problem(
                    format!("Namespace {namespace}"),
                    format!("holds ClusterSet {} beside {}", names.join(", "), first.name_any()),
                    "a Common Area holds one: delete the others",
                );
            }
        }
        let set = sets.first()?;
        self.refused(set, &format!("ClusterSet {namespace}/{}", set.name_any()));
        let ready = set.ready().map(said).filter(|ready| ready.status != TRUE);
        if let Some(ready) = ready {
            self.problem(
                format!("ClusterSet {namespace}/{}", set.name_any()),
                line(&ready),
                mend(&ready, namespace),
            );
        }
        Some(set)
    }

    fn leader(&mut self, area: &Area) -> Leader {
        let unknown = Leader { state: LeaderState::Unknown, renewed: None, version: None, wire: None };
        let Some(leases) = self.part(&area.leases, "init") else {
            return unknown;
        };
        let place = format!("Lease {}/{}", area.namespace, name::LEADER_LEASE);
        let Some(lease) = leases.get(name::LEADER_LEASE) else {
            self.problem(place, "freeport-leader has never run", "start freeport-leader in this cluster");
            return Leader { state: LeaderState::Missing, ..unknown };
        };
        let state = match sign(lease, self.now) {
            Sign::Alive => {
                self.refused_to(&place, lease, label::LEADER, area.sets.as_deref().unwrap_or_default());
                LeaderState::Present
            }
            Sign::Ahead(by) => {
                self.ahead(&place, by);
                LeaderState::Unknown
            }
            Sign::Silent => {
                let what = format!("freeport-leader does not renew its Lease: {}", self.silence(lease));
                self.problem(&place, what, "start freeport-leader in this cluster, or read its log");
                LeaderState::Stale
            }
        };
        self.wire(&place, label::LEADER, lease);
        Leader {
            state,
            renewed: lease.renew_time().map(Time),
            version: lease.version().map(Into::into),
            wire: lease.wire().map(Into::into),
        }
    }

    /// Clusters by ID. One that joined and whose daemon has never run has no Lease yet.
    fn clusters(&mut self, area: &Area, leader_id: Option<&str>) -> Vec<ClusterState> {
        // If Leases cannot be read, `leader` has reported it.
        let leases = area.leases.as_ref().ok();
        let members: BTreeMap<&str, &LeaseView> = leases
            .into_iter()
            .flatten()
            .filter_map(|(name, lease)| Some((member_of(name)?, lease)))
            .collect();
        let mut exports: BTreeMap<&str, usize> = BTreeMap::new();
        for record in area.records.iter().flatten().filter(|record| !record.cluster.is_empty()) {
            *exports.entry(&record.cluster).or_default() += usize::from(record.offers_service);
        }
        let joined = self.part(&area.joined, "init").into_iter().flatten().map(String::as_str);
        let ids: BTreeSet<&str> =
            joined.chain(members.keys().copied()).chain(exports.keys().copied()).collect();
        ids.into_iter()
            .map(|id| {
                let lease = members.get(id).copied();
                ClusterState {
                    cluster_id: id.into(),
                    role: leader_id.map(|leader| if leader == id { Role::Leader } else { Role::Member }),
                    state: if leases.is_some() { self.member(area, id, lease) } else { MemberState::Unknown },
                    renewed: lease.and_then(LeaseView::renew_time).map(Time),
                    version: lease.and_then(LeaseView::version).map(Into::into),
                    wire: lease.and_then(LeaseView::wire).map(Into::into),
                    exports: area.records.is_ok().then(|| exports.get(id).copied().unwrap_or_default()),
                }
            })
            .collect()
    }

    fn member(&mut self, area: &Area, id: &str, lease: Option<&LeaseView>) -> MemberState {
        let place = format!("Lease {}/{}", area.namespace, name::member_lease(id));
        let Some(lease) = lease else {
            self.problem(
                place,
                format!("cluster {id} has no Lease: its freeport-member has never run"),
                format!("start freeport-member in cluster {id}, or read its log"),
            );
            return MemberState::NotReady;
        };
        if lease.has_left() {
            return MemberState::Left;
        }
        self.wire(&place, &format!("cluster {id}"), lease);
        match sign(lease, self.now) {
            Sign::Alive => MemberState::Ready,
            Sign::Ahead(by) => {
                self.ahead(&place, by);
                MemberState::Unknown
            }
            Sign::Silent => {
                self.problem(
                    place,
                    format!("cluster {id} is NotReady: {}", self.silence(lease)),
                    format!("does freeport-member run in cluster {id}, reach this API server, and do the clocks agree?"),
                );
                MemberState::NotReady
            }
        }
    }

    pub(super) fn silence(&self, lease: &LeaseView) -> String {
        match lease.renew_time() {
            Some(renewed) => format!("last renewed {} ago", age::text(self.now.duration_since(renewed))),
            None => "never renewed".into(),
        }
    }

    pub(super) fn ahead(&mut self, place: &str, by: SignedDuration) {
        self.problem(
            place,
            format!(
                "was renewed {} in the future: the clocks differ, so it is not known whether its holder runs",
                age::text(by)
            ),
            "set the clocks right, there or here",
        );
    }

    fn wire(&mut self, place: &str, who: &str, lease: &LeaseView) {
        let ours = label::WIRE_VERSION;
        if let Some(wire) = lease.wire().filter(|wire| *wire != ours) {
            self.problem(
                place,
                format!("{who} uses wire contract {wire:?}, not {ours:?}"),
                "install versions with the same wire contract in all clusters of the set",
            );
        }
    }

    /// Versions may differ while a set is being upgraded, so that is a note.
    fn versions(&mut self, area: &Area, leader: &Leader, clusters: &[ClusterState]) {
        let here = clusters.iter().filter(|cluster| cluster.state != MemberState::Left);
        let said: Vec<(&str, &str)> = [(label::LEADER, leader.version.as_deref())]
            .into_iter()
            .chain(here.map(|cluster| (cluster.cluster_id.as_str(), cluster.version.as_deref())))
            .filter_map(|(who, version)| Some((who, version?)))
            .collect();
        if said.iter().any(|(_, version)| *version != self.version) {
            let list: Vec<String> = said.iter().map(|(who, version)| format!("{who} {version}")).collect();
            self.notes.push(format!(
                "versions differ in {}: this command {}, {}",
                area.namespace,
                self.version,
                list.join(", ")
            ));
        }
    }
}

/// What to do about the ClusterSet of a Common Area that is not Ready.
fn mend(ready: &Said, namespace: &str) -> String {
    match ready.reason.as_str() {
        "FeatureUnavailable" => {
            "run `freeport init` again, which brings back CRDs and rights in the Common Area; else read freeport-leader's log".to_owned()
        }
        "SchemaPruned" => "run `freeport init` again, which puts Freeport's CRDs back".to_owned(),
        "InvalidSpec" => "correct the ClusterSet or ClusterClaim that the message names".to_owned(),
        "SomeNotReady" | "NoReadyCluster" => format!(
            "does freeport-member run in these clusters? The report names the Leases that are stale; kubectl -n {namespace} get leases"
        ),
        _ => "read freeport-leader's log".to_owned(),
    }
}
