//! The events of a watch in a test's Namespace: what must never happen is watched, not polled.

use std::{
    collections::BTreeSet,
    fmt::Debug,
    sync::{Arc, Mutex},
};

use futures::TryStreamExt;
use k8s_openapi::{ClusterResourceScope, NamespaceResourceScope};
use kube::{
    Api, Resource, ResourceExt,
    api::{ListParams, WatchEvent, WatchParams},
};
use serde::de::DeserializeOwned;
use tokio::task::JoinSet;

use crate::{cluster::Cluster, waiting::eventually};

/// A watch from its start until it is dropped.
pub struct Watched<K> {
    told: Arc<Mutex<Vec<WatchEvent<K>>>>,
    _watch: JoinSet<()>,
}

impl<K> Watched<K>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + 'static,
{
    /// Watches all objects of the kind in the Namespace from now on.
    pub async fn of(cluster: &Cluster, namespace: &str) -> Self
    where
        K: Resource<Scope = NamespaceResourceScope>,
    {
        Self::from_now_on(cluster.api::<K>(namespace)).await
    }

    /// Watches all objects of a kind that has no Namespaces from now on.
    pub async fn of_all(cluster: &Cluster) -> Self
    where
        K: Resource<Scope = ClusterResourceScope>,
    {
        Self::from_now_on(Api::all(cluster.client.clone())).await
    }

    async fn from_now_on(api: Api<K>) -> Self {
        let listed = api.list(&ListParams::default()).await.unwrap();
        let version = listed.metadata.resource_version.unwrap();
        let told = Arc::new(Mutex::new(Vec::new()));
        let (mut watch, hears) = (JoinSet::new(), told.clone());
        watch.spawn(async move {
            let events = api.watch(&WatchParams::default(), &version).await.unwrap();
            let mut events = std::pin::pin!(events);
            while let Some(event) = events.try_next().await.unwrap() {
                hears.lock().unwrap().push(event);
            }
            panic!("the API server ended the watch, which it does after five minutes at the earliest");
        });
        Self { told, _watch: watch }
    }

    /// Waits until the last event has an object like this, then checks that nothing was deleted before and that all events were of one
    /// object.
    pub async fn never_deleted_until(&self, what: &str, is: impl Fn(&K) -> bool) {
        eventually(what, || async {
            let told = self.told.lock().unwrap();
            let last = told.last();
            match last {
                Some(WatchEvent::Modified(object) | WatchEvent::Added(object)) if is(object) => Ok(()),
                _ => Err(format!("{last:?}")),
            }
        })
        .await;
        let told = self.told.lock().unwrap();
        let mut uids = BTreeSet::new();
        for event in told.iter() {
            match event {
                WatchEvent::Added(object) | WatchEvent::Modified(object) => uids.extend(object.uid()),
                other => panic!("{what}: {other:?}"),
            }
        }
        assert_eq!(uids.len(), 1, "{what}: {uids:?}");
    }

    /// Checks every state of every object so far.
    pub fn each(&self, mut look: impl FnMut(&K)) {
        for event in self.told.lock().unwrap().iter() {
            if let WatchEvent::Added(object) | WatchEvent::Modified(object) = event {
                look(object);
            }
        }
    }

    /// What was deleted so far, as it was then.
    pub fn deleted(&self) -> Vec<K> {
        let told = self.told.lock().unwrap();
        let deleted = told.iter().filter_map(|event| match event {
            WatchEvent::Deleted(object) => Some(object.clone()),
            WatchEvent::Error(error) => panic!("{error:?}"),
            _ => None,
        });
        deleted.collect()
    }

    /// What was created after it had been deleted.
    pub fn returned(&self) -> Vec<K> {
        let (mut deleted, mut returned) = (BTreeSet::new(), Vec::new());
        for event in self.told.lock().unwrap().iter() {
            match event {
                WatchEvent::Deleted(object) => drop(deleted.insert(object.name_any())),
                WatchEvent::Added(object) if deleted.contains(&object.name_any()) => {
                    returned.push(object.clone());
                }
                _ => {}
            }
        }
        returned
    }

    /// Nothing was deleted so far.
    pub fn nothing_deleted(&self, what: &str) {
        for event in self.told.lock().unwrap().iter() {
            assert!(!matches!(event, WatchEvent::Deleted(_) | WatchEvent::Error(_)), "{what}: {event:?}");
        }
    }
}
