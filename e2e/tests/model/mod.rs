//! `sim`'s API server in memory against a real kube-apiserver: both get the same requests, and their answers are compared field by field.
//! [`differences.txt`](differences) lists how they differ, and may only shrink.
//!
//! A script is a file of `scripts/`. To add a script:
//!
//! 1. Write `scripts/NAME.txt`, NAME in letters and dashes; [`script`] has the form. Each script has Namespace `model-NAME` in both.
//! 2. `FREEPORT_MODEL_WRITE=1 cargo test -p e2e --test without_nodes -- model::` writes `differences.txt`, which `git diff` shows.
//! 3. Mend the model, or commit the new lines with a reason. Requests go to the end of a script, since lines name requests by number.
//!
//! Requests must have one answer. Kubernetes' controllers write ConfigMaps and ServiceAccounts of new Namespaces, EndpointSlices of Services
//! with a selector, conditions of Nodes and of Namespaces that are deleted: scripts do not read those. A request that is answered 503 or 504 is sent again
//! by kube, for minutes. Times in conditions are of 2026-01-01.

mod answer;
mod differences;
mod kinds;
mod normal;
mod script;

use std::{collections::BTreeSet, path::PathBuf};

use cli::objects::{Object, crds, offload};
use e2e::{cluster::Cluster, schedule::Place, shared::with_own, waiting::eventually, world::World};
use futures::{StreamExt, future::join_all, stream};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::{
    Api, Client,
    api::{DynamicObject, ListParams, PostParams},
};
use serde_json::json;
use sim::{
    api::Server,
    net::{Caller, Net},
    simulation::simulate,
};

use crate::model::{answer::Answer, differences::Listed, normal::Normal, script::Script};

/// Scripts that talk with the real API server at the same time.
const AT_ONCE: usize = 8;

/// An API server with nothing but CRDs.
const PLACE: Place = Place { name: "model", planes: 1, copies: 1 };

#[e2e::test]
fn the_model_answers_as_an_api_server_does_but_for_what_is_listed() {
    with_own(PLACE, World::bring_up("model", &["leader"]), |world| async {
        let scripts = Script::all(&folder().join("scripts"));
        let real = ask_server(world.leader(), &scripts).await;
        let model = ask_model(scripts.clone());
        let mut found = BTreeSet::new();
        for (script, (real, model)) in scripts.iter().zip(real.into_iter().zip(model)) {
            found.extend(differences::of_script(script, normal(script, real), normal(script, model)));
        }
        let listed = Listed::at(folder().join("differences.txt"));
        match std::env::var_os("FREEPORT_MODEL_WRITE") {
            Some(_) => listed.write(&found),
            None => listed.check(&found),
        }
    });
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/model")
}

/// Without what differs from server to server.
fn normal(script: &Script, answers: Vec<Answer>) -> Vec<Answer> {
    let mut normal = Normal::of(&script.namespace());
    answers.into_iter().map(|answer| normal.answer(answer)).collect()
}

/// CRDs of both daemons.
fn custom() -> Vec<Object> {
    let all = [crds::leader(), crds::member(), offload::leader_crds(), offload::member_crds()].concat();
    let mut names = BTreeSet::new();
    all.into_iter().filter(|crd| names.insert(crd.body["metadata"]["name"].to_string())).collect()
}

/// Answers of the real API server, in the order of the scripts.
async fn ask_server(cluster: &Cluster, scripts: &[Script]) -> Vec<Vec<Answer>> {
    join_all(custom().iter().map(|crd| install(cluster, crd))).await;
    let ask = |script: &Script| {
        let (client, script) = (cluster.client.clone(), script.clone());
        async move {
            cluster.create_namespace(&script.namespace()).await;
            until_populated(&client, &script.namespace()).await;
            answer::all(&client, &script).await
        }
    };
    let asked: Vec<_> = scripts.iter().map(ask).collect();
    stream::iter(asked).buffered(AT_ONCE).collect().await
}

/// Creates a CRD and waits until its kind is served in all versions.
async fn install(cluster: &Cluster, crd: &Object) {
    let body: DynamicObject = serde_json::from_value(crd.body.clone()).unwrap();
    let all = Api::<DynamicObject>::all_with(cluster.client.clone(), &crd.resource);
    all.create(&PostParams::default(), &body).await.unwrap();
    for resource in kinds::of_crd(&crd.body) {
        let objects = Api::<DynamicObject>::all_with(cluster.client.clone(), &resource);
        eventually(&format!("{} are served", resource.plural), || async {
            objects.list(&ListParams::default()).await.map_err(|error| error.to_string())
        })
        .await;
    }
}

/// Waits until Pods can be created in a new Namespace.
async fn until_populated(client: &Client, namespace: &str) {
    let accounts = Api::<ServiceAccount>::namespaced(client.clone(), namespace);
    eventually(&format!("{namespace} has a ServiceAccount"), || async {
        accounts.get("default").await.map_err(|error| error.to_string())
    })
    .await;
}

/// Answers of the model, in the order of the scripts.
fn ask_model(scripts: Vec<Script>) -> Vec<Vec<Answer>> {
    simulate(1, move || async move {
        let server = Server::new("model", 1, false, 96, "no certificate");
        let client = Net::new(1).client(&server, Caller::admin());
        custom().iter().for_each(|crd| server.ensure(&crd.body));
        let mut answers = Vec::new();
        for script in &scripts {
            let namespace =
                json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": script.namespace()}});
            server.ensure(&namespace);
            server.tick();
            answers.push(answer::all(&client, script).await);
        }
        answers
    })
}
