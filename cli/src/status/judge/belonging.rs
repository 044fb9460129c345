//! The member's side: its ClusterSet, and the note of its membership, which stays while the cluster leaves.

use api::{
    cluster_set::{CREDENTIAL_RENEWED, EXPORTS_DECLARED, IMPORTS_COMPLETE, WRITES_ACCEPTED},
    membership,
};
use kube::ResourceExt;

use super::{TRUE, Verdict, line, said};
use crate::{
    objects::SYSTEM,
    status::report::{Belonging, Said},
    view::{ClusterSetView, Note},
};

impl Verdict<'_> {
    /// The sets the cluster belongs to, including one that it has not left yet. `stale`: the member does not run.
    pub(super) fn belongings(
        &mut self,
        sets: &[ClusterSetView],
        noted: Option<&Note>,
        stale: bool,
    ) -> Vec<Belonging> {
        let mut all: Vec<Belonging> = sets.iter().map(|set| self.belonging(set, noted, stale)).collect();
        if let Some(noted) = noted {
            let has_set = sets.iter().any(|set| noted.cluster_set.as_deref() == Some(&set.name_any()));
            self.departure(noted, has_set);
            if !has_set {
                all.push(Belonging {
                    cluster_set: noted.cluster_set.clone().unwrap_or_default(),
                    cluster_id: noted.cluster_id.clone(),
                    leader: noted.server.clone(),
                    leaving: noted.leave.is_some(),
                    ready: None,
                    stale,
                });
            }
        }
        all
    }

    fn belonging(&mut self, set: &ClusterSetView, noted: Option<&Note>, stale: bool) -> Belonging {
        let place = format!("ClusterSet {SYSTEM}/{}", set.name_any());
        let ready = set.ready().map(said);
        match &ready {
            None => self.problem(
                &place,
                "has no Ready condition: freeport-member has not processed it yet",
                "start freeport-member in this cluster, or read its log",
            ),
            Some(ready) if ready.status != TRUE || is_limited(ready) => {
                self.problem(&place, line(ready), mend(set, ready))
            }
            Some(_) if !set.is_observed() => self.problem(
                &place,
                "was changed, and freeport-member has not processed the change",
                "wait a moment; else start freeport-member in this cluster, or read its log",
            ),
            Some(_) => {}
        }
        self.incomplete(set, &place);
        self.refused(set, &place);
        Belonging {
            cluster_set: set.name_any(),
            cluster_id: set.cluster_id().map(Into::into),
            leader: set.server().map(Into::into),
            leaving: noted.is_some_and(|note| note.leave.is_some() && note.cluster_set == set.metadata.name),
            ready,
            stale,
        }
    }

    /// What is not imported, not declared or not replaced though nothing failed. That this cluster does not have a Namespace may be meant, so
    /// it is a note.
    fn incomplete(&mut self, set: &ClusterSetView, place: &str) {
        let these = [IMPORTS_COMPLETE, EXPORTS_DECLARED, CREDENTIAL_RENEWED];
        let these = these.into_iter().filter_map(|type_| set.condition(type_));
        let copies = these.clone().map(said).filter(|said| said.status == TRUE && said.reason == COPIES);
        self.notes.extend(copies.map(|said| format!("{place}: {}", said.message)));
        for said in these.map(said).filter(|said| said.status != TRUE) {
            let next = match said.reason.as_str() {
                "NamespaceMissing" => {
                    self.notes.push(format!("{place}: {}", said.message));
                    continue;
                }
                // Refused writes, and ServiceImports that are not ready, are problems of their own, with the reasons.
                "ImportsNotReady" if self.has_import_troubles || !accepts_writes(set) => continue,
                "ImportsNotReady" => {
                    "`kubectl describe serviceimport` of these gives the reason; where there is none, `freeport status` again in some seconds: the API \
                     server may refuse it"
                }
                "NotOurs" => {
                    "`kubectl delete serviceimport`, if nobody needs these; freeport-member makes its own then"
                }
                "RecordsLeftOut" => {
                    "`freeport status` in the leader's cluster counts records by cluster and names those that are refused; withdraw \
                     exports there, or take that cluster's credential away"
                }
                "AddressesLeftOut" => {
                    "are these addresses right? Then `freeport join --pod-cidrs` again for that cluster, which notes its ranges at the leader; else find \
                     out who writes them there"
                }
                "ClustersUnreached" => {
                    "look whether those clusters run and are connected with this one; where a NetworkPolicy or firewall lets Pods through but \
                     not freeport-member, run it with --probe off (`freeport join --probe off`)"
                }
                "ServiceExportVanished" => {
                    "create the ServiceExports again; to end an export, delete its ServiceExport then"
                }
                "LongLived" | "NotRenewed" => {
                    "`freeport join` again, with a version that lets members replace their tokens"
                }
                _ => {
                    "are so many exports meant? `freeport status` in the leader's cluster counts them by cluster; if so, run \
                     freeport-member with a larger --max-imports"
                }
            };
            self.problem(place, line(&said), next);
        }
    }

    /// A membership that is to end and has not, or whose ClusterSet was deleted.
    fn departure(&mut self, noted: &Note, has_set: bool) {
        let set = noted.cluster_set.as_deref().unwrap_or_default();
        let place = format!("ConfigMap {SYSTEM}/{}", membership::NAME);
        if let (Some(_), Some(refused)) = (&noted.leave, &noted.refused) {
            self.problem(
                place,
                format!("this cluster is leaving ClusterSet {set}, and freeport-member has not finished: {refused}"),
                "change the policy, webhook, quota or right that refuses it: freeport-member goes on by itself within a minute",
            );
        } else if noted.leave.is_some() {
            self.problem(
                place,
                format!("this cluster is leaving ClusterSet {set}, and freeport-member has not finished"),
                "wait for freeport-member or read its log; `freeport leave` goes on waiting, `freeport leave --force` does \
                 without the leader",
            );
        } else if !has_set {
            self.problem(
                place,
                format!("ClusterSet {SYSTEM}/{set} is gone, and this cluster has not left that set"),
                "to leave, `freeport leave`; to stay, `freeport join` under the same ID",
            );
        }
    }
}

