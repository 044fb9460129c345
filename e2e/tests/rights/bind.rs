//! What API binding adds: consumers among each other's objects, the leader among Namespaces and rights, the member among CRDs. Their
//! daemons run, and are who they seem.

mod consumer;
mod leader;
mod member;
mod objects;
mod withdrawn;

use e2e::{
    binding::{BINDING, GROUP, Offered, install},
    waiting::eventually,
};
use kube::{
    Client,
    api::{ApiResource, Patch, PatchParams},
};
use serde_json::{Value, json};

use crate::rights::{
    attempt::{Attempt, Do, Refusal, within},
    policies::type_check,
};

/// A consumer, by nothing but its token.
struct Consumer {
    /// Its cluster namespace.
    cns: String,
    client: Client,
}

impl Consumer {
    /// An object as its konnector makes it.
    fn object(&self, name: &str) -> Value {
        json!({"metadata": {"name": name, "annotations": self.mark()}, "spec": {"size": "l"}})
    }

    /// Applies an object as its konnector does.
    async fn apply(&self, namespace: &str, kind: &ApiResource, name: &str) {
        let mut object = self.object(name);
        object["apiVersion"] = json!(kind.api_version);
        object["kind"] = json!(kind.kind);
        let api = within(&self.client, namespace, kind);
        api.patch(name, &PatchParams::apply("kube-bind.io"), &Patch::Apply(object)).await.unwrap();
    }

    /// What says that an object is its own.
    fn mark(&self) -> Value {
        json!({"kube-bind.io/cluster-namespace": self.cns, "kube-bind.io/consumer-uid": "u1"})
    }
}

fn note() -> Value {
    json!({"metadata": {"annotations": {"seen": "here"}}})
}

fn attempt(what: &'static str, kind: &ApiResource, todo: Do, says: &'static str) -> Attempt {
    Attempt { what, kind: kind.clone(), todo, says }
}

/// Not by our policy in these words; without words, by no rights and no policy.
fn is_wrong(attempt: &Attempt, refusal: &Refusal) -> bool {
    if attempt.says.is_empty() { !refusal.is_deliberate() } else { !refusal.is_by_policy(attempt.says) }
}

/// Rights and policies are known a moment after they were given.
async fn passes(client: &Client, namespace: &str, kind: &ApiResource, todo: Do) {
    eventually(&format!("{todo:?} passes"), || async {
        todo.by(client, namespace, kind).await.map_err(|refusal| format!("{refusal:?}"))
    })
    .await;
}

/// The same for what a policy refuses in these words.
async fn until_refused(client: &Client, namespace: &str, kind: &ApiResource, todo: Do, says: &str) {
    eventually(&format!("{todo:?} is refused"), || async {
        match todo.by(client, namespace, kind).await {
            Err(refusal) if refusal.is_by_policy(says) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
}

#[e2e::test]
fn every_expression_type_checks() {
    BINDING.beside(async |world| {
        let offered = Offered::new("checkeds", "Cluster");
        let leader = world.leader();
        offered.install(leader).await;
        install(leader, &cli::objects::bind::offer(&offered.resource(), Default::default())).await;
        type_check(leader, "freeport-bind-leader").await;
        type_check(leader, "freeport-bind-requests").await;
        type_check(leader, &format!("freeport-bind-objects-checkeds.{GROUP}")).await;
        type_check(world.cluster("east"), "freeport-bind-crds").await;
        leader.take_crd(&offered.name()).await;
    });
}
