//! What a member may write into the Common Area: its own, as it has to look, and nothing of anybody else.

use api::{
    ServiceName,
    announce::MemberClusterAnnounce,
    label,
    name::{self, announce, member_lease},
    resource_export::ResourceExport,
    resource_import::ResourceImport,
};
use k8s_openapi::api::coordination::v1::Lease;
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{ApiResource, ListParams},
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::{
    attempt::{Attempt, Do, Refusal, try_all},
    fixture::{AREA, create, shared},
};

pub fn exports() -> ApiResource {
    ApiResource::erase::<ResourceExport>(&())
}

fn imports() -> ApiResource {
    ApiResource::erase::<ResourceImport>(&())
}

fn announces() -> ApiResource {
    ApiResource::erase::<MemberClusterAnnounce>(&())
}

fn leases() -> ApiResource {
    ApiResource::erase::<Lease>(&())
}

/// A record of kind Service as a member writes it.
pub fn service(cluster: &str, namespace: &str, name: &str) -> Value {
    let service = ServiceName::new(namespace, name);
    record(
        &name::service_export(cluster, &service),
        cluster,
        &service,
        "Service",
        json!({"service": {"serviceSpec": {"ports": [{"name": "http", "port": 80, "protocol": "TCP"}]}}}),
    )
}

fn slice(cluster: &str, namespace: &str, name: &str) -> Value {
    let service = ServiceName::new(namespace, name);
    record(
        &name::slice_export(cluster, &service, "web-1"),
        cluster,
        &service,
        "EndpointSlice",
        json!({"endpointSlice": {"addressType": "IPv4", "ports": [], "endpoints": []}}),
    )
}

fn record(record: &str, cluster: &str, of: &ServiceName, kind: &str, payload: Value) -> Value {
    let mut spec = json!({"clusterID": cluster, "namespace": of.namespace, "name": of.name, "kind": kind});
    spec.as_object_mut().unwrap().extend(payload.as_object().unwrap().clone());
    let labels = json!({
        label::SOURCE_CLUSTER_ID: cluster,
        label::SOURCE_NAMESPACE: of.namespace,
        label::SOURCE_NAME: of.name,
        label::SOURCE_KIND: kind,
    });
    json!({"metadata": {"name": record, "labels": labels}, "spec": spec})
}

/// What others have in the Common Area, for a member to try its hands on. No daemon looks after cluster `south`.
pub async fn of_others(leader: &Client) {
    let exports = Api::<ResourceExport>::namespaced(leader.clone(), AREA);
    create(&exports, service("south", "shop", "web")).await;
    create(&exports, slice("south", "shop", "web")).await;
    let import = json!({
        "metadata": {"name": "shop-web-service"},
        "spec": {"namespace": "shop", "name": "web", "kind": "ServiceImport"},
    });
    create(&Api::<ResourceImport>::namespaced(leader.clone(), AREA), import).await;
    let announces = Api::<MemberClusterAnnounce>::namespaced(leader.clone(), AREA);
    create(&announces, json!({"metadata": {"name": announce("south")}, "clusterID": "south"})).await;
    let leases = Api::<Lease>::namespaced(leader.clone(), AREA);
    for name in [member_lease("south"), name::LEADER_LEASE.to_owned()] {
        create(&leases, json!({"metadata": {"name": name}, "spec": {"holderIdentity": "other/1"}})).await;
    }
}

