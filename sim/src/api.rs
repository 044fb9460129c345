//! An API server in memory: it stores, watches, merges and applies as kube-apiserver does. It grants every right, and of admission
//! it runs what completes Pods and Nodes.
//!
//! | module | holds |
//! |---|---|
//! | `kind` | which kinds are served: a table of built-in ones, and those of CRDs |
//! | `request` | requests, and the resource that a path leads to |
//! | `response` | responses, and the representation of objects in them |
//! | `refusal` | errors as `Status` objects |
//! | `store` | objects, their versions, and the last changes of each kind |
//! | `read` | get, list, pages |
//! | `watch` | watches: initial events, changes, bookmarks |
//! | `witness` | shows each write to the monitor of invariants |
//! | `write` | create, update, patch, apply |
//! | `admission` | what API servers add to new Pods and Nodes |
//! | `policy` | writes of daemons that are forbidden |
//! | `delete` | deletion: preconditions, finalizers, grace |
//! | `discovery` | which groups and resources are served |
//! | `review` | what is answered and not stored: tokens, reviews, the server's version |
//! | `selector` | label and field selectors |
//! | `schema` | schemas of CRDs: pruning, defaults, validation |
//! | `defaults` | defaults of built-in kinds |
//! | `managed_fields` | who owns which field; server-side apply |
//!
//! Controllers of Kubernetes are in `crate::controllers`.

mod admission;
mod defaults;
mod delete;
mod discovery;
mod kind;
mod managed_fields;
mod policy;
mod read;
mod refusal;
mod request;
mod response;
mod review;
mod schema;
mod selector;
mod store;
#[cfg(test)]
pub(crate) mod testkit;
mod watch;
mod witness;
mod write;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use self::defaults::Addresses;
use self::policy::Forbidden;
use self::witness::Witness;
pub(crate) use self::{
    delete::ORPHAN,
    kind::Kind,
    store::{Object, State, rfc3339},
};
pub use self::{policy::NOT_THIS_ONE, request::Request, response::Response, watch::WatchEvent};
use crate::invariant::{Author, Monitor};

/// One API server.
pub struct Server {
    /// Name of its cluster.
    pub name: String,
    state: Mutex<State>,
    forbidden: Mutex<Forbidden>,
}

/// Copy of everything that a server stored.
pub struct Backup(State);

impl Server {
    /// A server with what every cluster has. Its random numbers are drawn from `seed`; Services have both IP families if `dual`,
    /// and addresses of 10.`range`.0.0/16; `authority` is the certificate in every ConfigMap `kube-root-ca.crt`, PEM.
    pub fn new(name: &str, seed: u64, dual: bool, range: u8, authority: &str) -> Arc<Self> {
        Arc::new(Self {
            name: name.to_owned(),
            state: Mutex::new(State::new(seed, dual, Addresses::new(range), authority)),
            forbidden: Mutex::default(),
        })
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shows all writes from now on to a monitor.
    pub(crate) fn show(&self, monitor: &Arc<Monitor>) {
        self.lock().witness = Some(Witness { cluster: self.name.clone(), monitor: monitor.clone() });
    }

    fn forbidden(&self) -> MutexGuard<'_, Forbidden> {
        self.forbidden.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Refuses these operations to daemons, and no other ones: resources, each followed by its subresource, and `create`, `update` or `delete`.
    pub fn forbid(&self, writes: &[(&str, &str)]) {
        let writes =
            writes.iter().map(|(resource, operation)| ((*resource).to_owned(), (*operation).to_owned()));
        *self.forbidden() = writes.collect();
    }

    /// Answers a request.
    pub fn answer(&self, request: &Request) -> Response {
        let mut state = self.lock();
        state.author = request.author.clone();
        let is_allowed = state.check_policy(&self.forbidden(), request);
        let answer =
            is_allowed.and_then(|()| state.answer(request)).unwrap_or_else(|refusal| refusal.response());
        state.author = Author::Other;
        answer
    }

    /// Creates or replaces an object, as an administrator does. Panics if the server refuses it.
    pub fn install(&self, body: &Value) {
        self.lock().install(body, true);
    }

    /// Creates an object unless it exists. Panics if the server refuses it.
    pub fn ensure(&self, body: &Value) {
        self.lock().install(body, false);
    }

    /// Deletes an object if it exists, as a user does.
    pub fn remove(&self, group: &str, plural: &str, namespace: &str, name: &str) {
        let mut state = self.lock();
        if let Some(kind) = state.kind(group, plural) {
            state.delete_key(&kind, &(namespace.to_owned(), name.to_owned()));
        }
    }

    /// All objects of a kind, ordered by Namespace and name.
    pub fn all(&self, group: &str, plural: &str) -> Vec<Value> {
        self.lock().objects(group, plural).map(|(_, object)| object.value.clone()).collect()
    }

    /// Names of all objects of a kind, ordered by Namespace and name.
    pub fn names(&self, group: &str, plural: &str) -> Vec<String> {
        self.lock().objects(group, plural).map(|((_, name), _)| name.clone()).collect()
    }

    /// uid of a cluster-scoped object of the core group.
    pub fn uid(&self, plural: &str, name: &str) -> Option<String> {
        let state = self.lock();
        let object = state.get("", plural, &(String::new(), name.to_owned()))?;
        object.value["metadata"]["uid"].as_str().map(str::to_owned)
    }

    /// Newest resourceVersion.
    pub fn version(&self) -> u64 {
        self.lock().version
    }

    /// Copies everything that is stored.
    pub fn back_up(&self) -> Backup {
        Backup(self.lock().copy())
    }

    /// Puts a backup in place of what is stored. All watches end, and none can start at an older version.
    pub fn restore(&self, backup: &Backup) {
        self.lock().become_another(backup.0.copy());
    }

    /// Forgets what is stored, and who is shown what is written.
    pub(crate) fn forget(&self) {
        let mut state = self.lock();
        *state = state.successor(0);
    }

    /// Puts a new cluster in place of this one. All watches end.
    pub fn replace(&self, seed: u64) {
        let mut state = self.lock();
        let successor = state.successor(seed);
        state.become_another(successor);
    }
}
