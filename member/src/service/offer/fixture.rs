//! A Service that is exported, for tests.

use std::sync::Arc;

use api::{ServiceName, lacking::Lacking, membership::Wire, name, resource_export::SERVICE};
use serde_json::{Value, json};

use super::{offer, record::record};
use crate::{
    identity::Identity,
    service::index::{
        cluster::{Cluster, EndpointIp},
        entry::{NamespaceEntry, ServiceEntry},
        known::{Known, UnderAntrea},
        limits::Limits,
        links::Links,
        reports::Reports,
        view::{Export, OwnRecord, Service, Slice},
    },
};

pub(crate) fn service() -> ServiceName {
    ServiceName::new("shop", "web")
}

/// What a test says of its cluster, its Namespace and its leader.
#[derive(Clone, Default)]
pub(crate) struct Settings {
    pub(crate) endpoint_ip: EndpointIp,
    pub(crate) endpoints_objects: bool,
    pub(crate) families: Vec<String>,
    pub(crate) links: Links,
    pub(crate) limits: Limits,
    pub(crate) lacking: Option<Lacking>,
    pub(crate) reports: Reports,
    pub(crate) antrea_leads: bool,
    pub(crate) is_excluded: bool,
    pub(crate) under_antrea: UnderAntrea,
}

/// What cluster `us` knows of `shop/web`.
pub(crate) fn known(us: &str, entry: &ServiceEntry) -> Known {
    known_with(us, entry, Settings::default())
}

pub(crate) fn known_with(us: &str, entry: &ServiceEntry, settings: Settings) -> Known {
    let cluster = Cluster {
        us: Identity { cluster: us.into(), common_area: "clusterset-demo".into() },
        endpoint_ip: settings.endpoint_ip,
        endpoints_objects: settings.endpoints_objects,
        wire: if settings.antrea_leads { Wire::Antrea } else { Wire::Freeport },
        families: settings.families,
        links: settings.links,
        limits: settings.limits,
        lacking: settings.lacking,
        reports: settings.reports,
    };
    Known {
        service: service(),
        entry: Arc::new(entry.clone()),
        namespace: NamespaceEntry {
            exists: true,
            active: true,
            excluded: settings.is_excluded,
            created: None,
        },
        cluster: Arc::new(cluster),
        under_antrea: settings.under_antrea,
    }
}

pub(crate) fn local_service(change: impl FnOnce(&mut Value)) -> Service {
    let mut service = json!({
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {
            "type": "ClusterIP",
            "clusterIP": "10.0.0.1",
            "ipFamilies": ["IPv4"],
            "ports": [{"name": "http", "port": 80, "protocol": "TCP", "targetPort": 8080}],
        },
    });
    change(&mut service);
    serde_json::from_value(service).unwrap()
}

pub(crate) fn slice(addresses: &[&str]) -> Slice {
    let endpoints: Vec<_> = addresses
        .iter()
        .map(|a| json!({"addresses": [a], "conditions": {"ready": true}, "nodeName": "n1", "targetRef": {"kind": "Pod"}}))
        .collect();
    serde_json::from_value(json!({
        "metadata": {"name": "web-x", "namespace": "shop", "labels": {"kubernetes.io/service-name": "web"}},
        "addressType": "IPv4",
        "endpoints": endpoints,
        "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}, {"name": "debug", "port": 9, "protocol": "TCP"}],
    }))
    .unwrap()
}

pub(crate) fn export() -> Export {
    serde_json::from_value(json!({
        "metadata": {"name": "web", "namespace": "shop", "creationTimestamp": "2026-11-01T12:00:00Z", "generation": 1},
        "spec": {"exportedLabels": {"team": "shop"}},
    }))
    .unwrap()
}

/// A valid export of `shop/web`, of which there is no record yet.
pub(crate) fn entry() -> ServiceEntry {
    with(ServiceEntry::default(), |entry| {
        entry.export = Some(Arc::new(export()));
        entry.service = Some(Arc::new(local_service(|_| {})));
        entry.slices.insert("web-x".to_owned(), Arc::new(slice(&["10.1.0.8", "10.1.0.7"])));
    })
}

/// The entry with another thing in it.
pub(crate) fn with(mut entry: ServiceEntry, change: impl FnOnce(&mut ServiceEntry)) -> ServiceEntry {
    change(&mut entry);
    entry
}

/// The Service record of cluster `east` as the API server has it.
pub(crate) fn own_record(uid: &str, generation: i64) -> OwnRecord {
    let known = known("east", &entry());
    let payload = offer(&known).unwrap().service();
    let mut record = record(&known, SERVICE, name::service_export("east", &service()), |spec| {
        spec.service = Some(payload);
    });
    record.metadata.uid = Some(uid.into());
    record.metadata.generation = Some(generation);
    record
}