/// Names and versions of all of south's and the leader's: what no attempt may change.
async fn state_of_others(leader: &Client) -> Vec<String> {
    async fn list<K>(client: &Client) -> Vec<String>
    where
        K: Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>
            + DeserializeOwned
            + Clone
            + std::fmt::Debug,
    {
        let found = Api::<K>::namespaced(client.clone(), AREA).list(&ListParams::default()).await.unwrap();
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
            NOT_US,
        ),
        attempt("replace south's record", exports, Do::Replace(service_record(), note()), NOT_US),
        attempt("delete south's Service record", exports, Do::Delete(service_record()), NOT_US),
        attempt("delete south's slice record", exports, Do::Delete(slice_record()), NOT_US),
        attempt("delete all of south's", exports, Do::DeleteAll("sourceClusterID=south".into()), NOT_US),
        attempt("delete all Services'", exports, Do::DeleteAll("sourceKind=Service".into()), NOT_US),
        attempt("judge south's record", exports, Do::PatchStatus(service_record(), status()), LEADER_ALONE),
        attempt("announce south", announces, Do::Create(named(&announce("south"))), NOT_US),
        attempt("announce nobody", announces, Do::Create(named("mallory")), NO_CLUSTER),
        attempt("patch south's announce", announces, Do::Patch(announce("south"), note()), NOT_US),
        attempt("replace south's announce", announces, Do::Replace(announce("south"), note()), NOT_US),
        attempt("delete south's announce", announces, Do::Delete(announce("south")), NOT_US),
        attempt("delete all announces", announces, Do::DeleteAll(String::new()), "may not act as"),
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
        attempt("create an import", imports, Do::Create(named("shop-other-service")), LEADER_ALONE),
        attempt("patch an import", imports, Do::Patch(import(), note()), LEADER_ALONE),
        attempt("replace an import", imports, Do::Replace(import(), note()), LEADER_ALONE),
        attempt("delete an import", imports, Do::Delete(import()), LEADER_ALONE),
        attempt("delete all imports", imports, Do::DeleteAll(String::new()), LEADER_ALONE),
    ]
}

#[test]
fn a_member_does_nothing_to_what_is_anothers() {
    shared(async |world| {
        let leader = world.cluster("leader");
        let before = state_of_others(&leader).await;
        try_all(&world.east, AREA, &on_others("east"), |_, refusal| !refusal.is_deliberate()).await;
        assert_eq!(state_of_others(&leader).await, before);
    });
}

#[test]
fn nor_does_one_whose_role_is_too_wide() {
    shared(async |world| {
        let leader = world.cluster("leader");
        let before = state_of_others(&leader).await;
        let wrong = |attempt: &Attempt, refusal: &Refusal| !refusal.is_by_policy(attempt.says);
        try_all(&world.north, AREA, &on_others("north"), wrong).await;
        assert_eq!(state_of_others(&leader).await, before);
    });
}

/// Records under one's own ID that are not what they seem.
fn disguised() -> Vec<Attempt> {
    let attempt = |what, todo, says| Attempt { what, kind: exports(), todo, says };
    let changed = |what, says, change: fn(&mut Value)| {
        let mut record = service("east", "rights", "disguised");
        change(&mut record);
        attempt(what, Do::Create(record), says)
    };
    vec![
        changed("the name of south's record", "must be named east-rights-disguised-service", |r| {
            r["metadata"]["name"] = json!("south-rights-disguised-service");
        }),
        changed("a name of no record", "must be named", |r| r["metadata"]["name"] = json!("free")),
        changed("labels of south", "must have the labels sourceClusterID=east", |r| {
            r["metadata"]["labels"]["sourceClusterID"] = json!("south");
        }),
        changed("labels of another Service", "must have the labels", |r| {
            r["metadata"]["labels"]["sourceName"] = json!("web");
        }),
        changed("no labels", "must have the labels", |r| r["metadata"]["labels"] = json!({})),
        changed("labels of south on a record of another kind", "must have the labels", |r| {
            r["metadata"]["name"] = json!("east-clusterinfo");
            r["spec"]["kind"] = json!("ClusterInfo");
            r["metadata"]["labels"] = json!({"sourceClusterID": "south"});
        }),
        changed("a network policy for all", "is not taken: kinds are", |r| {
            r["spec"]["kind"] = json!("AntreaClusterNetworkPolicy");
        }),
        changed("no kind", "is not taken: kinds are", |r| {
            drop(r["spec"].as_object_mut().unwrap().remove("kind"))
        }),
        changed("the payload of a network policy", "must not have clusterNetworkPolicy", |r| {
            r["spec"]["clusterNetworkPolicy"] = json!({"priority": 1});
        }),
        changed("raw data", "must not have", |r| r["spec"]["raw"] = json!({"data": "eA=="})),
        changed("an external entity", "must not have", |r| r["spec"]["externalEntity"] = json!({})),
        changed("no cluster", "is of cluster \"\", which", |r| {
            drop(r["spec"].as_object_mut().unwrap().remove("clusterID"));
        }),
        // Canonical for Service `ns/web` of a cluster `east.a`.
        attempt(
            "a Namespace that makes us look like another cluster",
            Do::Create(slice("east", "a.ns", "web")),
            "DNS labels",
        ),
    ]
}

