//! The daemons' Pods in their Namespace: as they are they are let in, and none that asks for more.

use cli::objects::{DEFAULT_IMAGE, Object, leader, member, offload};
use e2e::fixture::SYSTEM;
use k8s_openapi::api::core::v1::Pod;
use kube::api::ApiResource;
use serde_json::{Value, json};

use crate::rights::{attempt::Do, parties::shared};

#[e2e::test]
fn what_runs_the_daemons_inside_is_taken() {
    shared(async |parties| {
        let client = &parties.world.leader().client;
        let webhook = offload::webhook::workload(DEFAULT_IMAGE);
        let daemons =
            [leader::workload(DEFAULT_IMAGE, 2, &[]), member::workload(DEFAULT_IMAGE, 2, true, &[])].concat();
        for object in daemons.into_iter().chain(webhook) {
            let done = Do::DryCreate(object.body.clone()).by(client, SYSTEM, &object.resource).await;
            assert!(done.is_ok(), "{object}: {done:?}");
        }
    });
}

fn pod(deployment: &Object) -> Value {
    let template = &deployment.body["spec"]["template"];
    json!({"metadata": {"name": "probe", "labels": template["metadata"]["labels"]}, "spec": template["spec"]})
}

#[e2e::test]
fn pods_are_as_restricted_as_their_namespace_demands() {
    shared(async |parties| {
        let client = &parties.world.leader().client;
        let kind = ApiResource::erase::<Pod>(&());
        let is_deployment = |object: &Object| object.resource.kind == "Deployment";
        let all = [
            leader::workload(DEFAULT_IMAGE, 2, &[]),
            member::workload(DEFAULT_IMAGE, 2, true, &[]),
            offload::webhook::workload(DEFAULT_IMAGE),
        ];
        for deployment in all.concat().into_iter().filter(is_deployment) {
            let pod = pod(&deployment);
            let done = Do::DryCreate(pod.clone()).by(client, SYSTEM, &kind).await;
            assert!(done.is_ok(), "{deployment}: {done:?}");

            let mut greedy = pod;
            greedy["spec"]["containers"][0]["securityContext"]["allowPrivilegeEscalation"] = json!(true);
            let done = Do::DryCreate(greedy).by(client, SYSTEM, &kind).await;
            let refused = |message: &str| message.contains("violates PodSecurity");
            assert!(done.as_ref().is_err_and(|refusal| refused(&refusal.message)), "{done:?}");
        }
    });
}
