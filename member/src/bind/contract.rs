//! One contract, as its consumer sees it: what is in the cluster namespace, and how to write there.

mod assigned;
mod connections;
mod fence;
mod room;
mod told;

use std::{
    collections::BTreeSet,
    sync::Arc,
    time::{Duration, Instant},
};

use api::{
    bind::{
        binding::ClusterBinding,
        bound_schema::BoundSchema,
        export::{APIServiceExport, APIServiceExportRequest, APIServiceNamespace, APIServiceNamespaceSpec},
        label,
    },
    label::{CLUSTER_UID, MEMBER},
    view::Meta,
};
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kit::{
    boot::Env,
    client::kubeconfig::{self, Target},
    failure::{Failure, classify},
    index::Shared,
    objects::{Change, Decoded},
    quota::Shares,
    watch::{Gather, Source, Watches},
    write::{Error, Writer},
};
use kube::{
    Api, Client, Resource, ResourceExt,
    core::{NamespaceResourceScope, ObjectMeta},
    runtime::watcher,
};
use serde::de::DeserializeOwned;
use tokio::{sync::watch, task::JoinSet};
use tokio_util::sync::CancellationToken;

pub(crate) use self::{
    assigned::Assigned,
    connections::{Stream, WATCHES_MAX},
};
use self::{
    assigned::{assigned, not_assigned},
    connections::Connections,
    fence::Fence,
    room::Room,
    told::Told,
};
use super::policy::leaves_copies;

/// Until when a watch has to have told what there is, before it is said that it has not.
pub(crate) const IN_TIME: Duration = Duration::from_secs(30);

/// Name of the ClusterBinding, of which there is one in a cluster namespace.
pub(crate) const CLUSTER: &str = "cluster";

/// Field manager of copies, as Go's konnector has it.
pub(crate) const MANAGER: &str = "kube-bind.io";

/// The cluster namespace of a contract.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClusterNamespace {
    pub(crate) name: String,
    pub(crate) uid: String,
}

/// What the provider says in the cluster namespace.
#[derive(Default)]
pub(crate) struct Known {
    pub(crate) exports: Decoded<APIServiceExport>,
    pub(crate) requests: Decoded<APIServiceExportRequest>,
    pub(crate) schemas: Decoded<BoundSchema>,
    pub(crate) namespaces: Decoded<APIServiceNamespace>,
    pub(crate) cluster_bindings: Decoded<ClusterBinding>,
    pub(crate) secrets: Decoded<Secret>,
    /// uids of APIServiceNamespaces in whose place at the provider a copy of one of our objects is.
    with_copies: BTreeSet<String>,
    /// What the Namespaces say, until something changes.
    pub(super) assigned: Option<Arc<Assigned>>,
    room: Room,
}

/// Where a kind lies.
type Kept<P> = fn(&mut Known) -> (&mut Decoded<P>, &mut Shares<Told<P>>);

/// A list of a kind, while it is read.
struct Listing<P> {
    known: Shared<Known>,
    kept: Kept<P>,
}

impl<P: Resource> Gather<Told<P>> for Listing<P> {
    fn begin(&mut self) {
        self.known.with(|known| (self.kept)(known).1.begin());
    }

    fn take(&mut self, object: Told<P>) {
        self.known.with(|known| (self.kept)(known).1.take(object));
    }

    fn end(&mut self) -> Vec<Told<P>> {
        self.known.with(|known| (self.kept)(known).1.end())
    }
}

/// A contract. Cloning shares it.
#[derive(Clone)]
pub(crate) struct Contract {
    pub(crate) env: Env,
    pub(crate) cluster_namespace: Arc<ClusterNamespace>,
    /// uid of this cluster, which holds the contract.
    pub(crate) us: Arc<str>,
    pub(crate) known: Shared<Known>,
    changed: watch::Sender<u64>,
    /// The provider was restored from a backup: what is known of it is worth nothing.
    pub(crate) restored: CancellationToken,
    /// The last binding goes, and this cluster writes that it does not hold the contract any more. Until a binding uses it again there are no
    /// heartbeats, which would note this cluster anew.
    pub(crate) releasing: CancellationToken,
    /// That was written.
    pub(crate) released: CancellationToken,
    /// For writes, which watches must not hold up.
    client: Client,
    fence: Fence,
    connections: Shared<Connections>,
    pub(crate) writer: Writer,
}

