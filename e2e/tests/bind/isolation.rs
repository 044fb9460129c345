//! Two consumers of one API at once, in every isolation: where their objects are at the provider, and whose they are.

use api::bind::{
    export::APIServiceNamespace,
    mapping::Place,
    resource::{InformerScope, Isolation},
};
use e2e::{
    binding::{BINDING, Offered, becomes, bind_with, binding_says, vanishes},
    seen::event,
    waiting::eventually,
    world::World,
};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, DynamicObject, Patch, PatchParams},
};
use serde_json::json;

use super::{backend::Backend, konnector::unbind};

const CONSUMERS: [&str; 2] = ["east", "west"];

/// One row of the table: an API of this scope, in this isolation.
struct Row<'a> {
    world: &'a World,
    offered: &'a Offered,
    backends: Vec<Backend<'a>>,
    isolation: Isolation,
    /// Of both consumers, where the API has Namespaces there.
    namespace: Option<String>,
}

impl<'a> Row<'a> {
    async fn begin(
        world: &'a World,
        offered: &'a Offered,
        isolation: Isolation,
        scope: InformerScope,
    ) -> Self {
        offered.install(world.leader()).await;
        let mut backends = Vec::new();
        for consumer in CONSUMERS {
            let (backend, kubeconfig) = Backend::begin(world, consumer, offered, (isolation, scope)).await;
            bind_with(world.cluster(consumer), &offered.plural, offered, kubeconfig).await;
            backends.push(backend);
        }
        let is_namespaced = offered.crd.spec.scope == "Namespaced" && isolation != Isolation::Namespaced;
        let namespace = match is_namespaced {
            true => Some(world.namespace(&format!("bind-{}", offered.plural), &CONSUMERS).await),
            false => None,
        };
        Self { world, offered, backends, isolation, namespace }
    }

    fn here(&self, consumer: usize) -> Api<DynamicObject> {
        self.offered.objects(self.world.cluster(CONSUMERS[consumer]), self.namespace.as_deref())
    }

    async fn create(&self, consumer: usize, name: &str, size: &str) {
        let cluster = self.world.cluster(CONSUMERS[consumer]);
        let content = json!({"spec": {"size": size}});
        self.offered.create(cluster, self.namespace.as_deref(), name, content).await;
        if let Some(namespace) = &self.namespace {
            self.backends[consumer].assign(namespace).await;
        }
    }

    fn place(&self, consumer: usize, name: &str) -> Place {
        let cns = self.backends[consumer].cluster_namespace.as_str();
        match (self.offered.crd.spec.scope.as_str(), self.isolation, &self.namespace) {
            ("Namespaced", Isolation::Prefixed, Some(namespace)) => {
                Place::within(format!("{cns}-{namespace}"), name)
            }
            ("Namespaced", Isolation::None, Some(namespace)) => Place::within(namespace, name),
            ("Namespaced", Isolation::Namespaced, _) => Place::within(cns, name),
            (_, Isolation::Prefixed, _) => Place::cluster(format!("{cns}-{name}")),
            _ => Place::cluster(name),
        }
    }

    /// The copies of a consumer's objects, and the name of that of `name`.
    fn there(&self, consumer: usize, name: &str) -> (Api<DynamicObject>, String) {
        let place = self.place(consumer, name);
        (self.offered.objects(self.world.leader(), place.namespace.as_deref()), place.name)
    }

    async fn copied(&self, consumer: usize, name: &str, size: &str) -> DynamicObject {
        let (there, at) = self.there(consumer, name);
        becomes(&format!("is of {}", CONSUMERS[consumer]), &there, &at, |copy| {
            copy.data["spec"]["size"] == size
        })
        .await
    }

    async fn says(&self, consumer: usize, name: &str, phase: &str) {
        let (there, at) = self.there(consumer, name);
        let status = Patch::Merge(json!({"status": {"phase": phase}}));
        there.patch_status(&at, &PatchParams::default(), &status).await.unwrap();
    }

    async fn end(self) {
        for consumer in CONSUMERS {
            unbind(self.world, consumer, self.offered).await;
        }
        if let Some(namespace) = &self.namespace {
            self.world.release(namespace).await;
        }
        for backend in &self.backends {
            backend.release().await;
        }
        self.world.leader().take_crd(&self.offered.name()).await;
    }
}

/// Each consumer has a place of its own.
async fn apart(world: &World, offered: Offered, isolation: Isolation, scope: InformerScope) {
    let row = Row::begin(world, &offered, isolation, scope).await;
    for (consumer, size) in ["l", "s"].into_iter().enumerate() {
        row.create(consumer, "foo", size).await;
    }
    for (consumer, size) in ["l", "s"].into_iter().enumerate() {
        let copy = row.copied(consumer, "foo", size).await;
        let owners: Vec<_> = copy.owner_references().iter().map(|owner| owner.name.as_str()).collect();
        let is_owned = offered.crd.spec.scope == "Cluster";
        assert_eq!(owners, is_owned.then_some(row.backends[consumer].cluster_namespace.as_str()).as_slice());
        row.says(consumer, "foo", CONSUMERS[consumer]).await;
    }
    for (consumer, name) in CONSUMERS.into_iter().enumerate() {
        let has = |object: &DynamicObject| object.data["status"]["phase"] == name;
        becomes("has its own status", &row.here(consumer), "foo", has).await;
    }
    row.here(0).delete("foo", &DeleteParams::default()).await.unwrap();
    let (there, at) = row.there(0, "foo");
    vanishes(&there, &at).await;
    vanishes(&row.here(0), "foo").await;
    row.copied(1, "foo", "s").await;
    row.end().await;
}

