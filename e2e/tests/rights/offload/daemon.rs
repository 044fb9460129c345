//! What the member does to Namespaces and NamespaceOffloadings of its cluster: with its own it does what it wants, with others nothing
//! but what is asked for.

use api::label;
use cli::objects::offload::webhook;
use e2e::{fixture::SYSTEM, waiting::eventually};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::api::ApiResource;
use serde_json::{Value, json};

use crate::rights::{
    attempt::{Attempt, Do, EVERYWHERE, Refusal, try_all},
    parties::{OTHER_AREA, Parties, alone, shared},
    samples::{leases, namespaces, nodes, offloading, offloadings, ours, secrets, service, services, twin},
};

fn note() -> Value {
    json!({"metadata": {"annotations": {"seen": "here"}}})
}

pub(super) fn labelled(key: &str, value: &Value) -> Value {
    json!({"metadata": {"labels": {key: value}}})
}

/// The Secret of the webhook's certificate.
const TLS: &str = webhook::SECRET;
const SCHEDULING: &str = "liqo.io/scheduling-enabled";

pub(super) fn is_wrong(attempt: &Attempt, refusal: &Refusal) -> bool {
    !refusal.is_by_policy(attempt.says)
}

pub(super) async fn done(parties: &Parties, by_member: bool, kind: &ApiResource, todo: Do) {
    let client = if by_member { &parties.member } else { &parties.world.leader().client };
    let done = todo.by(client, EVERYWHERE, kind).await;
    assert!(done.is_ok(), "{todo:?}: {done:?}");
}

/// On a user's Namespace `offload-theirs` with label `app`.
fn on_namespaces() -> Vec<Attempt> {
    let attempt = |what, todo, says| Attempt { what, kind: namespaces(), todo, says };
    let patch = |name: &str, change: Value| Do::Patch(name.into(), change);
    let changed = |change: fn(&mut Value)| {
        let mut made = twin("offload-new");
        change(&mut made);
        Do::Create(made)
    };
    let alone = "changes only label liqo.io/scheduling-enabled";
    let never = "take no part in offloading";
    vec![
        attempt(
            "a Namespace without marks",
            Do::Create(json!({"metadata": {"name": "offload-new"}})),
            "must have the label",
        ),
        attempt(
            "half a mark, which Common Areas have too",
            changed(|made| made["metadata"]["labels"] = json!({"app.kubernetes.io/managed-by": "freeport"})),
            "liqo.io/remote-cluster-id",
        ),
        attempt("a twin of the system", Do::Create(twin("kube-shop")), never),
        attempt(
            "what keeps it from going",
            changed(|made| made["metadata"]["finalizers"] = json!(["example.com/x"])),
            "must not get finalizers",
        ),
        attempt("delete a user's", Do::Delete("offload-theirs".into()), alone),
        attempt("delete freeport-system", Do::Delete(SYSTEM.into()), alone),
        attempt("delete a Common Area", Do::Delete(OTHER_AREA.into()), alone),
        attempt(
            "mark it",
            patch("offload-theirs", json!({"metadata": {"labels": twin("x")["metadata"]["labels"]}})),
            alone,
        ),
        attempt("annotate it", patch("offload-theirs", note()), alone),
        attempt(
            "another label",
            patch("offload-theirs", labelled("pod-security.kubernetes.io/enforce", &json!("privileged"))),
            alone,
        ),
        attempt("take a label off", patch("offload-theirs", labelled("app", &Value::Null)), alone),
        attempt("another value", patch("offload-theirs", labelled(SCHEDULING, &json!("false"))), alone),
        attempt("the label on the system", patch("kube-system", labelled(SCHEDULING, &json!("true"))), never),
        attempt("the label on freeport-system", patch(SYSTEM, labelled(SCHEDULING, &json!("true"))), never),
        attempt("the label on a Common Area", patch(OTHER_AREA, labelled(SCHEDULING, &json!("true"))), never),
        attempt(
            "take the mark off a twin",
            patch("offload-twin", labelled("app.kubernetes.io/managed-by", &Value::Null)),
            "must have the label",
        ),
    ]
}

