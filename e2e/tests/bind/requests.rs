//! Requests of one consumer that get in each other's way. No konnector takes part.

use api::bind::{
    bound_schema::BoundSchema,
    carried,
    export::{APIServiceExport, APIServiceExportRequest, APIServiceNamespace, Phase},
    label,
    resource::{InformerScope, Isolation},
};
use e2e::{
    binding::{
        BINDING, Offered,
        provider::{contract, offer, request},
    },
    cluster::Cluster,
    waiting::eventually,
};
use futures::future::join_all;
use kube::{
    ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams},
};
use serde_json::{Value, json};

use super::lifecycle::goes;

fn of(offered: &Offered) -> Value {
    json!({"resources": [{"group": offered.resource().group, "resource": offered.plural}]})
}

async fn is_pending(leader: &Cluster, cns: &str, name: &str, reason: &str) {
    let asked = leader.api::<APIServiceExportRequest>(cns);
    eventually(&format!("request {name} waits: {reason}"), || async {
        let status = asked.get(name).await.unwrap().status.unwrap_or_default();
        let says = status.conditions.iter().any(|condition| condition.reason.as_deref() == Some(reason));
        if status.phase == Phase::Pending && says { Ok(()) } else { Err(format!("{status:?}")) }
    })
    .await;
}

#[e2e::test]
fn b16_of_many_requests_for_one_api_at_once_one_is_granted() {
    BINDING.beside(async |world| {
        let (leader, offered) = (world.leader(), Offered::new("crowds", "Namespaced"));
        offer(leader, &offered, json!({})).await;
        let (cns, _) = contract(world, "crowd", "crowds").await;
        let names: Vec<_> = (0..8).map(|nth| format!("crowd{nth}")).collect();
        let all = names.iter().map(|name| request(world, &cns, name, of(&offered)));
        let all = join_all(all).await;
        let (granted, refused): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|(phase, _)| *phase == Phase::Succeeded);
        let exports = leader.api::<APIServiceExport>(&cns).list(&ListParams::default()).await.unwrap().items;
        assert_eq!((granted.len(), exports.len()), (1, 1), "{refused:?}");
        assert!(refused.iter().all(|(_, reason)| reason == "AlreadyBound"), "{refused:?}");

        // Its Namespaces have one place for all APIs.
        let other = Offered::new("crowdothers", "Namespaced");
        offer(leader, &other, json!({label::ISOLATION: "None"})).await;
        contract(world, "crowd", "crowdothers").await;
        let otherwise = request(world, &cns, "crowdothers", of(&other)).await;
        assert_eq!(otherwise, (Phase::Failed, "DifferentIsolation".into()));
        // Also the places that an API leaves.
        let left = json!({"metadata": {"name": "shop"}, "spec": {}});
        let _: APIServiceNamespace = leader.create(&cns, left).await;
        let spaces = leader.api::<APIServiceNamespace>(&cns);
        eventually("it has a place", || async {
            let status = spaces.get("shop").await.unwrap().status.unwrap_or_default();
            status.namespace.ok_or_else(|| format!("{:?}", status.conditions))
        })
        .await;
        let export = exports[0].name_any();
        leader.api::<APIServiceExport>(&cns).delete(&export, &DeleteParams::default()).await.unwrap();
        goes(&leader.api::<APIServiceExport>(&cns), &export).await;
        let otherwise = request(world, &cns, "crowdlater", of(&other)).await;
        assert_eq!(otherwise, (Phase::Failed, "DifferentIsolation".into()));
        spaces.delete("shop", &DeleteParams::default()).await.unwrap();
        goes(&spaces, "shop").await;
        assert_eq!(request(world, &cns, "crowdagain", of(&other)).await.0, Phase::Succeeded);
        leader.release_namespace(&cns).await;
        for offered in [&offered, &other] {
            leader.take_crd(&offered.name()).await;
        }
    });
}

