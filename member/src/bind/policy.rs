//! What the administrator of the consumer decided about copies: pure.

use api::bind::label;
use kube::{Resource, ResourceExt};

/// Whether copies stay when their objects go: those of an APIServiceBinding, or in an APIServiceNamespace.
pub(crate) fn leaves_copies<P: Resource>(of: &P) -> bool {
    of.annotations().get(label::DELETION_POLICY).is_some_and(|policy| policy == label::ORPHAN)
}
