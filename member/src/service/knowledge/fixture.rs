//! A member under a leader of Antrea's, for tests.

use api::{ServiceName, membership::Wire};
use kit::objects::Change;
use kube::ResourceExt;
use serde_json::{Value, json};

use super::Knowledge;
use crate::{
    identity::Identity,
    service::{
        antrea::leader,
        index::{
            cluster::{Cluster, EndpointIp},
            limits::Limits,
            links::Links,
            reports::Reports,
            view::{Export, OwnRecord, Service, Slice},
        },
        offer::record::Step,
    },
};

pub(crate) const IMPORT: &str = include_str!("../../../../api/tests/golden/import-service-antrea.json");

pub(crate) fn read<K: serde::de::DeserializeOwned>(object: &Value) -> K {
    serde_json::from_value(object.clone()).unwrap()
}

pub(crate) fn golden(text: &str, change: impl FnOnce(&mut Value)) -> Value {
    let mut object = serde_json::from_str(text).unwrap();
    change(&mut object);
    object
}

/// Under a leader of Antrea's, where nothing is known.
pub(crate) fn nothing() -> Knowledge {
    let us = Identity { cluster: "east".into(), common_area: "antrea-multicluster".into() };
    let cluster = Cluster {
        us,
        endpoint_ip: EndpointIp::default(),
        endpoints_objects: false,
        wire: Wire::Antrea,
        families: vec![],
        links: Links::default(),
        limits: Limits::default(),
        lacking: None,
        reports: Reports::default(),
    };
    Knowledge::new(cluster)
}

/// A Service with a slice, exported at some hour.
pub(crate) fn export(known: &Knowledge, service: &ServiceName, hour: u8) {
    let ServiceName { namespace, name } = service;
    let at = format!("2026-11-01T{hour:02}:00:00Z");
    let export = json!({"metadata": {"name": name, "namespace": namespace, "creationTimestamp": at}});
    let local = json!({
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"clusterIP": "10.0.0.1", "ports": [{"name": "http", "port": 80, "protocol": "TCP"}]},
    });
    let slice = json!({
        "metadata": {"name": format!("{name}-x"), "namespace": namespace, "labels": {"kubernetes.io/service-name": name}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["10.1.0.8"]}, {"addresses": ["10.1.0.7"]}],
        "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
    });
    known.services.change(Change::Apply(read::<Export>(&export)));
    known.services.change(Change::Apply(read::<Service>(&local)));
    known.services.change(Change::Apply(read::<Slice>(&slice)));
}

pub(crate) fn steps(known: &Knowledge, service: &ServiceName) -> Vec<Step> {
    leader::desired(&known.known(service).unwrap())
}

/// What would be written, by name.
pub(crate) fn written(steps: &[Step]) -> Vec<Value> {
    let want = |step: &Step| match step {
        Step::Put { want, .. } => serde_json::to_value(want).unwrap(),
        Step::Remove { have, .. } | Step::Delete { have } => json!({"delete": have.name_any()}),
    };
    steps.iter().map(want).collect()
}

/// The record as the API server has it.
pub(crate) fn taken_in(known: &Knowledge, mut record: Value, change: impl FnOnce(&mut Value)) {
    record["metadata"]["uid"] = json!("u1");
    record["metadata"]["generation"] = json!(1);
    change(&mut record);
    known.services.change(Change::Apply(read::<OwnRecord>(&record)));
}

pub(crate) fn succeeded(record: &mut Value) {
    record["status"] = json!({"conditions": [{"type": "Succeeded", "status": "True"}]});
}
