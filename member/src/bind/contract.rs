//! One contract, as its consumer sees it: what is in the cluster namespace, and how to write there.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use api::{
    bind::{
        binding::ClusterBinding,
        bound_schema::BoundSchema,
        export::{APIServiceExport, APIServiceExportRequest, APIServiceNamespace, APIServiceNamespaceSpec},
        label,
    },
    label::MEMBER,
    view::{Meta, Tolerant},
};
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kit::{
    boot::Env,
    client::kubeconfig::{self, Target},
    failure::{Failure, classify},
    index::Shared,
    objects::{Change, Decoded},
    watch::{Source, Watches},
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

/// Watches that share a connection: an API server allows a client 100 streams on one.
const WATCHES: usize = 60;

/// Until when a watch has to have told what there is, before it is said that it has not.
pub(crate) const IN_TIME: Duration = Duration::from_secs(30);

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
}

/// A contract. Cloning shares it.
#[derive(Clone)]
pub(crate) struct Contract {
    pub(crate) env: Env,
    pub(crate) cluster_namespace: Arc<ClusterNamespace>,
    target: Target,
    pub(crate) known: Shared<Known>,
    changed: watch::Sender<u64>,
    /// The provider was restored from a backup: what is known of it is worth nothing, and watches hear nothing new.
    pub(crate) restored: CancellationToken,
    /// For writes, which watches must not hold up.
    client: Client,
    watching: Shared<(Client, usize)>,
    pub(crate) writer: Writer,
}

impl Contract {
    /// Nothing is watched before [`watch`](Self::watch).
    pub(crate) fn new(env: &Env, target: Target, uid: String) -> Result<Self, kubeconfig::Error> {
        let (client, watching) = (target.connect()?, target.connect()?);
        Ok(Self {
            env: env.clone(),
            cluster_namespace: Arc::new(ClusterNamespace { name: target.namespace.clone(), uid }),
            target,
            known: Shared::default(),
            changed: watch::Sender::new(0),
            restored: CancellationToken::new(),
            writer: Writer::new(client.clone(), MEMBER, "provider", env.metrics.clone()),
            client,
            watching: Shared::new((watching, 0)),
        })
    }

    /// A client for single requests.
    pub(crate) fn client(&self) -> Client {
        self.client.clone()
    }

    /// A writer under the name of Go's konnector, for copies.
    pub(crate) fn writer_of_copies(&self) -> Writer {
        Writer::new(self.client.clone(), MANAGER, "provider", self.env.metrics.clone())
    }

    /// A client for one more watch.
    pub(crate) fn watching(&self) -> Client {
        self.watching.with(|(client, count)| {
            *count += 1;
            if *count % WATCHES == 0
                && let Ok(another) = self.target.connect()
            {
                *client = another;
            }
            client.clone()
        })
    }

    /// Begins to watch what is in the cluster namespace.
    pub(crate) fn watch(&self, watches: &Watches, tasks: &mut JoinSet<()>) {
        self.watch_one(watches, tasks, "APIServiceExport", |known| &mut known.exports);
        self.watch_one(watches, tasks, "APIServiceExportRequest", |known| &mut known.requests);
        self.watch_one(watches, tasks, "BoundSchema", |known| &mut known.schemas);
        self.watch_one(watches, tasks, "APIServiceNamespace", |known| &mut known.namespaces);
        self.watch_one(watches, tasks, "ClusterBinding", |known| &mut known.cluster_bindings);
        self.watch_one(watches, tasks, "Secret", |known| &mut known.secrets);
    }

    fn watch_one<P>(
        &self,
        watches: &Watches,
        tasks: &mut JoinSet<()>,
        kind: &'static str,
        place: fn(&mut Known) -> &mut Decoded<P>,
    ) where
        P: Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + Clone
            + DeserializeOwned
            + std::fmt::Debug
            + Send
            + Sync
            + 'static,
    {
        let api = Api::<Tolerant<P>>::namespaced(self.watching(), &self.cluster_namespace.name);
        let contract = self.clone();
        let sink = move |change: Change<Tolerant<P>>| contract.take_in(place, change);
        let source = Source { cluster: "provider", kind };
        tasks.spawn(watches.watch(api, watcher::Config::default(), source, self.env.metrics.clone(), sink));
    }

    /// Takes in what a watch told.
    fn take_in<P: Resource>(&self, place: fn(&mut Known) -> &mut Decoded<P>, change: Change<Tolerant<P>>) {
        self.known.with(|known| place(known).change(change));
        self.changed.send_modify(|times| *times += 1);
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

    /// The provider's Namespaces, by ours; in place of some its words why there is none.
    pub(crate) fn all_assigned(&self) -> BTreeMap<String, Result<String, String>> {
        self.known.with(|known| {
            let said = |namespace| assigned(namespace).map(Ok).or_else(|| not_assigned(namespace).map(Err));
            let all = known.namespaces.iter();
            all.filter_map(|namespace| Some((namespace.name_any(), said(namespace)?))).collect()
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
        let there = namespaces.get(&self.cluster_namespace.name).await.map_err(|error| classify(&error))?;
        Ok(there.metadata.deletion_timestamp.is_some()
            || there.uid().as_deref() != Some(&self.cluster_namespace.uid))
    }

    /// Whether the provider takes the API of this binding back.
    pub(crate) fn is_ending(&self, export: &str) -> bool {
        self.known.with(|known| {
            known.exports.get(export).is_none_or(|export| export.metadata.deletion_timestamp.is_some())
        })
    }

    /// Whether the APIServiceNamespace was made by the provider, on its own.
    pub(crate) fn is_providers(namespace: &APIServiceNamespace) -> bool {
        namespace.labels().get(label::OWNER).is_some_and(|owner| owner == "provider")
    }
}

fn assigned(namespace: &APIServiceNamespace) -> Option<String> {
    namespace.status.as_ref()?.namespace.clone().filter(|name| !name.is_empty())
}

/// Condition `Assigned` is Freeport's: Go's backend never says no.
fn not_assigned(namespace: &APIServiceNamespace) -> Option<String> {
    let conditions = &namespace.status.as_ref()?.conditions;
    let no = conditions.iter().find(|said| said.type_ == "Assigned" && said.status == "False")?;
    let (reason, message) = (no.reason.clone().unwrap_or_default(), no.message.clone().unwrap_or_default());
    assigned(namespace).is_none().then(|| format!("{reason}: {message}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_provider_says_of_a_namespace_that_it_does_not_give_is_told() {
        let of = |status: serde_json::Value| -> APIServiceNamespace {
            serde_json::from_value(json!({"metadata": {"name": "default"}, "spec": {}, "status": status}))
                .unwrap()
        };
        let no = json!([{"type": "Assigned", "status": "False", "lastTransitionTime": null, "reason": "SystemNamespace",
            "message": "default is a Namespace of the system"}]);
        let said = not_assigned(&of(json!({"conditions": no})));
        assert_eq!(said.as_deref(), Some("SystemNamespace: default is a Namespace of the system"));
        assert_eq!(not_assigned(&of(json!({"namespace": "there", "conditions": no}))), None);
        assert_eq!(not_assigned(&of(json!({}))), None);
    }
}
