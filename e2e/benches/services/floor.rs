//! The floor: a bare client at the place of the daemons, which makes the same writes with the same content, in the order in which they
//! depend on each other, as many at once as a daemon does. It compares nothing, remembers nothing, and asks nobody whether it may.
//!
//! | who | hears | writes |
//! |---|---|---|
//! | exporter | a ServiceExport | both records; when it goes: `withdrawn` in one, and deletes the other |
//! | | an EndpointSlice changes | the slice record |
//! | | a ResourceImport | the status of the ServiceExport |
//! | leader | a Service record | the ResourceImport; when it is withdrawn: `exporters: []`, and deletes both |
//! | importer | a ResourceImport | Service and EndpointSlice, ServiceImport, its status; when nobody exports: deletes all three |
//! | | a slice record changes | the EndpointSlice |

mod exporter;
mod hears;
mod importer;
mod leader;
mod objects;
mod template;

use std::sync::Arc;

use kube::api::DynamicObject;
use serde_json::Value;
use tokio::task::JoinSet;

pub(crate) use self::template::Template;
use self::{exporter::Exporter, importer::Importer, leader::Leader};
use crate::{
    endpoints,
    run::Side,
    set::{EXPORTER, Set},
};

const SIDE: Side = Side::Floor;

/// Works until it is dropped.
pub(crate) struct Floor {
    set: Set,
    template: Arc<Template>,
    working: JoinSet<()>,
}

impl Floor {
    /// The exporter and the leader.
    pub(crate) fn of(set: &Set, template: &Arc<Template>) -> Self {
        let mut floor = Self { set: set.clone(), template: template.clone(), working: JoinSet::new() };
        Exporter::new(set.world.cluster(EXPORTER), set.world.leader(), template).work(&mut floor.working);
        Leader::new(set.world.leader(), template).work(&mut floor.working);
        floor
    }

    /// An importer, which begins now.
    pub(crate) fn imports(&mut self, cluster: &'static str) {
        let (leader, of) = (self.set.world.leader(), self.set.world.cluster(cluster));
        Importer::new(cluster, of, leader, &self.template).work(&mut self.working);
    }
}

/// The Service that a Service record or a ResourceImport is about.
fn exported(record: &DynamicObject) -> String {
    record.data["spec"]["name"].as_str().unwrap().to_owned()
}

/// The number in the endpoints of a slice.
fn mark(slice: &Value) -> u32 {
    let endpoints = slice["endpoints"].as_array().into_iter().flatten();
    let addresses = endpoints.flat_map(|endpoint| endpoint["addresses"].as_array().into_iter().flatten());
    endpoints::mark(addresses.filter_map(Value::as_str)).unwrap()
}
