//! Our konnector with a provider that is played.

use api::bind::{
    binding::{APIServiceBinding, ClusterBinding},
    bound_schema::BoundSchema,
    export::APIServiceExport,
    label,
    resource::{InformerScope, Isolation},
};
use e2e::{
    binding::{BINDING, CREDENTIALS, Offered, becomes, bind, bind_with, binding_says, named, vanishes},
    daemon::End,
    seen::event,
    waiting::{always, eventually},
    world::World,
};
use k8s_openapi::api::{
    coordination::v1::Lease,
    core::v1::{Namespace, Secret},
};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use super::backend::Backend;

/// Daemon of `west`, in which its konnector runs.
const KONNECTOR: &str = "freeport-member-west";

/// The consumer does not use the API any more; its objects and its CRD go.
pub(super) async fn unbind(world: &World, consumer: &str, offered: &Offered) {
    let cluster = world.cluster(consumer);
    let bindings = Api::<APIServiceBinding>::all(cluster.client.clone());
    bindings.delete(&offered.plural, &DeleteParams::default()).await.unwrap();
    eventually("the binding is gone", || async {
        match bindings.get_opt(&offered.plural).await.unwrap() {
            None => Ok(()),
            Some(binding) => Err(format!(
                "{:?}; its log:\n{}",
                binding.metadata,
                world.log_tail(&format!("freeport-member-{consumer}"))
            )),
        }
    })
    .await;
    assert!(cluster.crds().get_opt(&offered.name()).await.unwrap().is_none(), "its CRD is gone before");
}

