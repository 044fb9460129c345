//! `freeport status`: what a cluster leads, what it belongs to, and what is wrong there.
//!
//! | module | holds |
//! |---|---|
//! | `gather` | asking the API server |
//! | `found` | what it answered, read loosely |
//! | `judge` | what follows from that: pure, with the clock as an argument |
//! | [`report`] | the verdict, which is also the shape of `-o json` |
//! | `print` | the verdict as text |
//!
//! Nothing is written, and only this cluster is asked: of a member, its ClusterSet's condition is all there is to see of
//! its leader.

mod age;
mod found;
mod gather;
mod judge;
mod print;
pub mod report;

use k8s_openapi::jiff::Timestamp;

pub use self::{print::text, report::Report};
use crate::{Error, KubeContext, cluster::Cluster};

/// What to look at.
#[derive(Clone, Debug, Default)]
pub struct StatusOptions {
    /// The cluster to ask.
    pub cluster: KubeContext,
    /// Look at this ClusterSet only.
    pub cluster_set: Option<String>,
}

/// Asks the cluster and judges the answers. What may not be read, or has no CRD, is a problem in the report.
///
/// # Errors
/// [`Error::Kubeconfig`] and the failures of a server that is away or knows nobody by this credential.
pub async fn status(options: &StatusOptions) -> Result<Report, Error> {
    let cluster = Cluster::open(&options.cluster).await?;
    let found = gather::gather(&cluster, options.cluster_set.as_deref()).await?;
    Ok(judge::report(&found, Timestamp::now()))
}
