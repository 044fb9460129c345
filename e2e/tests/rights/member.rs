//! What the member may write in its own cluster: what Freeport makes, and nothing of anybody else (issue 14, A10).

use api::{label, mcs::ServiceImport};
use e2e::fixture::SYSTEM;
use k8s_openapi::api::{core::v1::Service, discovery::v1::EndpointSlice};
use kube::api::ApiResource;
use serde_json::{Value, json};

use crate::rights::{
    attempt::{Attempt, Do, Refusal, try_all},
    parties::{Parties, shared},
    samples::{
        config_maps, core_endpoints, endpoints, event, events, import, imports, leases, ours, service,
        services, slice, slices,
    },
};

fn note() -> Value {
    json!({"metadata": {"annotations": {"seen": "here"}}})
}

fn attempt(what: &'static str, kind: fn() -> ApiResource, todo: Do, says: &'static str) -> Attempt {
    Attempt { what, kind: kind(), todo, says }
}

fn changed(mut object: Value, change: impl FnOnce(&mut Value)) -> Do {
    change(&mut object);
    Do::Create(object)
}

const LABEL: &str = "must have the label app.kubernetes.io/managed-by: freeport";
const NAME: &str = "is named antrea-mc-";
const FOREIGN: &str = "freeport-member never wrote it";
const REACH: &str = "must be of type ClusterIP, without selector, externalIPs and externalName";

/// What it must not create: without our labels, under other names, or reaching further than an import.
fn creations() -> Vec<Attempt> {
    let plain = json!({"name": "antrea-mc-plain"});
    let named = ours("antrea-mc-new");
    let reaching = |what, change: fn(&mut Value)| {
        attempt(what, services, changed(service(&ours("antrea-mc-new")), change), REACH)
    };
    vec![
        attempt("a Service without labels", services, Do::Create(service(&plain)), LABEL),
        attempt("a Service of another name", services, Do::Create(service(&ours("web"))), NAME),
        attempt("a question that is none", services, Do::Create(service(&ours("freeport-families-1"))), NAME),
        attempt("a slice without labels", slices, Do::Create(slice(plain.clone(), "")), LABEL),
        attempt("a slice of another name", slices, Do::Create(slice(ours("web"), "antrea-mc-web")), NAME),
        attempt(
            "endpoints for a Service that is not imported",
            slices,
            Do::Create(slice(named.clone(), "kubernetes")),
            "kubernetes.io/service-name: antrea-mc-..., not \"kubernetes\"",
        ),
        attempt("Endpoints without labels", endpoints, Do::Create(core_endpoints(&plain)), LABEL),
        attempt("Endpoints of another Service", endpoints, Do::Create(core_endpoints(&ours("web"))), NAME),
        attempt("an import without labels", imports, Do::Create(import(&json!({"name": "new"}))), LABEL),
        reaching("a load balancer", |s| s["spec"]["type"] = json!("LoadBalancer")),
        reaching("a port of all nodes", |s| s["spec"]["type"] = json!("NodePort")),
        reaching("somebody's Pods", |s| s["spec"]["selector"] = json!({"app": "db"})),
        reaching("somebody's address", |s| s["spec"]["externalIPs"] = json!(["192.0.2.1"])),
        attempt(
            "what keeps a Namespace from going",
            services,
            changed(service(&named), |s| s["metadata"]["finalizers"] = json!(["example.com/forever"])),
            "must not get finalizers",
        ),
    ]
}

/// What it must not do to what is there: `shop` is a user's, `antrea-mc-theirs` somebody's whose name looks like ours, `web` our own.
fn changes() -> Vec<Attempt> {
    let patch = |name: &str| Do::Patch(name.into(), note());
    let adopt = |name: &str| Do::Patch(name.into(), json!({"metadata": ours(name)}));
    let delete = |name: &str| Do::Delete(name.into());
    let our_slice =
        |labels: Value| Do::Patch("antrea-mc-web-1".into(), json!({"metadata": {"labels": labels}}));
    vec![
        attempt("patch a Service", services, patch("shop"), NAME),
        attempt("delete a Service", services, delete("shop"), NAME),
        attempt("patch a Service that looks like ours", services, patch("antrea-mc-theirs"), FOREIGN),
        attempt("make it ours", services, adopt("antrea-mc-theirs"), FOREIGN),
        attempt("delete it", services, delete("antrea-mc-theirs"), FOREIGN),
        attempt("patch a slice", slices, patch("shop-1"), NAME),
        attempt("delete a slice", slices, delete("shop-1"), NAME),
        attempt("patch an import", imports, patch("there"), FOREIGN),
        attempt("make an import ours", imports, adopt("there"), FOREIGN),
        attempt("delete an import", imports, delete("there"), FOREIGN),
        attempt(
            "the status of an import",
            imports,
            Do::PatchStatus("there".into(), json!({"status": {"clusters": [{"cluster": "east"}]}})),
            FOREIGN,
        ),
        attempt(
            "take the label off",
            slices,
            our_slice(json!({"app.kubernetes.io/managed-by": null})),
            LABEL,
        ),
        attempt(
            "send our endpoints to another Service",
            slices,
            our_slice(json!({"kubernetes.io/service-name": "shop"})),
            "not \"shop\"",
        ),
        attempt(
            "give our Service somebody's address",
            services,
            Do::Patch("antrea-mc-web".into(), json!({"spec": {"externalIPs": ["192.0.2.1"]}})),
            REACH,
        ),
        attempt("an Event of another controller", events, patch("theirs"), "whose reportingController it is"),
    ]
}

