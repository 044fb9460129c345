//! NamespaceOffloadings that can only be a mistake, as the API server refuses them whoever writes them, and users among them.

use e2e::{
    fixture::{AREA, SYSTEM},
    waiting::eventually,
};
use kube::{
    Api,
    api::{ApiResource, DynamicObject},
};
use serde_json::{Value, json};

use crate::rights::{
    account::{self, Rights, until_allowed},
    attempt::{Do, EVERYWHERE},
    parties::shared,
    samples::{offloading, offloadings, peers},
};

fn of_version(version: &str) -> ApiResource {
    let kind = offloadings();
    ApiResource { api_version: format!("{}/{version}", kind.group), version: version.into(), ..kind }
}

fn selecting(term: &Value) -> Value {
    json!({"clusterSelector": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}, term]}})
}

fn requiring(requirement: &Value) -> Value {
    selecting(&json!({"matchExpressions": [requirement]}))
}

fn naming(requirement: &Value) -> Value {
    selecting(&json!({"matchFields": [requirement]}))
}

/// Of each rule one that breaks it, and words of the sentence that says so.
fn wrong() -> Vec<(Value, &'static str)> {
    let six = "is none of In, NotIn, Exists, DoesNotExist, Gt and Lt";
    let fields = "matchFields take key metadata.name, operator In or NotIn, and one value";
    vec![
        (json!({"namespaceMappingStrategy": "SelectedName"}), "SelectedName needs a remoteNamespaceName"),
        (
            json!({"namespaceMappingStrategy": "SelectedName", "remoteNamespaceName": "Shop_1"}),
            "lower case letters, digits and dashes, not \"Shop_1\"",
        ),
        (selecting(&json!({})), "an empty term of clusterSelector selects nothing"),
        (
            requiring(&json!({"key": "a b", "operator": "Exists"})),
            "\"a b\" in clusterSelector is not the key of a label",
        ),
        (requiring(&json!({"key": "a", "operator": "Matches", "values": ["b"]})), six),
        (requiring(&json!({"key": "a", "operator": "In"})), "operator In of a needs a value"),
        (
            requiring(&json!({"key": "a", "operator": "NotIn", "values": []})),
            "operator NotIn of a needs a value",
        ),
        (
            requiring(&json!({"key": "a", "operator": "Exists", "values": ["b"]})),
            "operator Exists of a takes no values",
        ),
        (
            requiring(&json!({"key": "a", "operator": "Gt", "values": ["1", "2"]})),
            "Gt of a needs one whole number",
        ),
        (
            requiring(&json!({"key": "a", "operator": "Lt", "values": ["b"]})),
            "Lt of a needs one whole number",
        ),
        (requiring(&json!({"key": "a", "operator": "In", "values": ["b c"]})), "is not the value of a label"),
        (naming(&json!({"key": "metadata.uid", "operator": "In", "values": ["b"]})), fields),
        (naming(&json!({"key": "metadata.name", "operator": "Exists"})), fields),
        (naming(&json!({"key": "metadata.name", "operator": "In", "values": ["a", "b"]})), fields),
    ]
}

