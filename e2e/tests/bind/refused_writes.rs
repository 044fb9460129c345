//! Issue 38, 4: each write that a daemon sends for API binding is refused by a policy of its API server. Each is reported, other objects, bindings
//! and exports are not affected, and when the policies are gone everything is as users want it, without a restart.

use std::collections::BTreeMap;

use api::{
    bind::{
        binding::APIServiceBinding,
        condition::Condition,
        export::{APIServiceExport, APIServiceExportRequest, APIServiceNamespace, Phase},
        offer::BindableResourcesRequest,
    },
    cluster_set::WRITES_ACCEPTED,
};
use cli::objects::{SYSTEM, bind as objects};
use e2e::{
    binding::{
        BINDING, CREDENTIALS, GROUP, Offered, becomes, binding_says, install,
        provider::{contract, contract_for, granted, offer},
        vanishes,
    },
    cluster::Cluster,
    forbidden::{NOT_THIS_ONE, forbid_writers, permit},
    seen::event,
    waiting::{NAMESPACE_GONE, eventually, within},
    walk::{
        binding::{BOUND as BOUND_API, REFUSED},
        reported::counted,
    },
};
use k8s_openapi::{ByteString, api::core::v1::Namespace, api::core::v1::Secret};
use kube::{
    Api,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use crate::cli::program::status;

const POLICY: &str = "no-writes-of-binding";
/// Name of the API whose objects are refused, of its binding, and of the Secret of all bindings.
const API: &str = BOUND_API;

/// APIs that are bound before the policies are in force.
const BOUND: &[&str] = &["un-customresourcedefinitions-update", "un-customresourcedefinitions-delete"];
/// APIs that are exported before, and nobody binds.
const EXPORTED: &[&str] =
    &["no-boundschemas-delete", "no-rolebindings-delete", "no-apiserviceexports-update"];
/// APIs that are bound while the policies are in force, by exports that were there before.
const BOUND_LATER: &[&str] = &[
    "un-customresourcedefinitions-create",
    "un-apiservicebindings-update",
    "un-apiservicebindingsstatus-update",
    "no-boundschemasstatus-update",
];
/// The API that is exported and bound while the policies are in force.
const EXPORTED_LATER: &str = "no-apiserviceexportsstatus-update";
/// APIs that are asked for while the policies are in force.
const ASKED_LATER: &[&str] =
    &["no-boundschemas-create", "no-apiserviceexports-create", "no-apiserviceexportrequestsstatus-update"];
/// Namespaces in which objects are made before, and which go then.
const GOING: &[&str] =
    &["no-apiservicenamespaces-delete", "no-apiservicenamespaces-update", "no-namespaces-delete"];
/// Namespaces in which objects are made while the policies are in force.
const LATER: &[&str] =
    &["no-apiservicenamespaces-create", "no-apiservicenamespacesstatus-update", "no-namespaces-create"];

/// What daemons write.
const RESOURCES: &[&str] = &[
    "walks",
    "walks/status",
    "namespaces",
    "secrets",
    "rolebindings",
    "customresourcedefinitions",
    "apiservicebindings",
    "apiservicebindings/status",
    "apiservicenamespaces",
    "apiservicenamespaces/status",
    "apiserviceexports",
    "apiserviceexports/status",
    "boundschemas",
    "boundschemas/status",
    "apiserviceexportrequests",
    "apiserviceexportrequests/status",
    "bindableresourcesrequests",
    "bindableresourcesrequests/status",
];

/// Forbids in the cluster what the names of objects say.
async fn forbid_named(cluster: &Cluster, side: &str) {
    let groups = [GROUP, "kube-bind.io", "apiextensions.k8s.io", "rbac.authorization.k8s.io"];
    let writers = "(request.userInfo.username.contains('freeport') || request.userInfo.username.endsWith(':kube-binder'))";
    let resource = "request.resource.resource + variables.subresource + '-' + request.operation.lowerAscii()";
    let refused = format!("{writers} && variables.name.contains('{side}-' + {resource})");
    forbid_writers(cluster, "default", POLICY, (&groups, RESOURCES), &refused).await;
}

/// The binding of this name uses the credential in this Secret.
pub(super) async fn bind_by(consumer: &Cluster, offered: &Offered, secret: &str) {
    install(consumer, &objects::bound(&offered.resource())).await;
    let binding = json!({"metadata": {"name": offered.plural},
        "spec": {"kubeconfigSecretRef": {"namespace": CREDENTIALS, "name": secret, "key": "kubeconfig"}}});
    let _: APIServiceBinding = consumer.create_cluster_wide(binding).await;
}

pub(super) async fn keep(consumer: &Cluster, name: &str, kubeconfig: &ByteString) {
    let secret = json!({"metadata": {"name": name}, "data": {"kubeconfig": kubeconfig}});
    let secret: Secret = serde_json::from_value(secret).unwrap();
    consumer.api::<Secret>(CREDENTIALS).create(&PostParams::default(), &secret).await.unwrap();
}

fn bindings(cluster: &Cluster) -> Api<APIServiceBinding> {
    Api::all(cluster.client.clone())
}

async fn conditions_of(cluster: &Cluster, binding: &str) -> Vec<Condition> {
    let there = bindings(cluster).get(binding).await.unwrap();
    there.status.map(|status| status.conditions).unwrap_or_default()
}

/// Waits until one of the conditions is False and says that a policy refuses something.
pub(super) async fn says_refused(what: &str, said: impl AsyncFn() -> Vec<Condition>, type_: &str) {
    eventually(&format!("{what}: {type_} says what is refused"), || async {
        let said = said().await;
        let is_so = said.iter().any(|said| {
            said.type_ == type_
                && said.status == "False"
                && said.message.as_deref().is_some_and(|message| message.contains(NOT_THIS_ONE))
        });
        if is_so { Ok(()) } else { Err(format!("{said:?}")) }
    })
    .await;
}

#[e2e::test(real)]
fn each_write_of_binding_that_is_refused_is_reported_and_done_when_it_is_accepted() {
    BINDING.alone(async |world| {
        let (leader, east) = (world.leader(), world.cluster("east"));
        let names = [&[API, "un-secrets-update", EXPORTED_LATER], BOUND, EXPORTED, BOUND_LATER, ASKED_LATER].concat();
        let apis: BTreeMap<_, _> = names.iter().map(|name| (*name, Offered::new(name, "Namespaced"))).collect();
        let walks = &apis[API];
        let (cns, kubeconfig) = contract_for(world, "walk", &[walks]).await;
        for offered in apis.values().filter(|offered| offered.plural != API) {
            offer(leader, offered, json!({})).await;
            contract(world, "walk", &offered.plural).await;
        }
        for name in [&[API, "un-secrets-update"], BOUND, EXPORTED, BOUND_LATER].concat() {
            granted(world, &cns, &apis[name]).await;
        }
        keep(east, API, &kubeconfig).await;
        for name in [&[API], BOUND].concat() {
            bind_by(east, &apis[name], API).await;
            binding_says(world, "east", name, "Ready", "True", "").await;
        }

        let ns = &world.namespace("bind-walk", &["east"]).await;
        let there = &walks.objects(leader, Some(&format!("{cns}-{ns}")));
        let here = &walks.objects(east, Some(ns));
        let large = || json!({"spec": {"size": "l"}});
        for name in ["no-walks-update", "no-walks-delete", "un-walksstatus-update"] {
            walks.create(east, Some(ns), name, large()).await;
            becomes("is at the provider", there, name, |_| true).await;
        }
        for going in GOING {
            east.create_namespace(going).await;
            walks.create(east, Some(going), "one", large()).await;
            let copies = walks.objects(leader, Some(&format!("{cns}-{going}")));
            becomes("is at the provider", &copies, "one", |_| true).await;
        }
        forbid_named(leader, "no").await;
        forbid_named(east, "un").await;

        // Objects.
        walks.create(east, Some(ns), "no-walks-create", large()).await;
        walks.create(east, Some(ns), "un-walks-update", large()).await;
        let small = Patch::Merge(json!({"spec": {"size": "s"}}));
        here.patch("no-walks-update", &PatchParams::default(), &small).await.unwrap();
        here.delete("no-walks-delete", &DeleteParams::default()).await.unwrap();
        let well = Patch::Merge(json!({"status": {"phase": "Well"}}));
        there.patch_status("un-walksstatus-update", &PatchParams::default(), &well).await.unwrap();
        // Namespaces.
        for going in GOING {
            east.delete_namespace(going).await;
        }
        for later in LATER {
            east.create_namespace(later).await;
            walks.create(east, Some(later), "one", large()).await;
        }
        // Bindings.
        granted(world, &cns, &apis[EXPORTED_LATER]).await;
        for name in [BOUND_LATER, &[EXPORTED_LATER]].concat() {
            bind_by(east, &apis[name], API).await;
        }
        keep(east, "un-secrets-update", &kubeconfig).await;
        bind_by(east, &apis["un-secrets-update"], "un-secrets-update").await;
        bindings(east).delete(BOUND[1], &DeleteParams::default()).await.unwrap();
        let more = json!({"metadata": {"labels": null}, "spec": {"names": {"shortNames": ["altered"]}}});
        let altered = format!("{}.{GROUP}", BOUND[0]);
        east.crds().patch(&altered, &PatchParams::default(), &Patch::Merge(more)).await.unwrap();
        // Exports and requests.
        for name in EXPORTED {
            leader.api::<APIServiceExport>(&cns).delete(name, &DeleteParams::default()).await.unwrap();
        }
        let requests = &leader.api::<APIServiceExportRequest>(&cns);
        for name in ASKED_LATER {
            let spec = json!({"resources": [apis[name].resource()]});
            let _: APIServiceExportRequest =
                leader.create(&cns, json!({"metadata": {"name": name}, "spec": spec})).await;
        }
        let asks = &leader.api::<BindableResourcesRequest>(SYSTEM);
        for name in ["no-bindableresourcesrequestsstatus-update", "no-bindableresourcesrequests-delete"] {
            let spec = json!({"clusterIdentity": {"identity": "walk"}, "author": "me", "templateRef": {"name": API}, "ttlAfterFinished": "1s"});
            let _: BindableResourcesRequest =
                leader.create(SYSTEM, json!({"metadata": {"name": name}, "spec": spec})).await;
        }

        // All is said.
        counted(world, REFUSED).await;
        let of = async |binding: &str| conditions_of(east, binding).await;
        says_refused(API, async || of(API).await, WRITES_ACCEPTED).await;
        says_refused(API, async || of(API).await, "Synced").await;
        for (binding, type_) in [
            (BOUND[0], "Connected"),
            (BOUND[1], WRITES_ACCEPTED),
            (BOUND_LATER[0], "Connected"),
            (BOUND_LATER[1], "Connected"),
            (BOUND_LATER[3], WRITES_ACCEPTED),
            (EXPORTED_LATER, WRITES_ACCEPTED),
            ("un-secrets-update", "SecretValid"),
        ] {
            says_refused(binding, async || of(binding).await, type_).await;
        }
        eventually("an Event of the binding says it", || event(east, "default", BOUND_LATER[2], "Refused")).await;
        eventually("so it is with objects", || event(east, ns, "no-walks-create", "Refused")).await;
        for name in EXPORTED {
            let export = async || {
                let there = leader.api::<APIServiceExport>(&cns).get(name).await.unwrap();
                there.status.unwrap_or_default().conditions
            };
            says_refused(name, export, "ProviderInSync").await;
        }
        for name in &ASKED_LATER[..2] {
            let request = async || requests.get(name).await.unwrap().status.unwrap_or_default().conditions;
            says_refused(name, request, "ExportsReady").await;
        }
        let spaces = leader.api::<APIServiceNamespace>(&cns);
        for name in ["no-namespaces-create", "no-namespaces-delete", "no-apiservicenamespaces-update"] {
            let space = async || spaces.get(name).await.unwrap().status.unwrap_or_default().conditions;
            says_refused(name, space, "Assigned").await;
        }
        status(world, "east").await.reported(1, &["APIServiceBinding walks", "WritesAccepted is False", NOT_THIS_ONE]);
        status(world, "leader").await.reported(1, &["APIServiceExportRequest", "APIServiceNamespace", NOT_THIS_ONE]);

        // Nothing else stops.
        walks.create(east, Some(ns), "fine", large()).await;
        becomes("is at the provider", there, "fine", |_| true).await;
        let fine = world.namespace("bind-walk-fine", &["east"]).await;
        walks.create(east, Some(&fine), "fine", large()).await;
        let in_fine = walks.objects(leader, Some(&format!("{cns}-{fine}")));
        becomes("is at the provider", &in_fine, "fine", |_| true).await;
        binding_says(world, "east", API, "Ready", "True", "").await;

        for cluster in [leader, east] {
            permit(cluster, POLICY).await;
        }
        for name in ["no-walks-create", "un-walks-update"] {
            becomes("is at the provider", there, name, |_| true).await;
        }
        becomes("is changed", there, "no-walks-update", |copy| copy.data["spec"]["size"] == "s").await;
        vanishes(there, "no-walks-delete").await;
        becomes("has the status", here, "un-walksstatus-update", |own| own.data["status"]["phase"] == "Well").await;
        for later in LATER {
            let copies = walks.objects(leader, Some(&format!("{cns}-{later}")));
            becomes("is at the provider", &copies, "one", |_| true).await;
        }
        for going in GOING {
            let place = format!("{cns}-{going}");
            let namespaces = Api::<Namespace>::all(leader.client.clone());
            within(NAMESPACE_GONE, &format!("{place} is gone"), || async {
                let there = namespaces.get_opt(&place).await.unwrap();
                if there.is_none() { Ok(()) } else { Err(format!("{there:?}")) }
            })
            .await;
        }
        for name in [&[API, "un-secrets-update", EXPORTED_LATER], &BOUND[..1], BOUND_LATER].concat() {
            binding_says(world, "east", name, "Ready", "True", "").await;
            eventually(&format!("{name}: nothing is refused"), || async {
                let said = of(name).await;
                let is_well = said.iter().all(|said| {
                    ![WRITES_ACCEPTED, "Synced", "SecretValid"].contains(&&*said.type_) || said.status == "True"
                });
                if is_well { Ok(()) } else { Err(format!("{said:?}")) }
            })
            .await;
        }
        eventually("the binding is gone", || async {
            let there = bindings(east).get_opt(BOUND[1]).await.unwrap();
            if there.is_none() { Ok(()) } else { Err(format!("{there:?}")) }
        })
        .await;
        for name in EXPORTED {
            eventually(&format!("export {name} is gone"), || async {
                let there = leader.api::<APIServiceExport>(&cns).get_opt(name).await.unwrap();
                if there.is_none() { Ok(()) } else { Err(format!("{:?}", there.map(|there| there.status))) }
            })
            .await;
        }
        for name in ASKED_LATER {
            eventually(&format!("request {name} is granted"), || async {
                let status = requests.get(name).await.unwrap().status.unwrap_or_default();
                if status.phase == Phase::Succeeded { Ok(()) } else { Err(format!("{status:?}")) }
            })
            .await;
        }
        eventually("requests go after their time", || async {
            let left: Vec<_> = asks.list(&Default::default()).await.unwrap().items;
            let left: Vec<Value> = left.iter().filter(|ask| ask.spec.ttl_after_finished.is_some()).map(|ask| json!(ask.metadata.name)).collect();
            if left.is_empty() { Ok(()) } else { Err(format!("{left:?}")) }
        })
        .await;
        eventually("freeport status says that all is well", || async {
            let said = status(world, "east").await;
            if said.code == Some(0) { Ok(()) } else { Err(said.to_string()) }
        })
        .await;

        for name in [&[API, "un-secrets-update", EXPORTED_LATER], &BOUND[..1], BOUND_LATER].concat() {
            bindings(east).delete(name, &DeleteParams::default()).await.unwrap();
        }
        eventually("the bindings are gone", || async {
            let left = bindings(east).list(&Default::default()).await.unwrap().items.len();
            if left == 0 { Ok(()) } else { Err(format!("{left} bindings")) }
        })
        .await;
        for namespace in [ns, &fine] {
            world.release(namespace).await;
        }
        for later in LATER {
            east.release_namespace(later).await;
        }
        leader.release_namespace(&cns).await;
        for offered in apis.values() {
            leader.take_crd(&offered.name()).await;
        }
    });
}
