//! What there is before anything happens: Namespaces, anchors, and what looks like ours and is not.

use std::collections::BTreeMap;

use api::label;
use k8s_openapi::api::{core::v1::Service, discovery::v1::EndpointSlice};
use kube::{Resource, ResourceExt};

use super::places::{ANCHORS, FOREIGN, PORTS, Places, network};
use crate::{cluster::Cluster, fixture::World};

/// Makes it.
pub async fn begin(world: &World, places: &Places) {
    for namespace in places.all() {
        world.namespace_everywhere(&namespace).await;
    }
    let namespace = places.anchors();
    let (name, port, listens) = PORTS[0];
    for &cluster in places.exporters() {
        for anchor in ANCHORS.iter().filter(|anchor| anchor.always.contains(&cluster)) {
            let (of, service, address) =
                (world.cluster(cluster), anchor.service, format!("10.{}.0.1", network(cluster)));
            of.service(&namespace, service, &[(name, port)]).await;
            of.slice(&namespace, service, &format!("{service}-one"), &[&address], &[(name, listens)]).await;
            of.export(&namespace, service).await;
        }
    }
    for cluster in world.clusters() {
        let name = foreign();
        cluster.service(&namespace, &name, &[("http", 80)]).await;
        cluster.slice(&namespace, &name, &format!("{name}-one"), &["10.3.0.1"], &[("http", 8080)]).await;
    }
}

/// What somebody else's Service is called, as if it were ours.
fn foreign() -> String {
    format!("{}{FOREIGN}", label::IMPORTED_PREFIX)
}

/// uid and version of all that is somebody else's: they stay as they are.
pub async fn versions(world: &World, places: &Places) -> BTreeMap<String, String> {
    let mut versions = BTreeMap::new();
    let namespace = places.anchors();
    for cluster in world.clusters() {
        let service = cluster.api::<Service>(&namespace).get_opt(&foreign()).await.unwrap();
        versions.extend(service.map(|service| version(cluster, &service)));
        let slice =
            cluster.api::<EndpointSlice>(&namespace).get_opt(&format!("{}-one", foreign())).await.unwrap();
        versions.extend(slice.map(|slice| version(cluster, &slice)));
    }
    versions
}

fn version<K: Resource<DynamicType = ()>>(cluster: &Cluster, object: &K) -> (String, String) {
    let name = format!("{} {} in {}", K::kind(&()), object.name_any(), cluster.name);
    (name, format!("{:?} {:?}", object.uid(), object.resource_version()))
}
