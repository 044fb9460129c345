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

mod hears;
mod objects;
mod template;

use std::sync::Arc;

use api::{
    label,
    mcs::{ServiceExport, ServiceImport},
    resource_export::{ENDPOINT_SLICE, ResourceExport, SERVICE},
    resource_import::ResourceImport,
};
use futures::future::join;
use k8s_openapi::{
    NamespaceResourceScope,
    api::{core::v1::Service, discovery::v1::EndpointSlice},
};
use kube::{Resource, ResourceExt, api::DynamicObject};
use serde_json::{Value, json};
use tokio::task::JoinSet;

pub(crate) use self::template::Template;
use self::{
    hears::{Heard, hears},
    objects::Objects,
};
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
        floor.exports();
        floor.leads();
        floor
    }

    fn objects<K>(&self, cluster: &str, namespace: &str) -> Objects
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        Objects::of::<K>(self.set.world.cluster(cluster).client.clone(), namespace)
    }

    fn exports(&mut self) {
        let (exports, slices) = (
            self.objects::<ServiceExport>(EXPORTER, SIDE.namespace()),
            self.objects::<EndpointSlice>(EXPORTER, SIDE.namespace()),
        );
        let records = self.objects::<ResourceExport>("leader", SIDE.area());
        let imports = self.objects::<ResourceImport>("leader", SIDE.area());

        let (to, template) = (records.clone(), self.template.clone());
        hears(&mut self.working, &exports.0, move |heard| {
            let (records, template) = (to.clone(), template.clone());
            async move {
                let name = heard.object().name_any();
                let (service, slice) = (template.service_record(&name), template.slice_record(&name));
                match heard {
                    Heard::New(_) => drop(join(records.create(&service), records.create(&slice)).await),
                    Heard::Changed(_) => {}
                    Heard::Gone(_) => {
                        let withdrawn = json!({"spec": {"service": {"withdrawn": true}}});
                        records.patch(&service, &withdrawn).await;
                        records.delete(&slice).await;
                    }
                }
            }
        });

        let (to, template) = (records, self.template.clone());
        hears(&mut self.working, &slices.0, move |heard| {
            let (records, template) = (to.clone(), template.clone());
            async move {
                let Heard::Changed(slice) = heard else { return };
                // What its own cluster imports is no source.
                if slice.labels().contains_key(label::MCS_SERVICE_NAME) {
                    return;
                }
                let service = crate::set::service_of(&slice);
                let record = template.slice_record(&service);
                let changed =
                    template.changed(&record["spec"]["endpointSlice"]["endpoints"], mark(&slice.data));
                let changed = json!({"spec": {"endpointSlice": {"endpoints": changed}}});
                records.patch(&record, &changed).await;
            }
        });

        let (to, template) = (exports, self.template.clone());
        hears(&mut self.working, &imports.0, move |heard| {
            let (exports, template) = (to.clone(), template.clone());
            async move {
                let Heard::New(import) = heard else { return };
                exports.apply_status(&template.export_status(&exported(&import))).await;
            }
        });
    }

    fn leads(&mut self) {
        let records = self.objects::<ResourceExport>("leader", SIDE.area());
        let imports = self.objects::<ResourceImport>("leader", SIDE.area());
        let (of, template) = (records.clone(), self.template.clone());
        hears(&mut self.working, &records.0, move |heard| {
            let (records, imports, template) = (of.clone(), imports.clone(), template.clone());
            async move {
                let record = heard.object();
                if record.data["spec"]["kind"] != SERVICE {
                    return;
                }
                let name = exported(record);
                let (record, import) = (template.service_record(&name), template.import(&name));
                match heard {
                    Heard::New(_) => drop(imports.create(&import).await),
                    Heard::Changed(_) => {
                        imports.patch(&import, &json!({"spec": {"exporters": []}})).await;
                        join(records.delete(&record), imports.delete(&import)).await;
                    }
                    Heard::Gone(_) => {}
                }
            }
        });
    }

    /// An importer, which begins now.
    pub(crate) fn imports(&mut self, cluster: &'static str) {
        let services = self.objects::<Service>(cluster, SIDE.namespace());
        let service_imports = self.objects::<ServiceImport>(cluster, SIDE.namespace());
        let slices = self.objects::<EndpointSlice>(cluster, SIDE.namespace());
        let records = self.objects::<ResourceExport>("leader", SIDE.area());
        let imports = self.objects::<ResourceImport>("leader", SIDE.area());

        let (to, template) = (slices.clone(), self.template.clone());
        hears(&mut self.working, &imports.0, move |heard| {
            let (services, service_imports, slices) = (services.clone(), service_imports.clone(), to.clone());
            let template = template.clone();
            async move {
                let name = exported(heard.object());
                let (service, slice) = (template.service(cluster, &name), template.slice(cluster, &name));
                let import = template.service_import(cluster, &name);
                match heard {
                    Heard::New(_) => {
                        let (made, _) = join(services.create(&service), slices.create(&slice)).await;
                        let import = with_address(import, &made);
                        service_imports.create(&import).await;
                        service_imports.apply_status(&template.import_status(cluster, &name)).await;
                    }
                    Heard::Changed(_) => {
                        join(services.delete(&service), slices.delete(&slice)).await;
                        service_imports.delete(&import).await;
                    }
                    Heard::Gone(_) => {}
                }
            }
        });

        let template = self.template.clone();
        hears(&mut self.working, &records.0, move |heard| {
            let (slices, template) = (slices.clone(), template.clone());
            async move {
                let Heard::Changed(record) = heard else { return };
                if record.data["spec"]["kind"] != ENDPOINT_SLICE {
                    return;
                }
                let slice = template.slice(cluster, &template.service_of_slice_record(&record.name_any()));
                let mark = mark(&record.data["spec"]["endpointSlice"]);
                let changed = template.changed(&slice["endpoints"], mark);
                slices.patch(&slice, &json!({ "endpoints": changed })).await;
            }
        });
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

fn with_address(mut import: Value, service: &DynamicObject) -> Value {
    import["spec"]["ips"] = json!([service.data["spec"]["clusterIP"]]);
    import
}
