//! Whether a Common Area still is what it was: an API server restored from a backup says old things, and some of them are
//! wrong. Our own Lease tells: it is renewed all the time, so a restored server holds an older one, or none.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, ResourceExt};

/// The last version of our Lease that the API server has told us of. Cloning shares it.
#[derive(Clone)]
pub struct Anchor {
    leases: Api<Lease>,
    name: String,
    version: Arc<AtomicU64>,
}

impl Anchor {
    /// On our Lease `name`.
    pub fn new(leases: Api<Lease>, name: String) -> Self {
        Self { leases, name, version: Arc::default() }
    }

    /// Takes in what the API server says our Lease is now; whether that can be, after what it said before.
    pub(crate) fn heard(&self, lease: Option<&Lease>) -> bool {
        let version = version(lease);
        let known = self.version.fetch_max(version.unwrap_or(0), Ordering::SeqCst);
        known == 0 || version.is_some_and(|version| version >= known)
    }

    /// Takes back what was heard: the Lease is somebody else's.
    pub(crate) fn forget(&self) {
        self.version.store(0, Ordering::SeqCst);
    }

    /// Asks the API server; whether it still is where it was.
    ///
    /// # Errors
    /// Those of a read: then nothing is known.
    pub async fn holds(&self) -> kube::Result<bool> {
        // Our own renewals go on meanwhile: what is compared was known before the question.
        let known = self.version.load(Ordering::SeqCst);
        let lease = self.leases.get_opt(&self.name).await?;
        let version = version(lease.as_ref());
        Ok(known == 0 || version.is_some_and(|version| version >= known))
    }

    pub(crate) fn leases(&self) -> &Api<Lease> {
        &self.leases
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}

fn version(lease: Option<&Lease>) -> Option<u64> {
    lease?.resource_version()?.parse().ok()
}
