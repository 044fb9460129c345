//! What a server stores: objects by kind, and the last changes of each kind.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

use bytes::Bytes;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::{Kind, defaults::Addresses, kind::built_in, read::Pages, watch::Watcher, witness::Witness};
use crate::{invariant::Author, memory::Memory, random::Random};

/// Number of changes per kind that a watch may start at.
const HISTORY: usize = 4096;
/// Version of an empty server. Not zero, which means "any" in a request.
const FIRST_VERSION: u64 = 100;

/// Group and plural.
pub(crate) type GroupResource = (String, String);
/// Namespace, empty for cluster-scoped kinds, and name.
pub(crate) type Key = (String, String);

pub(crate) struct State {
    pub(super) version: u64,
    /// No watch can start at a version before this one.
    base: u64,
    kinds: BTreeMap<GroupResource, Arc<Kind>>,
    pub(super) collections: BTreeMap<GroupResource, Collection>,
    /// Objects with ownerReferences.
    dependents: BTreeSet<(GroupResource, Key)>,
    /// Cluster IPs of Services.
    pub(super) cluster_ips: BTreeSet<String>,
    pub(super) pages: Pages,
    random: Random,
    pub(super) addresses: Addresses,
    /// Services have both IP families.
    pub(super) dual: bool,
    /// Certificate of the server's authority, PEM.
    authority: String,
    /// What the controllers of Kubernetes remember.
    pub(crate) memory: Memory,
    /// Who makes the request that is answered.
    pub(super) author: Author,
    pub(super) witness: Option<Witness>,
}

/// Objects of a kind.
#[derive(Default)]
pub(super) struct Collection {
    pub(super) objects: BTreeMap<Key, Arc<Object>>,
    pub(super) history: VecDeque<Change>,
    /// Changes up to this version are forgotten.
    pub(super) forgotten: u64,
    pub(super) watchers: Vec<Watcher>,
}

pub(crate) struct Object {
    pub(crate) value: Value,
    /// JSON of `value`.
    pub(super) text: Bytes,
    /// [`Kind::revision`] when it was written.
    pub(super) revision: u64,
}

impl Object {
    pub(super) fn new(value: Value, revision: u64) -> Arc<Self> {
        let text = Bytes::from(value.to_string());
        Arc::new(Self { value, text, revision })
    }

    /// Reports whether its deletion was requested.
    pub(crate) fn is_terminating(&self) -> bool {
        self.value["metadata"]["deletionTimestamp"].is_string()
    }
}

/// A change of an object.
#[derive(Clone)]
pub(super) struct Change {
    pub(super) version: u64,
    /// After the change; of a deleted object, its last state.
    pub(super) object: Arc<Object>,
    pub(super) before: Option<Arc<Object>>,
    pub(super) is_deletion: bool,
}

impl State {
    pub(super) fn new(seed: u64, dual: bool, addresses: Addresses, authority: &str) -> Self {
        let kinds = built_in().map(|kind| ((kind.group.clone(), kind.plural.clone()), Arc::new(kind)));
        let mut state = Self {
            version: FIRST_VERSION,
            base: FIRST_VERSION,
            kinds: kinds.collect(),
            collections: BTreeMap::new(),
            dependents: BTreeSet::new(),
            cluster_ips: BTreeSet::new(),
            pages: Pages::default(),
            random: Random::new(seed),
            addresses,
            dual,
            authority: authority.to_owned(),
            memory: Memory::default(),
            author: Author::default(),
            witness: None,
        };
        state.install_first_objects();
        state
    }

