//! A provider, `leader`, and two consumers, `east` and `west`, with their daemons.

pub mod provider;

use std::path::PathBuf;

use crate::{
    account,
    cluster::Cluster,
    shared::Shared,
    simulated,
    waiting::eventually,
    world::{Real, World},
};
use api::bind::{binding::APIServiceBinding, resource::Resource};
use cli::objects::{Object, bind as objects};
use fleet::cluster_set::Composition;
use k8s_openapi::{
    ByteString, api::core::v1::Secret,
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, ResourceExt,
    api::{ApiResource, DynamicObject, Patch, PatchParams, PostParams},
    core::ObjectMeta,
};
use serde_json::{Value, json};
use sim::world::Plan;

/// The fixture.
pub static BINDING: Shared<World> = Shared::new("bind", 3, || Box::pin(up("e2e-bind"))).simulated(|test| {
    let plan = simulated::plan(&CLUSTERS, &[("demo", &CONSUMERS)]);
    simulated::with(Plan { bind: true, ..plan }, test);
});

const CLUSTERS: [&str; 3] = ["leader", "east", "west"];
const CONSUMERS: [&str; 2] = ["east", "west"];

/// A program of kube-bind's, if there is one in the folder that KUBE_BIND_BIN names. What it does is played otherwise.
pub fn kube_bind(program: &str) -> Option<PathBuf> {
    let folder = std::env::var_os("KUBE_BIND_BIN").map(PathBuf::from);
    let found = folder.map(|folder| folder.join(program)).filter(|path| path.is_file());
    if found.is_none() {
        crate::note!("KUBE_BIND_BIN names no folder with {program}: it is played");
    }
    found
}

/// The group of all APIs of these tests.
pub const GROUP: &str = "provider.example.com";
/// Namespace of a consumer's credentials.
pub const CREDENTIALS: &str = "kube-bind";

/// A provider and two consumers.
pub async fn up(name: &str) -> World {
    let mut world = World::bring_up(name, &CLUSTERS).await;
    let members = CONSUMERS.map(str::to_owned).into();
    let set = Composition { members, ..Composition::of_all(&world.real().fleet, "demo") };
    world.real_mut().daemons = world.set_up(&set).await;
    let leader = world.leader();
    install(leader, &[objects::provider_crds(), objects::provider()].concat()).await;
    for consumer in CONSUMERS {
        install(world.cluster(consumer), &[objects::consumer_crds(), objects::consumer()].concat()).await;
    }
    let address = world.address("leader");
    let Real { fleet, daemons, .. } = world.real_mut();
    for daemon in daemons {
        daemon.spec.env.extend([("FREEPORT_BIND".to_owned(), "true".to_owned())]);
        if !daemon.is_member {
            daemon.spec.env.extend([("FREEPORT_BIND_ADDRESS".to_owned(), address.clone())]);
        }
        daemon.ensure(fleet).await.unwrap();
    }
    world
}

/// Applies what Freeport installs.
pub async fn install(cluster: &Cluster, objects: &[Object]) {
    for object in objects {
        let client = cluster.client.clone();
        let api: Api<DynamicObject> = match &object.namespace {
            Some(namespace) => Api::namespaced_with(client, namespace, &object.resource),
            None => Api::all_with(client, &object.resource),
        };
        let params = PatchParams::apply("freeport").force();
        eventually(&format!("{object} of {} is applied", cluster.name), || async {
            let applied = api.patch(&object.name, &params, &Patch::Apply(&object.body)).await;
            applied.map(drop).map_err(|error| error.to_string())
        })
        .await;
    }
}

/// An API of a test's own.
pub struct Offered {
    /// Plural of its names.
    pub plural: String,
    /// As it is at the provider.
    pub crd: CustomResourceDefinition,
}

