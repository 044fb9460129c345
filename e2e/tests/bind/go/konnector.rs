//! Go's konnector, as far as the provider sees it (reference 2.3 to 2.5).

use std::process::{Command, Stdio};

use api::bind::{
    binding::{APIServiceBinding, ClusterBinding},
    bound_schema::BoundSchema,
    carried,
    export::{APIServiceExport, APIServiceExportRequest, APIServiceNamespace},
};
use e2e::{
    binding::{CREDENTIALS, Offered, kube_bind},
    cluster::Cluster,
    waiting::eventually,
    world::World,
};
use k8s_openapi::{
    ByteString, NamespaceResourceScope,
    api::core::v1::{Namespace, Secret},
    apimachinery::pkg::apis::meta::v1::Time,
    jiff::Timestamp,
};
use kube::{
    Api, Client, Config, Resource, ResourceExt,
    api::{DynamicObject, ListParams, Patch, PatchParams, WatchParams},
    config::{KubeConfigOptions, Kubeconfig},
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{
    Process,
    objects::{Sides, by, delete, status_down, text},
};

/// No Namespace.
const EVERYWHERE: &str = "";

/// In `east`.
pub(super) struct Konnector<'a> {
    east: &'a Cluster,
    offered: [&'a Offered; 2],
    cns: String,
    /// With the consumer's credential.
    provider: Client,
    process: Option<Process>,
}

impl<'a> Konnector<'a> {
    pub(super) async fn begin(
        world: &'a World,
        cns: &str,
        kubeconfig: &ByteString,
        offered: [&'a Offered; 2],
    ) -> Self {
        let read: Kubeconfig = serde_json::from_slice(&kubeconfig.0).unwrap();
        let config = Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await.unwrap();
        let process = kube_bind("konnector").map(|program| {
            let mut konnector = Command::new(program);
            konnector.args(["--lease-namespace", "default", "--server-address", "127.0.0.1:0"]);
            konnector.arg("--kubeconfig").arg(world.real().fleet.cluster("east").unwrap().kubeconfig());
            Process::start(konnector.stdin(Stdio::null()))
        });
        let provider = Client::try_from(config).unwrap();
        Self { east: world.cluster("east"), offered, cns: cns.to_owned(), provider, process }
    }

    /// Waits, and does meanwhile what Go's konnector does.
    pub(super) async fn until<T, F>(&self, what: &str, mut check: impl FnMut() -> F) -> T
    where
        F: Future<Output = Result<T, String>>,
    {
        eventually(what, || {
            let checked = check();
            async {
                self.pass().await?;
                checked.await
            }
        })
        .await
    }

    fn api<K>(&self) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        Api::namespaced(self.provider.clone(), &self.cns)
    }

    async fn pass(&self) -> Result<(), String> {
        if self.process.is_some() {
            return Ok(());
        }
        listens::<ClusterBinding>(&self.api()).await?;
        listens::<APIServiceExport>(&self.api()).await?;
        listens::<APIServiceNamespace>(&self.api()).await?;
        listens::<APIServiceExportRequest>(&self.api()).await?;
        listens::<Secret>(&self.api()).await?;
        self.beats().await?;
        let [near, far] = self.offered;
        for offered in self.offered {
            self.installs(offered).await?;
        }
        let owner = self.owner().await?;
        self.synchronizes(far, None, (EVERYWHERE, &owner)).await?;
        for here in self.namespaces(near).await? {
            let asked = self.asks(&here, near).await?;
            // Or the next pass finds it.
            if let Some(there) = asked {
                self.synchronizes(near, Some(&here), (&there, &Value::Null)).await?;
            }
        }
        Ok(())
    }

    /// 2.4: what it says each 2.5 minutes, it says at each pass.
    async fn beats(&self) -> Result<(), String> {
        let (all, secrets) = (self.api::<ClusterBinding>(), self.api::<Secret>());
        let binding = all.get("cluster").await.map_err(text)?;
        let secret = secrets.get(&binding.spec.kubeconfig_secret_ref.name).await.map_err(text)?;
        let own = self.east.api::<Secret>(CREDENTIALS);
        let mut mine = own.get(&self.offered[0].plural).await.map_err(text)?;
        mine.data = secret.data;
        own.replace(&mine.name_any(), &by(), &mine).await.map_err(text)?;
        let status = json!({
            "lastHeartbeatTime": Time(Timestamp::now()), "heartbeatInterval": "5m0s",
            "konnectorVersion": "v0.0.0", "consumerSecretRef": {"namespace": CREDENTIALS, "name": mine.name_any()},
            "conditions": [condition("SecretValid"), condition("ValidVersion"), condition("Ready")],
        });
        commit(&all, &binding, status).await
    }

    /// 2.5: the CRD, and what is said of it.
    async fn installs(&self, offered: &Offered) -> Result<(), String> {
        let (exports, schemas) = (self.api::<APIServiceExport>(), self.api::<BoundSchema>());
        let export = exports.get(&offered.plural).await.map_err(text)?;
        let mut schema = schemas.get(&offered.name()).await.map_err(text)?;
        let bindings = Api::<APIServiceBinding>::all(self.east.client.clone());
        let binding = bindings.get(&offered.plural).await.map_err(text)?;
        let mut crd = carried::installed(&schema.spec).map_err(text)?;
        crd.metadata.owner_references = Some(vec![binding.controller_owner_ref(&()).unwrap()]);
        let Some(there) = self.east.crds().get_opt(&offered.name()).await.map_err(text)? else {
            return self.east.crds().create(&by(), &crd).await.map(drop).map_err(text);
        };
        crd.metadata.resource_version = there.resource_version();
        let there = self.east.crds().replace(&offered.name(), &by(), &crd).await.map_err(text)?;
        let of = there.status.unwrap_or_default();
        let status = json!({"acceptedNames": of.accepted_names, "storedVersions": of.stored_versions, "conditions": [condition("Ready")]});
        schema.status = serde_json::from_value(status).map_err(text)?;
        schemas.replace_status(&offered.name(), &by(), &schema).await.map_err(text)?;
        let said = [condition("Connected"), condition("ConsumerInSync"), condition("Ready")];
        commit(&exports, &export, json!({"conditions": said})).await
    }

    /// Of objects that have no Namespace at the provider.
    async fn owner(&self) -> Result<Value, String> {
        let namespaces = Api::<Namespace>::all(self.provider.clone());
        Ok(json!([namespaces.get(&self.cns).await.map_err(text)?.owner_ref(&())]))
    }

    async fn namespaces(&self, offered: &Offered) -> Result<Vec<String>, String> {
        let all = offered.objects(self.east, None).list(&ListParams::default()).await.map_err(text)?;
        let mut namespaces: Vec<_> = all.iter().filter_map(ResourceExt::namespace).collect();
        namespaces.dedup();
        Ok(namespaces)
    }

    /// The provider's Namespace, if it says one yet.
    async fn asks(&self, namespace: &str, offered: &Offered) -> Result<Option<String>, String> {
        let all = self.api::<APIServiceNamespace>();
        if let Some(asked) = all.get_opt(namespace).await.map_err(text)? {
            return Ok(asked.status.and_then(|status| status.namespace));
        }
        let export = self.api::<APIServiceExport>().get(&offered.plural).await.map_err(text)?;
        let owner = export.controller_owner_ref(&()).unwrap();
        let ask = json!({"metadata": {"name": namespace, "ownerReferences": [owner]}, "spec": {}});
        all.create(&by(), &serde_json::from_value(ask).unwrap()).await.map_err(text)?;
        Ok(None)
    }

    /// 2.6: both directions of all objects.
    async fn synchronizes(
        &self,
        offered: &Offered,
        here: Option<&str>,
        (there, owner): (&str, &Value),
    ) -> Result<(), String> {
        let prefix = if here.is_none() { format!("{}-", self.cns) } else { String::new() };
        let ours = offered.objects(self.east, here);
        let resource = offered.api_resource();
        let theirs: Api<DynamicObject> = match there {
            EVERYWHERE => Api::all_with(self.provider.clone(), &resource),
            namespace => Api::namespaced_with(self.provider.clone(), namespace, &resource),
        };
        listens(&theirs).await?;
        for object in ours.list(&ListParams::default()).await.map_err(text)? {
            let name = format!("{prefix}{}", object.name_any());
            let copy = theirs.get_opt(&name).await.map_err(text)?;
            let sides = Sides { ours: &ours, theirs: &theirs, cns: &self.cns, owner };
            sides.spec_up(object, copy, name).await?;
        }
        for copy in theirs.list(&ListParams::default()).await.map_err(text)? {
            let name = copy.name_any();
            let Some(name) = name.strip_prefix(&prefix) else { continue };
            match ours.get_opt(name).await.map_err(text)? {
                Some(object) => status_down(&ours, object, &copy).await?,
                None => delete(&theirs, &copy).await?,
            }
        }
        Ok(())
    }
}

/// Lists and watches, as an informer does.
async fn listens<K>(api: &Api<K>) -> Result<(), String>
where
    K: Clone + std::fmt::Debug + DeserializeOwned,
{
    let list = api.list(&ListParams::default()).await.map_err(text)?;
    let from = list.metadata.resource_version.unwrap_or_default();
    api.watch(&WatchParams::default(), &from).await.map(drop).map_err(text)
}

/// A merge patch of the status, of the very object that was read.
async fn commit<K>(api: &Api<K>, object: &K, status: Value) -> Result<(), String>
where
    K: Resource<DynamicType = ()> + Clone + std::fmt::Debug + DeserializeOwned,
{
    let metadata = json!({"uid": object.uid(), "resourceVersion": object.resource_version()});
    let patch = Patch::Merge(json!({"metadata": metadata, "status": status}));
    let by = PatchParams { field_manager: by().field_manager, ..PatchParams::default() };
    api.patch_status(&object.name_any(), &by, &patch).await.map(drop).map_err(text)
}

fn condition(type_: &str) -> Value {
    json!({"type": type_, "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"})
}
