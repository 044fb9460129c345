//! What a member must not do in the Common Area: anything to what is another's or the leader's.

use api::{
    ServiceName,
    announce::MemberClusterAnnounce,
    name::{self, announce, member_lease},
    report::ClusterReport,
    resource_export::ResourceExport,
    resource_import::ResourceImport,
};
use e2e::{cluster::Cluster, fixture::AREA};
use k8s_openapi::api::coordination::v1::Lease;
use kube::{
    Resource, ResourceExt,
    api::{ApiResource, ListParams},
};
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::rights::{
    attempt::{Attempt, Do, Refusal, try_all},
    parties::{NOT_OURS, shared},
    records::{announces, exports, imports, leases, reports, service, slice},
};

/// Names and versions of all of south's and the leader's: what no attempt may change.
async fn state_of_others(leader: &Cluster) -> Vec<String> {
    async fn list<K>(cluster: &Cluster) -> Vec<String>
    where
        K: Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>
            + DeserializeOwned
            + Clone
            + std::fmt::Debug,
    {
        let found = cluster.api::<K>(AREA).list(&ListParams::default()).await.unwrap();
        found
            .iter()
            .map(|o| format!("{} {}", o.name_any(), o.resource_version().unwrap_or_default()))
            .collect()
    }
    let of_others = |name: &String| {
        [name::LEADER_LEASE, "shop-web-service", "south", "mallory", "away"]
            .iter()
            .any(|other| name.contains(other))
    };
    let mut all = [
        list::<ResourceExport>(leader).await,
        list::<ResourceImport>(leader).await,
        list::<MemberClusterAnnounce>(leader).await,
        list::<Lease>(leader).await,
        list::<ClusterReport>(leader).await,
    ]
    .concat();
    all.retain(of_others);
    all
}

const NOT_US: &str = "is of cluster \"south\", which";
const NO_CLUSTER: &str = "is of no cluster";
const LEADER_ALONE: &str = "written by the leader alone";

/// Everything a member may not do to what is there already, or claim in another's name.
fn on_others(us: &str) -> Vec<Attempt> {
    let note = || json!({"metadata": {"annotations": {"seen": us}}});
    let status = || json!({"status": {"conditions": [{"type": "Failure", "status": "False"}]}});
    let report = || json!({"status": {"missingNamespaces": ["shop"]}});
    let named = |name: &str| json!({"metadata": {"name": name}});
    let held = |name: &str| json!({"metadata": {"name": name}, "spec": {"holderIdentity": "mine"}});
    let web = ServiceName::new("shop", "web");
    let (service_record, slice_record) =
        (|| name::service_export("south", &web), || name::slice_export("south", &web, "web-1"));
    let import = || name::service_import(&web);
    let (south_lease, leader_lease) = (|| member_lease("south"), || name::LEADER_LEASE.to_owned());

    let attempt = |what, kind: fn() -> ApiResource, todo, says| Attempt { what, kind: kind(), todo, says };
    vec![
        attempt(
            "create south's Service record",
            exports,
            Do::Create(service("south", "shop", "other")),
            NOT_US,
        ),
        attempt("create south's slice record", exports, Do::Create(slice("south", "shop", "other")), NOT_US),
        attempt("patch south's Service record", exports, Do::Patch(service_record(), note()), NOT_US),
        attempt("patch south's slice record", exports, Do::Patch(slice_record(), note()), NOT_US),
        attempt(
            "make south's record ours",
            exports,
            Do::Patch(service_record(), json!({"spec": {"clusterID": us}})),
            "must be named",
        ),
        attempt("replace south's record", exports, Do::Replace(service_record(), note()), NOT_US),
        attempt("delete south's Service record", exports, Do::Delete(service_record()), NOT_US),
        attempt("delete south's slice record", exports, Do::Delete(slice_record()), NOT_US),
        attempt("delete all of south's", exports, Do::DeleteAll("sourceClusterID=south".into()), NOT_US),
        // Whose comes first, other tests decide.
        attempt("delete all Services'", exports, Do::DeleteAll("sourceKind=Service".into()), NOT_OURS),
        attempt("judge south's record", exports, Do::PatchStatus(service_record(), status()), LEADER_ALONE),
        attempt("announce south", announces, Do::Create(named(&announce("south"))), NOT_US),
        attempt("announce nobody", announces, Do::Create(named("mallory")), NO_CLUSTER),
        attempt("patch south's announce", announces, Do::Patch(announce("south"), note()), NOT_US),
        attempt("replace south's announce", announces, Do::Replace(announce("south"), note()), NOT_US),
        attempt("delete south's announce", announces, Do::Delete(announce("south")), NOT_US),
        attempt("delete all announces", announces, Do::DeleteAll(String::new()), NOT_OURS),
        attempt(
            "create a Lease of a cluster that is away",
            leases,
            Do::Create(held(&member_lease("away"))),
            "cluster \"away\"",
        ),
        attempt("patch south's Lease", leases, Do::Patch(south_lease(), note()), NOT_US),
        attempt("replace south's Lease", leases, Do::Replace(south_lease(), note()), NOT_US),
        attempt("delete south's Lease", leases, Do::Delete(south_lease()), NOT_US),
        attempt("create a Lease of no cluster", leases, Do::Create(held("mallory")), NO_CLUSTER),
        attempt("patch the leader's Lease", leases, Do::Patch(leader_lease(), note()), NO_CLUSTER),
        attempt("delete the leader's Lease", leases, Do::Delete(leader_lease()), NO_CLUSTER),
        attempt("report for a cluster that is away", reports, Do::Create(named("away")), "cluster \"away\""),
        attempt("report for south", reports, Do::PatchStatus("south".into(), report()), NOT_US),
        attempt("patch south's report", reports, Do::Patch("south".into(), note()), NOT_US),
        attempt("replace south's report", reports, Do::Replace("south".into(), note()), NOT_US),
        attempt("delete south's report", reports, Do::Delete("south".into()), NOT_US),
        attempt("create an import", imports, Do::Create(named("shop-other-service")), LEADER_ALONE),
        attempt("patch an import", imports, Do::Patch(import(), note()), LEADER_ALONE),
        attempt("replace an import", imports, Do::Replace(import(), note()), LEADER_ALONE),
        attempt("delete an import", imports, Do::Delete(import()), LEADER_ALONE),
        attempt("delete all imports", imports, Do::DeleteAll(String::new()), LEADER_ALONE),
    ]
}

#[e2e::test]
fn a_member_does_nothing_to_what_is_anothers() {
    shared(async |parties| {
        let leader = parties.world.leader();
        let before = state_of_others(leader).await;
        try_all(&parties.east, AREA, &on_others("east"), |_, refusal| !refusal.is_deliberate()).await;
        assert_eq!(state_of_others(leader).await, before);
    });
}

#[e2e::test]
fn nor_does_one_whose_role_is_too_wide() {
    shared(async |parties| {
        let leader = parties.world.leader();
        let before = state_of_others(leader).await;
        let wrong = |attempt: &Attempt, refusal: &Refusal| !refusal.is_by_policy(attempt.says);
        try_all(&parties.north, AREA, &on_others("north"), wrong).await;
        assert_eq!(state_of_others(leader).await, before);
    });
}