/// Objects of others in a Namespace, and an import of ours.
async fn furnish(parties: &Parties, space: &str) {
    let admin = parties.world.leader();
    let user = |name: &str| json!({"name": name, "labels": {"app": "shop"}});
    for name in ["shop", "antrea-mc-theirs"] {
        let _: Service = admin.create(space, service(&user(name))).await;
    }
    let _: EndpointSlice = admin.create(space, slice(user("shop-1"), "shop")).await;
    let _: ServiceImport = admin.create(space, import(&user("there"))).await;
    let theirs = Do::Create(event(space, "theirs", "kubelet"));
    theirs.by(&admin.client, space, &events()).await.unwrap();
    for (kind, object) in own(space) {
        Do::CreateAs(label::MEMBER, object).by(&parties.member, space, &kind).await.unwrap();
    }
}

/// One of each kind, as the member writes it.
fn own(space: &str) -> Vec<(ApiResource, Value)> {
    vec![
        (services(), service(&ours("antrea-mc-web"))),
        (slices(), slice(ours("antrea-mc-web-1"), "antrea-mc-web")),
        (endpoints(), core_endpoints(&ours("antrea-mc-web"))),
        (imports(), import(&ours("web"))),
        (events(), event(space, "web.1", "freeport-member")),
    ]
}

#[e2e::test]
fn a10_the_member_does_nothing_to_what_it_did_not_make() {
    shared(async |parties| {
        let space = &parties.world.namespace("rights-member", &["leader"]).await;
        furnish(parties, space).await;
        let wrong = |attempt: &Attempt, refusal: &Refusal| !refusal.is_by_policy(attempt.says);
        try_all(&parties.member, space, &[creations(), changes()].concat(), wrong).await;
        let of_all = [
            attempt("patch the API server's Service", services, Do::Patch("kubernetes".into(), note()), NAME),
            attempt("delete it", services, Do::Delete("kubernetes".into()), NAME),
        ];
        try_all(&parties.member, "default", &of_all, wrong).await;
        let only = "it writes only ConfigMap freeport-membership and Leases freeport-member and freeport-member-active";
        let of_daemons = [
            attempt("another ConfigMap", config_maps, Do::Create(json!({"metadata": ours("other")})), only),
            attempt("another Lease", leases, Do::Create(json!({"metadata": ours("other")})), only),
        ];
        try_all(&parties.member, SYSTEM, &of_daemons, wrong).await;
        parties.world.release(space).await;
    });
}

/// Somebody's edits, each of which a member has to be able to undo or to live with.
#[e2e::test]
fn a10_the_member_mends_and_deletes_what_it_made() {
    shared(async |parties| {
        let space = &parties.world.namespace("rights-mends", &["leader"]).await;
        furnish(parties, space).await;
        let (admin, member) = (&parties.world.leader().client, &parties.member);
        let done = async |who, kind: &ApiResource, todo: Do| {
            let done = todo.by(who, space, kind).await;
            assert!(done.is_ok(), "{todo:?}: {done:?}");
        };
        let nothing = json!({"metadata": {"labels": null, "finalizers": ["example.com/theirs"]}});
        for (kind, object) in own(space).into_iter().filter(|(kind, _)| kind.kind != "Event") {
            let name = object["metadata"]["name"].as_str().unwrap().to_owned();
            done(admin, &kind, Do::Patch(name.clone(), nothing.clone())).await;
            let back = json!({"metadata": {"labels": object["metadata"]["labels"], "annotations": {"seen": "here"}}});
            done(member, &kind, Do::Patch(name.clone(), back)).await;
            let free = json!({"metadata": {"finalizers": null}});
            done(member, &kind, Do::Patch(name, free)).await;
        }
        let reaching =
            json!({"spec": {"externalIPs": ["192.0.2.1"], "selector": {"a": "b"}, "type": "NodePort"}});
        done(admin, &services(), Do::Patch("antrea-mc-web".into(), reaching)).await;
        done(member, &services(), Do::Patch("antrea-mc-web".into(), note())).await;
        let no_more = json!({"spec": {"externalIPs": null, "selector": null, "type": "ClusterIP"}});
        done(member, &services(), Do::Patch("antrea-mc-web".into(), no_more)).await;
        let status = json!({"status": {"clusters": [{"cluster": "east"}]}});
        done(member, &imports(), Do::PatchStatus("web".into(), status)).await;
        done(member, &events(), Do::Patch("web.1".into(), note())).await;
        let question = service(&ours("freeport-families-1"));
        done(member, &services(), Do::DryCreate(question)).await;
        // With a Service Kubernetes deletes the Endpoints of its name.
        for (kind, object) in own(space).into_iter().rev().filter(|(kind, _)| kind.kind != "Event") {
            done(member, &kind, Do::Delete(object["metadata"]["name"].as_str().unwrap().into())).await;
        }
        parties.world.release(space).await;
    });
}