#[e2e::test]
fn b1_an_api_is_installed_specs_go_up_and_statuses_come_down() {
    BINDING.beside(async |world| {
        let (leader, east) = (world.leader(), world.cluster("east"));
        let offered = Offered::new("mangodbs", "Namespaced");
        offered.install(leader).await;
        let (backend, kubeconfig) =
            Backend::begin(world, "east", &offered, (Isolation::Prefixed, InformerScope::Namespaced)).await;
        bind_with(east, "mangodbs", &offered, kubeconfig).await;
        let ns = world.namespace("bind-b1", &["east"]).await;

        let spec = json!({"spec": {"size": "l", "opts": {"a": 1, "b": 2}, "maybe": null, "free": {"big": 9_007_199_254_740_993_i64, "f": 0.1, "m": {}, "l": []}},
            "data": {"more": "x"}});
        offered.create(east, Some(&ns), "foo", spec.clone()).await;
        let there_ns = backend.assign(&ns).await;
        let there = offered.objects(leader, Some(&there_ns));
        let copy = becomes("is at the provider", &there, "foo", |_| true).await;
        assert_eq!(copy.data["spec"], spec["spec"]);
        assert_eq!(copy.data["data"], spec["data"]);
        assert_eq!(copy.annotations()["kube-bind.io/cluster-namespace"], backend.cluster_namespace);

        let status = Patch::Merge(json!({"status": {"phase": "Ready", "f": 0.1, "n": 9_007_199_254_740_993_i64}}));
        let said = there.patch_status("foo", &PatchParams::default(), &status).await.unwrap();
        let here = offered.objects(east, Some(&ns));
        let object = becomes("has the status", &here, "foo", |object| object.data["status"] == said.data["status"]).await;
        assert_eq!(object.finalizers(), ["kubebind.io/syncer"]);
        becomes("knows its copy", &here, "foo", |object| {
            object.annotations().get("kube-bind.io/provider-uid") == copy.metadata.uid.as_ref()
        })
        .await;
        binding_says(world, "east", "mangodbs", "Ready", "True", "").await;
        let heartbeat = leader.api::<ClusterBinding>(&backend.cluster_namespace);
        let beat = heartbeat.get("cluster").await.unwrap().status.unwrap();
        assert!(beat.last_heartbeat_time.is_some() && beat.konnector_version.is_some(), "{beat:?}");

        // T2, C1: what the consumer takes out goes; what others add stays, and is no reason to write.
        let theirs = Patch::Merge(json!({"spec": {"opts": {"theirs": 3}, "users": [{"name": "op", "value": "1"}]}}));
        there.patch("foo", &PatchParams::default(), &theirs).await.unwrap();
        let change = Patch::Merge(json!({"spec": {"opts": {"b": null}, "users": [{"name": "me"}]}}));
        here.patch("foo", &PatchParams::default(), &change).await.unwrap();
        let changed = becomes("is changed", &there, "foo", |copy| copy.data["spec"]["opts"].get("b").is_none()).await;
        assert_eq!(changed.data["spec"]["opts"], json!({"a": 1, "theirs": 3}));
        assert_eq!(changed.data["spec"]["users"].as_array().unwrap().len(), 2, "{}", changed.data["spec"]);
        let edit = Patch::Merge(json!({"spec": {"size": "s"}, "metadata": {"annotations": {"kube-bind.io/cluster-namespace": null}}}));
        there.patch("foo", &PatchParams::default(), &edit).await.unwrap();
        becomes("is put back", &there, "foo", |copy| {
            copy.data["spec"]["size"] == "l" && copy.annotations().contains_key("kube-bind.io/cluster-namespace")
        })
        .await;

        // C1: Go's konnector created a copy; what the consumer has taken out since goes.
        let mut created = offered.object("gos", json!({"spec": {"size": "l", "opts": {"a": 1, "gone": 2}}}));
        let whose = json!({"kube-bind.io/cluster-namespace": backend.cluster_namespace});
        created.metadata.annotations = serde_json::from_value(whose).unwrap();
        let by = PostParams { field_manager: Some("konnector".to_owned()), dry_run: false };
        let created = there.create(&by, &created).await.unwrap();
        offered.create(east, Some(&ns), "gos", json!({"spec": {"size": "l", "opts": {"a": 1}}})).await;
        let taken_over = becomes("is taken over", &there, "gos", |copy| copy.data["spec"]["opts"] == json!({"a": 1})).await;
        assert_eq!(taken_over.metadata.uid, created.metadata.uid);
        let managers: Vec<_> = taken_over.managed_fields().iter().map(|entry| (entry.manager.as_deref(), entry.operation.as_deref())).collect();
        assert_eq!(managers, [(Some("kube-bind.io"), Some("Apply"))]);
        here.delete("gos", &DeleteParams::default()).await.unwrap();
        vanishes(&there, "gos").await;

        // X1: the object waits for its copy.
        let hold = Patch::Merge(json!({"metadata": {"finalizers": ["operator/f"]}}));
        there.patch("foo", &PatchParams::default(), &hold).await.unwrap();
        here.delete("foo", &DeleteParams::default()).await.unwrap();
        becomes("is being deleted", &there, "foo", |copy| copy.metadata.deletion_timestamp.is_some()).await;
        assert!(here.get_opt("foo").await.unwrap().is_some());
        let release = Patch::Merge(json!({"metadata": {"finalizers": null}}));
        there.patch("foo", &PatchParams::default(), &release).await.unwrap();
        vanishes(&here, "foo").await;
        vanishes(&there, "foo").await;

        offered.create(east, Some(&ns), "last", json!({"spec": {"size": "m"}})).await;
        becomes("is at the provider", &there, "last", |_| true).await;
        unbind(world, "east", &offered).await;
        vanishes(&there, "last").await;
        let exports = leader.api::<APIServiceExport>(&backend.cluster_namespace);
        eventually("the provider is told that nobody binds it", || async {
            let said = exports.get("mangodbs").await.unwrap().status.unwrap_or_default().conditions;
            let is_so = said.iter().any(|c| c.type_ == "ConsumerInSync" && c.reason.as_deref() == Some("NA"));
            if is_so { Ok(()) } else { Err(format!("{said:?}")) }
        })
        .await;
        world.release(&ns).await;
        backend.release().await;
        leader.take_crd(&offered.name()).await;
    });
}

