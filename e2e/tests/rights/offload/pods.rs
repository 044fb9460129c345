//! What the member does to Pods: in twins it makes them, of those on virtual nodes it says how they are, and no other it touches.

use api::label;
use e2e::waiting::eventually;
use kube::api::{ApiResource, DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};

use crate::rights::{
    attempt::{Attempt, Do, EVERYWHERE, Refusal, try_all, within},
    parties::{Parties, shared},
    samples::{accounts, binding, bindings, bound, hosted, namespaces, pod, pods, twin},
};

fn is_wrong(attempt: &Attempt, refusal: &Refusal) -> bool {
    !refusal.is_by_policy(attempt.says)
}

/// Done as soon as Kubernetes knows of the Namespace and the rights.
async fn soon(parties: &Parties, by_member: bool, namespace: &str, kind: &ApiResource, todo: Do) {
    let client = if by_member { &parties.member } else { &parties.world.leader().client };
    eventually(&format!("{todo:?}"), || async {
        todo.by(client, namespace, kind).await.map_err(|refusal| format!("{refusal:?}"))
    })
    .await;
}

fn note() -> Value {
    json!({"metadata": {"annotations": {"seen": "here"}}})
}

fn changed(mut object: Value, change: impl FnOnce(&mut Value)) -> Do {
    change(&mut object);
    Do::Create(object)
}

/// A Pod of another cluster with this in its spec.
fn with(field: &str, value: Value) -> Do {
    changed(hosted("new"), |pod| pod["spec"][field] = value)
}

/// What says that somebody's Pod is the member's.
fn label_of_its_own(value: &Value) -> Value {
    json!({"metadata": {"labels": {"liqo.io/managed-by": value}}})
}

/// A twin that the member has made, with its right to make Pods there.
async fn twin_with_binding(parties: &Parties, name: &str) {
    soon(parties, true, EVERYWHERE, &namespaces(), Do::CreateAs(label::MEMBER, twin(name))).await;
    soon(parties, true, name, &bindings(), Do::Create(binding())).await;
}

/// A twin that the member made, by its own account.
const MADE: &str = "pods-twin";
const NOT_ITS: &str = "it writes Pods with label liqo.io/managed-by: shadowpod in twins";

/// In a twin where `foreign` is somebody else's Pod, as is `remote`, which is on a virtual node; `mighty` is a ServiceAccount.
fn in_a_twin() -> Vec<Attempt> {
    let attempt = |what, todo, says| Attempt { what, kind: pods(), todo, says };
    let (a_node, a_token) = ("must not have hostNetwork", "must have ServiceAccount default");
    let token = json!({"serviceAccountToken": {"path": "token"}});
    let running = json!({"status": {"phase": "Running"}});
    vec![
        attempt("a Pod without its label", Do::Create(pod("new")), NOT_ITS),
        attempt("change somebody's Pod", Do::Patch("foreign".into(), note()), NOT_ITS),
        attempt(
            "make somebody's Pod its own",
            Do::Patch("foreign".into(), label_of_its_own(&json!("shadowpod"))),
            NOT_ITS,
        ),
        attempt(
            "make one its own of which it has said how that is",
            Do::Patch("remote".into(), label_of_its_own(&json!("shadowpod"))),
            NOT_ITS,
        ),
        attempt("delete somebody's Pod", Do::Delete("foreign".into()), NOT_ITS),
        attempt("say how somebody's Pod is", Do::PatchStatus("foreign".into(), running.clone()), NOT_ITS),
        attempt(
            "say how its own Pod is, which a kubelet does",
            Do::PatchStatus("web".into(), running),
            NOT_ITS,
        ),
        attempt("take its label off", Do::Patch("web".into(), label_of_its_own(&Value::Null)), NOT_ITS),
        attempt("a Pod on a Node of its choice", with("nodeName", json!("worker")), a_node),
        attempt("a Pod with a token", with("automountServiceAccountToken", json!(true)), a_token),
        attempt("a Pod of another account", with("serviceAccountName", json!("mighty")), a_token),
        attempt(
            "a Pod of another account, by its old field",
            with("serviceAccount", json!("mighty")),
            a_token,
        ),
        attempt(
            "a Pod that asks for a token itself",
            with("volumes", json!([{"name": "v", "projected": {"sources": [token]}}])),
            a_token,
        ),
        attempt(
            "what keeps it from going",
            changed(hosted("new"), |pod| pod["metadata"]["finalizers"] = json!(["example.com/x"])),
            "must not get finalizers",
        ),
    ]
}

