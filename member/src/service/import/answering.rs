//! Whether an endpoint of an import can answer: pure.

use std::collections::BTreeMap;

use super::plan::DesiredImport;
use crate::service::{
    index::known::Known,
    unanswered::{NO_ENDPOINTS, NOT_READY, PORT_MISMATCH, Unanswered},
};

/// Why nobody answers who connects to the import; none if an endpoint can.
pub(super) fn unanswered(known: &Known, desired: &DesiredImport) -> Option<Unanswered> {
    let endpoints = || desired.slices.iter().chain(&desired.held).flat_map(|slice| &slice.endpoints);
    if endpoints().any(|endpoint| endpoint.shared.is_ready()) {
        return None;
    }
    let clusters = desired.clusters.join(", ");
    if endpoints().next().is_some() {
        let message = format!("this Service has endpoints in {clusters}, and none of them is ready");
        return Some(Unanswered::new(NOT_READY, message));
    }
    let told = |cluster: &&String| {
        let slices = known.entry.peers.get(*cluster).into_iter().flat_map(BTreeMap::values);
        slices.into_iter().any(|slice| !slice.endpoints.is_empty())
    };
    let telling: Vec<_> = desired.clusters.iter().filter(told).map(String::as_str).collect();
    Some(match telling.is_empty() {
        true => {
            let message = format!(
                "no endpoint of this Service can answer: {clusters} exports it without endpoints. Condition NoReadyEndpoints of the \
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
