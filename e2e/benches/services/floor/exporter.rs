//! Writes records and the status of ServiceExports.

use std::sync::Arc;

use api::{label, mcs::ServiceExport, resource_export::ResourceExport, resource_import::ResourceImport};
use e2e::cluster::Cluster;
use futures::future::join;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::ResourceExt;
use serde_json::json;
use tokio::task::JoinSet;

use super::{
    SIDE, exported,
    hears::{Heard, hears},
    mark,
    objects::Objects,
    template::Template,
};
use crate::set::service_of;

#[derive(Clone)]
pub(super) struct Exporter {
    exports: Objects,
    slices: Objects,
    records: Objects,
    imports: Objects,
    template: Arc<Template>,
}

impl Exporter {
    pub(super) fn new(cluster: &Cluster, leader: &Cluster, template: &Arc<Template>) -> Self {
        Self {
            exports: Objects::of::<ServiceExport>(cluster, SIDE.namespace()),
            slices: Objects::of::<EndpointSlice>(cluster, SIDE.namespace()),
            records: Objects::of::<ResourceExport>(leader, SIDE.area()),
            imports: Objects::of::<ResourceImport>(leader, SIDE.area()),
            template: template.clone(),
        }
    }

    pub(super) fn work(&self, working: &mut JoinSet<()>) {
        let of = self.clone();
        hears(working, &self.exports, move |heard| of.clone().export(heard));
        let of = self.clone();
        hears(working, &self.slices, move |heard| of.clone().slice(heard));
        let of = self.clone();
        hears(working, &self.imports, move |heard| of.clone().verdict(heard));
    }

    async fn export(self, heard: Heard) {
        let name = heard.object().name_any();
        let (service, slice) = (self.template.service_record(&name), self.template.slice_record(&name));
        match heard {
            Heard::New(_) => drop(join(self.records.create(&service), self.records.create(&slice)).await),
            Heard::Changed(_) => {}
            Heard::Gone(_) => {
                self.records.patch(&service, &json!({"spec": {"service": {"withdrawn": true}}})).await;
                self.records.delete(&slice).await;
            }
        }
    }

    async fn slice(self, heard: Heard) {
        let Heard::Changed(slice) = heard else { return };
        // What its own cluster imports is no source.
        if slice.labels().contains_key(label::MCS_SERVICE_NAME) {
            return;
        }
        let record = self.template.slice_record(&service_of(&slice));
        let endpoints = &record["spec"]["endpointSlice"]["endpoints"];
        let changed = self.template.changed(endpoints, mark(&slice.data));
        self.records.patch(&record, &json!({"spec": {"endpointSlice": {"endpoints": changed}}})).await;
    }

    async fn verdict(self, heard: Heard) {
        let Heard::New(import) = heard else { return };
        self.exports.apply_status(&self.template.export_status(&exported(&import))).await;
    }
}
