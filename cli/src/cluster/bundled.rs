//! Clusters of a bundle.

use k8s_openapi::jiff::Timestamp;

use super::{Cluster, KubeContext, REQUEST_LIMIT, list};
use crate::{
    Error,
    bundle::{Bundle, Seen},
};

impl KubeContext {
    /// All clusters of the bundle.
    pub(super) fn bundled(&self, bundle: &Bundle) -> Vec<Self> {
        bundle.contexts().map(|name| Self { name: Some(name.to_owned()), ..self.clone() }).collect()
    }

    /// Returns the bundle's entry of the cluster.
    pub(super) fn seen<'a>(&self, bundle: &'a Bundle) -> Result<&'a Seen, Error> {
        bundle.cluster(self.name.as_deref()).ok_or_else(|| {
            let names: Vec<_> = bundle.contexts().collect();
            let name = self.name.as_deref().unwrap_or_default();
            let (path, names) = (bundle.path(), list(&names));
            Error::Argument(format!("{path} has no context {name:?} (contexts: {names})"))
        })
    }
}

impl Cluster {
    /// A cluster as it was when the bundle was made.
    pub(super) fn bundled(context: &KubeContext, bundle: &Bundle) -> Result<Self, Error> {
        let seen = context.seen(bundle)?;
        Ok(Self {
            name: seen.context.clone(),
            server: seen.server.clone(),
            ca: None,
            tls_server_name: None,
            uid: String::new(),
            client: bundle.client(seen),
            limit: REQUEST_LIMIT,
            taken_at: Some(bundle.taken_at()),
        })
    }

    /// The time: of a bundle the one when it was made.
    pub(crate) fn now(&self) -> Timestamp {
        self.taken_at.unwrap_or_else(Timestamp::now)
    }
}

/// The time for commands that look at these clusters, which are those of one bundle, or of none.
pub(crate) fn now(clusters: &[Cluster]) -> Timestamp {
    clusters.first().map_or_else(Timestamp::now, Cluster::now)
}
