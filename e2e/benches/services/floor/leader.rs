//! Writes ResourceImports.

use std::sync::Arc;

use api::{
    resource_export::{ResourceExport, SERVICE},
    resource_import::ResourceImport,
};
use e2e::cluster::Cluster;
use futures::future::join;
use serde_json::json;
use tokio::task::JoinSet;

use super::{
    SIDE, exported,
    hears::{Heard, hears},
    objects::Objects,
    template::Template,
};

#[derive(Clone)]
pub(super) struct Leader {
    records: Objects,
    imports: Objects,
    template: Arc<Template>,
}

impl Leader {
    pub(super) fn new(cluster: &Cluster, template: &Arc<Template>) -> Self {
        Self {
            records: Objects::of::<ResourceExport>(cluster, SIDE.area()),
            imports: Objects::of::<ResourceImport>(cluster, SIDE.area()),
            template: template.clone(),
        }
    }

    pub(super) fn work(&self, working: &mut JoinSet<()>) {
        let of = self.clone();
        hears(working, &self.records, move |heard| of.clone().record(heard));
    }

    async fn record(self, heard: Heard) {
        let record = heard.object();
        if record.data["spec"]["kind"] != SERVICE {
            return;
        }
        let name = exported(record);
        let (record, import) = (self.template.service_record(&name), self.template.import(&name));
        match heard {
            Heard::New(_) => drop(self.imports.create(&import).await),
            // It is withdrawn: nothing else changes here.
            Heard::Changed(_) => {
                self.imports.patch(&import, &json!({"spec": {"exporters": []}})).await;
                join(self.records.delete(&record), self.imports.delete(&import)).await;
            }
            Heard::Gone(_) => {}
        }
    }
}
