//! What an importing cluster makes of a merged Service.
//!
//! | module | holds |
//! |---|---|
//! | [`address`] | families and addresses |
//! | `answering` | whether an endpoint can answer |
//! | [`metadata`] | labels and annotations that exporters give |
//! | [`slice`](mod@slice) | EndpointSlices |

pub mod address;
mod answering;
pub mod metadata;
pub mod slice;

use std::collections::BTreeSet;

use api::{
    condition::{Status, Verdict},
    family,
    mcs::{READY, ServiceImportSpec, ServiceImportType},
    name,
};

pub use self::answering::unanswered;

/// Why nobody can use the import in this cluster, whatever its API server takes: its Service is `taken` by somebody else's, or it has
/// none of the `families` that this cluster has.
pub fn unusable(
    import: &str,
    taken: bool,
    families: &[String],
    merged: &ServiceImportSpec,
) -> Option<Verdict> {
    if taken {
        let service = name::imported_service(import);
        let message =
            format!("Service {service} exists and was not created by Freeport; Freeport does not change it");
        return Some(Verdict::new(READY, Status::False, "ServiceNameTaken", message));
    }
    if families.is_empty() {
        let exported = family::said(&merged.ip_families).join(" and ");
        let message = format!(
            "this Service has {exported} in the whole set, and this cluster does not have that. If an exporter has another family \
             that is not used, condition Conflict of its ServiceExport says so"
        );
        return Some(Verdict::new(READY, Status::False, "IPFamilyNotSupported", message));
    }
    None
}

/// Somebody else made a ServiceImport of this name.
pub fn foreign() -> Verdict {
    let message = "a ServiceImport of this name exists and was not created by Freeport";
    Verdict::new(READY, Status::False, "NotOurs", message)
}

/// The import is in place; the clusters `kept` take part only because nobody withdrew their part.
pub fn in_place(merged: &ServiceImportSpec, kept: &BTreeSet<String>) -> Verdict {
    let mut message = "the imported Service is in place".to_owned();
    let is_headless = merged.type_ == ServiceImportType::Headless;
    if !is_headless && merged.internal_traffic_policy.as_deref() == Some("Local") {
        message += "; its internalTrafficPolicy is Local: a client reaches only endpoints on its own node, so none of other \
                    clusters";
    }
    if !kept.is_empty() {
        let kept = kept.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        message += &format!(
            "; the records of {kept} vanished from the Common Area although {kept} did not withdraw them. Their endpoints and \
             ports are kept until {kept} confirms that the records are gone or writes them again"
        );
    }
    Verdict::new(READY, Status::True, "Ready", message)
}