    fn install_first_objects(&mut self) {
        for namespace in ["kube-system", "default", "kube-public", "kube-node-lease"] {
            self.install(
                &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}),
                true,
            );
        }
        self.install(
            &json!({
                "apiVersion": "v1", "kind": "Service", "metadata": {"name": "kubernetes", "namespace": "default"},
                "spec": {"ports": [{"name": "https", "port": 443, "targetPort": 6443}]},
            }),
            true,
        );
        let ranges = self.addresses.ranges(self.dual);
        self.install(
            &json!({
                "apiVersion": "networking.k8s.io/v1", "kind": "ServiceCIDR", "metadata": {"name": "kubernetes"},
                "spec": {"cidrs": ranges},
            }),
            true,
        );
    }

    /// A new cluster with the settings of this one.
    pub(super) fn successor(&self, seed: u64) -> Self {
        Self::new(seed, self.dual, self.addresses, &self.authority)
    }

    /// A copy without watches, history, pages and witness.
    pub(super) fn copy(&self) -> Self {
        let bare = |all: &Collection| Collection { objects: all.objects.clone(), ..Collection::default() };
        Self {
            version: self.version,
            base: self.version,
            kinds: self.kinds.clone(),
            collections: self
                .collections
                .iter()
                .map(|(resource, all)| (resource.clone(), bare(all)))
                .collect(),
            dependents: self.dependents.clone(),
            cluster_ips: self.cluster_ips.clone(),
            pages: self.pages.emptied(),
            random: self.random,
            addresses: self.addresses,
            dual: self.dual,
            authority: self.authority.clone(),
            memory: Memory::default(),
            author: Author::default(),
            witness: None,
        }
    }

    pub(crate) fn authority(&self) -> &str {
        &self.authority
    }

    pub(crate) fn kind(&self, group: &str, plural: &str) -> Option<Arc<Kind>> {
        self.kinds.get(&(group.to_owned(), plural.to_owned())).cloned()
    }

    pub(crate) fn kinds(&self) -> impl Iterator<Item = &Arc<Kind>> {
        self.kinds.values()
    }

    /// Finds a kind by the `apiVersion` and `kind` of an object.
    pub(crate) fn kind_of(&self, api_version: &str, kind: &str) -> Option<Arc<Kind>> {
        let (group, _) = api_version.split_once('/').unwrap_or(("", api_version));
        self.kinds.values().find(|known| known.group == group && known.kind == kind).cloned()
    }

    pub(super) fn collection(&mut self, kind: &Kind) -> &mut Collection {
        self.collections.entry((kind.group.clone(), kind.plural.clone())).or_default()
    }

    pub(crate) fn objects(&self, group: &str, plural: &str) -> impl Iterator<Item = (&Key, &Arc<Object>)> {
        let collection = self.collections.get(&(group.to_owned(), plural.to_owned()));
        collection.into_iter().flat_map(|all| all.objects.iter())
    }

    /// Objects of a kind in a Namespace.
    pub(crate) fn within<'a>(
        &'a self,
        kind: &Kind,
        namespace: &'a str,
    ) -> impl Iterator<Item = (&'a Key, &'a Arc<Object>)> {
        let collection = self.collections.get(&(kind.group.clone(), kind.plural.clone()));
        let from = (namespace.to_owned(), String::new());
        let all = collection.into_iter().flat_map(move |all| all.objects.range(from.clone()..));
        all.take_while(move |((of, _), _)| of == namespace)
    }

    pub(crate) fn get(&self, group: &str, plural: &str, key: &Key) -> Option<&Arc<Object>> {
        self.collections.get(&(group.to_owned(), plural.to_owned()))?.objects.get(key)
    }

    pub(crate) fn dependents(&self) -> impl Iterator<Item = &(GroupResource, Key)> {
        self.dependents.iter()
    }

    /// The version before which the changes of a kind are forgotten.
    pub(super) fn oldest(&mut self, kind: &Kind) -> u64 {
        self.base.max(self.collection(kind).forgotten)
    }

    pub(super) fn next_random(&mut self) -> u64 {
        self.random.draw()
    }

    pub(super) fn next_uid(&mut self) -> String {
        let (a, b) = (self.next_random(), self.next_random());
        let (first, second, third) = (a >> 32, (a >> 16) & 0xffff, a & 0xfff);
        format!("{first:08x}-{second:04x}-4{third:03x}-8{:03x}-{:012x}", b >> 52, b & 0xffff_ffff_ffff)
    }

    /// Stores `new` in place of `before`, or deletes `before`; sends the change to all watches. Returns the object with its version.
    pub(super) fn commit(
        &mut self,
        kind: &Arc<Kind>,
        key: Key,
        before: Option<Arc<Object>>,
        new: Option<Value>,
    ) -> Arc<Object> {
        self.version += 1;
        let version = self.version;
        let is_deletion = new.is_none();
        let last = || before.as_ref().map(|before| before.value.clone()).unwrap_or_default();
        let mut value = new.unwrap_or_else(last);
        value["metadata"]["resourceVersion"] = json!(version.to_string());
        let object = Object::new(value, kind.revision);
        self.note_owners(kind, &key, &object, is_deletion);
        if kind.is_core("services") {
            self.note_address(before.as_deref(), Some(&*object).filter(|_| !is_deletion));
        }
        self.witness(
            &kind.plural,
            &key,
            before.as_ref(),
            Some(&object).filter(|_| !is_deletion),
            &self.author,
        );
        let collection = self.collection(kind);
        match is_deletion {
            true => drop(collection.objects.remove(&key)),
            false => drop(collection.objects.insert(key, object.clone())),
        }
        collection.record(Change { version, object: object.clone(), before, is_deletion }, kind);
        if kind.plural == "customresourcedefinitions" {
            self.serve(&object.value, is_deletion);
        }
        object
    }

    fn note_owners(&mut self, kind: &Kind, key: &Key, object: &Object, is_deletion: bool) {
        let owners = object.value["metadata"]["ownerReferences"].as_array();
        let dependent = ((kind.group.clone(), kind.plural.clone()), key.clone());
        if !is_deletion && owners.is_some_and(|owners| !owners.is_empty()) {
            self.dependents.insert(dependent);
        } else {
            self.dependents.remove(&dependent);
        }
    }

    fn note_address(&mut self, before: Option<&Object>, now: Option<&Object>) {
        let of = |service: &Object| service.value["spec"]["clusterIP"].as_str().map(str::to_owned);
        if let Some(address) = before.and_then(of) {
            self.cluster_ips.remove(&address);
        }
        self.cluster_ips.extend(now.and_then(of));
    }

    /// Serves the kind of a CRD that was written; deletes the objects of one that was deleted.
    fn serve(&mut self, crd: &Value, is_deletion: bool) {
        let Some(mut kind) = Kind::of_crd(crd) else { return };
        kind.revision = self.version;
        let resource = (kind.group.clone(), kind.plural.clone());
        if !is_deletion {
            self.kinds.insert(resource, Arc::new(kind));
            return;
        }
        let kind = Arc::new(kind);
        let all: Vec<_> = self.collection(&kind).objects.clone().into_iter().collect();
        for (key, object) in all {
            self.commit(&kind, key, Some(object), None);
        }
        self.kinds.remove(&resource);
        self.collections.remove(&resource);
    }
}