/// Pods that get something of their Node, which Pod Security refuses too unless the Namespace is privileged.
fn of_a_node() -> Vec<Do> {
    let taking = json!([{
        "name": "web", "image": "example.com/web:1", "ports": [{"containerPort": 80}, {"containerPort": 81, "hostPort": 81}],
    }]);
    vec![
        with("hostNetwork", json!(true)),
        with("hostPID", json!(true)),
        with("hostIPC", json!(true)),
        with("volumes", json!([{"name": "v", "hostPath": {"path": "/"}}])),
        with("containers", taking.clone()),
        changed(hosted("new"), |pod| {
            pod["spec"]["initContainers"] = taking;
            pod["spec"]["initContainers"][0]["name"] = json!("init");
        }),
    ]
}

#[e2e::test]
fn the_member_makes_pods_in_twins_and_touches_no_others_there() {
    shared(async |parties| {
        twin_with_binding(parties, MADE).await;
        let host = json!({"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "privileged"}}});
        // Not what Pod Security refuses, but what the policy does.
        soon(parties, false, EVERYWHERE, &namespaces(), Do::Patch(MADE.into(), host)).await;
        let mighty = Do::Create(json!({"metadata": {"name": "mighty"}}));
        soon(parties, false, MADE, &accounts(), mighty).await;
        for pod in [pod("foreign"), bound("remote", "freeport-east")] {
            soon(parties, false, MADE, &pods(), Do::Create(pod)).await;
        }
        soon(parties, true, MADE, &pods(), Do::CreateAs(label::MEMBER, hosted("web"))).await;
        let (there, running) = (within(&parties.member, MADE, &pods()), json!({"phase": "Running"}));
        let by = PatchParams { field_manager: Some(label::MEMBER.into()), ..PatchParams::default() };
        there.patch_status("remote", &by, &Patch::Merge(json!({"status": running}))).await.unwrap();
        try_all(&parties.member, MADE, &in_a_twin(), is_wrong).await;
        for todo in of_a_node() {
            // Pod Security learns a moment later that this Namespace is privileged.
            eventually(&format!("{todo:?}"), || async {
                match todo.by(&parties.member, MADE, &pods()).await {
                    Err(refusal) if refusal.is_by_policy("must not have hostNetwork") => Ok(()),
                    other => Err(format!("{other:?}")),
                }
            })
            .await;
        }
        for (by_member, value) in [(false, Value::Null), (true, json!("shadowpod"))] {
            let label = Do::Patch("web".into(), label_of_its_own(&value));
            soon(parties, by_member, MADE, &pods(), label).await;
        }
        // Also of one that somebody took it off.
        soon(parties, false, MADE, &pods(), Do::Patch("web".into(), label_of_its_own(&Value::Null))).await;
        soon(parties, true, MADE, &pods(), Do::Delete("web".into())).await;
        soon(parties, true, EVERYWHERE, &namespaces(), Do::Delete(MADE.into())).await;
    });
}

/// A Pod on a Node whose name is all that it has of a virtual one.
fn on_a_real_node(name: &str, grace: u32) -> Value {
    let mut pod = bound(name, "freeport-real");
    pod["spec"]["tolerations"] = json!([{"key": "example.com/gpu", "operator": "Exists"}]);
    pod["spec"]["terminationGracePeriodSeconds"] = json!(grace);
    pod
}

/// What comes of it with the Pod there: Kubernetes collects Pods of Nodes that are not there.
async fn tried(parties: &Parties, namespace: &str, pod: &Value, todo: &Do) -> Result<(), Refusal> {
    eventually(&format!("{todo:?} finds the Pod"), || async {
        match Do::Create(pod.clone()).by(&parties.world.leader().client, namespace, &pods()).await {
            Ok(()) | Err(Refusal { code: 409, .. }) => {}
            Err(refusal) => return Err(format!("{refusal:?}")),
        }
        match todo.by(&parties.member, namespace, &pods()).await {
            Err(Refusal { code: 404, .. }) => Err("no Pod".to_owned()),
            answer => Ok(answer),
        }
    })
    .await
}

#[e2e::test]
fn of_pods_elsewhere_the_member_writes_those_on_virtual_nodes() {
    shared(async |parties| {
        let space = parties.world.namespace("pods-home", &["leader"]).await;
        let mut placed = bound("placed", "freeport-east");
        placed["spec"]["tolerations"] = json!([
            {"key": "virtual-node.liqo.io/not-allowed", "operator": "Exists", "effect": "NoExecute"},
        ]);
        let virtual_ones = [placed, bound("virtual", "freeport-east")];
        let others = [bound("worker", "worker"), pod("nowhere"), on_a_real_node("real", 0)];
        let name = |pod: &Value| pod["metadata"]["name"].as_str().unwrap().to_owned();
        let running =
            json!({"status": {"phase": "Running", "podIP": "10.9.0.1", "podIPs": [{"ip": "10.9.0.1"}]}});
        for pod in &others {
            for todo in [Do::PatchStatus(name(pod), running.clone()), Do::Delete(name(pod))] {
                let refused = tried(parties, &space, pod, &todo).await.unwrap_err();
                assert!(refused.is_by_policy(NOT_ITS), "{todo:?}: {refused:?}");
            }
        }
        for todo in
            [Do::Create(hosted("new")), Do::Patch("virtual".into(), note()), Do::DeleteAll("app=web".into())]
        {
            let refused = todo.by(&parties.member, &space, &pods()).await.unwrap_err();
            assert_eq!(refused.code, 403, "{todo:?}: {refused:?}");
        }
        for pod in &virtual_ones {
            for todo in [Do::PatchStatus(name(pod), running.clone()), Do::Delete(name(pod))] {
                tried(parties, &space, pod, &todo).await.unwrap();
            }
        }
        // The taint of a virtual node deletes what does not tolerate it, and no kubelet ends that.
        eventually("the member ends what is being deleted", || async {
            let admin = &parties.world.leader().client;
            for todo in [Do::Create(on_a_real_node("going", 30)), Do::Delete("going".into())] {
                match todo.by(admin, &space, &pods()).await {
                    Ok(()) | Err(Refusal { code: 404 | 409, .. }) => {}
                    Err(refusal) => return Err(format!("{refusal:?}")),
                }
            }
            let at_once = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
            let ended = within(&parties.member, &space, &pods()).delete("going", &at_once).await;
            ended.map(drop).map_err(|refusal| refusal.to_string())
        })
        .await;
        for pod in &others {
            take_away(parties, &space, &name(pod)).await;
        }
        parties.world.release(&space).await;
    });
}

/// Deletes it, unless Kubernetes has: it collects Pods of Nodes that are not there.
async fn take_away(parties: &Parties, namespace: &str, name: &str) {
    let delete = Do::Delete(name.into());
    eventually(&format!("{name} is deleted"), || async {
        match delete.by(&parties.world.leader().client, namespace, &pods()).await {
            Ok(()) | Err(Refusal { code: 404, .. }) => Ok(()),
            Err(refusal) => Err(format!("{refusal:?}")),
        }
    })
    .await;
}

fn other_bindings() -> Vec<Attempt> {
    let attempt = |what, change: fn(&mut Value)| Attempt {
        what,
        kind: bindings(),
        todo: changed(binding(), change),
        says: "it writes only RoleBinding freeport-offload of twins",
    };
    vec![
        attempt("another name", |binding| binding["metadata"]["name"] = json!("freeport-other")),
        attempt("a Role of its own rights", |binding| {
            binding["roleRef"]["name"] = json!("freeport-member-offload")
        }),
        attempt("somebody else", |binding| binding["subjects"][0]["name"] = json!("freeport-webhook")),
        attempt("an account of its name elsewhere", |binding| {
            binding["subjects"][0]["namespace"] = json!("default")
        }),
        attempt("everybody", |binding| {
            binding["subjects"] = json!([{"kind": "Group", "name": "system:authenticated", "apiGroup": "rbac.authorization.k8s.io"}]);
        }),
        attempt("one more", |binding| {
            let more = json!({"kind": "ServiceAccount", "name": "default", "namespace": "default"});
            binding["subjects"].as_array_mut().unwrap().push(more);
        }),
    ]
}

#[e2e::test]
fn the_member_lets_itself_alone_make_pods_in_twins_alone() {
    shared(async |parties| {
        let member = &parties.member;
        soon(parties, true, EVERYWHERE, &namespaces(), Do::CreateAs(label::MEMBER, twin("bound-twin"))).await;
        try_all(member, "bound-twin", &other_bindings(), is_wrong).await;
        let elsewhere = Do::Create(binding()).by(member, "default", &bindings()).await.unwrap_err();
        assert!(
            elsewhere.is_by_policy("it writes only RoleBinding freeport-offload of twins"),
            "{elsewhere:?}"
        );
        // Kubernetes lets nobody bind what he may not do: the policy is not asked.
        let mut admin = binding();
        admin["roleRef"]["name"] = json!("cluster-admin");
        assert_eq!(Do::Create(admin).by(member, "bound-twin", &bindings()).await.unwrap_err().code, 403);
        soon(parties, true, "bound-twin", &bindings(), Do::Create(binding())).await;
        let others =
            json!({"subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": "default"}]});
        let refused =
            Do::Patch("freeport-offload".into(), others.clone()).by(member, "bound-twin", &bindings()).await;
        assert!(refused.as_ref().is_err_and(|refusal| refusal.is_by_policy("of itself")), "{refused:?}");
        soon(parties, false, "bound-twin", &bindings(), Do::Patch("freeport-offload".into(), others)).await;
        let back = json!({"subjects": binding()["subjects"]});
        soon(parties, true, "bound-twin", &bindings(), Do::Patch("freeport-offload".into(), back)).await;
        assert_eq!(
            Do::Delete("freeport-offload".into())
                .by(member, "bound-twin", &bindings())
                .await
                .unwrap_err()
                .code,
            403
        );
        soon(parties, true, EVERYWHERE, &namespaces(), Do::Delete("bound-twin".into())).await;
    });
}
