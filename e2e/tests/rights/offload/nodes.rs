//! What the member does to Nodes of its cluster: it makes virtual ones, and touches no others.

use api::label;
use serde_json::{Value, json};

use super::daemon::{done, is_wrong, labelled};
use crate::rights::{
    attempt::{Attempt, Do, EVERYWHERE, try_all},
    parties::shared,
    samples::{nodes, virtual_node},
};

/// `offload-worker` and `freeport-theirs` are Nodes of others.
fn on_nodes() -> Vec<Attempt> {
    let attempt = |what, todo, says| Attempt { what, kind: nodes(), todo, says };
    let changed = |change: fn(&mut Value)| {
        let mut made = virtual_node("freeport-new");
        change(&mut made);
        Do::Create(made)
    };
    let ready = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
    let (named, foreign) = ("are named freeport-", "it did not make it");
    vec![
        attempt("another name", Do::Create(virtual_node("offload-new")), named),
        attempt(
            "no mark",
            changed(|node| node["metadata"]["labels"] = json!({"liqo.io/type": "virtual-node"})),
            "must have the label",
        ),
        attempt(
            "a node that is none",
            changed(|node| node["metadata"]["labels"]["liqo.io/type"] = json!("worker")),
            "liqo.io/type: virtual-node",
        ),
        attempt(
            "a node for everybody's Pods",
            changed(|node| node["spec"] = json!({})),
            "must have the taint",
        ),
        attempt(
            "what keeps it from going",
            changed(|node| node["metadata"]["finalizers"] = json!(["example.com/x"])),
            "must not get finalizers",
        ),
        attempt("delete a Node", Do::Delete("offload-worker".into()), named),
        attempt(
            "cordon a Node",
            Do::Patch("offload-worker".into(), json!({"spec": {"unschedulable": true}})),
            named,
        ),
        attempt("the status of a Node", Do::PatchStatus("offload-worker".into(), ready.clone()), named),
        attempt("delete one that looks like ours", Do::Delete("freeport-theirs".into()), foreign),
        attempt(
            "make it ours",
            Do::Patch("freeport-theirs".into(), virtual_node("freeport-theirs")),
            foreign,
        ),
        attempt("its status", Do::PatchStatus("freeport-theirs".into(), ready), foreign),
        attempt(
            "take the taint off ours",
            Do::Patch("freeport-east".into(), json!({"spec": {"taints": []}})),
            "must have the taint",
        ),
        attempt(
            "take the mark off ours",
            Do::Patch("freeport-east".into(), labelled("liqo.io/type", &Value::Null)),
            "must have the label",
        ),
    ]
}

#[e2e::test]
fn the_member_makes_virtual_nodes_and_touches_no_others() {
    shared(async |parties| {
        for name in ["offload-worker", "freeport-theirs"] {
            done(parties, false, &nodes(), Do::Create(json!({"metadata": {"name": name}}))).await;
        }
        done(parties, true, &nodes(), Do::CreateAs(label::MEMBER, virtual_node("freeport-east"))).await;
        try_all(&parties.member, EVERYWHERE, &on_nodes(), is_wrong).await;

        let ready = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
        done(parties, true, &nodes(), Do::PatchStatus("freeport-east".into(), ready.clone())).await;
        let stripped =
            json!({"metadata": {"labels": {"app.kubernetes.io/managed-by": null}}, "spec": {"taints": []}});
        done(parties, false, &nodes(), Do::Patch("freeport-east".into(), stripped)).await;
        done(parties, true, &nodes(), Do::PatchStatus("freeport-east".into(), ready)).await;
        done(parties, true, &nodes(), Do::Patch("freeport-east".into(), virtual_node("freeport-east"))).await;
        for (name, by_member) in
            [("freeport-east", true), ("offload-worker", false), ("freeport-theirs", false)]
        {
            done(parties, by_member, &nodes(), Do::Delete(name.into())).await;
        }
    });
}
