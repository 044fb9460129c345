//! Golden JSON of the kinds, beside that of all others: what travels reads and writes to the letter.

use kube::ResourceExt;

use super::{
    map::NamespaceMap, namespace::NamespaceOffloading, offer::OffloadOffer, peer::OffloadPeer,
    shadow_pod::ShadowPod,
};
use crate::golden::golden;

#[test]
fn records_have_their_canonical_names() {
    let map: NamespaceMap = golden!("namespace-map");
    assert_eq!(map.name_any(), map.spec.name());
    let empty: NamespaceMap = golden!("namespace-map-empty");
    assert_eq!(empty.name_any(), empty.spec.name());
    let offer: OffloadOffer = golden!("offload-offer");
    assert_eq!(offer.name_any(), offer.spec.name());
    for pod in [golden!("shadow-pod"), golden!("shadow-pod-deleted")] {
        let pod: ShadowPod = pod;
        assert_eq!(pod.name_any(), pod.spec.name());
    }
}

#[test]
fn what_users_write_keeps_its_words() {
    let _: NamespaceOffloading = golden!("namespace-offloading");
    let _: OffloadPeer = golden!("offload-peer");
}
