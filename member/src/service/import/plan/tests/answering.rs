//! Why no endpoint of an import can answer.

use k8s_openapi::api::discovery::v1::EndpointConditions;

use super::*;

#[test]
fn why_nobody_answers_is_told_apart() {
    let reason = |change: fn(&mut SlicePayload)| {
        let mut entry = entry(&["east"]);
        let slices = entry.peers.get_mut("east").unwrap().values_mut();
        slices.for_each(|slice| change(Arc::make_mut(slice)));
        imports("west", &entry).unanswered(&known("west", &[], &entry)).map(|why| why.reason)
    };
    assert_eq!(reason(|_| {}), None);
    assert_eq!(reason(|slice| slice.endpoints.clear()), Some("NoEndpoints"));
    assert_eq!(reason(|slice| slice.ports[0].service_port = 81), Some("PortMismatch"));
    let not_ready = |slice: &mut SlicePayload| {
        let ready = Some(false);
        slice.endpoints[0].conditions = Some(EndpointConditions { ready, ..EndpointConditions::default() });
    };
    assert_eq!(reason(not_ready), Some("NotReady"));
}
