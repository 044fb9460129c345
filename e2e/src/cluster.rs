//! An administrator in one cluster, and what users do there.

use api::{
    mcs::{ServiceExport, ServiceExportSpec},
    view::Lenient,
};
use k8s_openapi::{
    ClusterResourceScope, NamespaceResourceScope,
    api::{
        core::v1::{Namespace, Service},
        discovery::v1::EndpointSlice,
    },
    jiff::Timestamp,
};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
    core::Request,
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use crate::waiting::{NAMESPACE_GONE, within};

/// Creates an object. A client sends again what the API server did not answer in time, and the first request may have arrived.
pub async fn created<K>(api: &Api<K>, object: &K) -> Result<K, kube::Error>
where
    K: Resource + Serialize + DeserializeOwned + Clone + std::fmt::Debug,
{
    let begun = Timestamp::now().as_second();
    match api.create(&PostParams::default(), object).await {
        Err(kube::Error::Api(status)) if status.is_already_exists() => {
            let there = api.get(&object.name_any()).await?;
            let is_ours = there.creation_timestamp().is_some_and(|at| at.0.as_second() >= begun);
            if is_ours { Ok(there) } else { Err(kube::Error::Api(status)) }
        }
        created => created,
    }
}

/// An administrator in one cluster.
pub struct Cluster {
    pub name: String,
    pub client: Client,
}

