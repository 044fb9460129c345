//! `freeport status`: what a cluster leads, what it belongs to, and what is wrong there.
//!
//! | module | holds |
//! |---|---|
//! | `gather` | reads from the API server |
//! | `found` | what it answered |
//! | `judge` | makes the report of it: pure, with the clock as an argument |
//! | [`report`] | the report, which is also the shape of `-o json` |
//! | `print` | the report as text |
//!
//! It writes nothing and reads only this cluster: what a member knows of its leader is in the condition of its ClusterSet.

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

/// Reads the cluster and makes a report. What may not be read, or has no CRD, is a problem in the report.
///
/// # Errors
/// [`Error::Kubeconfig`], and [`Error::Request`] if the server does not answer or does not accept the credential.
pub async fn status(options: &StatusOptions) -> Result<Report, Error> {
    let cluster = Cluster::open(&options.cluster).await?;
    of(&cluster, options.cluster_set.as_deref(), cluster.now()).await
}

/// Reads a cluster that was opened, at the time `now`.
pub(crate) async fn of(cluster: &Cluster, set: Option<&str>, now: Timestamp) -> Result<Report, Error> {
    // What it holds between its many questions is too much for the stack.
    let found = Box::pin(gather::gather(cluster, set)).await?;
    Ok(judge::report(&found, now))
}