impl Contract {
    /// Nothing is watched before [`watch`](Self::watch).
    pub(crate) fn new(env: &Env, target: Target, uid: String, us: &str) -> Result<Self, kubeconfig::Error> {
        let us: Arc<str> = us.into();
        let fence = Fence::new(us.clone(), target.namespace.clone());
        let client = env.hold.guard(fence.guard(env.dial.connect(&target)?));
        Ok(Self {
            env: env.clone(),
            cluster_namespace: Arc::new(ClusterNamespace { name: target.namespace.clone(), uid }),
            us,
            known: Shared::default(),
            changed: watch::Sender::new(0),
            restored: CancellationToken::new(),
            releasing: CancellationToken::new(),
            released: CancellationToken::new(),
            writer: Writer::new(client.clone(), MEMBER, "provider", env.metrics.clone()),
            client,
            fence,
            connections: Shared::new(Connections::new(env.dial.clone(), target)),
        })
    }

    /// The contract with a provider that this client answers for.
    #[cfg(test)]
    pub(crate) fn with_client(self, client: Client) -> Self {
        let client = self.fence.guard(client);
        let writer = Writer::new(client.clone(), MEMBER, "provider", self.env.metrics.clone());
        Self { client, writer, ..self }
    }

    /// A client for single requests.
    pub(crate) fn client(&self) -> Client {
        self.client.clone()
    }

    /// A writer under the name of Go's konnector, for copies.
    pub(crate) fn writer_of_copies(&self) -> Writer {
        Writer::new(self.client.clone(), MANAGER, "provider", self.env.metrics.clone())
    }

    /// A client for one more watch; nothing where there are too many.
    pub(crate) fn watching(&self) -> Option<(Client, Stream)> {
        self.connections.with(Connections::one_more)
    }

    /// Begins to watch what is in the cluster namespace. After one of these watches has failed, the provider is asked for the holder before the
    /// next write.
    pub(crate) fn watch(&self, watches: &Watches, tasks: &mut JoinSet<()>) {
        self.fence.mind(watches.failures());
        self.watch_one(watches, tasks, "APIServiceExport", |known| {
            (&mut known.exports, &mut known.room.exports)
        });
        self.watch_one(watches, tasks, "APIServiceExportRequest", |known| {
            (&mut known.requests, &mut known.room.requests)
        });
        self.watch_one(watches, tasks, "BoundSchema", |known| (&mut known.schemas, &mut known.room.schemas));
        self.watch_one(watches, tasks, "APIServiceNamespace", |known| {
            (&mut known.namespaces, &mut known.room.namespaces)
        });
        self.watch_one(watches, tasks, "ClusterBinding", |known| {
            (&mut known.cluster_bindings, &mut known.room.cluster_bindings)
        });
        self.watch_one(watches, tasks, "Secret", |known| (&mut known.secrets, &mut known.room.secrets));
    }

