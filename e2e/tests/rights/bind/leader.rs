//! What the leader may do at a provider: to Namespaces of contracts, and to accounts, Secrets and rights in them. That it may do what it needs,
//! its daemon shows in all tests of `bind`.

mod flows;

use api::{bind::label, label::LEADER};
use e2e::{
    account::by_token,
    binding::{
        BINDING, GROUP, Offered,
        provider::{contract, offer},
    },
    fixture::SYSTEM,
};
use k8s_openapi::api::{
    authentication::v1::TokenRequest,
    core::v1::{Namespace, Secret, ServiceAccount},
    rbac::v1::ClusterRoleBinding,
};
use kube::{
    Api, Client, Error,
    api::{ApiResource, PostParams},
};
use serde_json::{Value, json};

use super::{attempt, is_wrong, note, passes, until_refused};
use crate::rights::{
    attempt::{Attempt, Do, EVERYWHERE, try_all},
    samples::{accounts, bindings, namespaces, secrets},
};

fn bindings_of_all() -> ApiResource {
    ApiResource::erase::<ClusterRoleBinding>(&())
}

fn named(name: &str) -> Value {
    json!({"metadata": {"name": name}})
}

/// Gives a ClusterRole to ServiceAccount `kube-binder` of a Namespace.
pub(super) fn gives(name: &str, role: &str, of: &str) -> Value {
    json!({
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": "kube-binder", "namespace": of}],
    })
}

fn changed(mut object: Value, change: impl FnOnce(&mut Value)) -> Do {
    change(&mut object);
    Do::DryCreate(object)
}

/// A user's Namespace, and one that the leader may use.
const THEIRS: &str = "guarded-theirs";
const ADOPTED: &str = "guarded-adopted";
/// Namespaces that were made for another consumer: one that is shared, and one that is its own.
const SHARED: &str = "guarded-shared";
const ANOTHERS: &str = "guarded-anothers";
const NOT_MADE: &str = "it was not made for a consumer";

fn on_namespaces(cns: &str) -> Vec<Attempt> {
    let label = |value: Option<&str>| json!({"metadata": {"labels": {label::BIND: value}}});
    let (kind, cns, theirs) = (namespaces(), || cns.to_owned(), || THEIRS.to_owned());
    let held = json!({"metadata": {"finalizers": ["example.com/forever"]}});
    let attempt = |what, todo, says| attempt(what, &kind, todo, says);
    vec![
        attempt("a Namespace without label", Do::DryCreate(named("guarded-new")), "must have the label"),
        attempt(
            "one with another value",
            Do::DryCreate(json!({"metadata": {"name": "guarded-new", "labels": {label::BIND: "true"}}})),
            "multicluster.freeport.dev/bind: contract or objects",
        ),
        attempt("patch a user's", Do::Patch(theirs(), note()), NOT_MADE),
        attempt("make it ours", Do::Patch(theirs(), label(Some("objects"))), NOT_MADE),
        attempt("delete it", Do::Delete(theirs()), NOT_MADE),
        attempt("delete what it may use", Do::Delete(ADOPTED.into()), NOT_MADE),
        attempt("label what it may use", Do::Patch(ADOPTED.into(), label(Some("objects"))), NOT_MADE),
        attempt("delete freeport-system", Do::Delete(SYSTEM.into()), NOT_MADE),
        attempt("take the label off", Do::Patch(cns(), label(None)), "bind: contract"),
        attempt("another label", Do::Patch(cns(), label(Some("objects"))), "bind: contract"),
        attempt("hold it for ever", Do::Patch(cns(), held), "adds no finalizer"),
    ]
}

