//! What the daemons wrote about one Service. The floor writes the same about others, under their names.

use api::{
    label,
    mcs::{ServiceExport, ServiceImport},
    resource_export::{ENDPOINT_SLICE, ResourceExport, SERVICE},
    resource_import::ResourceImport,
};
use k8s_openapi::api::{core::v1::Service, discovery::v1::EndpointSlice};
use serde_json::{Value, json};

use crate::{
    endpoints,
    run::Side,
    set::{EXPORTER, IMPORTER, Set},
};

/// Each is the text of an object.
pub(crate) struct Template {
    /// The Service that it is about.
    name: String,
    service_record: String,
    slice_record: String,
    import: String,
    export_status: String,
    service: String,
    service_import: String,
    import_status: String,
    slice: String,
}

/// What an API server says of an object and nobody writes.
const GIVEN: [&str; 7] = [
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "managedFields",
    "namespace",
    "ownerReferences",
];

impl Template {
    /// Of a Service that is exported and imported, with its first endpoints.
    pub(crate) async fn of(set: &Set, name: &str) -> Self {
        let (ns, area) = (Side::Freeport.namespace(), Side::Freeport.area());
        let (leader, east) = (set.world.leader(), set.world.cluster(EXPORTER));
        let west = set.world.cluster(IMPORTER);
        let records = leader.listed::<ResourceExport>(area).await.unwrap();
        let of_kind = |kind: &str| records.iter().find(|record| record["spec"]["kind"] == kind).unwrap();
        let export = only(&east.listed::<ServiceExport>(ns).await.unwrap(), |_| true);
        let service_import = only(&west.listed::<ServiceImport>(ns).await.unwrap(), |_| true);
        let is_imported = |object: &Value| object["metadata"]["labels"][label::MCS_SERVICE_NAME] == name;
        let service = only(&west.listed::<Service>(ns).await.unwrap(), |_| true);
        let mut service = written(&service, &kind::<Service>());
        for given in ["clusterIP", "clusterIPs"] {
            service["spec"].as_object_mut().unwrap().remove(given);
        }
        let slice = only(&west.listed::<EndpointSlice>(ns).await.unwrap(), is_imported);
        let import = only(&leader.listed::<ResourceImport>(area).await.unwrap(), |_| true);
        Self {
            name: name.to_owned(),
            service_record: written(of_kind(SERVICE), &kind::<ResourceExport>()).to_string(),
            slice_record: written(of_kind(ENDPOINT_SLICE), &kind::<ResourceExport>()).to_string(),
            import: written(&import, &kind::<ResourceImport>()).to_string(),
            export_status: status(&export, &kind::<ServiceExport>()).to_string(),
            service: service.to_string(),
            service_import: written(&service_import, &kind::<ServiceImport>()).to_string(),
            import_status: status(&service_import, &kind::<ServiceImport>()).to_string(),
            slice: written(&slice, &kind::<EndpointSlice>()).to_string(),
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

    pub(super) fn service(&self, name: &str) -> Value {
        self.about(name, &self.service)
    }

    pub(super) fn service_import(&self, name: &str) -> Value {
        self.about(name, &self.service_import)
    }

    pub(super) fn import_status(&self, name: &str) -> Value {
        self.about(name, &self.import_status)
    }

    pub(super) fn slice(&self, name: &str) -> Value {
        self.about(name, &self.slice)
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

/// As it was written: lists leave the kind out, and writes have no status.
fn written(object: &Value, kind: &Value) -> Value {
    let mut object = of_kind(object, kind);
    object.as_object_mut().unwrap().remove("status");
    object
}

fn status(object: &Value, kind: &Value) -> Value {
    let of = of_kind(object, kind);
    json!({
        "apiVersion": of["apiVersion"], "kind": of["kind"], "metadata": {"name": of["metadata"]["name"]},
        "status": of["status"],
    })
}

fn of_kind(object: &Value, kind: &Value) -> Value {
    let mut object = object.clone();
    for (field, value) in kind.as_object().unwrap() {
        object[field] = value.clone();
    }
    let metadata = object["metadata"].as_object_mut().unwrap();
    for given in GIVEN {
        metadata.remove(given);
    }
    object
}

fn kind<K: kube::Resource<DynamicType = ()>>() -> Value {
    json!({"apiVersion": K::api_version(&()), "kind": K::kind(&())})
}
