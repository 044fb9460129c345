//! What can only be a mistake, as the API server refuses it whoever writes it: an administrator here.

use api::mcs::{ServiceExport, ServiceImport};
use e2e::{cluster::Cluster, fixture::SET, waiting::eventually, world::World};
use fleet::cluster_set;
use k8s_openapi::api::{
    admissionregistration::v1::ValidatingAdmissionPolicyBinding as Binding, core::v1::Namespace,
};
use kube::{
    Api,
    api::{ApiResource, DeleteParams, Patch, PatchParams},
};
use serde_json::{Value, json};

use crate::rights::{
    attempt::{Do, Refusal},
    parties::{alone, shared},
};

fn imports(version: &str) -> ApiResource {
    of_version(ApiResource::erase::<ServiceImport>(&()), version)
}

fn exports(version: &str) -> ApiResource {
    of_version(ApiResource::erase::<ServiceExport>(&()), version)
}

fn of_version(kind: ApiResource, version: &str) -> ApiResource {
    ApiResource { api_version: format!("{}/{version}", kind.group), version: version.into(), ..kind }
}

fn import(name: &str, spec: &Value) -> Value {
    let mut whole = json!({"type": "ClusterSetIP", "ports": [{"port": 80, "protocol": "TCP"}]});
    for (field, value) in spec.as_object().unwrap() {
        whole[field] = value.clone();
    }
    json!({"metadata": {"name": name}, "spec": whole})
}

/// Of each rule one that breaks it, and words of the sentence that says so.
fn wrong_imports() -> Vec<(Value, &'static str)> {
    vec![
        (json!({"ports": [{"name": "Web_1", "port": 80}]}), "port name \"Web_1\" is no DNS label"),
        (json!({"ports": [{"name": "p".repeat(64), "port": 80}]}), "is no DNS label"),
        (json!({"ports": [{"port": 0}]}), "port 0 is not from 1 to 65535"),
        (json!({"ports": [{"port": 65536}]}), "port 65536 is not from 1 to 65535"),
        (
            json!({"ports": [{"port": 80, "protocol": "HTTP"}]}),
            "protocol \"HTTP\" is none of TCP, UDP and SCTP",
        ),
        (
            json!({"ports": [{"name": "web", "port": 80}, {"name": "web", "port": 81}]}),
            "two ports have the name \"web\"",
        ),
        (json!({"ports": [{"port": 80}, {"port": 81}]}), "two ports have the name \"\""),
        (
            json!({"ports": [{"name": "a", "port": 80}, {"name": "b", "port": 80, "protocol": "TCP"}]}),
            "two ports are TCP/80",
        ),
        (json!({"ips": ["10.0.0.256"]}), "\"10.0.0.256\" in ips is no IP address"),
        (json!({"ips": ["web.example.com"]}), "in ips is no IP address"),
        (json!({"ipFamilies": ["IPv5"]}), "\"IPv5\" in ipFamilies is neither IPv4 nor IPv6"),
        (json!({"ipFamilies": ["IPv4", "IPv4"]}), "IPv4 is twice in ipFamilies"),
    ]
}

async fn tried(cluster: &Cluster, namespace: &str, kind: &ApiResource, todo: Do) -> Result<(), Refusal> {
    todo.by(&cluster.client, namespace, kind).await
}

/// Whether it was refused with these words, after what it is about.
fn is_told(refused: &Result<(), Refusal>, about: &str, says: &str) -> Result<(), String> {
    match refused {
        Err(refusal) if refusal.is_by_policy(says) && refusal.message.contains(about) => Ok(()),
        other => Err(format!("{about}, {says}: {other:?}")),
    }
}

/// Policies are enforced a moment after they or their bindings were written.
async fn until_enforced(cluster: &Cluster, namespace: &str) {
    let (wrong, says) = wrong_imports().swap_remove(0);
    eventually("freeport-import-content is enforced", || async {
        let probe = Do::DryCreate(import("probe", &wrong));
        is_told(&tried(cluster, namespace, &imports("v1alpha1"), probe).await, "probe", says)
    })
    .await;
}

