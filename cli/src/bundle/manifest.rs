//! The manifest of a bundle: file `bundle.json`.

use k8s_openapi::jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Files;
use crate::{printable::printable, schema::API_VERSION};

/// Path of the file, which is the first one.
pub(crate) const MANIFEST: &str = "bundle.json";

/// `kind` of bundles.
pub(crate) const KIND: &str = "Bundle";

/// The manifest of a bundle.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Manifest {
    api_version: String,
    kind: String,
    /// Version of the program that wrote it.
    pub(crate) freeport: String,
    /// When the clusters were asked, by the clock of whoever asked.
    pub(crate) taken_at: Timestamp,
    /// The clusters, in the order in which they were named.
    pub(crate) clusters: Vec<Seen>,
    /// Number of files beside this one.
    pub(crate) files: usize,
}

/// A cluster in a bundle.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Seen {
    /// Its context in the kubeconfig of whoever asked.
    pub(crate) context: String,
    /// Folder of its files.
    pub(crate) folder: String,
    /// Namespace of the context.
    pub(crate) namespace: String,
    /// URL of its API server.
    pub(crate) server: String,
    /// Lead of its clock over the clock of whoever asked, in milliseconds.
    pub(crate) clock_ahead: Option<i64>,
    /// Reason why nothing is known of it.
    pub(crate) away: Option<Away>,
}

/// Why nothing is known of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Away {
    /// Code of its API server's answer; none if it gave none.
    pub(crate) code: Option<u16>,
    /// Why, in words.
    pub(crate) message: String,
}

impl Manifest {
    /// Of these clusters.
    pub(crate) fn new(taken_at: Timestamp, clusters: Vec<Seen>) -> Self {
        Self {
            api_version: API_VERSION.into(),
            kind: KIND.into(),
            freeport: env!("CARGO_PKG_VERSION").into(),
            taken_at,
            clusters,
            files: 0,
        }
    }

    /// Reads it out of the files of a bundle. An error is the end of a sentence about the file, and what to try.
    pub(super) fn read(files: &Files) -> Result<Self, String> {
        let text =
            files.get(MANIFEST).ok_or_else(|| format!("has no {MANIFEST}: {}", super::archive::NO_BUNDLE))?;
        let broken = |error| format!("{MANIFEST}: {error}: {}", super::archive::NO_BUNDLE);
        let value: Value = serde_json::from_slice(text).map_err(broken)?;
        let field = |name| value.get(name).and_then(Value::as_str).unwrap_or_default();
        if field("kind") != KIND {
            return Err(format!("{MANIFEST} is no {KIND}: {}", super::archive::NO_BUNDLE));
        }
        if field("apiVersion") != API_VERSION {
            let (found, by) = (field("apiVersion"), printable(field("freeport")));
            return Err(format!(
                "is a bundle of version {found:?}, and this program reads {API_VERSION}. try: freeport {by}, which wrote it"
            ));
        }
        let manifest: Self = serde_json::from_value(value).map_err(broken)?;
        let there = files.len() - 1;
        if there != manifest.files {
            return Err(format!("has {there} of {} files: {}", manifest.files, super::archive::CUT_SHORT));
        }
        Ok(manifest)
    }
}