    fn watch_one<P>(&self, watches: &Watches, tasks: &mut JoinSet<()>, kind: &'static str, kept: Kept<P>)
    where
        P: Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + Clone
            + DeserializeOwned
            + std::fmt::Debug
            + Send
            + Sync
            + 'static,
    {
        // They are the first, and a client that was connected once can be connected again.
        let (client, stream) =
            self.watching().map_or_else(|| (self.client(), None), |(client, stream)| (client, Some(stream)));
        let api = Api::<Told<P>>::namespaced(client, &self.cluster_namespace.name);
        let (contract, again) = (self.clone(), watches.clone());
        let sink = move |change: Change<Told<P>>| {
            if contract.take_in(kept, change) {
                again.list_again();
            }
        };
        let watch = watches.watch_gathering(
            (api, watcher::Config::default()),
            Source { cluster: "provider", kind },
            self.env.metrics.clone(),
            Listing { known: self.known.clone(), kept },
            sink,
        );
        tasks.spawn(async move {
            let _stream = stream;
            watch.await;
        });
    }

    /// Takes in what a watch told; whether all is to be listed again, since there is room for what was left out.
    fn take_in<P: Resource>(&self, kept: Kept<P>, change: Change<Told<P>>) -> bool {
        let wants_list = self.known.with(|known| {
            let (objects, shares) = kept(known);
            if let Some(change) = shares.change(change) {
                objects.change(change.map(|told| told.object));
            }
            known.assigned = None;
            known.room.wants_list(Instant::now())
        });
        self.changed.send_modify(|times| *times += 1);
        wants_list
    }

    /// Number of objects in the cluster namespace that are not taken in, since there are too many.
    pub(crate) fn left_out(&self) -> usize {
        self.known.with(|known| known.room.left_out())
    }

    /// Tells whenever something in the cluster namespace is another.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// The provider's Namespace for one of ours.
    pub(crate) fn assigned(&self, namespace: &str) -> Option<String> {
        self.known.with(|known| assigned(known.namespaces.get(namespace)?))
    }

    /// Why the provider has none for one of ours, in its words.
    pub(crate) fn not_assigned(&self, namespace: &str) -> Option<String> {
        self.known.with(|known| not_assigned(known.namespaces.get(namespace)?))
    }

    /// What the provider says of all of ours.
    pub(crate) fn all_assigned(&self) -> Arc<Assigned> {
        self.known.with(|known| {
            let namespaces = &known.namespaces;
            known.assigned.get_or_insert_with(|| Arc::new(Assigned::of(namespaces.iter()))).clone()
        })
    }

    /// Asks for a Namespace of the provider for one of ours, unless that is done.
    pub(crate) async fn assign(&self, namespace: &str) -> Result<(), Error> {
        if self.known.with(|known| known.namespaces.get(namespace).is_some()) {
            return Ok(());
        }
        let metadata = ObjectMeta {
            name: Some(namespace.to_owned()),
            namespace: Some(self.cluster_namespace.name.clone()),
            annotations: Some([(CLUSTER_UID.to_owned(), self.us.to_string())].into()),
            ..ObjectMeta::default()
        };
        let want = APIServiceNamespace { metadata, spec: APIServiceNamespaceSpec {}, status: None };
        match self.writer.put(None, &want).await {
            // The watch is about to tell.
            Ok(_) | Err(Error::Stale) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Whether the cluster namespace goes, or is another one under the same name.
    pub(crate) async fn has_ended(&self) -> Result<bool, Failure> {
        let namespaces = Api::<Meta<Namespace>>::all(self.client.clone());
        let there = tokio::time::timeout(IN_TIME, namespaces.get(&self.cluster_namespace.name)).await;
        let there = there.map_err(|_| Failure::Unreachable("no answer in time"))?;
        let there = there.map_err(|error| classify(&error))?;
        Ok(there.metadata.deletion_timestamp.is_some()
            || there.uid().as_deref() != Some(&self.cluster_namespace.uid))
    }

    /// Whether the provider takes the API of this binding back.
    pub(crate) fn is_ending(&self, export: &str) -> bool {
        self.known.with(|known| {
            known.exports.get(export).is_none_or(|export| export.metadata.deletion_timestamp.is_some())
        })
    }

    /// Notes that a copy of an object of this cluster is in the provider's Namespace for this one: if its APIServiceNamespace has no uid, it is for
    /// this cluster; if it has the uid of another one, it is [`shared`](Self::shared).
    pub(crate) fn note_copy_in(&self, namespace: &str) {
        let is_news = self.known.with(|known| {
            let there =
                known.namespaces.get(namespace).filter(|there| may_get_uid(there) || self.is_shared(there));
            there.and_then(ResourceExt::uid).is_some_and(|uid| known.with_copies.insert(uid))
        });
        if is_news {
            self.changed.send_modify(|times| *times += 1);
        }
    }

    /// APIServiceNamespaces that are for us, and are not annotated with our uid yet.
    pub(crate) fn without_uid(&self) -> Vec<APIServiceNamespace> {
        self.with_copies(may_get_uid)
    }

    /// APIServiceNamespaces that note another cluster, have copies of this cluster's objects, and are not marked to stay.
    pub(crate) fn shared(&self) -> Vec<APIServiceNamespace> {
        self.with_copies(|there| self.is_shared(there))
    }

    fn with_copies(&self, is_meant: impl Fn(&APIServiceNamespace) -> bool) -> Vec<APIServiceNamespace> {
        self.known.with(|known| {
            let is_used = |there: &&APIServiceNamespace| {
                there.uid().is_some_and(|uid| known.with_copies.contains(&uid))
            };
            known.namespaces.iter().filter(is_used).filter(|there| is_meant(there)).cloned().collect()
        })
    }

    fn is_shared(&self, namespace: &APIServiceNamespace) -> bool {
        let is_going = namespace.metadata.deletion_timestamp.is_some();
        let notes_another = namespace.annotations().get(CLUSTER_UID).is_some_and(|uid| **uid != *self.us);
        !is_going && notes_another && !Self::is_providers(namespace) && !leaves_copies(namespace)
    }

    /// Whether the APIServiceNamespace was made for this cluster, as it says: no other one is ours to delete.
    pub(crate) fn is_for_us(&self, namespace: &APIServiceNamespace) -> bool {
        namespace.annotations().get(CLUSTER_UID).is_some_and(|uid| **uid == *self.us)
    }

    /// Whether the APIServiceNamespace was made by the provider, on its own.
    pub(crate) fn is_providers(namespace: &APIServiceNamespace) -> bool {
        namespace.labels().get(label::OWNER).is_some_and(|owner| owner == "provider")
    }
}

/// Whether it has no uid of a cluster, does not go, and was not made by the provider.
fn may_get_uid(namespace: &APIServiceNamespace) -> bool {
    let is_going = namespace.metadata.deletion_timestamp.is_some();
    !is_going && !namespace.annotations().contains_key(CLUSTER_UID) && !Contract::is_providers(namespace)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::bind::fixture;

    #[tokio::test]
    async fn an_api_service_namespace_is_for_the_cluster_that_it_names() {
        let contract = fixture::contract();
        let is_for_us = |annotations: serde_json::Value| {
            let namespace = json!({"metadata": {"name": "shop", "annotations": annotations}, "spec": {}});
            contract.is_for_us(&serde_json::from_value(namespace).unwrap())
        };
        assert!(is_for_us(json!({CLUSTER_UID: "us"})));
        assert!(!is_for_us(json!({CLUSTER_UID: "them"})));
        assert!(!is_for_us(json!({CLUSTER_UID: ""})) && !is_for_us(json!({})), "nobody knows for whom");
    }

    #[tokio::test]
    async fn only_one_with_a_copy_of_ours_on_which_nobody_is_noted_becomes_ours() {
        let contract = fixture::contract();
        let add = |name: &str, annotations: serde_json::Value, owner: &str| {
            let metadata = json!({"name": name, "uid": name, "resourceVersion": "1", "annotations": annotations,
                "labels": {label::OWNER: owner}});
            let namespace = serde_json::from_value(json!({"metadata": metadata, "spec": {}})).unwrap();
            contract.known.with(|known| known.namespaces.change(Change::Apply(namespace)));
        };
        add("default", json!({}), "consumer");
        add("shop", json!({}), "consumer");
        add("theirs", json!({CLUSTER_UID: "them"}), "consumer");
        add("wanted", json!({}), "provider");
        for used in ["shop", "theirs", "wanted", "unknown"] {
            contract.note_copy_in(used);
        }
        let found: Vec<_> = contract.without_uid().iter().map(ResourceExt::name_any).collect();
        assert_eq!(found, ["shop"]);
        let shared: Vec<_> = contract.shared().iter().map(ResourceExt::name_any).collect();
        assert_eq!(shared, ["theirs"], "another cluster is noted there, and this one has copies");
        let metadata = json!({"name": "shop", "uid": "another", "resourceVersion": "2"});
        let anew = serde_json::from_value(json!({"metadata": metadata, "spec": {}})).unwrap();
        contract.known.with(|known| known.namespaces.change(Change::Apply(anew)));
        assert_eq!(contract.without_uid(), [], "another one under the same name");
    }
}