/// In the cluster namespace itself.
fn within_contract(cns: &str, role: &str) -> Vec<Attempt> {
    let kubeconfig = || named("kubeconfig");
    let gives = |name: &str, role: &str| gives(name, role, cns);
    let ours = format!("kube-binder-{cns}-x");
    let nobody = "gives rights to ServiceAccount kube-binder of one cluster namespace";
    let not_given = "is not one that it gives here";
    vec![
        attempt(
            "another account",
            &accounts(),
            Do::DryCreate(named("x")),
            "kube-binder of cluster namespaces",
        ),
        attempt("another Secret", &secrets(), Do::DryCreate(named("x")), "it writes Secret kubeconfig"),
        attempt(
            "a token for ever",
            &secrets(),
            changed(kubeconfig(), |secret| {
                secret["type"] = json!("kubernetes.io/service-account-token");
                secret["metadata"]["annotations"] =
                    json!({"kubernetes.io/service-account.name": "kube-binder"});
            }),
            "it writes Secrets of type Opaque, not kubernetes.io/service-account-token",
        ),
        attempt(
            "rights of its own",
            &bindings(),
            Do::DryCreate(gives(&ours, "freeport-bind-provider")),
            not_given,
        ),
        attempt("all rights", &bindings(), Do::DryCreate(gives(&ours, "cluster-admin")), ""),
        attempt(
            "rights under another name",
            &bindings(),
            Do::DryCreate(gives("freeport", role)),
            "is named kube-binder-",
        ),
        attempt(
            "rights for another account",
            &bindings(),
            changed(gives(&ours, role), |binding| binding["subjects"][0]["name"] = json!("default")),
            nobody,
        ),
        attempt(
            "rights for a user beside it",
            &bindings(),
            changed(gives(&ours, role), |binding| {
                let user = json!({"kind": "User", "name": "me", "apiGroup": "rbac.authorization.k8s.io"});
                binding["subjects"].as_array_mut().unwrap().push(user);
            }),
            nobody,
        ),
        attempt(
            "rights for another consumer",
            &bindings(),
            Do::DryCreate(self::gives("kube-binder-other-x", role, "other")),
            "is not for consumer other",
        ),
    ]
}

/// In a Namespace that is none of a contract's.
fn elsewhere(cns: &str, role: &str) -> Vec<Attempt> {
    let ours = format!("kube-binder-{cns}-x");
    vec![
        attempt("the account", &accounts(), Do::DryCreate(named("kube-binder")), "of cluster namespaces"),
        attempt("the Secret", &secrets(), Do::DryCreate(named("kubeconfig")), "of cluster namespaces"),
        attempt("rights", &bindings(), Do::DryCreate(gives(&ours, role, cns)), "is not for consumer"),
    ]
}

fn everywhere(cns: &str, role: &str) -> Vec<Attempt> {
    let ours = || format!("kube-binder-{cns}-x");
    let owned = |role: &str| {
        let mut binding = gives(&ours(), role, cns);
        binding["metadata"]["ownerReferences"] =
            json!([{"apiVersion": "v1", "kind": "Namespace", "name": cns, "uid": "u1"}]);
        binding
    };
    let (all, nobody) =
        (bindings_of_all(), "gives rights to ServiceAccount kube-binder of one cluster namespace");
    let leader = || "freeport-leader".to_owned();
    let subjects = json!({"subjects": [{"kind": "ServiceAccount", "name": "kube-binder", "namespace": cns}]});
    vec![
        attempt(
            "all Secrets of the cluster",
            &all,
            Do::DryCreate(owned("kube-binder")),
            "is not one that it gives here",
        ),
        attempt(
            "its own rights",
            &all,
            Do::DryCreate(owned("freeport-bind-provider")),
            "is not one that it gives here",
        ),
        attempt(
            "rights that stay",
            &all,
            Do::DryCreate(gives(&ours(), role, cns)),
            "must be owned by Namespace",
        ),
        attempt(
            "rights for itself",
            &all,
            changed(owned(role), |binding| {
                binding["subjects"][0] =
                    json!({"kind": "ServiceAccount", "name": LEADER, "namespace": SYSTEM});
            }),
            nobody,
        ),
        attempt("its own binding for others", &all, Do::Patch(leader(), subjects), ""),
        attempt("its own binding goes", &all, Do::Delete(leader()), nobody),
        attempt("cluster-admin goes", &all, Do::Delete("cluster-admin".into()), nobody),
    ]
}

/// Where it answers.
fn at_home() -> Vec<Attempt> {
    let token = changed(named("guarded-token"), |secret| {
        secret["type"] = json!("kubernetes.io/service-account-token");
        secret["metadata"]["annotations"] = json!({"kubernetes.io/service-account.name": "freeport-member"});
    });
    let data = json!({"data": {"token": "eA=="}});
    vec![
        attempt("a token of another account", &secrets(), token, "it writes Secrets of type Opaque"),
        attempt(
            "what Freeport installed",
            &secrets(),
            Do::Patch("guarded-ours".into(), data),
            "those that Freeport did not install",
        ),
        attempt("an account", &accounts(), Do::DryCreate(named("kube-binder")), "of cluster namespaces"),
    ]
}

