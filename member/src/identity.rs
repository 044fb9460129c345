//! Who this member is in the Common Area.

/// Identity of this member in the Common Area.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    /// Our cluster ID.
    pub(crate) cluster: String,
    /// Namespace of the leader's cluster that holds the records.
    pub(crate) common_area: String,
}