impl Cluster {
    pub fn api<K>(&self, namespace: &str) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client.clone(), namespace)
    }

    /// The objects of a kind in a Namespace, but for those that nest deeper than can be decoded.
    pub async fn listed<K>(&self, namespace: &str) -> Result<Vec<Value>, String>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        #[derive(Deserialize)]
        struct Listed {
            items: Vec<Lenient<Value>>,
        }
        let request = Request::new(K::url_path(&(), Some(namespace))).list(&ListParams::default());
        let request = request.map_err(|error| error.to_string())?;
        let listed: Listed = self.client.request(request).await.map_err(|error| error.to_string())?;
        Ok(listed.items.into_iter().filter_map(|item| item.0.ok()).collect())
    }

    pub async fn create<K>(&self, namespace: &str, object: Value) -> K
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
            + Serialize
            + DeserializeOwned
            + Clone
            + std::fmt::Debug,
    {
        let object = serde_json::from_value(object).unwrap();
        created(&self.api::<K>(namespace), &object).await.unwrap()
    }

    pub async fn create_cluster_wide<K>(&self, object: Value) -> K
    where
        K: Resource<Scope = ClusterResourceScope, DynamicType = ()>
            + Serialize
            + DeserializeOwned
            + Clone
            + std::fmt::Debug,
    {
        let object = serde_json::from_value(object).unwrap();
        created(&Api::<K>::all(self.client.clone()), &object).await.unwrap()
    }

    pub async fn patch<K>(&self, namespace: &str, name: &str, patch: &Value) -> K
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
            + DeserializeOwned
            + Clone
            + std::fmt::Debug,
    {
        self.api(namespace).patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap()
    }

    pub async fn create_namespace(&self, name: &str) {
        let namespace: Namespace = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
        created(&Api::all(self.client.clone()), &namespace).await.unwrap();
    }

    /// Deletes the Namespace and waits until it is gone.
    pub async fn delete_namespace(&self, name: &str) {
        let namespaces = Api::<Namespace>::all(self.client.clone());
        namespaces.delete(name, &DeleteParams::default()).await.unwrap();
        within(NAMESPACE_GONE, &format!("Namespace {name} of {} is gone", self.name), || async {
            match namespaces.get_opt(name).await.unwrap() {
                None => Ok(()),
                Some(namespace) => Err(format!("{:?}", namespace.status)),
            }
        })
        .await;
    }

    /// Deletes the Namespace if it is there, without waiting.
    pub async fn release_namespace(&self, name: &str) {
        let deleted = Api::<Namespace>::all(self.client.clone()).delete(name, &DeleteParams::default()).await;
        match deleted {
            Err(kube::Error::Api(status)) if status.is_not_found() => {}
            deleted => drop(deleted.unwrap()),
        }
    }

    /// Namespaces that are being deleted.
    ///
    /// # Errors
    /// What the API server says, or that it closed a connection which was idle.
    pub async fn namespaces_going(&self) -> Result<Vec<String>, String> {
        let namespaces = Api::<Namespace>::all(self.client.clone()).list(&ListParams::default()).await;
        let going = namespaces
            .map_err(|error| format!("{}: {error}", self.name))?
            .into_iter()
            .filter(|namespace| namespace.metadata.deletion_timestamp.is_some());
        Ok(going.map(|namespace| format!("{} of {}", namespace.name_any(), self.name)).collect())
    }

    /// A Service without selector and ports `(name, number)`: without nodes, tests write the endpoints.
    pub async fn service(&self, namespace: &str, name: &str, ports: &[(&str, i32)]) -> Service {
        let ports: Vec<_> = ports.iter().map(|(name, port)| json!({"name": name, "port": port})).collect();
        self.create(namespace, json!({"metadata": {"name": name}, "spec": {"ports": ports}})).await
    }

    /// Gives a Service these IP families, of which the first has to be the one it has.
    pub async fn change_families(&self, namespace: &str, service: &str, families: &[&str]) {
        let policy = if families.len() > 1 { "RequireDualStack" } else { "SingleStack" };
        let spec = json!({"spec": {"ipFamilyPolicy": policy, "ipFamilies": families}});
        let _: Service = self.patch(namespace, service, &spec).await;
    }

    /// A slice of the Service: ready endpoints, and ports `(name, number)`.
    pub async fn slice(
        &self,
        namespace: &str,
        service: &str,
        name: &str,
        addresses: &[&str],
        ports: &[(&str, i32)],
    ) {
        let _: EndpointSlice = self.create(namespace, slice(service, name, addresses, ports)).await;
    }

    pub async fn replace_slice(
        &self,
        namespace: &str,
        service: &str,
        name: &str,
        addresses: &[&str],
        ports: &[(&str, i32)],
    ) {
        let object: EndpointSlice = serde_json::from_value(slice(service, name, addresses, ports)).unwrap();
        self.api(namespace).replace(name, &PostParams::default(), &object).await.unwrap();
    }

    pub async fn export(&self, namespace: &str, name: &str) -> ServiceExport {
        let export = ServiceExport::new(name, ServiceExportSpec::default());
        self.api(namespace).create(&PostParams::default(), &export).await.unwrap()
    }

    pub async fn delete<K>(&self, namespace: &str, name: &str)
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
            + DeserializeOwned
            + Clone
            + std::fmt::Debug,
    {
        self.api::<K>(namespace).delete(name, &DeleteParams::default()).await.unwrap();
    }

    /// Deletes it; as it was.
    pub async fn take<K>(&self, namespace: &str, name: &str) -> K
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
            + DeserializeOwned
            + Clone
            + std::fmt::Debug,
    {
        let had = self.api::<K>(namespace).get(name).await.unwrap();
        self.delete::<K>(namespace, name).await;
        had
    }

    /// Creates what [`Cluster::take`] took, as another object.
    pub async fn put_back<K>(&self, had: K)
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
            + Serialize
            + DeserializeOwned
            + Clone
            + std::fmt::Debug,
    {
        let namespace = had.namespace().unwrap();
        self.api::<K>(&namespace).create(&PostParams::default(), &as_new(had)).await.unwrap();
    }

    pub async fn unexport(&self, namespace: &str, name: &str) {
        self.delete::<ServiceExport>(namespace, name).await;
    }

    /// Service `name` on port 80 with one slice of these endpoints on 8080, exported.
    pub async fn exported(&self, namespace: &str, name: &str, addresses: &[&str]) {
        self.service(namespace, name, &[("http", 80)]).await;
        self.slice(namespace, name, &format!("{name}-1"), addresses, &[("http", 8080)]).await;
        self.export(namespace, name).await;
    }
}

/// The same, but not yet created.
pub(crate) fn as_new<K: Resource>(mut object: K) -> K {
    let meta = object.meta_mut();
    (meta.uid, meta.resource_version, meta.creation_timestamp) = (None, None, None);
    object
}

fn slice(service: &str, name: &str, addresses: &[&str], ports: &[(&str, i32)]) -> Value {
    let endpoint = |a: &&str| json!({"addresses": [a], "conditions": {"ready": true}, "nodeName": "n1"});
    let port = |(name, port): &(&str, i32)| json!({"name": name, "port": port, "protocol": "TCP"});
    json!({
        "metadata": {"name": name, "labels": {"kubernetes.io/service-name": service}},
        "addressType": "IPv4",
        "endpoints": addresses.iter().map(endpoint).collect::<Vec<_>>(),
        "ports": ports.iter().map(port).collect::<Vec<_>>(),
    })
}
