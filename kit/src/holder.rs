//! Which process of which cluster this is.

/// Who holds or wants a Lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// uid of the Namespace kube-system: tells clusters apart whatever they call themselves.
    pub cluster_uid: String,
    /// Pod, or process, within the cluster.
    pub instance: String,
}

impl std::fmt::Display for Holder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.cluster_uid, self.instance)
    }
}