#[test]
fn a_record_is_what_it_is_named() {
    shared(async |world| {
        let wrong = |attempt: &Attempt, refusal: &Refusal| !refusal.is_by_policy(attempt.says);
        try_all(&world.east, AREA, &disguised(), wrong).await;
    });
}

#[test]
fn a_record_stays_about_what_it_was_about() {
    shared(async |world| {
        let east = &world.east;
        let record = name::service_export("east", &ServiceName::new("rights", "fixed"));
        Do::Create(service("east", "rights", "fixed")).by(east, AREA, &exports()).await.unwrap();
        let to = |field: &str, value: &str| Do::Patch(record.clone(), json!({"spec": {field: value}}));
        let attempt = |what, todo| Attempt { what, kind: exports(), todo, says: "do not change" };
        let attempts = [
            attempt("another cluster", to("clusterID", "south")),
            attempt("another Namespace", to("namespace", "shop")),
            attempt("another name", to("name", "web")),
            attempt("another kind", to("kind", "EndpointSlice")),
        ];
        let wrong = |attempt: &Attempt, refusal: &Refusal| !refusal.is_by_policy(attempt.says);
        try_all(east, AREA, &attempts, wrong).await;
        let status = json!({"status": {"conditions": [{"type": "Succeeded", "status": "True"}]}});
        let judged = Do::PatchStatus(record.clone(), status).by(east, AREA, &exports()).await;
        assert!(judged.as_ref().is_err_and(Refusal::is_deliberate), "{judged:?}");
        Do::Delete(record).by(east, AREA, &exports()).await.unwrap();
    });
}

#[test]
fn a_member_writes_its_own() {
    shared(async |world| {
        let east = &world.east;
        let note = json!({"metadata": {"annotations": {"seen": "east"}}});
        let of = ServiceName::new("rights", "own");
        let dashed = service("east", "rights-dashed", "own");
        let info = json!({"metadata": {"name": "east-clusterinfo"}, "spec": {
            "clusterID": "east", "namespace": "kube-system", "name": "east", "kind": "ClusterInfo",
            "clusterInfo": {"clusterID": "east"},
        }});
        let identity = json!({"metadata": {"name": "east-0123456789abcdef"}, "spec": {
            "clusterID": "east", "kind": "LabelIdentity", "labelIdentity": {"normalizedLabel": "x"},
        }});
        let endpoints = record(
            "east-rights-own-endpoints",
            "east",
            &of,
            "Endpoints",
            json!({"endpoints": {"subsets": []}}),
        );
        let announced = json!({"metadata": {"name": announce("east")}, "clusterID": "east"});
        let lease = json!({"metadata": {"name": member_lease("east")}, "spec": {"holderIdentity": "east/1"}});
        for (kind, object) in [
            (exports(), service("east", "rights", "own")),
            (exports(), slice("east", "rights", "own")),
            (exports(), dashed),
            (exports(), endpoints),
            (exports(), info),
            (exports(), identity),
            (announces(), announced),
            (leases(), lease),
        ] {
            let name = object["metadata"]["name"].as_str().unwrap().to_owned();
            // The daemon may have been here.
            let _ = Do::Delete(name.clone()).by(east, AREA, &kind).await;
            for todo in [Do::Create(object), Do::Patch(name.clone(), note.clone()), Do::Delete(name.clone())]
            {
                let done = todo.by(east, AREA, &kind).await;
                assert!(done.is_ok(), "{name}: {todo:?}: {done:?}");
            }
        }
    });
}

#[test]
fn what_travels_passes() {
    shared(async |world| {
        for golden in [
            include_str!("../../../api/tests/golden/export-service.json"),
            include_str!("../../../api/tests/golden/export-slice.json"),
            include_str!("../../../api/tests/golden/export-endpoints-antrea.json"),
        ] {
            let mut object: Value = serde_json::from_str(golden).unwrap();
            object["metadata"]["namespace"] = json!(AREA);
            let done = Do::DryCreate(object).by(&world.east, AREA, &exports()).await;
            assert!(done.is_ok(), "{golden}: {done:?}");
        }
    });
}