/// Reports whether the ClusterSet says nothing of refused writes.
pub(super) fn accepts_writes(set: &ClusterSetView) -> bool {
    set.condition(WRITES_ACCEPTED).is_none_or(|said| said.status.as_deref() == Some(TRUE))
}

/// Reason of `ImportsComplete` while copies of what imports consist of have Freeport's labels.
const COPIES: &str = "CopyOfImport";

/// Whether it is Ready although something is wrong.
fn is_limited(ready: &Said) -> bool {
    [
        "ClockSkew",
        "LeaderSilent",
        "CRDOutdated",
        "DuplicateClusterID",
        "WireVersionDiffers",
        "ClusterPropertyConflict",
    ]
    .contains(&ready.reason.as_str())
}

/// What to do about a set that is not Ready, or limited.
fn mend(set: &ClusterSetView, ready: &Said) -> String {
    match ready.reason.as_str() {
        "AnotherClusterSet" => format!(
            "a cluster belongs to one set: kubectl -n {SYSTEM} delete clusterset {name}; or leave all, with `freeport leave`, \
             and join the right one",
            name = set.name_any()
        ),
        "Left" => "`freeport leave`, which deletes this ClusterSet as well; to join again, `freeport join` after that".to_owned(),
        "DuplicateClusterID" if ready.status == "True" => {
            "in the other cluster, `freeport leave --force`; it can join again under another --cluster-id".to_owned()
        }
        "WireVersionDiffers" => "bring all clusters to one version of Freeport".to_owned(),
        "DuplicateClusterID" => {
            "leave with `freeport leave --force`, and join again under another --cluster-id".to_owned()
        }
        "ClusterPropertyConflict" => {
            "`kubectl delete clusterproperty` with the name in the message, if it is wrong; else leave and join with what it says".to_owned()
        }
        "Connecting" => "wait a moment".to_owned(),
        "ClockSkew" => "set the clocks".to_owned(),
        "SecretMissing" | "InvalidSecret" | "TokenRefused" => {
            format!("get a new credential: {}", join_again(set))
        }
        "Forbidden" => format!("is spec.namespace right? If so, get the rights back: {}", join_again(set)),
        "CommonAreaMissing" => {
            format!("is spec.namespace right? If so, `freeport init` in the leader's cluster, then {}", join_again(set))
        }
        "InvalidSpec" => "correct the ClusterSet or ClusterClaim that the message names".to_owned(),
        "IdentityChanged" => "change it back; or `freeport leave`, and join again".to_owned(),
        "CertificateUntrusted" => format!(
            "is spec.leaders[0].server right? If so, {}, with a kubeconfig that knows the leader's authority",
            join_again(set)
        ),
        "CertificateExpired" => "renew the leader's certificate, or set the clock that is wrong".to_owned(),
        "CRDMissing" => {
            format!("in the leader's cluster `freeport init`, in this one {}", join_again(set))
        }
        "SchemaPruned" => "`freeport init` in the leader's cluster, which puts Freeport's CRDs back".to_owned(),
        "CRDOutdated" => format!("{}, which brings them up to date", join_again(set)),
        "LeaderSilent" => "`freeport status` in the leader's cluster".to_owned(),
        "CannotWatch" => format!(
            "get back the rights and CRDs of this cluster: {}; else read freeport-member's log",
            join_again(set)
        ),
        "LeaderUnreachable" => format!("does it run, is no firewall between, {}", address(set)),
        _ => format!("read freeport-member's log; {}", address(set)),
    }
}

fn address(set: &ClusterSetView) -> String {
    let server = set.server().unwrap_or("the leader's API server");
    format!("does {server} answer this cluster?")
}

fn join_again(set: &ClusterSetView) -> String {
    let id = set.cluster_id().map(|id| format!(" --cluster-id {id}"));
    format!("`freeport join --clusterset {}{}` again", set.name_any(), id.unwrap_or_default())
}
