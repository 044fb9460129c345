//! Whether an API server was restored from a backup: then it holds old objects, and some of them are wrong. Our own Lease tells:
//! we renew it all the time, so a restored server holds an older one, or none.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use api::lease::LeaseView;
use futures::{FutureExt, future::BoxFuture};
use kit::watch::Guard;
use kube::{Api, ResourceExt};

/// The last version of our Lease that the API server has told us of. Cloning shares it.
#[derive(Clone)]
pub struct RestoreDetector {
    leases: Api<LeaseView>,
    name: String,
    version: Arc<AtomicU64>,
}

impl RestoreDetector {
    /// On our Lease `name`.
    pub fn new(leases: Api<LeaseView>, name: String) -> Self {
        Self { leases, name, version: Arc::default() }
    }

    /// The same Lease, reached another way: what the API server has told us of it still counts.
    #[must_use]
    pub fn by(&self, leases: Api<LeaseView>) -> Self {
        Self { leases, ..self.clone() }
    }

    /// Takes in our Lease as the API server answered it. Whether the server can hold it, after what it answered before.
    pub(crate) fn heard(&self, lease: Option<&LeaseView>) -> bool {
        let version = version(lease);
        let known = self.version.fetch_max(version.unwrap_or(0), Ordering::SeqCst);
        known == 0 || version.is_some_and(|version| version >= known)
    }

    /// Forgets what was heard: the Lease is somebody else's.
    pub(crate) fn forget(&self) {
        self.version.store(0, Ordering::SeqCst);
    }

    /// The Leases among which it is.
    pub fn leases(&self) -> &Api<LeaseView> {
        &self.leases
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}

impl Guard for RestoreDetector {
    fn still_holds(&self) -> BoxFuture<'_, kube::Result<bool>> {
        async move {
            // Our own renewals go on meanwhile: what is compared was known before the question.
            let known = self.version.load(Ordering::SeqCst);
            let lease = self.leases.get_opt(&self.name).await?;
            let version = version(lease.as_ref());
            Ok(known == 0 || version.is_some_and(|version| version >= known))
        }
        .boxed()
    }
}

fn version(lease: Option<&LeaseView>) -> Option<u64> {
    lease?.resource_version()?.parse().ok()
}