/// It may take tokens of accounts of this name, wherever they are.
async fn takes_no_token(leader: &Client, namespace: &str) {
    let accounts = Api::<ServiceAccount>::namespaced(leader.clone(), namespace);
    let request = TokenRequest::default();
    match accounts.create_token_request("kube-binder", &PostParams::default(), &request).await {
        Err(Error::Api(status)) => {
            assert!(status.message.contains("takes tokens of no other"), "{}", status.message);
        }
        other => panic!("{other:?}"),
    }
}

#[e2e::test]
fn the_leader_writes_what_is_of_a_contract_and_nothing_else() {
    BINDING.beside(async |world| {
        let (admin, offered) = (world.leader(), Offered::new("guardeds", "Namespaced"));
        offer(admin, &offered, json!({})).await;
        let (cns, _) = contract(world, "guarded", "guardeds").await;
        admin.create_namespace(THEIRS).await;
        let adopt = json!({"metadata": {"name": ADOPTED, "annotations": {label::ADOPT: "true"}}});
        let _: Namespace = admin.create_cluster_wide(adopt).await;
        for (name, shared) in [(SHARED, "true"), (ANOTHERS, "false")] {
            let annotations =
                json!({label::API_SERVICE_NAMESPACE: format!("other/{name}"), label::SHARED: shared});
            let labels = json!({label::BIND: label::OBJECTS});
            let metadata = json!({"name": name, "labels": labels, "annotations": annotations});
            let _: Namespace = admin.create_cluster_wide(json!({ "metadata": metadata })).await;
        }
        let _: ServiceAccount = admin.create(THEIRS, named("kube-binder")).await;
        let managed = json!({"app.kubernetes.io/managed-by": "freeport"});
        let _: Secret =
            admin.create(SYSTEM, json!({"metadata": {"name": "guarded-ours", "labels": managed}})).await;
        let leader = by_token(world, "leader", SYSTEM, LEADER).await;
        let role = format!("freeport-bind-guardeds.{GROUP}");
        // Its right to give the role is known a moment after it was given.
        let given = gives(&format!("kube-binder-{cns}-y"), &role, &cns);
        passes(&leader, ADOPTED, &bindings(), Do::Create(given)).await;
        let given = || Do::DryCreate(named("probe"));
        until_refused(&leader, EVERYWHERE, &namespaces(), given(), "must have the label").await;

        try_all(&leader, EVERYWHERE, &on_namespaces(&cns), is_wrong).await;
        try_all(&leader, &cns, &within_contract(&cns, &role), is_wrong).await;
        for namespace in [THEIRS, "kube-system", SYSTEM] {
            let attempts = elsewhere(&cns, &role);
            let other = |attempt: &&Attempt| namespace != SYSTEM || attempt.what != "the Secret";
            let attempts: Vec<_> = attempts.iter().filter(other).cloned().collect();
            try_all(&leader, namespace, &attempts, is_wrong).await;
        }
        let ours = format!("kube-binder-{cns}-x");
        let given = || Do::DryCreate(gives(&ours, &role, &cns));
        let others = [attempt("rights in another's", &bindings(), given(), "is not for consumer")];
        try_all(&leader, ANOTHERS, &others, is_wrong).await;
        passes(&leader, SHARED, &bindings(), given()).await;
        try_all(&leader, EVERYWHERE, &everywhere(&cns, &role), is_wrong).await;
        try_all(&leader, EVERYWHERE, &flows::attempts(&cns), is_wrong).await;
        try_all(&leader, SYSTEM, &at_home(), is_wrong).await;
        takes_no_token(&leader, THEIRS).await;

        for (namespace, kind, todo) in [
            (ADOPTED, bindings(), Do::Delete(format!("kube-binder-{cns}-y"))),
            (SYSTEM, secrets(), Do::Create(named("guarded-answer"))),
            (SYSTEM, secrets(), Do::Patch("guarded-answer".into(), json!({"data": {"x": "eA=="}}))),
            (EVERYWHERE, namespaces(), Do::Patch(cns.clone(), note())),
        ] {
            let done = todo.by(&leader, namespace, &kind).await;
            assert!(done.is_ok(), "{todo:?}: {done:?}");
        }
        for secret in ["guarded-answer", "guarded-ours"] {
            admin.delete::<Secret>(SYSTEM, secret).await;
        }
        for namespace in [THEIRS, ADOPTED, SHARED, ANOTHERS, &cns] {
            admin.release_namespace(namespace).await;
        }
        admin.take_crd(&offered.name()).await;
    });
}
