//! What a consumer may do at its provider, with the token that the leader gave it: its own, and nothing of another one's.

mod everywhere;
mod finalizers;

use api::bind::{
    binding::ClusterBinding,
    bound_schema::BoundSchema,
    export::{APIServiceExport, APIServiceExportRequest, APIServiceNamespace, Phase},
};
use e2e::{
    account::by_token,
    binding::{
        BINDING, Offered,
        provider::{contract, offer, request},
    },
    fixture::{AREA, SYSTEM},
    waiting::eventually,
    world::World,
};
use kube::{Resource, api::ApiResource};
use serde_json::json;

use super::{Consumer, attempt, is_wrong, note, passes, until_refused};
use crate::rights::{
    attempt::{Attempt, Do, EVERYWHERE, try_all},
    samples::{accounts, bindings, namespaces, secrets},
};

fn kind<K: Resource<DynamicType = ()>>() -> ApiResource {
    ApiResource::erase::<K>(&())
}

/// Two consumers of the same two APIs: `near` is in Namespaces, `far` is not.
struct Two<'a> {
    world: &'a World,
    near: Offered,
    far: Offered,
    us: Consumer,
    them: Consumer,
}

impl<'a> Two<'a> {
    async fn begin(world: &'a World) -> Self {
        let [near, far] = [("nears", "Namespaced"), ("fars", "Cluster")].map(|(p, s)| Offered::new(p, s));
        for offered in [&near, &far] {
            offer(world.leader(), offered, json!({})).await;
        }
        let us = Self::consumer(world, "fenced-us", [&near, &far]).await;
        let them = Self::consumer(world, "fenced-them", [&near, &far]).await;
        let unsaid = Do::DryCreate(json!({"metadata": {"name": format!("{}-x", us.cns)}}));
        let says = "must have the annotation";
        until_refused(&us.client, EVERYWHERE, &far.api_resource(), unsaid.clone(), says).await;
        until_refused(&us.client, &format!("{}-team", us.cns), &near.api_resource(), unsaid, says).await;
        Self { world, near, far, us, them }
    }

    /// It has Namespace `team`, and an object `one` of each API.
    async fn consumer(world: &World, identity: &str, apis: [&Offered; 2]) -> Consumer {
        let mut cns = String::new();
        for api in apis {
            cns = contract(world, identity, &api.plural).await.0;
            let of = json!({"resources": [{"group": api.resource().group, "resource": api.plural}]});
            assert_eq!(request(world, &cns, &api.plural, of).await, (Phase::Succeeded, String::new()));
        }
        let client = by_token(world, "leader", &cns, "kube-binder").await;
        let us = Consumer { cns, client };
        let team = Do::Create(json!({"metadata": {"name": "team"}, "spec": {}}));
        passes(&us.client, &us.cns, &kind::<APIServiceNamespace>(), team).await;
        let asked = world.leader().api::<APIServiceNamespace>(&us.cns);
        let space = format!("{}-team", us.cns);
        eventually("team has a Namespace", || async {
            let status = asked.get("team").await.unwrap().status.unwrap_or_default();
            if status.namespace.as_ref() == Some(&space) { Ok(()) } else { Err(format!("{status:?}")) }
        })
        .await;
        passes(&us.client, &space, &apis[0].api_resource(), Do::Create(us.object("one"))).await;
        let far = format!("{}-one", us.cns);
        passes(&us.client, EVERYWHERE, &apis[1].api_resource(), Do::Create(us.object(&far))).await;
        us
    }

    async fn refused(&self, namespace: &str, attempts: &[Attempt]) {
        try_all(&self.us.client, namespace, attempts, is_wrong).await;
    }

    async fn end(self) {
        let leader = self.world.leader();
        for consumer in [&self.us, &self.them] {
            leader.release_namespace(&consumer.cns).await;
        }
        for offered in [&self.near, &self.far] {
            leader.take_crd(&offered.name()).await;
        }
    }
}

