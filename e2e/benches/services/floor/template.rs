//! What the daemons wrote about one Service. The floor writes the same about others, under their names.

use std::collections::HashMap;

use api::{
    label,
    mcs::{ServiceExport, ServiceImport},
    name,
    resource_export::{ENDPOINT_SLICE, ResourceExport, SERVICE},
    resource_import::ResourceImport,
};
use k8s_openapi::api::{core::v1::Service, discovery::v1::EndpointSlice};
use kube::Resource;
use serde_json::{Value, json};

use crate::{
    endpoints,
    run::Side,
    set::{EXPORTER, IMPORTERS, Set},
};

/// Each text is that of an object.
pub(crate) struct Template {
    /// The Service that it is about.
    name: String,
    service_record: String,
    slice_record: String,
    import: String,
    export_status: String,
    /// By importing cluster.
    imported: HashMap<&'static str, Imported>,
}

/// What an importing cluster has.
struct Imported {
    service: String,
    import: String,
    import_status: String,
    slice: String,
}

impl Imported {
    async fn of(set: &Set, cluster: &str, name: &str) -> Self {
        let (cluster, ns) = (set.world.cluster(cluster), Side::Freeport.namespace());
        let import = only(&cluster.listed::<ServiceImport>(ns).await.unwrap(), |_| true);
        let is_derived =
            |service: &Value| service["metadata"]["name"] == name::imported_service(name).as_str();
        let service = only(&cluster.listed::<Service>(ns).await.unwrap(), is_derived);
        let mut service = written::<Service>(&service, Side::Floor.namespace());
        for given in ["clusterIP", "clusterIPs"] {
            service["spec"].as_object_mut().unwrap().remove(given);
        }
        let is_imported = |slice: &Value| slice["metadata"]["labels"][label::MCS_SERVICE_NAME] == name;
        let slice = only(&cluster.listed::<EndpointSlice>(ns).await.unwrap(), is_imported);
        Self {
            service: service.to_string(),
            import: written::<ServiceImport>(&import, Side::Floor.namespace()).to_string(),
            import_status: status::<ServiceImport>(&import).to_string(),
            slice: written::<EndpointSlice>(&slice, Side::Floor.namespace()).to_string(),
        }
    }
}

/// What an API server says of an object and nobody writes.
const GIVEN: [&str; 5] = ["uid", "resourceVersion", "generation", "creationTimestamp", "managedFields"];

impl Template {
    /// Of a Service that is exported and imported, with its first endpoints.
    pub(crate) async fn of(set: &Set, name: &str) -> Self {
        let (ns, area) = (Side::Freeport.namespace(), Side::Freeport.area());
        let leader = set.world.leader();
        let records = leader.listed::<ResourceExport>(area).await.unwrap();
        let record = |kind: &str| {
            let record = only(&records, |record| record["spec"]["kind"] == kind);
            written::<ResourceExport>(&record, Side::Floor.area()).to_string()
        };
        let import = only(&leader.listed::<ResourceImport>(area).await.unwrap(), |_| true);
        let exports = set.world.cluster(EXPORTER).listed::<ServiceExport>(ns).await.unwrap();
        let mut imported = HashMap::new();
        for cluster in IMPORTERS {
            imported.insert(cluster, Imported::of(set, cluster, name).await);
        }
        Self {
            name: name.to_owned(),
            service_record: record(SERVICE),
            slice_record: record(ENDPOINT_SLICE),
            import: written::<ResourceImport>(&import, Side::Floor.area()).to_string(),
            export_status: status::<ServiceExport>(&only(&exports, |_| true)).to_string(),
            imported,
        }
    }

    pub(super) fn service_record(&self, name: &str) -> Value {
        self.about(name, &self.service_record)
    }

    pub(super) fn slice_record(&self, name: &str) -> Value {
        self.about(name, &self.slice_record)
    }

    pub(super) fn import(&self, name: &str) -> Value {
        self.about(name, &self.import)
    }

    pub(super) fn export_status(&self, name: &str) -> Value {
        self.about(name, &self.export_status)
    }

    pub(super) fn service(&self, cluster: &str, name: &str) -> Value {
        self.about(name, &self.imported[cluster].service)
    }

    pub(super) fn service_import(&self, cluster: &str, name: &str) -> Value {
        self.about(name, &self.imported[cluster].import)
    }

    pub(super) fn import_status(&self, cluster: &str, name: &str) -> Value {
        self.about(name, &self.imported[cluster].import_status)
    }

    pub(super) fn slice(&self, cluster: &str, name: &str) -> Value {
        self.about(name, &self.imported[cluster].slice)
    }

    /// The same endpoints with another number.
    pub(super) fn changed(&self, endpoints: &Value, mark: u32) -> Value {
        let first = format!("\"{}\"", endpoints::numbered(endpoints::FIRST));
        let other = format!("\"{}\"", endpoints::numbered(mark));
        serde_json::from_str(&endpoints.to_string().replace(&first, &other)).unwrap()
    }

    /// The Service of which a record of this name holds an EndpointSlice.
    pub(super) fn service_of_slice_record(&self, record: &str) -> String {
        let mut parts = record.split('.');
        parts.nth(2).unwrap_or_else(|| panic!("{record}, as for {}", self.name)).to_owned()
    }

    fn about(&self, name: &str, text: &str) -> Value {
        serde_json::from_str(&text.replace(&self.name, name)).unwrap()
    }
}

fn only(objects: &[Value], is: impl Fn(&Value) -> bool) -> Value {
    let mut found = objects.iter().filter(|object| is(object));
    let one = found.next().unwrap().clone();
    assert!(found.next().is_none(), "{objects:?}");
    one
}

/// As it was written, in another Namespace: lists leave the kind out, and writes have no status.
fn written<K: Resource<DynamicType = ()>>(object: &Value, namespace: &str) -> Value {
    let mut object = object.clone();
    object["apiVersion"] = json!(K::api_version(&()));
    object["kind"] = json!(K::kind(&()));
    let metadata = object["metadata"].as_object_mut().unwrap();
    metadata.insert("namespace".to_owned(), json!(namespace));
    for given in GIVEN {
        metadata.remove(given);
    }
    object.as_object_mut().unwrap().remove("status");
    object
}

fn status<K: Resource<DynamicType = ()>>(object: &Value) -> Value {
    json!({
        "apiVersion": K::api_version(&()), "kind": K::kind(&()), "metadata": {"name": object["metadata"]["name"]},
        "status": object["status"],
    })
}