impl Offered {
    /// As it is at the provider. `plural` makes it the test's own.
    pub fn new(plural: &str, scope: &str) -> Self {
        let free = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        let item = json!({"type": "object", "required": ["name"],
            "properties": {"name": {"type": "string"}, "value": {"type": "string"}}});
        let users = json!({"type": "array", "items": item, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]});
        let properties = json!({
            "size": {"type": "string", "maxLength": 10}, "users": users, "free": free,
            "maybe": {"type": "string", "nullable": true},
            "opts": {"type": "object", "additionalProperties": {"type": "integer"}},
            "tags": {"type": "array", "items": {"type": "string"}},
        });
        let schema = json!({"type": "object", "properties": {
            "spec": {"type": "object", "properties": properties}, "data": free, "status": free,
        }});
        let version = json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema},
            "subresources": {"status": {}}});
        let mut kind = plural.to_owned();
        kind[..1].make_ascii_uppercase();
        let crd = json!({
            "metadata": {"name": format!("{plural}.{GROUP}"), "labels": {"kube-bind.io/exported": "true"}},
            "spec": {"group": GROUP, "scope": scope, "names": {"plural": plural, "kind": kind}, "versions": [version]},
        });
        Self { plural: plural.to_owned(), crd: serde_json::from_value(crd).unwrap() }
    }

    /// `<plural>.<group>`.
    pub fn name(&self) -> String {
        self.crd.name_any()
    }

    /// How kube-bind names it.
    pub fn resource(&self) -> Resource {
        Resource { group: GROUP.into(), resource: self.plural.clone(), versions: vec!["v1".into()] }
    }

    /// Installs it at the provider.
    pub async fn install(&self, cluster: &Cluster) {
        cluster.crds().create(&PostParams::default(), &self.crd).await.unwrap();
        eventually(&format!("{} is served by {}", self.name(), cluster.name), || async {
            let list = self.objects(cluster, None).list(&Default::default()).await;
            list.map(drop).map_err(|error| error.to_string())
        })
        .await;
    }

    /// Its objects, of a Namespace or of all.
    pub fn objects(&self, cluster: &Cluster, namespace: Option<&str>) -> Api<DynamicObject> {
        let resource = self.api_resource();
        match namespace {
            Some(namespace) => Api::namespaced_with(cluster.client.clone(), namespace, &resource),
            None => Api::all_with(cluster.client.clone(), &resource),
        }
    }

    /// How clients name it.
    pub fn api_resource(&self) -> ApiResource {
        ApiResource {
            group: GROUP.into(),
            version: "v1".into(),
            api_version: format!("{GROUP}/v1"),
            kind: self.crd.spec.names.kind.clone(),
            plural: self.plural.clone(),
        }
    }

    /// An object that is not there yet.
    pub fn object(&self, name: &str, content: Value) -> DynamicObject {
        DynamicObject { data: content, ..DynamicObject::new(name, &self.api_resource()) }
    }

    /// A user creates an object, once the API is there.
    pub async fn create(
        &self,
        cluster: &Cluster,
        namespace: Option<&str>,
        name: &str,
        content: Value,
    ) -> DynamicObject {
        let (api, object) = (self.objects(cluster, namespace), self.object(name, content));
        eventually(&format!("{} of {} takes {name}", self.plural, cluster.name), || async {
            api.create(&PostParams::default(), &object).await.map_err(|error| error.to_string())
        })
        .await
    }
}

/// Waits until the object is as `check` wants it.
pub async fn becomes(
    what: &str,
    api: &Api<DynamicObject>,
    name: &str,
    check: impl Fn(&DynamicObject) -> bool,
) -> DynamicObject {
    eventually(&format!("{name}: {what}"), || async {
        match api.get_opt(name).await.unwrap() {
            Some(object) if check(&object) => Ok(object),
            other => Err(format!("{}", json!(other))),
        }
    })
    .await
}

/// Waits until the object is gone.
pub async fn vanishes(api: &Api<DynamicObject>, name: &str) {
    eventually(&format!("{name} is gone"), || async {
        match api.get_opt(name).await.unwrap() {
            None => Ok(()),
            Some(object) => Err(format!("{}", json!(object))),
        }
    })
    .await;
}

/// A kubeconfig for `leader` with the token of a ServiceAccount of the cluster namespace.
pub async fn kubeconfig(world: &World, cluster_namespace: &str, account: &str) -> ByteString {
    let (ca, token) = account::credential(world, "leader", cluster_namespace, account).await;
    let server = world.address("leader");
    let all = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "default",
        "contexts": [{"name": "default", "context": {"cluster": "default", "user": "default", "namespace": cluster_namespace}}],
        "clusters": [{"name": "default", "cluster": {"server": server, "certificate-authority-data": ca}}],
        "users": [{"name": "default", "user": {"token": token}}],
    });
    ByteString(all.to_string().into_bytes())
}

/// The consumer gets the credential, agrees to the API, and binds it.
pub async fn bind_with(consumer: &Cluster, name: &str, offered: &Offered, kubeconfig: ByteString) {
    let data = Some([("kubeconfig".to_owned(), kubeconfig)].into());
    let secret = Secret { metadata: named(name), data, ..Secret::default() };
    consumer.api::<Secret>(CREDENTIALS).create(&PostParams::default(), &secret).await.unwrap();
    bind(consumer, name, offered).await;
}

/// Metadata of an object of this name.
pub fn named(name: &str) -> ObjectMeta {
    ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() }
}

/// The consumer agrees to the API, and binds it with the credential of this name.
pub async fn bind(consumer: &Cluster, name: &str, offered: &Offered) {
    install(consumer, &objects::bound(&offered.resource())).await;
    let binding = json!({"metadata": {"name": name},
        "spec": {"kubeconfigSecretRef": {"namespace": CREDENTIALS, "name": name, "key": "kubeconfig"}}});
    let _: APIServiceBinding = consumer.create_cluster_wide(binding).await;
}

/// Waits until a condition of the binding is so.
pub async fn binding_says(
    world: &World,
    consumer: &str,
    name: &str,
    type_: &str,
    status: &str,
    reason: &str,
) {
    let bindings = Api::<APIServiceBinding>::all(world.cluster(consumer).client.clone());
    eventually(&format!("APIServiceBinding {name} of {consumer}: {type_} is {status} {reason}"), || async {
        let said =
            bindings.get(name).await.unwrap().status.map(|status| status.conditions).unwrap_or_default();
        let is_so = said.iter().any(|condition| {
            condition.type_ == type_
                && condition.status == status
                && condition.reason.as_deref().unwrap_or_default() == reason
        });
        match is_so {
            true => Ok(()),
            false => {
                Err(format!("{said:?}; its log:\n{}", world.log_tail(&format!("freeport-member-{consumer}"))))
            }
        }
    })
    .await;
}
