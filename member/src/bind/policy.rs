//! What the administrator of the consumer decided about a binding: pure.

use api::bind::label;
use kube::{Resource, ResourceExt};

/// Whether copies stay when their objects go.
pub(crate) fn leaves_copies<P: Resource>(binding: &P) -> bool {
    binding.annotations().get(label::DELETION_POLICY).is_some_and(|policy| policy == label::ORPHAN)
}