impl Collection {
    fn record(&mut self, change: Change, kind: &Kind) {
        self.watchers.retain(Watcher::is_open);
        self.watchers.iter().for_each(|watcher| watcher.send_change(&change, kind));
        self.history.push_back(change);
        if self.history.len() > HISTORY
            && let Some(oldest) = self.history.pop_front()
        {
            self.forgotten = oldest.version;
        }
    }
}

/// The time in `seconds`, as in metadata.
pub(crate) fn rfc3339(seconds: i64) -> String {
    (Timestamp::now() + SignedDuration::from_secs(seconds)).strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::testkit::{WIDGETS, send, server, widget};

    #[test]
    fn a_kind_is_served_as_long_as_its_crd() {
        let server = server();
        server.install(&widget("w", 1));
        server.remove("apiextensions.k8s.io", "customresourcedefinitions", "", "widgets.example.com");
        assert_eq!(send(&server, "GET", WIDGETS, &Value::Null), (404, Value::Null));
    }

    #[test]
    fn a_restored_server_has_what_the_backup_has() {
        let server = server();
        let (backup, version) = (server.back_up(), server.version());
        server.install(&widget("w", 1));
        server.restore(&backup);
        assert_eq!((server.version(), server.names("example.com", "widgets")), (version, Vec::new()));
        server.replace(2);
        assert!(server.names("", "namespaces").iter().all(|name| name != "shop"));
    }
}
