//! Whether an endpoint of an import can answer: pure.

use crate::{
    unanswered::{NO_ENDPOINTS, NOT_READY, PORT_MISMATCH, Unanswered},
    view::Slice,
};

/// Why nobody answers who connects to an import with these slices; none if an endpoint can. `clusters` take part, and those export
/// endpoints that `has_endpoints` says.
pub fn unanswered(
    slices: &[&Slice],
    clusters: &[String],
    has_endpoints: impl Fn(&str) -> bool,
) -> Option<Unanswered> {
    let endpoints = || slices.iter().flat_map(|slice| &slice.endpoints);
    if endpoints().any(|endpoint| endpoint.shared.is_ready()) {
        return None;
    }
    let names = clusters.join(", ");
    if endpoints().next().is_some() {
        let message = format!("this Service has endpoints in {names}, and none of them is ready");
        return Some(Unanswered::new(NOT_READY, message));
    }
    let telling: Vec<_> =
        clusters.iter().map(String::as_str).filter(|cluster| has_endpoints(cluster)).collect();
    Some(match telling.is_empty() {
        true => {
            let message = format!(
                "no endpoint of this Service can answer: {names} exports it without endpoints. Condition NoReadyEndpoints of the \
                 ServiceExport there says why"
            );
            Unanswered::new(NO_ENDPOINTS, message)
        }
        false => {
            let message = format!(
                "no endpoint of this Service can answer: those of {} have none of its ports or IP families here",
                telling.join(", ")
            );
            Unanswered::new(PORT_MISMATCH, message)
        }
    })
}