#[e2e::test]
fn an_import_that_no_cluster_could_serve_is_refused_and_the_sentence_says_why() {
    shared(async |parties| {
        let space = parties.world.namespace("mistakes-imports", &["leader"]).await;
        let west = parties.world.leader();
        until_enforced(west, &space).await;
        let right = Do::Create(import("there", &json!({})));
        tried(west, &space, &imports("v1beta1"), right).await.unwrap();
        for version in ["v1alpha1", "v1beta1"] {
            for (spec, says) in wrong_imports() {
                let created = tried(west, &space, &imports(version), Do::Create(import("web", &spec))).await;
                is_told(&created, "ServiceImport mistakes-imports/web: ", says).unwrap();
                let change = Do::Patch("there".into(), json!({"spec": spec}));
                let changed = tried(west, &space, &imports(version), change).await;
                is_told(&changed, "ServiceImport mistakes-imports/there: ", says).unwrap();
            }
        }
        parties.world.release(&space).await;
    });
}

#[e2e::test]
fn an_import_that_can_be_served_passes_however_large() {
    shared(async |parties| {
        let space = parties.world.namespace("mistakes-none", &["leader"]).await;
        let west = parties.world.leader();
        until_enforced(west, &space).await;
        let port = |at: i32| json!({"name": format!("{}{at:03}", "p".repeat(60)), "port": at + 1});
        let both = json!([{"name": "t", "port": 53, "protocol": "TCP"}, {"name": "u", "port": 53, "protocol": "UDP"}]);
        for (at, spec) in [
            json!({"ports": (0..250).map(port).collect::<Vec<_>>()}),
            json!({"ports": both, "ips": ["10.0.0.1", "fd00::1"], "ipFamilies": ["IPv4", "IPv6"]}),
            json!({"type": "Headless", "ports": []}),
        ]
        .iter()
        .enumerate()
        {
            let created = Do::Create(import(&format!("web-{at}"), spec));
            tried(west, &space, &imports("v1alpha1"), created).await.unwrap();
        }
        let status = json!({"status": {"clusters": [{"cluster": "east"}]}});
        let told = Do::PatchStatus("web-0".into(), status);
        tried(west, &space, &imports("v1alpha1"), told).await.unwrap();
        parties.world.release(&space).await;
    });
}

#[e2e::test]
fn an_export_of_labels_that_no_object_could_have_is_refused() {
    shared(async |parties| {
        let space = parties.world.namespace("mistakes-labels", &["leader"]).await;
        let west = parties.world.leader();
        let export = |name: &str, spec: &Value| json!({"metadata": {"name": name}, "spec": spec});
        let wrong = [
            (
                json!({"exportedLabels": {"a b": "c"}}),
                "\"a b\" in exportedLabels or exportedAnnotations is no key",
            ),
            (json!({"exportedLabels": {"Example.com/a": "c"}}), "\"Example.com/a\" in"),
            (json!({"exportedAnnotations": {"/a": "c"}}), "\"/a\" in"),
            (json!({"exportedAnnotations": {"a".repeat(64): "c"}}), "is no key that an object could have"),
            (
                json!({"exportedLabels": {"a": "-"}}),
                "\"-\" in exportedLabels is no value that a label could have",
            ),
        ];
        eventually("freeport-exports is enforced", || async {
            let probe = Do::DryCreate(export("probe", &wrong[0].0));
            is_told(&tried(west, &space, &exports("v1alpha1"), probe).await, "probe", wrong[0].1)
        })
        .await;
        for version in ["v1alpha1", "v1beta1"] {
            for (spec, says) in &wrong {
                let created = tried(west, &space, &exports(version), Do::Create(export("web", spec))).await;
                is_told(&created, "ServiceExport mistakes-labels/web: ", says).unwrap();
            }
        }
        let many: serde_json::Map<_, _> =
            (0..900).map(|at| (format!("example.com/{}{at:03}", "k".repeat(50)), json!("v"))).collect();
        let annotated = json!({"Example.com/Note": "anything goes: here", "b": ""});
        let spec = json!({"exportedLabels": many, "exportedAnnotations": annotated});
        tried(west, &space, &exports("v1beta1"), Do::Create(export("web", &spec))).await.unwrap();
        parties.world.release(&space).await;
    });
}

