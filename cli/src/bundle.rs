//! Bundles: the answers of several clusters in one file, written by `freeport gather`. Commands that only read take a bundle in place of the clusters.
//!
//! | module | holds |
//! |---|---|
//! | [`manifest`] | what the bundle says of itself |
//! | `archive` | the file: a tar archive, compressed by gzip |
//! | `replay` | an API server that answers from the files of one cluster |
//! | `selector` | label selectors |

mod archive;
mod manifest;
mod replay;
mod selector;

use std::{collections::BTreeMap, fmt, path::Path, sync::Arc};

use k8s_openapi::jiff::Timestamp;
use kube::Client;

pub(crate) use self::{
    archive::write,
    manifest::{Away, MANIFEST, Manifest, Seen},
    replay::{file, refusal, status},
};
use crate::Error;

/// Files by path.
pub(crate) type Files = BTreeMap<String, Vec<u8>>;

/// A bundle that was read.
#[derive(Clone)]
pub struct Bundle {
    held: Arc<Held>,
}

impl fmt::Debug for Bundle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Bundle").field(&self.held.path).finish()
    }
}

struct Held {
    /// Where it is.
    path: String,
    manifest: Manifest,
    files: Files,
}

impl Bundle {
    /// Reads a bundle.
    ///
    /// # Errors
    /// [`Error::Bundle`] if this is none, or is cut short, or is of a version that is not known here.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let unusable = |reason| Error::Bundle { path: path.into(), reason };
        let files = archive::read(path).map_err(unusable)?;
        let manifest = Manifest::read(&files).map_err(unusable)?;
        Ok(Self::of(path.display().to_string(), manifest, files))
    }

    /// A bundle of these files.
    pub(crate) fn of(path: String, manifest: Manifest, files: Files) -> Self {
        Self { held: Arc::new(Held { path, manifest, files }) }
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &str {
        &self.held.path
    }

    /// Contexts of its clusters, in the order in which they were asked.
    pub(crate) fn contexts(&self) -> impl Iterator<Item = &str> {
        self.held.manifest.clusters.iter().map(|cluster| cluster.context.as_str())
    }

    /// Returns the entry of a cluster: of the context that is named, or the first one.
    pub(crate) fn cluster(&self, context: Option<&str>) -> Option<&Seen> {
        let clusters = &self.held.manifest.clusters;
        match context {
            Some(context) => clusters.iter().find(|cluster| cluster.context == context),
            None => clusters.first(),
        }
    }

    /// When the clusters were asked.
    pub(crate) fn taken_at(&self) -> Timestamp {
        self.held.manifest.taken_at
    }

    /// A client whose API server is the bundle.
    pub(crate) fn client(&self, cluster: &Seen) -> Client {
        let (bundle, seen) = (self.clone(), cluster.clone());
        let answer = move |request: http::Request<kube::client::Body>| {
            let Held { manifest, files, .. } = &*bundle.held;
            std::future::ready(replay::answer(files, &seen, manifest.taken_at, &request))
        };
        Client::new(tower::service_fn(answer), cluster.namespace.clone())
    }
}

#[cfg(test)]
mod tests;