/// Of another consumer: its Namespace and its cluster namespace. It has no rights there at all.
async fn theirs(two: &Two<'_>) {
    let (near, of_us) = (two.near.api_resource(), two.us.object("other"));
    let one = || "one".to_owned();
    two.refused(
        &format!("{}-team", two.them.cns),
        &[
            attempt("read an object", &near, Do::Get(one()), ""),
            attempt("list objects", &near, Do::List, ""),
            attempt("create an object", &near, Do::Create(of_us), ""),
            attempt("create one in their name", &near, Do::Create(two.them.object("other")), ""),
            attempt("patch an object", &near, Do::Patch(one(), note()), ""),
            attempt("its status", &near, Do::PatchStatus(one(), json!({"status": {"phase": "x"}})), ""),
            attempt("delete an object", &near, Do::Delete(one()), ""),
            attempt("delete all", &near, Do::DeleteAll(String::new()), ""),
            attempt("give rights", &bindings(), Do::Create(json!({"metadata": {"name": "x"}})), ""),
        ],
    )
    .await;
    let status = json!({"status": {"namespace": "kube-system"}});
    let (ask, asked) =
        (json!({"metadata": {"name": "x"}, "spec": {"resources": []}}), json!({"metadata": {"name": "x"}}));
    let (exports, spaces) = (kind::<APIServiceExport>(), kind::<APIServiceNamespace>());
    two.refused(
        &two.them.cns,
        &[
            attempt("read the credential", &secrets(), Do::Get("kubeconfig".into()), ""),
            attempt("list Secrets", &secrets(), Do::List, ""),
            attempt("ask for an API", &kind::<APIServiceExportRequest>(), Do::Create(ask), ""),
            attempt("ask for a Namespace", &spaces, Do::Create(asked), ""),
            attempt("give a Namespace back", &spaces, Do::Delete("team".into()), ""),
            attempt("lead a Namespace elsewhere", &spaces, Do::PatchStatus("team".into(), status), ""),
            attempt("read exports", &exports, Do::List, ""),
            attempt("read schemas", &kind::<BoundSchema>(), Do::List, ""),
            attempt(
                "seem to be there",
                &kind::<ClusterBinding>(),
                Do::PatchStatus("cluster".into(), note()),
                "",
            ),
        ],
    )
    .await;
}

/// In its own cluster namespace the leader says what there is.
async fn leaders(two: &Two<'_>) {
    let (exports, schemas) = (kind::<APIServiceExport>(), kind::<BoundSchema>());
    let near = || two.near.plural.clone();
    let wide = json!({"spec": {"informerScope": "Cluster", "isolation": "None"}});
    let space = kind::<APIServiceNamespace>();
    let elsewhere = json!({"status": {"namespace": "kube-system"}});
    two.refused(
        &two.us.cns,
        &[
            attempt("more in an export", &exports, Do::Patch(near(), wide), ""),
            attempt("an export", &exports, Do::Create(json!({"metadata": {"name": "x"}})), ""),
            attempt("an export goes", &exports, Do::Delete(near()), ""),
            attempt("another schema", &schemas, Do::Patch(two.near.name(), note()), ""),
            attempt("a schema", &schemas, Do::Create(json!({"metadata": {"name": "x"}})), ""),
            attempt("where a Namespace is", &space, Do::PatchStatus("team".into(), elsewhere), ""),
            attempt(
                "who it is",
                &kind::<ClusterBinding>(),
                Do::Patch("cluster".into(), json!({"spec": {"providerPrettyName": "x"}})),
                "",
            ),
            attempt("its credential", &secrets(), Do::Patch("kubeconfig".into(), note()), ""),
            attempt("a Secret", &secrets(), Do::Create(json!({"metadata": {"name": "x"}})), ""),
            attempt("an account", &accounts(), Do::Create(json!({"metadata": {"name": "x"}})), ""),
            attempt("rights", &bindings(), Do::Create(json!({"metadata": {"name": "x"}})), ""),
            attempt("all that it asked for", &space, Do::DeleteAll(String::new()), ""),
        ],
    )
    .await;
    let cns = |consumer: &Consumer| consumer.cns.clone();
    two.refused(
        EVERYWHERE,
        &[
            attempt("a Namespace", &namespaces(), Do::Create(json!({"metadata": {"name": "x"}})), ""),
            attempt("which Namespaces there are", &namespaces(), Do::List, ""),
            attempt("another consumer", &namespaces(), Do::Get(cns(&two.them)), ""),
            attempt("more templates", &namespaces(), Do::Patch(cns(&two.us), note()), ""),
            attempt("another consumer goes", &namespaces(), Do::Delete(cns(&two.them)), ""),
        ],
    )
    .await;
    for namespace in [SYSTEM, AREA, "kube-system", "default"] {
        let near = two.near.api_resource();
        two.refused(
            namespace,
            &[
                attempt("Secrets", &secrets(), Do::List, ""),
                attempt("an object", &near, Do::Create(two.us.object("x")), ""),
                attempt("objects", &near, Do::List, ""),
            ],
        )
        .await;
    }
}

