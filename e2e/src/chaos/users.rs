//! What users do, done. What an API server refuses, or does not answer, was not done: that is no failure of the run.

use std::{fmt::Debug, time::Duration};

use api::{
    label,
    mcs::{ServiceExport, ServiceImport},
};
use k8s_openapi::{
    NamespaceResourceScope,
    api::{
        core::v1::{Namespace, Service},
        discovery::v1::EndpointSlice,
    },
};
use kube::{
    Api, Resource, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use super::{
    places::{PORTS, Place},
    plan::deed::{Deed, Made, What},
};
use crate::{cluster::Cluster, fixture::World, waiting::eventually};

/// A user does not wait longer for an answer.
const PATIENCE: Duration = Duration::from_secs(15);
/// Nor longer than that for the end of a Namespace. It is made anew by whoever ends the run.
const OF_NAMESPACES: Duration = Duration::from_secs(60);

/// Why something was not done.
type Done = Result<(), String>;

/// Does it; what became of it.
pub async fn does(world: &World, deed: &Deed) -> Done {
    let user = User { cluster: world.cluster(deed.place.cluster), place: &deed.place };
    let patience = if deed.what == What::RenewNamespace { OF_NAMESPACES } else { PATIENCE };
    let done = tokio::time::timeout(patience, user.does(&deed.what)).await;
    done.unwrap_or_else(|_| Err("no answer in time".into()))
}

/// Makes the Namespace where it is not there; fails while it is being deleted.
pub(super) async fn make_namespace(cluster: &Cluster, name: &str) -> Done {
    let namespaces = Api::<Namespace>::all(cluster.client.clone());
    match namespaces.get_opt(name).await.map_err(|error| error.to_string())? {
        Some(there) if there.metadata.deletion_timestamp.is_none() => Ok(()),
        Some(_) => Err(format!("Namespace {name} of {} is being deleted", cluster.name)),
        None => {
            let namespace = object(json!({"metadata": {"name": name}}));
            namespaces.create(&PostParams::default(), &namespace).await.map(drop).map_err(|e| e.to_string())
        }
    }
}

/// Ends an export whose ServiceExport is missing, as the member's message says: creates the ServiceExport, waits until the member reports on it, and
/// deletes it.
pub(super) async fn ends_export(world: &World, place: &Place) {
    let user = User { cluster: world.cluster(place.cluster), place };
    let exports = user.api::<ServiceExport>();
    let what = format!("the export of {place} is ended");
    let is_there = eventually(&what, || async {
        exports.get_opt(&place.service).await.map(|there| there.is_some()).map_err(|error| error.to_string())
    });
    if is_there.await {
        return;
    }
    eventually(&what, || async {
        user.declare().await?;
        let export = exports.get(&place.service).await.map_err(|error| error.to_string())?;
        let is_seen = export.status.is_some_and(|status| !status.conditions.is_empty());
        if is_seen { Ok(()) } else { Err("the member reports nothing yet".to_owned()) }
    })
    .await;
    eventually(&what, || user.delete::<ServiceExport>(&place.service)).await;
}

struct User<'a> {
    cluster: &'a Cluster,
    place: &'a Place,
}

