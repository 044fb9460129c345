//! What tests of binding start with: a contract with a provider that does not answer.

use api::{
    bind::{label, mapping::Strategy, resource::InformerScope},
    label::CLUSTER_UID,
};
use kit::{client::kubeconfig::Target, objects::Change};
use kube::{Client, api::ApiResource, client::Body, core::Status};
use serde_json::json;
use tokio::net::TcpListener;

use super::{contract::Contract, sync::Bound};
use crate::feature::fixture::access;

/// A kubeconfig for a cluster namespace.
pub(crate) fn kubeconfig(namespace: &str, token: &str) -> Vec<u8> {
    let all = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "default",
        "contexts": [{"name": "default", "context": {"cluster": "default", "user": "default", "namespace": namespace}}],
        "clusters": [{"name": "default", "cluster": {"server": "https://127.0.0.1:6443"}}],
        "users": [{"name": "default", "user": {"token": token}}],
    });
    all.to_string().into_bytes()
}

/// An API server that does nothing of what it is asked.
pub(crate) fn refusing(code: u16, words: &str) -> Client {
    let status = Status::failure(words, "Refused").with_code(code);
    let answer = move |_: http::Request<Body>| {
        let body = Body::from(json!(status).to_string().into_bytes());
        let answer = http::Response::builder().status(code).body(body);
        std::future::ready(answer)
    };
    Client::new(tower::service_fn(answer), "x")
}

/// A contract of which nothing is known.
pub(crate) fn contract() -> Contract {
    at("127.0.0.1:6443")
}

fn at(address: &str) -> Contract {
    let kubeconfig = String::from_utf8(kubeconfig("kube-bind-37p3oxx6sh4fd", "t")).unwrap();
    let target = Target::read(kubeconfig.replace("127.0.0.1:6443", address).as_bytes()).unwrap();
    Contract::new(&access().env, target, "n1".into(), "us").unwrap()
}

/// A contract with a provider that nobody answers for.
pub(crate) async fn silent_contract() -> (Contract, TcpListener) {
    let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
    (at(&server.local_addr().unwrap().to_string()), server)
}

/// The provider assigns `theirs` to `ours`, for which we asked.
pub(crate) fn assign(contract: &Contract, ours: &str, theirs: &str) {
    assign_for(contract, "consumer", ours, theirs);
}

/// The same, for which `owner` asked.
pub(crate) fn assign_for(contract: &Contract, owner: &str, ours: &str, theirs: &str) {
    let metadata = json!({"name": ours, "namespace": contract.cluster_namespace.name, "uid": ours, "resourceVersion": "1",
        "labels": {label::OWNER: owner}, "annotations": {CLUSTER_UID: "us"}});
    let namespace = json!({"metadata": metadata, "spec": {}, "status": {"namespace": theirs}});
    let namespace = serde_json::from_value(namespace).unwrap();
    contract.known.with(|known| {
        known.namespaces.change(Change::Apply(namespace));
        known.assigned = None;
    });
}

/// An API with objects in Namespaces.
pub(crate) fn bound() -> Bound {
    Bound {
        binding: "mango".into(),
        binding_uid: "b1".into(),
        resource: ApiResource {
            group: "provider.example.com".into(),
            version: "v1".into(),
            api_version: "provider.example.com/v1".into(),
            kind: "MangoDB".into(),
            plural: "mangodbs".into(),
        },
        strategy: Strategy::Namespaced,
        informer_scope: InformerScope::Namespaced,
        has_status: true,
        orphan: false,
    }
}