/// What a konnector does.
async fn needed(two: &Two<'_>) {
    let (us, cns) = (&two.us.client, two.us.cns.as_str());
    let (near, far) = (two.near.api_resource(), two.far.api_resource());
    let (one, other) = (format!("{cns}-one"), format!("{cns}-other"));
    let space = format!("{cns}-team");
    let ask = json!({"metadata": {"name": "more"}, "spec": {"resources": [{"group": "more.example.com", "resource": "things"}]}});
    let owner = json!({"apiVersion": "kube-bind.io/v1alpha2", "kind": "APIServiceExport", "name": two.near.plural, "uid": "u", "controller": true});
    let owned = json!({"metadata": {"name": "owned", "ownerReferences": [owner]}, "spec": {}, "status": {}});
    let connected = json!({"status": {"conditions": [{"type": "Connected", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}});
    for (namespace, kind, todo) in [
        (space.as_str(), &near, Do::Patch("one".into(), note())),
        (&space, &near, Do::Create(two.us.object("other"))),
        (&space, &near, Do::List),
        (&space, &near, Do::Delete("other".into())),
        (&space, &near, Do::Delete("one".into())),
        (EVERYWHERE, &far, Do::Create(two.us.object(&other))),
        (EVERYWHERE, &far, Do::Replace(one.clone(), note())),
        (EVERYWHERE, &far, Do::Delete(one)),
        (EVERYWHERE, &far, Do::Delete(other)),
        (EVERYWHERE, &namespaces(), Do::Get(cns.to_owned())),
        (cns, &secrets(), Do::Get("kubeconfig".into())),
        (cns, &kind::<BoundSchema>(), Do::List),
        (cns, &kind::<APIServiceExport>(), Do::PatchStatus(two.near.plural.clone(), connected)),
        (
            cns,
            &kind::<ClusterBinding>(),
            Do::PatchStatus("cluster".into(), json!({"status": {"heartbeatInterval": "5m0s"}})),
        ),
        (cns, &kind::<APIServiceExportRequest>(), Do::DryCreate(ask)),
        // As Go's konnector makes and changes one.
        (cns, &kind::<APIServiceNamespace>(), Do::DryCreate(owned)),
        (cns, &kind::<APIServiceNamespace>(), Do::Replace("team".into(), note())),
        (cns, &kind::<APIServiceNamespace>(), Do::Delete("team".into())),
    ] {
        let done = todo.by(us, namespace, kind).await;
        assert!(done.is_ok(), "{todo:?}: {done:?}");
    }
}

#[e2e::test]
fn a_consumer_has_its_own_and_nothing_of_another_ones() {
    BINDING.beside(async |world| {
        let two = Two::begin(world).await;
        theirs(&two).await;
        leaders(&two).await;
        finalizers::kept(&two).await;
        everywhere::anothers(&two).await;
        everywhere::nobodys(&two).await;
        needed(&two).await;
        two.end().await;
    });
}
