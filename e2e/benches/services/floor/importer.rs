//! Writes imports.

use std::sync::Arc;

use api::{
    mcs::ServiceImport,
    resource_export::{ENDPOINT_SLICE, ResourceExport},
    resource_import::ResourceImport,
};
use e2e::cluster::Cluster;
use futures::future::join;
use k8s_openapi::api::{core::v1::Service, discovery::v1::EndpointSlice};
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

#[derive(Clone)]
pub(super) struct Importer {
    cluster: &'static str,
    records: Objects,
    imports: Objects,
    services: Objects,
    service_imports: Objects,
    slices: Objects,
    template: Arc<Template>,
}

impl Importer {
    pub(super) fn new(
        name: &'static str,
        cluster: &Cluster,
        leader: &Cluster,
        template: &Arc<Template>,
    ) -> Self {
        Self {
            cluster: name,
            records: Objects::of::<ResourceExport>(leader, SIDE.area()),
            imports: Objects::of::<ResourceImport>(leader, SIDE.area()),
            services: Objects::of::<Service>(cluster, SIDE.namespace()),
            service_imports: Objects::of::<ServiceImport>(cluster, SIDE.namespace()),
            slices: Objects::of::<EndpointSlice>(cluster, SIDE.namespace()),
            template: template.clone(),
        }
    }

    pub(super) fn work(&self, working: &mut JoinSet<()>) {
        let of = self.clone();
        hears(working, &self.imports, move |heard| of.clone().import(heard));
        let of = self.clone();
        hears(working, &self.records, move |heard| of.clone().slice_record(heard));
    }

    async fn import(self, heard: Heard) {
        let (template, cluster, name) = (&self.template, self.cluster, exported(heard.object()));
        let (service, slice) = (template.service(cluster, &name), template.slice(cluster, &name));
        let mut import = template.service_import(cluster, &name);
        match heard {
            Heard::New(_) => {
                let (made, _) = join(self.services.create(&service), self.slices.create(&slice)).await;
                import["spec"]["ips"] = json!([made.data["spec"]["clusterIP"]]);
                self.service_imports.create(&import).await;
                self.service_imports.apply_status(&template.import_status(cluster, &name)).await;
            }
            // Nobody exports it any more: nothing else changes here.
            Heard::Changed(_) => {
                join(self.services.delete(&service), self.slices.delete(&slice)).await;
                self.service_imports.delete(&import).await;
            }
            Heard::Gone(_) => {}
        }
    }

    async fn slice_record(self, heard: Heard) {
        let Heard::Changed(record) = heard else { return };
        if record.data["spec"]["kind"] != ENDPOINT_SLICE {
            return;
        }
        let service = self.template.service_of_slice_record(&record.name_any());
        let slice = self.template.slice(self.cluster, &service);
        let changed = self.template.changed(&slice["endpoints"], mark(&record.data["spec"]["endpointSlice"]));
        self.slices.patch(&slice, &json!({ "endpoints": changed })).await;
    }
}