impl User<'_> {
    async fn does(&self, what: &What) -> Done {
        let service = self.place.service.as_str();
        match what {
            What::Export(address) => self.export(address).await,
            What::Unexport => self.delete::<ServiceExport>(service).await,
            What::DeleteService => self.delete::<Service>(service).await,
            What::Endpoints(addresses) => self.put_slice("one", addresses).await,
            What::AnotherSlice(addresses) => self.put_slice("two", addresses).await,
            What::DropSlice => self.delete::<EndpointSlice>(&format!("{service}-two")).await,
            What::Ports(count) => {
                let ports = json!({"spec": {"ports": ports(*count)}});
                self.patch::<Service>(service, &ports).await
            }
            What::DeleteMade(Made::Import) => self.delete::<ServiceImport>(service).await,
            What::DeleteMade(Made::Service) => self.delete::<Service>(&self.derived()).await,
            What::DeleteMade(Made::Slice) => self.delete::<EndpointSlice>(&self.some_slice().await?).await,
            What::Edit(made) => self.edit(*made).await,
            What::RenewNamespace => self.renew_namespace().await,
        }
    }

    async fn export(&self, address: &str) -> Done {
        let meta = json!({"name": self.place.service});
        self.create::<Service>(json!({"metadata": meta, "spec": {"ports": ports(1)}})).await?;
        self.create::<EndpointSlice>(self.slice("one", &[address.to_owned()])).await?;
        self.declare().await
    }

    /// Makes the ServiceExport.
    async fn declare(&self) -> Done {
        let export = json!({
            "apiVersion": "multicluster.x-k8s.io/v1alpha1", "kind": "ServiceExport",
            "metadata": {"name": self.place.service}, "spec": {},
        });
        self.create::<ServiceExport>(export).await
    }

    /// A label and an annotation on what daemons made.
    async fn edit(&self, made: Made) -> Done {
        let edit = json!({"metadata": {"labels": {"by": "a-user"}, "annotations": {"by": "a user"}}});
        match made {
            Made::Import => self.patch::<ServiceImport>(&self.place.service, &edit).await,
            Made::Service => self.patch::<Service>(&self.derived(), &edit).await,
            Made::Slice => self.patch::<EndpointSlice>(&self.some_slice().await?, &edit).await,
        }
    }

    async fn renew_namespace(&self) -> Done {
        let name = &self.place.namespace;
        let namespaces = Api::<Namespace>::all(self.cluster.client.clone());
        let deleted = namespaces.delete(name, &DeleteParams::default()).await;
        deleted.map_err(|error| error.to_string())?;
        while make_namespace(self.cluster, name).await.is_err() {
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        Ok(())
    }

    async fn put_slice(&self, which: &str, addresses: &[String]) -> Done {
        let want = self.slice(which, addresses);
        let name = format!("{}-{which}", self.place.service);
        let api = self.api::<EndpointSlice>();
        match api.replace(&name, &PostParams::default(), &object(want.clone())).await {
            Err(kube::Error::Api(status)) if status.is_not_found() => {
                self.create::<EndpointSlice>(want).await
            }
            replaced => replaced.map(drop).map_err(|error| error.to_string()),
        }
    }

    fn slice(&self, which: &str, addresses: &[String]) -> Value {
        let Place { service, .. } = self.place;
        let endpoints: Vec<_> = addresses.iter().map(|address| json!({"addresses": [address]})).collect();
        let ports: Vec<_> = PORTS.iter().map(|(name, _, port)| json!({"name": name, "port": port})).collect();
        json!({
            "metadata": {"name": format!("{service}-{which}"), "labels": {label::SERVICE_NAME: service}},
            "addressType": "IPv4",
            "endpoints": endpoints,
            "ports": ports,
        })
    }

    /// A slice that daemons made of the import.
    async fn some_slice(&self) -> Result<String, String> {
        let selector = format!("{}={}", label::MCS_SERVICE_NAME, self.place.service);
        let listed = self.api::<EndpointSlice>().list(&ListParams::default().labels(&selector)).await;
        let listed = listed.map_err(|error| error.to_string())?;
        listed.items.first().map(ResourceExt::name_any).ok_or_else(|| "nothing is imported".into())
    }

    fn derived(&self) -> String {
        format!("{}{}", label::IMPORTED_PREFIX, self.place.service)
    }

    fn api<K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>>(&self) -> Api<K> {
        self.cluster.api(&self.place.namespace)
    }

    /// Creates it unless it is there.
    async fn create<K>(&self, new: Value) -> Done
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
            + Serialize
            + DeserializeOwned
            + Clone
            + Debug,
    {
        match self.api::<K>().create(&PostParams::default(), &object(new)).await {
            Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(()),
            created => created.map(drop).map_err(|error| error.to_string()),
        }
    }

    async fn delete<K>(&self, name: &str) -> Done
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + DeserializeOwned + Clone + Debug,
    {
        let deleted = self.api::<K>().delete(name, &DeleteParams::default()).await;
        deleted.map(drop).map_err(|error| error.to_string())
    }

    async fn patch<K>(&self, name: &str, patch: &Value) -> Done
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + DeserializeOwned + Clone + Debug,
    {
        let patched = self.api::<K>().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await;
        patched.map(drop).map_err(|error| error.to_string())
    }
}

fn ports(count: usize) -> Vec<Value> {
    PORTS.iter().take(count).map(|(name, port, _)| json!({"name": name, "port": port})).collect()
}

fn object<K: DeserializeOwned>(object: Value) -> K {
    serde_json::from_value(object).unwrap()
}
