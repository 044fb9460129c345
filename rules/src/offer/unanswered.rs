//! Whether an endpoint of an export can answer: pure.

use std::collections::BTreeSet;

use api::label::SERVICE_NAME;

use super::{Offer, slices};
use crate::unanswered::{NO_ENDPOINTS, NOT_READY, PORT_MISMATCH, Unanswered};

/// The address type of EndpointSlices with names of hosts.
const FQDN: &str = "FQDN";

/// Why nobody answers who connects to what is exported; none if an endpoint can.
pub(super) fn unanswered(offer: &Offer<'_>) -> Option<Unanswered> {
    let families = slices::families(offer);
    let (mut in_family, mut with_port, mut others) = (0, 0, BTreeSet::new());
    let all = offer.local.slices.iter().filter(|(_, slice)| !slice.endpoints.is_empty());
    for (source, slice) in all {
        if !families.contains(&slice.address_type) {
            others.insert(slice.address_type.as_str());
            continue;
        }
        in_family += slice.endpoints.len();
        // By an address of its own an endpoint is reached on all its ports.
        if offer.payload.is_headless() || slices::has_port(offer, source, slice) {
            with_port += slice.endpoints.len();
            if slice.endpoints.iter().any(|endpoint| endpoint.shared.is_ready()) {
                return None;
            }
        }
    }
    let service = offer.local.name;
    Some(match () {
        () if with_port > 0 => {
            let all = if with_port == 1 { "its one endpoint is not" } else { "none of its endpoints is" };
            Unanswered::new(NOT_READY, format!("no endpoint of Service {service} can answer: {all} ready"))
        }
        () if in_family > 0 => {
            let message = format!(
                "no endpoint of Service {service} can answer: none of their ports has the name of a port of the \
                 Service"
            );
            Unanswered::new(PORT_MISMATCH, message)
        }
        () if others.contains(FQDN) => {
            let message = format!(
                "no endpoint of Service {service} can answer: its EndpointSlices have names of hosts (addressType FQDN), and other \
                 clusters are given addresses only"
            );
            Unanswered::new("OnlyFQDN", message)
        }
        () if !others.is_empty() => {
            let (have, want) = (others.into_iter().collect::<Vec<_>>().join(" and "), families.join(" and "));
            let message = format!(
                "no endpoint of Service {service} can answer: the Service has IP family {want}, and its endpoints have {have}"
            );
            Unanswered::new("IPFamilyMismatch", message)
        }
        () => {
            let has_selector = !offer.service.spec.never.selector.is_empty();
            let why = match has_selector {
                true => "Does its selector match Pods?".to_owned(),
                false => format!(
                    "It has no selector, so Kubernetes makes none: create EndpointSlices with label {SERVICE_NAME}={}",
                    service.name
                ),
            };
            Unanswered::new(
                NO_ENDPOINTS,
                format!("no endpoint of Service {service} can answer: it has none. {why}"),
            )
        }
    })
}
