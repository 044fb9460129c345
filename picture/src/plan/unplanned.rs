//! Why nothing can be predicted.

use thiserror::Error;

use super::held::Cluster;
use crate::{gap::Gap, view::ClusterSetView};

/// Why nothing can be predicted.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Unplanned {
    /// No cluster has the name that was given: a sentence.
    #[error("{0}")]
    UnknownCluster(String),
    /// The cluster of the change belongs to no ClusterSet, or could not be read.
    #[error("{context}: {why}")]
    Unread {
        /// Context of the cluster.
        context: String,
        /// A sentence.
        why: String,
    },
}

/// The ClusterSet of the cluster of the change. Without its Namespaces, ServiceExports and Services nothing can be said of a change.
pub(super) fn readable(target: &Cluster) -> Result<&ClusterSetView, Unplanned> {
    let unread = |why: String| Unplanned::Unread { context: target.context.clone(), why };
    let parts = [
        ("ClusterSets", target.sets.as_ref().err()),
        ("Namespaces", target.namespaces.as_ref().err()),
        ("ServiceExports", target.exports.as_ref().err()),
        ("Services", target.services.as_ref().err()),
    ];
    let gap = |(part, gap): (&str, Option<&Gap>)| Some(format!("cannot plan: {part}: {}", gap?));
    if let Some(why) = parts.into_iter().find_map(gap) {
        return Err(unread(why));
    }
    let join = || format!("belongs to no ClusterSet. try: freeport join --context {}", target.context);
    target.set().ok_or_else(|| unread(join()))
}