#[e2e::test]
fn the_member_makes_and_deletes_twins_and_sets_one_label_on_others() {
    shared(async |parties| {
        let theirs = json!({"metadata": {"name": "offload-theirs", "labels": {"app": "shop"}}});
        done(parties, false, &namespaces(), Do::Create(theirs)).await;
        done(parties, true, &namespaces(), Do::CreateAs(label::MEMBER, twin("offload-twin"))).await;
        // That the member wrote it makes nobody's Namespace its own.
        for value in [json!("true"), Value::Null, json!("true")] {
            for name in ["offload-theirs", "default"] {
                done(parties, true, &namespaces(), Do::Patch(name.into(), labelled(SCHEDULING, &value)))
                    .await;
            }
        }
        done(parties, true, &namespaces(), Do::Patch("default".into(), labelled(SCHEDULING, &Value::Null)))
            .await;
        try_all(&parties.member, EVERYWHERE, &on_namespaces(), is_wrong).await;

        done(parties, true, &namespaces(), Do::Patch("offload-twin".into(), note())).await;
        let none = json!({"metadata": {"labels": {
            "app.kubernetes.io/managed-by": null, "liqo.io/remote-cluster-id": null,
        }}});
        done(parties, false, &namespaces(), Do::Patch("offload-twin".into(), none)).await;
        let back = json!({"metadata": {"labels": twin("x")["metadata"]["labels"]}});
        done(parties, true, &namespaces(), Do::Patch("offload-twin".into(), back)).await;
        done(parties, true, &namespaces(), Do::Delete("offload-twin".into())).await;
        done(parties, false, &namespaces(), Do::Delete("offload-theirs".into())).await;
    });
}

#[e2e::test]
fn leases_of_nodes_and_secrets_have_names() {
    alone(async |parties| {
        let (admin, member) = (&parties.world.leader().client, &parties.member);
        let lease = |name: &str| json!({"metadata": {"name": name}, "spec": {"holderIdentity": name}});
        let others = Do::Create(lease("offload-worker"));
        others.by(admin, "kube-node-lease", &leases()).await.unwrap();
        let virtual_ones = "Leases of virtual nodes only";
        let attempts = [
            Attempt {
                what: "another",
                kind: leases(),
                todo: Do::Create(lease("worker")),
                says: virtual_ones,
            },
            Attempt {
                what: "renew a Node's",
                kind: leases(),
                todo: Do::Patch("offload-worker".into(), note()),
                says: virtual_ones,
            },
        ];
        try_all(member, "kube-node-lease", &attempts, is_wrong).await;
        // Only Leases are told apart by another policy there.
        let bare = Do::Create(service(&json!({"name": "worker"})));
        let refused = bare.by(member, "kube-node-lease", &services()).await.unwrap_err();
        assert!(refused.is_by_policy("freeport-member-own"), "{refused:?}");
        for todo in [Do::Create(lease("freeport-lease")), Do::Patch("freeport-lease".into(), note())] {
            todo.by(member, "kube-node-lease", &leases()).await.unwrap();
        }
        for name in ["offload-worker", "freeport-lease"] {
            Do::Delete(name.into()).by(admin, "kube-node-lease", &leases()).await.unwrap();
        }

        let plain = json!({"metadata": {"name": TLS}});
        Do::Create(plain).by(admin, SYSTEM, &secrets()).await.unwrap();
        let patch = |name: &str| Do::Patch(name.into(), note());
        let secret = |what, todo, says| Attempt { what, kind: secrets(), todo, says };
        let attempts = [
            secret(
                "another",
                Do::Create(json!({"metadata": ours("other")})),
                "it writes only freeport-webhook-tls and freeport-offload-key",
            ),
            secret("somebody's", patch(TLS), "not if somebody else made them"),
        ];
        try_all(member, SYSTEM, &attempts, is_wrong).await;
        // What proves it to the leader it replaces.
        patch("freeport-leader-demo").by(member, SYSTEM, &secrets()).await.unwrap();
        Do::Delete(TLS.into()).by(admin, SYSTEM, &secrets()).await.unwrap();
        let unmarked = Do::Create(json!({"metadata": {"name": TLS}}));
        let refused = unmarked.by(member, SYSTEM, &secrets()).await.unwrap_err();
        assert!(refused.is_by_policy("must have the label"), "{refused:?}");
        for todo in [Do::Create(json!({"metadata": ours(TLS)})), patch(TLS)] {
            todo.by(member, SYSTEM, &secrets()).await.unwrap();
        }
        assert_eq!(Do::Delete(TLS.into()).by(member, SYSTEM, &secrets()).await.unwrap_err().code, 403);
        Do::Delete(TLS.into()).by(admin, SYSTEM, &secrets()).await.unwrap();
        let elsewhere = Do::Create(json!({"metadata": ours(TLS)}));
        let refused = elsewhere.by(member, "default", &secrets()).await.unwrap_err();
        assert_eq!(refused.code, 403, "{refused:?}");
        assert_eq!(Do::List.by(member, "default", &secrets()).await.unwrap_err().code, 403);

        // As in Namespace `kube-bind`, where it keeps credentials of API binding.
        let space = parties.world.namespace("offload-and-bind", &["leader"]).await;
        let rules = json!([{"apiGroups": [""], "resources": ["secrets"], "verbs": ["create", "patch"]}]);
        let role = json!({"metadata": {"name": "credentials"}, "rules": rules});
        Do::Create(role).by(admin, &space, &ApiResource::erase::<Role>(&())).await.unwrap();
        let given = json!({
            "metadata": {"name": "credentials"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "credentials"},
            "subjects": [{"kind": "ServiceAccount", "name": "freeport-member", "namespace": SYSTEM}],
        });
        Do::Create(given).by(admin, &space, &ApiResource::erase::<RoleBinding>(&())).await.unwrap();
        for todo in [Do::Create(json!({"metadata": {"name": "kube-bind-x"}})), patch("kube-bind-x")] {
            eventually(&format!("{todo:?}"), || async {
                todo.by(member, &space, &secrets()).await.map_err(|refusal| format!("{refusal:?}"))
            })
            .await;
        }
        parties.world.release(&space).await;
    });
}