async fn label(cluster: &Cluster, namespace: &str, export: Value) {
    let patch = json!({"metadata": {"labels": {"multicluster.freeport.dev/export": export}}});
    let namespaces = Api::<Namespace>::all(cluster.client.clone());
    namespaces.patch(namespace, &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
}

#[e2e::test]
fn r7_an_administrator_excludes_a_namespace_from_exporting() {
    shared(async |parties| {
        let space = parties.world.namespace("mistakes-excluded", &["leader"]).await;
        let west = parties.world.leader();
        let export = |name: &str| json!({"metadata": {"name": name}});
        tried(west, &space, &exports("v1alpha1"), Do::Create(export("before"))).await.unwrap();
        label(west, &space, json!("false")).await;
        let says = "the administrator excluded Namespace mistakes-excluded from exporting, by its label \
                    multicluster.freeport.dev/export: \"false\"";
        let note = json!({"metadata": {"annotations": {"seen": "here"}}});
        for version in ["v1alpha1", "v1beta1"] {
            let kind = exports(version);
            eventually("the label is known", || async {
                let probe = Do::DryCreate(export("web"));
                is_told(
                    &tried(west, &space, &kind, probe).await,
                    "ServiceExport mistakes-excluded/web ",
                    says,
                )
            })
            .await;
            let asks_for_more = json!({"spec": {"exportedLabels": {"seen": version}}});
            let changed = tried(west, &space, &kind, Do::Patch("before".into(), asks_for_more)).await;
            is_told(&changed, "mistakes-excluded/before", says).unwrap();
            tried(west, &space, &kind, Do::Patch("before".into(), note.clone())).await.unwrap();
            let status = json!({"status": {"conditions": []}});
            tried(west, &space, &kind, Do::PatchStatus("before".into(), status)).await.unwrap();
        }
        tried(west, &space, &exports("v1alpha1"), Do::Delete("before".into())).await.unwrap();
        label(west, &space, Value::Null).await;
        eventually("the label is gone", || async {
            let again = Do::DryCreate(export("web"));
            tried(west, &space, &exports("v1alpha1"), again).await.map_err(|refusal| refusal.message)
        })
        .await;
        parties.world.release(&space).await;
    });
}

/// Installs again, as users do; what was said.
async fn installed_again(world: &World) -> String {
    let mut said = String::new();
    cluster_set::set_up(&world.real().fleet, SET, &mut |line: &str| {
        said.push_str(line);
        said.push('\n');
    })
    .await
    .unwrap();
    said
}

#[e2e::test]
fn the_administrator_switches_it_off_and_installing_again_respects_that() {
    alone(async |parties| {
        let (world, name) = (&parties.world, "freeport-import-content");
        let space = world.namespace("mistakes-off", &["leader"]).await;
        let leader = world.leader();
        let bindings = Api::<Binding>::all(leader.client.clone());
        until_enforced(leader, &space).await;
        let off = json!({"spec": {"validationActions": ["Audit", "Warn"]}});
        bindings.patch(name, &PatchParams::default(), &Patch::Merge(&off)).await.unwrap();
        let (wrong, says) = wrong_imports().swap_remove(0);
        eventually("it only warns", || async {
            let mistake = Do::Create(import("there", &wrong));
            tried(leader, &space, &imports("v1alpha1"), mistake).await.map_err(|refusal| refusal.message)
        })
        .await;

        let said = installed_again(world).await;
        let kept = format!("leader: kept validationActions of ValidatingAdmissionPolicyBinding {name}");
        assert!(said.contains(&kept), "{said}");
        let actions = bindings.get(name).await.unwrap().spec.validation_actions;
        assert_eq!(actions, ["Audit", "Warn"].map(str::to_owned));

        bindings.delete(name, &DeleteParams::default()).await.unwrap();
        let said = installed_again(world).await;
        assert!(said.contains(&format!("leader: created ValidatingAdmissionPolicyBinding {name}")), "{said}");
        until_enforced(leader, &space).await;
        // What was there before can be changed, but for what it says.
        let kind = imports("v1alpha1");
        let note = json!({"metadata": {"annotations": {"seen": "here"}}});
        tried(leader, &space, &kind, Do::Patch("there".into(), note)).await.unwrap();
        let other = json!({"spec": {"type": "Headless"}});
        let changed = tried(leader, &space, &kind, Do::Patch("there".into(), other)).await;
        is_told(&changed, "there", says).unwrap();
        tried(leader, &space, &kind, Do::Delete("there".into())).await.unwrap();
        world.release(&space).await;
    });
}
