//! A leader of Antrea's, played, in a Common Area of its own in the leader's cluster: it merges what members write, in its way, and
//! gives members the rights that its manifests give.

use std::{collections::BTreeMap, time::Duration};

use api::{
    announce::MemberClusterAnnounce, antrea, label, resource_export::ResourceExport,
    resource_import::ResourceImport,
};
use k8s_openapi::api::{
    core::v1::ServiceAccount,
    rbac::v1::{Role, RoleBinding},
};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::{antrea::AntreaMember, fixture::World};

/// Its Common Area.
pub const AREA: &str = "antrea-multicluster";

pub struct AntreaLeader {
    world: &'static World,
    process: JoinSet<()>,
}

impl AntreaLeader {
    /// Makes the Common Area, with a way in for member `id`, and leads until it is ended.
    pub async fn begin(world: &'static World, id: &str) -> Self {
        let leader = world.leader();
        leader.create_namespace(AREA).await;
        let account = json!({"metadata": {"name": id, "annotations": {label::CLUSTER_ID: id}}});
        leader.create::<ServiceAccount>(AREA, account).await;
        leader.create::<Role>(AREA, role()).await;
        let binding = json!({
            "metadata": {"name": id},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "antrea-mc-member-cluster-role"},
            "subjects": [{"kind": "ServiceAccount", "name": id, "namespace": AREA}],
        });
        leader.create::<RoleBinding>(AREA, binding).await;
        let mut leader = Self { world, process: JoinSet::new() };
        leader.resume();
        leader
    }

    /// Leads again.
    pub fn resume(&mut self) {
        let world = self.world;
        self.process.spawn(async move {
            loop {
                // What changed under it is tried again, as everything is.
                drop(lead(world).await);
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        });
    }

    /// A member of its that runs Antrea's controllers.
    pub fn member(&self, id: &str) -> AntreaMember {
        AntreaMember::within(self.world, self.world.leader().client.clone(), AREA, id)
    }

    /// Stops leading; what is in the Common Area stays.
    pub async fn stop(&mut self) {
        self.process.shutdown().await;
    }

    pub async fn end(mut self) {
        self.stop().await;
        self.world.leader().delete_namespace(AREA).await;
    }
}

/// What its manifests let a member do.
fn role() -> Value {
    let group = "multicluster.crd.antrea.io";
    let all = ["create", "delete", "get", "list", "patch", "update", "watch"];
    let rule = |group: &str, resource: &str, verbs: &[&str]| json!({"apiGroups": [group], "resources": [resource], "verbs": verbs});
    json!({
        "metadata": {"name": "antrea-mc-member-cluster-role"},
        "rules": [
            rule("", "events", &["create"]),
            rule(group, "memberclusterannounces", &all),
            rule(group, "resourceexports", &all),
            rule(group, "resourceexports/status", &["get", "patch", "update"]),
            rule(group, "resourceimports", &["get", "list", "watch"]),
            rule(group, "resourceimports/status", &["get", "patch", "update"]),
        ],
    })
}

/// One look at everything.
async fn lead(world: &World) -> kube::Result<()> {
    let client = &world.leader().client;
    let (exports, imports) = (
        Api::<ResourceExport>::namespaced(client.clone(), AREA),
        Api::<ResourceImport>::namespaced(client.clone(), AREA),
    );
    let announces = Api::<MemberClusterAnnounce>::namespaced(client.clone(), AREA);
    let all = exports.list(&ListParams::default()).await?.items;
    let mut wanted = BTreeMap::<String, Value>::new();
    let (going, live): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|record| record.metadata.deletion_timestamp.is_some());
    live.iter().for_each(|record| merge(&mut wanted, record));
    for import in imports.list(&ListParams::default()).await? {
        if !wanted.contains_key(&import.name_any()) {
            imports.delete(&import.name_any(), &DeleteParams::default()).await?;
        }
    }
    for (name, spec) in wanted {
        let import = json!({
            "apiVersion": "multicluster.crd.antrea.io/v1alpha1", "kind": "ResourceImport",
            "metadata": {"name": name}, "spec": spec,
        });
        let mut import: ResourceImport = serde_json::from_value(import).unwrap();
        match imports.get_opt(&name).await? {
            None => drop(imports.create(&PostParams::default(), &import).await?),
            Some(had) if had.spec == import.spec => {}
            Some(had) => {
                import.metadata.resource_version = had.metadata.resource_version;
                imports.replace(&name, &PostParams::default(), &import).await?;
            }
        }
    }
    let none = json!({"metadata": {"finalizers": null}});
    for record in going {
        exports.patch(&record.name_any(), &PatchParams::default(), &Patch::Merge(&none)).await?;
    }
    for record in live.iter().filter(|record| record.status.is_none()) {
        let succeeded = json!({"status": {"conditions": [{"type": "Succeeded", "status": "True"}]}});
        exports.patch_status(&record.name_any(), &PatchParams::default(), &Patch::Merge(&succeeded)).await?;
    }
    for announce in announces.list(&ListParams::default()).await? {
        let (name, id) = (announce.name_any(), announce.spec.cluster_id.clone().unwrap_or_default());
        let held = json!({"metadata": {"finalizers": [antrea::announce_finalizer(&id)]}});
        if announce.metadata.deletion_timestamp.is_none() {
            if announce.finalizers().is_empty() {
                announces.patch(&name, &PatchParams::default(), &Patch::Merge(&held)).await?;
            }
            continue;
        }
        for record in live.iter().filter(|record| record.spec.cluster_id.as_deref() == Some(&id)) {
            exports.delete(&record.name_any(), &DeleteParams::default()).await?;
        }
        announces.patch(&name, &PatchParams::default(), &Patch::Merge(&none)).await?;
    }
    Ok(())
}

/// Takes a record into what is to be imported: of Services the ports of the first, of endpoints all.
fn merge(wanted: &mut BTreeMap<String, Value>, record: &ResourceExport) {
    let spec = serde_json::to_value(&record.spec).unwrap();
    let kind = spec["kind"].as_str().unwrap();
    let (namespace, name) = (spec["namespace"].as_str().unwrap(), spec["name"].as_str().unwrap());
    let import = format!("{namespace}-{name}-{}", kind.to_lowercase());
    if kind == "Service" {
        let ports = &spec["service"]["serviceSpec"]["ports"];
        let port = |p: &Value| json!({"name": p["name"], "port": p["port"], "protocol": p["protocol"]});
        let ports: Vec<_> = ports.as_array().unwrap().iter().map(port).collect();
        wanted.entry(import).or_insert(json!({
            "kind": "ServiceImport", "namespace": namespace, "name": name,
            "serviceImport": {"metadata": {}, "spec": {"type": "ClusterSetIP", "ports": ports}, "status": {}},
        }));
        return;
    }
    let all = wanted.entry(import).or_insert(
        json!({"kind": "Endpoints", "namespace": namespace, "name": name, "endpoints": {"subsets": []}}),
    );
    let subsets = spec["endpoints"]["subsets"].as_array().cloned().unwrap_or_default();
    all["endpoints"]["subsets"].as_array_mut().unwrap().extend(subsets);
}