#[e2e::test]
fn b7_m8_a_foreign_crd_is_left_alone_and_what_cannot_go_up_is_said() {
    BINDING.beside(async |world| {
        let (leader, east) = (world.leader(), world.cluster("east"));
        let offered = Offered::new("foreigns", "Cluster");
        offered.install(leader).await;
        offered.install(east).await;
        let (backend, kubeconfig) =
            Backend::begin(world, "east", &offered, (Isolation::Prefixed, InformerScope::Cluster)).await;
        bind_with(east, "foreigns", &offered, kubeconfig).await;
        binding_says(world, "east", "foreigns", "Connected", "False", "ForeignCustomResourceDefinition")
            .await;
        offered.create(east, None, "foo", json!({"spec": {"size": "l"}})).await;
        let (here, there) = (offered.objects(east, None), offered.objects(leader, None));
        always("nothing is uploaded", || async {
            let copies = there.list(&Default::default()).await.unwrap().items;
            let object = here.get("foo").await.unwrap();
            match copies.is_empty() && object.finalizers().is_empty() {
                true => Ok(()),
                false => Err(format!("{copies:?} {:?}", object.metadata)),
            }
        })
        .await;
        let schema =
            leader.api::<BoundSchema>(&backend.cluster_namespace).get(&offered.name()).await.unwrap();
        assert!(schema.status.is_none(), "the provider is told of a CRD that is not its own: {schema:?}");
        // Its konnector makes another one at once.
        east.crds().delete(&offered.name(), &DeleteParams::default()).await.unwrap();
        binding_says(world, "east", "foreigns", "Ready", "True", "").await;

        let long = "n".repeat(240);
        offered.create(east, None, &long, json!({"spec": {"size": "l"}})).await;
        binding_says(world, "east", "foreigns", "Synced", "False", "NameTooLong").await;
        eventually("an Event says it", || event(east, "default", &long, "NameTooLong")).await;
        assert!(here.get(&long).await.unwrap().finalizers().is_empty(), "no finalizer");
        here.delete(&long, &DeleteParams::default()).await.unwrap();
        vanishes(&here, &long).await;

        // The provider wants shorter ones than it said.
        let had = leader.crd_versions(&offered.name()).await;
        let mut shorter = had.clone();
        let spec = "/schema/openAPIV3Schema/properties/spec/properties/size/maxLength";
        *shorter[0].pointer_mut(spec).unwrap() = json!(1);
        leader.install_crd_versions(&offered.name(), &shorter).await;
        let dry = PostParams { dry_run: true, ..PostParams::default() };
        let long = offered.object("dry", json!({"spec": {"size": "long"}}));
        eventually("the provider goes by the new schema", || async {
            there.create(&dry, &long).await.map_or(Ok(()), |taken| Err(format!("{taken:?}")))
        })
        .await;
        offered.create(east, None, "refused", long.data.clone()).await;
        eventually("an Event says it", || event(east, "default", "refused", "Refused")).await;
        binding_says(world, "east", "foreigns", "Synced", "False", "Refused").await;
        offered.create(east, None, "b", json!({"spec": {"size": "l"}})).await;
        let copy = |name: &str| format!("{}-{name}", backend.cluster_namespace);
        becomes("goes up meanwhile", &there, &copy("b"), |_| true).await;
        leader.install_crd_versions(&offered.name(), &had).await;
        binding_says(world, "east", "foreigns", "Synced", "True", "").await;
        becomes("goes up in the end", &there, &copy("refused"), |_| true).await;
        unbind(world, "east", &offered).await;
        backend.release().await;
        leader.take_crd(&offered.name()).await;
    });
}

