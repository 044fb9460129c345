//! `freeport get`: what several clusters export and import, as tables and as JSON. Writes nothing. The rows are made by [`picture::listing`].
//!
//! | module | holds |
//! |---|---|
//! | `read` | what the clusters hold |
//! | `clusters` | rows of clusters, of what `freeport status` reports |
//! | `table` | rows as lines |

mod clusters;
mod read;
mod table;

use futures::future::join_all;
use k8s_openapi::jiff::Timestamp;
use picture::listing::{
    ConflictRow, ExportRow, Held, ImportRow, ServiceRow, conflicts, exports, imports, services,
};
use serde::Serialize;

pub use self::{
    clusters::ClusterRow,
    table::{names, text},
};
use crate::{
    Error, KubeContext,
    cluster::{Cluster, now},
};

/// Rows of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listed {
    /// Services of the set.
    Services,
    /// ServiceExports.
    Exports,
    /// ServiceImports.
    Imports,
    /// Clusters.
    Clusters,
    /// Exports that differ from those of other clusters.
    Conflicts,
}

/// What to list.
#[derive(Clone, Debug)]
pub struct GetOptions {
    /// Rows of which kind.
    pub listed: Listed,
    /// The clusters to look at.
    pub contexts: Vec<KubeContext>,
    /// Namespace; none for all.
    pub namespace: Option<String>,
    /// Label selector: of ServiceImports for imports and Services, of ServiceExports for the others.
    pub labels: String,
}

/// The rows, and what was not looked at.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Listing {
    /// `cli.freeport.dev/v1`.
    pub api_version: &'static str,
    /// `ServiceList`, `ExportList`, ...
    pub kind: &'static str,
    /// The rows.
    pub items: Rows,
    /// What was not looked at, and why; the rows lack it.
    pub not_looked_at: Vec<String>,
    /// When this was read, by the clock of whoever asked.
    #[serde(skip)]
    pub now: Timestamp,
    /// Whether no cluster could be looked at.
    #[serde(skip)]
    pub is_unseen: bool,
}

impl Listing {
    /// Whether it has no rows.
    pub fn is_empty(&self) -> bool {
        match &self.items {
            Rows::Services(rows) => rows.is_empty(),
            Rows::Exports(rows) => rows.is_empty(),
            Rows::Imports(rows) => rows.is_empty(),
            Rows::Clusters(rows) => rows.is_empty(),
            Rows::Conflicts(rows) => rows.is_empty(),
        }
    }
}

/// Rows of one kind.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Rows {
    /// Services of the set.
    Services(Vec<ServiceRow>),
    /// ServiceExports.
    Exports(Vec<ExportRow>),
    /// ServiceImports.
    Imports(Vec<ImportRow>),
    /// Clusters.
    Clusters(Vec<ClusterRow>),
    /// Exports that differ.
    Conflicts(Vec<ConflictRow>),
}

/// Reads all clusters at once. What cannot be read is said in the listing.
///
/// # Errors
/// [`Error::Kubeconfig`].
pub async fn get(options: &GetOptions) -> Result<Listing, Error> {
    let mut clusters = Vec::new();
    for context in &options.contexts {
        clusters.push(Cluster::open(context).await?);
    }
    let now = now(&clusters);
    if options.listed == Listed::Clusters {
        let (rows, not_looked_at) = clusters::clusters(&clusters, now).await;
        let is_unseen = not_looked_at.len() == clusters.len();
        return Ok(listing("ClusterList", Rows::Clusters(rows), not_looked_at, now, is_unseen));
    }
    let all = join_all(clusters.iter().map(|cluster| Box::pin(read::read(cluster, options)))).await;
    let (held, not_looked_at) = read::each_once(all);
    let (kind, rows) = rows(options, &held);
    Ok(listing(kind, rows, not_looked_at, now, held.is_empty()))
}

fn listing(
    kind: &'static str,
    items: Rows,
    not_looked_at: Vec<String>,
    now: Timestamp,
    is_unseen: bool,
) -> Listing {
    Listing { api_version: "cli.freeport.dev/v1", kind, items, not_looked_at, now, is_unseen }
}

fn rows(options: &GetOptions, held: &[Held]) -> (&'static str, Rows) {
    match options.listed {
        Listed::Exports => ("ExportList", Rows::Exports(exports(held))),
        Listed::Imports => ("ImportList", Rows::Imports(imports(held))),
        Listed::Conflicts => ("ConflictList", Rows::Conflicts(conflicts(held))),
        Listed::Services | Listed::Clusters => {
            let is_selected = |row: &ServiceRow| options.labels.is_empty() || !row.imported_by.is_empty();
            ("ServiceList", Rows::Services(services(held).into_iter().filter(is_selected).collect()))
        }
    }
}