/// As after a leader that was killed between two writes, where somebody deleted the request.
#[e2e::test]
fn a_schema_that_was_left_is_made_anew_for_an_export_and_goes_with_a_request() {
    BINDING.beside(async |world| {
        let (leader, offered) = (world.leader(), Offered::new("lefts", "Namespaced"));
        offer(leader, &offered, json!({})).await;
        let (cns, _) = contract(world, "left", "lefts").await;
        let scope = (Isolation::Prefixed, InformerScope::Namespaced);
        let (now, _) = carried::bound(&offered.crd.spec, scope.0, scope.1).unwrap();
        let mut old = json!(now);
        old["names"]["shortNames"] = json!(["old"]);
        let left = async || {
            let annotations = json!({label::SOURCE_SPEC_HASH: "old"});
            let old = json!({"metadata": {"name": offered.name(), "annotations": annotations}, "spec": old.clone()});
            let _: BoundSchema = leader.create(&cns, old).await;
        };
        left().await;
        assert_eq!(request(world, &cns, "lefts", of(&offered)).await.0, Phase::Succeeded);
        let schemas = leader.api::<BoundSchema>(&cns);
        assert_eq!(schemas.get(&offered.name()).await.unwrap().spec.names.short_names, None);

        let exports = leader.api::<APIServiceExport>(&cns);
        let end = async || {
            exports.delete("lefts", &DeleteParams::default()).await.unwrap();
            goes(&exports, "lefts").await;
        };
        end().await;
        left().await;
        let requests = leader.api::<APIServiceExportRequest>(&cns);
        requests.delete("lefts", &DeleteParams::default()).await.unwrap();
        goes(&schemas, &offered.name()).await;

        left().await;
        let unknown = json!({"resources": [{"group": offered.resource().group, "resource": "unknown"}]});
        assert_eq!(request(world, &cns, "lefts", unknown).await.0, Phase::Failed);
        goes(&schemas, &offered.name()).await;
        leader.release_namespace(&cns).await;
        leader.take_crd(&offered.name()).await;
    });
}

#[e2e::test]
fn a_request_that_is_too_large_fails_and_says_so() {
    BINDING.beside(async |world| {
        let (leader, offered) = (world.leader(), Offered::new("large", "Namespaced"));
        offer(leader, &offered, json!({})).await;
        let (cns, _) = contract(world, "larges", "large").await;
        let many = (0..5000).map(|n| json!({"group": "example.com", "resource": format!("large{n}")}));
        let spec = json!({"resources": many.collect::<Vec<_>>()});
        assert_eq!(request(world, &cns, "large", spec).await, (Phase::Failed, "NotReadable".into()));
        leader.release_namespace(&cns).await;
        leader.take_crd(&offered.name()).await;
    });
}

#[e2e::test]
fn a_request_waits_for_the_end_of_an_export_that_is_going() {
    BINDING.beside(async |world| {
        let (leader, offered) = (world.leader(), Offered::new("goings", "Namespaced"));
        offer(leader, &offered, json!({})).await;
        let (cns, _) = contract(world, "going", "goings").await;
        assert_eq!(request(world, &cns, "goings", of(&offered)).await.0, Phase::Succeeded);
        let more = json!({"resources": [{"group": offered.resource().group, "resource": "goings", "versions": ["v1"]}]});
        let requests = leader.api::<APIServiceExportRequest>(&cns);
        requests.delete("goings", &DeleteParams::default()).await.unwrap();
        assert_eq!(request(world, &cns, "goings", more).await.0, Phase::Succeeded, "C9: it has just that");

        let exports = leader.api::<APIServiceExport>(&cns);
        let held = |finalizers: Value| Patch::Merge(json!({"metadata": {"finalizers": finalizers}}));
        let params = PatchParams::default();
        let before = exports.patch("goings", &params, &held(json!(["example.com/held"]))).await.unwrap();
        exports.delete("goings", &DeleteParams::default()).await.unwrap();
        requests.delete("goings", &DeleteParams::default()).await.unwrap();
        let again = json!({"metadata": {"name": "goings"}, "spec": of(&offered)});
        let _: APIServiceExportRequest = leader.create(&cns, again).await;
        is_pending(leader, &cns, "goings", "ExportIsGoing").await;
        exports.patch("goings", &params, &held(Value::Null)).await.unwrap();
        eventually("the request is granted", || async {
            let status = requests.get("goings").await.unwrap().status.unwrap_or_default();
            if status.phase == Phase::Succeeded { Ok(()) } else { Err(format!("{status:?}")) }
        })
        .await;
        let after = exports.get("goings").await.unwrap();
        assert_ne!(after.uid(), before.uid());
        assert!(after.metadata.deletion_timestamp.is_none());
        leader.release_namespace(&cns).await;
        leader.take_crd(&offered.name()).await;
    });
}