#[e2e::test]
fn an_offloading_that_nobody_could_do_is_refused_and_the_sentence_says_why() {
    shared(async |parties| {
        let space = parties.world.namespace("offload-wrong", &["leader"]).await;
        let admin = &parties.world.leader().client;
        let told = async |namespace: &str, kind: &ApiResource, todo: Do, says: &str| match todo
            .by(admin, namespace, kind)
            .await
        {
            Err(refusal) if refusal.is_by_policy(says) => Ok(()),
            other => Err(format!("{todo:?}, {says}: {other:?}")),
        };
        let mut other = offloading(&json!({}));
        other["metadata"]["name"] = json!("other");
        eventually("freeport-offload-content is enforced", || async {
            told(&space, &offloadings(), Do::DryCreate(other.clone()), "must be called offloading").await
        })
        .await;
        for version in ["v1alpha1", "v1beta1"] {
            for (spec, says) in wrong() {
                told(&space, &of_version(version), Do::Create(offloading(&spec)), says).await.unwrap();
            }
        }
        let never = "cannot be offloaded";
        for namespace in ["kube-system", "kube-public", SYSTEM, AREA] {
            told(namespace, &offloadings(), Do::Create(offloading(&json!({}))), never).await.unwrap();
        }
        // Another test may have one there.
        let may_be = Do::DryCreate(offloading(&json!({}))).by(admin, "default", &offloadings()).await;
        assert!(may_be.as_ref().err().is_none_or(|refusal| refusal.code == 409), "{may_be:?}");

        let selector = json!({"nodeSelectorTerms": [
            {"matchExpressions": [
                {"key": "topology.kubernetes.io/region", "operator": "In", "values": ["a", ""]},
                {"key": "n", "operator": "Gt", "values": ["5"]},
                {"key": "b", "operator": "DoesNotExist"},
            ]},
            {"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["freeport-east"]}]},
        ]});
        let right = json!({
            "namespaceMappingStrategy": "SelectedName", "remoteNamespaceName": "shop-1", "clusterSelector": selector,
        });
        Do::Create(offloading(&right)).by(admin, &space, &offloadings()).await.unwrap();
        let change = |spec: Value| Do::Patch("offloading".into(), json!({"spec": spec}));
        for (spec, says) in [
            (
                json!({"namespaceMappingStrategy": "DefaultName"}),
                "cannot be changed from SelectedName to DefaultName",
            ),
            (json!({"remoteNamespaceName": "shop-2"}), "cannot be changed from \"shop-1\" to \"shop-2\""),
            (requiring(&json!({"key": "a", "operator": "In"})), "operator In of a needs a value"),
        ] {
            told(&space, &offloadings(), change(spec), says).await.unwrap();
        }
        change(json!({"podOffloadingStrategy": "Remote", "clusterSelector": null}))
            .by(admin, &space, &offloadings())
            .await
            .unwrap();
        Do::Delete("offloading".into()).by(admin, &space, &offloadings()).await.unwrap();
        parties.world.release(&space).await;
    });
}

/// What the API server warns of when the strategy is patched.
async fn warned(client: &kube::Client, namespace: &str, strategy: &str) -> Result<String, String> {
    let url = Api::<DynamicObject>::namespaced_with(client.clone(), namespace, &offloadings())
        .resource_url()
        .to_owned();
    let patch = json!({"spec": {"podOffloadingStrategy": strategy}});
    let request = http::Request::patch(format!("{url}/offloading"))
        .header("content-type", "application/merge-patch+json")
        .body(patch.to_string().into_bytes().into())
        .unwrap();
    let answer = client.send(request).await.map_err(|failure| format!("{strategy}: {failure}"))?;
    if !answer.status().is_success() {
        return Err(format!("{strategy}: {answer:?}"));
    }
    let warnings: Vec<_> =
        answer.headers().get_all("warning").iter().map(|w| w.to_str().unwrap().to_owned()).collect();
    Ok(warnings.join("; "))
}

#[e2e::test]
fn who_restricts_where_pods_run_is_told_that_those_that_run_stay() {
    shared(async |parties| {
        let space = parties.world.namespace("offload-warned", &["leader"]).await;
        let admin = &parties.world.leader().client;
        Do::Create(offloading(&json!({}))).by(admin, &space, &offloadings()).await.unwrap();
        // A policy is compiled some time after it is there, and again when its parameters change.
        eventually("it is told of each restriction, and of nothing else", || async {
            let to = async |strategy| warned(admin, &space, strategy).await;
            to("LocalAndRemote").await?;
            let seen =
                [to("Remote").await?, to("Remote").await?, to("Local").await?, to("LocalAndRemote").await?];
            let told = seen[0].contains("those that exist stay where they are until they are deleted")
                && seen[2].contains("podOffloadingStrategy Local is for new Pods");
            if told && seen[1].is_empty() && seen[3].is_empty() { Ok(()) } else { Err(format!("{seen:?}")) }
        })
        .await;
        parties.world.release(&space).await;
    });
}

#[e2e::test]
fn the_administrator_of_a_namespace_offloads_it_and_who_edits_it_does_not() {
    shared(async |parties| {
        let world = &parties.world;
        let space = world.namespace("offload-roles", &["leader"]).await;
        let admin = account::with(world, &space, "offload-admin", Rights::ClusterRole("admin")).await;
        let edit = account::with(world, &space, "offload-edit", Rights::ClusterRole("edit")).await;
        let view = account::with(world, &space, "offload-view", Rights::ClusterRole("view")).await;
        let asked = Do::DryCreate(offloading(&json!({})));
        until_allowed(&admin, &space, "offloading.liqo.io", "namespaceoffloadings", "create").await;
        asked.by(&admin, &space, &offloadings()).await.unwrap();
        for user in [&edit, &view] {
            until_allowed(user, &space, "offloading.liqo.io", "namespaceoffloadings", "list").await;
            assert_eq!(asked.by(user, &space, &offloadings()).await.unwrap_err().code, 403);
        }
        let accepted = Do::DryCreate(json!({"metadata": {"name": "east"}, "spec": {"incoming": {}}}));
        for user in [&admin, &edit, &view] {
            assert_eq!(accepted.by(user, EVERYWHERE, &peers()).await.unwrap_err().code, 403);
        }
        world.release(&space).await;
    });
}