/// B18, D8: what its cluster has seems to be gone in another one.
#[e2e::test]
fn b18_a_credential_that_was_moved_from_another_cluster_synchronizes_nothing() {
    BINDING.alone(async |world| {
        let (leader, west) = (world.leader(), world.cluster("west"));
        let offered = Offered::new("moved", "Cluster");
        offered.install(leader).await;
        let (backend, kubeconfig) =
            Backend::begin(world, "west", &offered, (Isolation::Prefixed, InformerScope::Cluster)).await;
        let copy = format!("{}-foo", backend.cluster_namespace);
        let annotations = json!({"kube-bind.io/cluster-namespace": backend.cluster_namespace, "kube-bind.io/consumer-uid": "u"});
        let mut left = offered.object(&copy, json!({"spec": {"size": "l"}}));
        left.metadata.annotations = serde_json::from_value(annotations).unwrap();
        let there = offered.objects(leader, None);
        let left = there.create(&Default::default(), &left).await.unwrap();
        // One konnector of this cluster has outlived it, and the next one begins: what was made after the last sign of one, or within five
        // minutes after one began, may be missing here for a restore alone, and an absence would not count.
        let leases = west.api::<Lease>(CREDENTIALS);
        eventually("a konnector has outlived the copy", || async {
            let renewed = leases.get_opt("kube-bind").await.unwrap().and_then(|lease| lease.spec?.renew_time);
            let made = left.metadata.creation_timestamp.as_ref().map(|made| made.0);
            if renewed.as_ref().map(|at| at.0) > made { Ok(()) } else { Err(format!("{renewed:?}")) }
        })
        .await;
        world.end(KONNECTOR, End::Stop).await;
        world.start(KONNECTOR).await;
        let moved = json!({"metadata": {"name": "moved", "annotations": {"multicluster.freeport.dev/cluster-uid": "other"}}});
        let secret = Secret {
            data: Some([("kubeconfig".to_owned(), kubeconfig)].into()),
            ..serde_json::from_value(moved).unwrap()
        };
        west.api::<Secret>(CREDENTIALS).create(&Default::default(), &secret).await.unwrap();
        bind(west, "moved", &offered).await;
        binding_says(world, "west", "moved", "SecretValid", "False", "KubeconfigSecretInvalid").await;
        assert!(west.crds().get_opt(&offered.name()).await.unwrap().is_none());
        // It is not missed by a binding that did not make it.
        let uid = Api::<APIServiceBinding>::all(west.client.clone()).get("moved").await.unwrap().uid();
        let made = Patch::Merge(json!({"metadata": {"annotations": {label::BINDING_UID: uid}}}));
        there.patch(&copy, &PatchParams::default(), &made).await.unwrap();

        // Somebody says that it is this cluster's after all: an absence counts now.
        assert_eq!(there.get(&copy).await.unwrap().metadata.uid, left.metadata.uid);
        west.api::<Secret>(CREDENTIALS).delete("moved", &DeleteParams::default()).await.unwrap();
        binding_says(world, "west", "moved", "SecretValid", "False", "KubeconfigSecretNotFound").await;
        // A Secret that is new says nothing of whose it is; the contract does.
        let again = Secret { metadata: named("moved"), ..secret };
        let is_of = async |identity: Value| {
            let patch = Patch::Merge(json!({"metadata": {"annotations": {"backend.kube-bind.io/identity": identity}}}));
            let namespaces = Api::<Namespace>::all(leader.client.clone());
            namespaces.patch(&backend.cluster_namespace, &PatchParams::default(), &patch).await.unwrap();
        };
        is_of(json!("0f9d8a2e-1111-4222-8333-0123456789ab")).await;
        west.api::<Secret>(CREDENTIALS).create(&Default::default(), &again).await.unwrap();
        binding_says(world, "west", "moved", "SecretValid", "False", "KubeconfigSecretInvalid").await;
        assert_eq!(there.get(&copy).await.unwrap().metadata.uid, left.metadata.uid);
        west.api::<Secret>(CREDENTIALS).delete("moved", &DeleteParams::default()).await.unwrap();
        binding_says(world, "west", "moved", "SecretValid", "False", "KubeconfigSecretNotFound").await;
        is_of(Value::Null).await;
        west.api::<Secret>(CREDENTIALS).create(&Default::default(), &again).await.unwrap();
        binding_says(world, "west", "moved", "Connected", "True", "").await;
        vanishes(&there, &copy).await;
        unbind(world, "west", &offered).await;
        backend.release().await;
        leader.take_crd(&offered.name()).await;
    });
}
