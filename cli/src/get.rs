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

use k8s_openapi::jiff::Timestamp;
use picture::listing::{
    ConflictRow, ExportRow, ImportRow, ServiceRow, conflicts, exports, imports, services,
};
use serde::Serialize;

use self::read::{Labels, held};
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
    /// Whether nothing of any cluster could be looked at.
    #[serde(skip)]
    pub is_unseen: bool,
}

impl Listing {
    fn new(items: Rows, looked: Looked, now: Timestamp) -> Self {
        Self {
            api_version: crate::schema::API_VERSION,
            kind: items.kind(),
            items,
            not_looked_at: looked.gaps,
            now,
            is_unseen: !looked.is_seen,
        }
    }
}

/// How far clusters were looked at.
#[derive(Clone, Debug, Default, PartialEq)]
struct Looked {
    /// A sentence for each part that was not.
    gaps: Vec<String>,
    /// Whether at least one part was.
    is_seen: bool,
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

impl Rows {
    /// `kind` of the list in JSON.
    fn kind(&self) -> &'static str {
        match self {
            Self::Services(_) => "ServiceList",
            Self::Exports(_) => "ExportList",
            Self::Imports(_) => "ImportList",
            Self::Clusters(_) => "ClusterList",
            Self::Conflicts(_) => "ConflictList",
        }
    }

    /// Reports whether there are no rows.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Services(rows) => rows.is_empty(),
            Self::Exports(rows) => rows.is_empty(),
            Self::Imports(rows) => rows.is_empty(),
            Self::Clusters(rows) => rows.is_empty(),
            Self::Conflicts(rows) => rows.is_empty(),
        }
    }
}

/// Reads all clusters at once. The listing says which parts could not be read.
///
/// # Errors
/// [`Error::Kubeconfig`].
pub async fn get(options: &GetOptions) -> Result<Listing, Error> {
    let clusters = Cluster::open_all(&options.contexts).await?;
    let now = now(&clusters);
    let (namespace, labels) = (options.namespace.as_deref(), options.labels.as_str());
    let held = async |labels| held(&clusters, namespace, labels).await;
    let (rows, looked) = match options.listed {
        Listed::Clusters => {
            let (rows, looked) = clusters::clusters(&clusters, now).await;
            (Rows::Clusters(rows), looked)
        }
        Listed::Exports => {
            let (held, looked) = held(Labels { exports: Some(labels), imports: None }).await;
            (Rows::Exports(exports(&held)), looked)
        }
        Listed::Imports => {
            let (held, looked) = held(Labels { exports: None, imports: Some(labels) }).await;
            (Rows::Imports(imports(&held)), looked)
        }
        Listed::Conflicts => {
            let (held, looked) = held(Labels { exports: Some(labels), imports: None }).await;
            (Rows::Conflicts(conflicts(&held)), looked)
        }
        Listed::Services => {
            // A Service is selected by the labels of its ServiceImports, whoever exports it.
            let (held, looked) = held(Labels { exports: Some(""), imports: Some(labels) }).await;
            let is_selected = |row: &ServiceRow| labels.is_empty() || !row.imported_by.is_empty();
            (Rows::Services(services(&held).into_iter().filter(is_selected).collect()), looked)
        }
    };
    Ok(Listing::new(rows, looked, now))
}