#[e2e::test]
fn what_a_user_asks_for_stays_the_users() {
    shared(async |parties| {
        let space = parties.world.namespace("offload-users", &["leader"]).await;
        let (admin, member) = (&parties.world.leader().client, &parties.member);
        let change = |spec: Value| Do::Patch("offloading".into(), json!({"spec": spec}));
        Do::Create(offloading(&json!({}))).by(admin, &space, &offloadings()).await.unwrap();
        let attempt = |what, todo| Attempt {
            what,
            kind: offloadings(),
            todo,
            says: "of others the status and a finalizer",
        };
        let attempts = [
            attempt("another strategy", change(json!({"podOffloadingStrategy": "Remote"}))),
            attempt("delete it", Do::Delete("offloading".into())),
        ];
        try_all(member, &space, &attempts, is_wrong).await;
        let finalizers =
            |all: Value| Do::Patch("offloading".into(), json!({"metadata": {"finalizers": all}}));
        let its_own = json!(["namespaceoffloading-controller.liqo.io/finalizer"]);
        let refused =
            finalizers(json!(["example.com/x"])).by(member, &space, &offloadings()).await.unwrap_err();
        assert!(refused.is_by_policy("must not get finalizers"), "{refused:?}");
        let status = json!({"status": {"offloadingPhase": "Ready"}});
        for todo in
            [finalizers(its_own), Do::PatchStatus("offloading".into(), status), finalizers(Value::Null)]
        {
            todo.by(member, &space, &offloadings()).await.unwrap();
        }
        Do::Delete("offloading".into()).by(admin, &space, &offloadings()).await.unwrap();

        let plain = Do::Create(offloading(&json!({}))).by(member, &space, &offloadings()).await.unwrap_err();
        assert!(plain.is_by_policy("liqo.io/resource-controlled-by"), "{plain:?}");
        let mut by_label = offloading(&json!({}));
        by_label["metadata"]["annotations"] =
            json!({"liqo.io/resource-controlled-by": "This resource is ..."});
        let unasked = Do::Create(by_label.clone()).by(member, &space, &offloadings()).await.unwrap_err();
        assert!(unasked.is_by_policy("does not have the label liqo.io/enabled"), "{unasked:?}");
        done(
            parties,
            false,
            &namespaces(),
            Do::Patch(space.clone(), labelled("liqo.io/enabled", &json!("true"))),
        )
        .await;
        eventually("the label is known", || async {
            let asked = Do::DryCreate(by_label.clone()).by(member, &space, &offloadings()).await;
            asked.map_err(|refusal| format!("{refusal:?}"))
        })
        .await;
        for todo in [Do::Create(by_label.clone()), Do::Delete("offloading".into())] {
            todo.by(member, &space, &offloadings()).await.unwrap();
        }
        parties.world.release(&space).await;
    });
}

/// The webhook is asked about Pods of everybody, so its account is worth nothing.
#[e2e::test]
fn the_webhook_reads_what_users_ask_for_and_nothing_else() {
    shared(async |parties| {
        let account = e2e::account::by_token(&parties.world, "leader", SYSTEM, webhook::NAME).await;
        eventually("its right is known", || async {
            Do::List.by(&account, "default", &offloadings()).await.map_err(|refusal| format!("{refusal:?}"))
        })
        .await;
        for kind in [secrets(), leases(), crate::rights::samples::config_maps()] {
            assert_eq!(Do::List.by(&account, SYSTEM, &kind).await.unwrap_err().code, 403, "{kind:?}");
        }
        for kind in [namespaces(), nodes()] {
            assert_eq!(Do::List.by(&account, EVERYWHERE, &kind).await.unwrap_err().code, 403, "{kind:?}");
        }
        let asked = Do::DryCreate(offloading(&json!({}))).by(&account, "default", &offloadings()).await;
        assert_eq!(asked.unwrap_err().code, 403);
    });
}