/// Both consumers have one place: whose it is says the annotation.
async fn together(world: &World, offered: Offered, scope: InformerScope) {
    let row = Row::begin(world, &offered, Isolation::None, scope).await;
    row.create(0, "foo", "l").await;
    let copy = row.copied(0, "foo", "l").await;
    row.create(1, "foo", "s").await;
    let plural = &offered.plural;
    binding_says(world, "west", plural, "Synced", "False", "OwnedByAnother").await;
    row.says(0, "foo", "secret").await;
    becomes("has the status", &row.here(0), "foo", |object| object.data["status"]["phase"] == "secret").await;
    row.here(1).delete("foo", &DeleteParams::default()).await.unwrap();
    vanishes(&row.here(1), "foo").await;
    assert_eq!(row.copied(0, "foo", "l").await.uid(), copy.uid(), "Y4: the copy of another was deleted");
    binding_says(world, "west", plural, "Synced", "True", "").await;
    row.create(1, "bar", "s").await;
    row.copied(1, "bar", "s").await;
    row.end().await;
}

/// Both informer scopes, of an API each.
async fn row(world: &World, plural: &str, crd_scope: &str, isolation: Isolation) {
    let of = async |scope: InformerScope| {
        let offered = Offered::new(&format!("{plural}{scope:?}").to_lowercase(), crd_scope);
        match isolation {
            Isolation::None => together(world, offered, scope).await,
            _ => apart(world, offered, isolation, scope).await,
        }
    };
    tokio::join!(of(InformerScope::Namespaced), of(InformerScope::Cluster));
}

#[test]
fn y1_namespaced_prefixed() {
    BINDING.beside(async |world| row(world, "rowa", "Namespaced", Isolation::Prefixed).await);
}

#[test]
fn o3_namespaced_converted() {
    BINDING.beside(async |world| row(world, "rowb", "Namespaced", Isolation::Namespaced).await);
}

#[test]
fn m2_cluster_prefixed() {
    BINDING.beside(async |world| row(world, "rowc", "Cluster", Isolation::Prefixed).await);
}

#[test]
fn y3_y4_cluster_none() {
    BINDING.beside(async |world| row(world, "rowd", "Cluster", Isolation::None).await);
}

#[test]
fn y4_namespaced_none() {
    BINDING.beside(async |world| row(world, "rowe", "Namespaced", Isolation::None).await);
}

/// What cannot be kept in step is said on the object and on the binding, and the others go on.
#[test]
fn what_cannot_be_in_step_is_said_and_the_others_go_on() {
    BINDING.beside(async |world| {
        let (leader, east) = (world.leader(), world.cluster("east"));
        let offered = Offered::new("rowf", "Namespaced");
        let row = Row::begin(world, &offered, Isolation::Prefixed, InformerScope::Namespaced).await;
        row.create(0, "good", "l").await;
        row.copied(0, "good", "l").await;
        let (there, _) = row.there(0, "theirs");
        // T14: an object that somebody of the provider made is left alone.
        there
            .create(&Default::default(), &offered.object("theirs", json!({"spec": {"size": "x"}})))
            .await
            .unwrap();
        row.create(0, "theirs", "l").await;
        binding_says(world, "east", "rowf", "Synced", "False", "NotOurs").await;
        let ns = row.namespace.as_deref().unwrap();
        eventually("an Event says it", || event(east, ns, "theirs", "NotOurs")).await;
        row.create(0, "after", "m").await;
        row.copied(0, "after", "m").await;
        let adopt =
            Patch::Merge(json!({"metadata": {"annotations": {"multicluster.freeport.dev/adopt": "true"}}}));
        there.patch("theirs", &PatchParams::default(), &adopt).await.unwrap();
        row.copied(0, "theirs", "l").await;
        binding_says(world, "east", "rowf", "Synced", "True", "").await;

        // The Namespace goes: objects, then the APIServiceNamespace.
        let asked = leader.api::<APIServiceNamespace>(&row.backends[0].cluster_namespace);
        assert!(asked.get_opt(ns).await.unwrap().is_some());
        east.release_namespace(ns).await;
        vanishes(&there, "good").await;
        eventually("the APIServiceNamespace is gone", || async {
            let there = asked.get_opt(ns).await.unwrap();
            there.map_or(Ok(()), |namespace| Err(format!("{:?}", namespace.metadata)))
        })
        .await;
        row.end().await;
    });
}
