//! Two consumers of one API at once, in every isolation and both informer scopes: where their objects are at the provider, and whose they
//! are.

use api::bind::{
    export::{APIServiceExport, APIServiceNamespace, Phase},
    label,
    mapping::Place,
    resource::{InformerScope, Isolation},
};
use e2e::{
    binding::{
        BINDING, Offered, becomes, bind_with, binding_says,
        provider::{contract, offer, request},
        vanishes,
    },
    daemon::{End, LEADER},
    seen::event,
    waiting::eventually,
    world::World,
};
use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, DynamicObject, Patch, PatchParams},
};
use serde_json::json;

use super::konnector::unbind;

const CONSUMERS: [&str; 2] = ["east", "west"];

/// One row of the table: an API of this scope, in this isolation.
struct Row<'a> {
    world: &'a World,
    offered: &'a Offered,
    /// Cluster namespaces of the consumers.
    contracts: Vec<String>,
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
        let leader = world.leader();
        offer(leader, offered, json!({label::ISOLATION: format!("{isolation:?}")})).await;
        let mut contracts = Vec::new();
        for consumer in CONSUMERS {
            let (plural, of) = (&offered.plural, [offered.resource()]);
            let (cns, kubeconfig) = contract(world, &format!("{plural}-{consumer}"), plural).await;
            let (phase, reason) = request(world, &cns, plural, json!({"resources": of})).await;
            assert_eq!(phase, Phase::Succeeded, "{reason}");
            let export = leader.api::<APIServiceExport>(&cns).get(plural).await.unwrap();
            assert_eq!((export.spec.isolation, export.spec.informer_scope), (isolation, scope));
            bind_with(world.cluster(consumer), plural, offered, kubeconfig).await;
            contracts.push(cns);
        }
        let is_namespaced = offered.crd.spec.scope == "Namespaced" && isolation != Isolation::Namespaced;
        let namespace = match is_namespaced {
            true => Some(world.namespace(&format!("bind-{}", offered.plural), &CONSUMERS).await),
            false => None,
        };
        Self { world, offered, contracts, isolation, namespace }
    }

    fn here(&self, consumer: usize) -> Api<DynamicObject> {
        self.offered.objects(self.world.cluster(CONSUMERS[consumer]), self.namespace.as_deref())
    }

    async fn create(&self, consumer: usize, name: &str, size: &str) {
        let cluster = self.world.cluster(CONSUMERS[consumer]);
        let content = json!({"spec": {"size": size}});
        self.offered.create(cluster, self.namespace.as_deref(), name, content).await;
    }

    fn place(&self, consumer: usize, name: &str) -> Place {
        let cns = self.contracts[consumer].as_str();
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

    /// Who a Namespace that both use was made for.
    async fn made_for(&self, namespace: &str) -> Option<String> {
        let there = Api::<Namespace>::all(self.world.leader().client.clone()).get_opt(namespace).await;
        let there = there.unwrap().filter(|there| there.metadata.deletion_timestamp.is_none())?;
        there.annotations().get(label::API_SERVICE_NAMESPACE).cloned()
    }

    /// One consumer after the other ends it; a Namespace that both use goes with the last.
    async fn end(self) {
        let (leader, shared) = (self.world.leader(), self.namespace.as_deref());
        let shared = shared.filter(|_| self.isolation == Isolation::None);
        for (consumer, next) in CONSUMERS.into_iter().zip([self.contracts.get(1), None]) {
            unbind(self.world, consumer, self.offered).await;
            let Some(namespace) = shared else { continue };
            let heir = next.map(|contract| format!("{contract}/{namespace}"));
            eventually(&format!("Namespace {namespace} is of {heir:?}"), || async {
                let is = self.made_for(namespace).await;
                if is == heir { Ok(()) } else { Err(format!("{is:?}")) }
            })
            .await;
        }
        if let Some(namespace) = &self.namespace {
            self.world.release(namespace).await;
        }
        for contract in &self.contracts {
            leader.release_namespace(contract).await;
        }
        leader.take_crd(&self.offered.name()).await;
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
        assert_eq!(owners, is_owned.then_some(row.contracts[consumer].as_str()).as_slice());
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

async fn row(world: &World, plural: &str, crd_scope: &str, isolation: Isolation, scope: InformerScope) {
    let offered = Offered::new(plural, crd_scope);
    match isolation {
        Isolation::None => together(world, offered, scope).await,
        _ => apart(world, offered, isolation, scope).await,
    }
}

/// By a leader that was told nothing of the scope.
fn namespaced(plural: &str, crd_scope: &str, isolation: Isolation) {
    BINDING.beside(async |world| row(world, plural, crd_scope, isolation, InformerScope::Namespaced).await);
}

#[e2e::test]
fn y1_namespaced_prefixed() {
    namespaced("rowa", "Namespaced", Isolation::Prefixed);
}

#[e2e::test]
fn o3_namespaced_converted() {
    namespaced("rowb", "Namespaced", Isolation::Namespaced);
}

#[e2e::test]
fn m2_cluster_prefixed() {
    namespaced("rowc", "Cluster", Isolation::Prefixed);
}

#[e2e::test]
fn y3_y4_cluster_none() {
    namespaced("rowd", "Cluster", Isolation::None);
}

#[e2e::test]
fn y4_namespaced_none() {
    namespaced("rowe", "Namespaced", Isolation::None);
}

/// The same rows, all at once, by a leader that lets consumers watch the whole cluster.
#[e2e::test(real)]
fn every_isolation_with_informer_scope_cluster() {
    BINDING.alone(async |world| {
        world.end(LEADER, End::Stop).await;
        let spec = world.daemon(LEADER).spec.clone();
        world.real().fleet.run(spec.env("FREEPORT_BIND_SCOPE", "cluster")).await.unwrap();
        world.is_there(LEADER).await;
        let of = async |plural: &str, crd_scope: &str, isolation: Isolation| {
            row(world, plural, crd_scope, isolation, InformerScope::Cluster).await;
        };
        tokio::join!(
            of("wida", "Namespaced", Isolation::Prefixed),
            of("widb", "Namespaced", Isolation::Namespaced),
            of("widc", "Cluster", Isolation::Prefixed),
            of("widd", "Cluster", Isolation::None),
            of("wide", "Namespaced", Isolation::None),
        );
        world.end(LEADER, End::Stop).await;
        world.start(LEADER).await;
    });
}

/// What cannot be kept in step is said on the object and on the binding, and the others go on.
#[e2e::test]
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
        let asked = leader.api::<APIServiceNamespace>(&row.contracts[0]);
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
