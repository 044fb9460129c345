//! Issue 14, A6: whatever somebody edits on what Freeport made is put back.

use api::{mcs::ServiceImport, resource_export::ResourceExport, resource_import::ResourceImport};
use futures::future::join_all;
use k8s_openapi::api::{
    core::v1::{ConfigMap, Service},
    discovery::v1::EndpointSlice,
};
use kube::{
    Api, Resource, ResourceExt,
    api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams},
};
use serde_json::{Value, json};

use e2e::{
    cluster::Cluster,
    fixture::{AREA, shared},
    seen::{imported, imported_slices, records, right},
    waiting::eventually,
    watched::Watched,
};

/// An object of Freeport's, as it was, and what an administrator does to it.
struct Edited {
    api: Api<DynamicObject>,
    name: String,
    before: Value,
    edits: Vec<Value>,
}

/// What has to come back; not what tells one version, or one object, of it from another.
fn content(object: &DynamicObject) -> Value {
    let mut object = serde_json::to_value(object).unwrap();
    object.as_object_mut().unwrap().remove("status");
    let metadata = object["metadata"].as_object_mut().unwrap();
    for key in ["resourceVersion", "generation", "managedFields", "uid", "creationTimestamp"] {
        metadata.remove(key);
    }
    // Which version of a record a verdict is about: that changes with each edit of the record.
    for exporter in object.pointer_mut("/spec/exporters").and_then(Value::as_array_mut).into_iter().flatten()
    {
        exporter.as_object_mut().unwrap().remove("observed");
    }
    let metadata = object["metadata"].as_object_mut().unwrap();
    for key in ["finalizers", "ownerReferences"] {
        if metadata.get(key).is_some_and(|list| *list == json!([])) {
            metadata.remove(key);
        }
    }
    object
}

impl Edited {
    async fn of<K: Resource<DynamicType = ()>>(
        cluster: &Cluster,
        namespace: &str,
        name: &str,
        edits: &[Value],
    ) -> Self {
        let kind = ApiResource::erase::<K>(&());
        let api = Api::<DynamicObject>::namespaced_with(cluster.client.clone(), namespace, &kind);
        let before = content(&api.get(name).await.unwrap());
        // Every Namespace has this one; nobody deletes it.
        let owner = eventually("an owner", || async {
            let owner = cluster.api::<ConfigMap>(namespace).get_opt("kube-root-ca.crt").await.unwrap();
            owner.and_then(|owner| owner.uid()).ok_or_else(|| "not yet".to_owned())
        });
        let owner =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "kube-root-ca.crt", "uid": owner.await});
        let held = json!({"metadata": {"finalizers": ["example.com/held"], "ownerReferences": [owner]}});
        let is_labelled = before["metadata"].get("labels").is_some();
        let unlabelled = is_labelled.then(|| json!({"metadata": {"labels": null}}));
        let edits = edits.iter().cloned().chain([held]).chain(unlabelled).collect();
        Self { api, name: name.to_owned(), before, edits }
    }

    /// Makes the edit of that number, if there is one, and waits until the object is as it was.
    async fn edit(&self, number: usize) {
        let Some(edit) = self.edits.get(number) else { return };
        // A slice has no endpoint to lead to, and goes, while the ResourceImport names another port.
        let edited = eventually(&format!("{} is there", self.name), || async {
            match self.api.patch(&self.name, &PatchParams::default(), &Patch::Merge(edit)).await {
                Err(kube::Error::Api(status)) if status.is_not_found() => Err(status.message),
                edited => Ok(edited.unwrap()),
            }
        })
        .await;
        assert_ne!(content(&edited), self.before, "{edit} changes nothing");
        self.is_back(&edit.to_string()).await;
    }

    async fn is_back(&self, what: &str) {
        eventually(&format!("{} is as it was: {what}", self.name), || async {
            let now = self.api.get_opt(&self.name).await.unwrap().ok_or("gone")?;
            if content(&now) == self.before { Ok(()) } else { Err(format!("{:#}", content(&now))) }
        })
        .await;
    }

    /// Deletes it while a finalizer holds it.
    async fn delete_held(&self) {
        let held = json!({"metadata": {"finalizers": ["example.com/held"]}});
        // Together, so that the deletion finds it held: whatever it finds, the object comes back.
        let patched =
            self.api.patch(&self.name, &PatchParams::default(), &Patch::Merge(&held)).await.unwrap();
        self.api.delete(&self.name, &DeleteParams::default()).await.unwrap();
        eventually(&format!("{} is another one", self.name), || async {
            let now = self.api.get_opt(&self.name).await.unwrap().ok_or("gone")?;
            if now.uid() == patched.uid() { Err("the same".to_owned()) } else { Ok(()) }
        })
        .await;
        self.is_back("deleted while it was held").await;
    }
}

fn labels(labels: &[(&str, Option<&str>)]) -> Value {
    json!({"metadata": {"labels": labels.iter().copied().collect::<std::collections::BTreeMap<_, _>>()}})
}

const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
const OF_IMPORT: &str = "multicluster.kubernetes.io/service-name";

fn of_service() -> Vec<Value> {
    let more = json!({
        "externalIPs": ["10.9.9.9"], "publishNotReadyAddresses": true, "sessionAffinity": "ClientIP",
        "internalTrafficPolicy": "Local",
    });
    vec![
        labels(&[(MANAGED_BY, None)]),
        labels(&[(OF_IMPORT, Some("other"))]),
        json!({"metadata": {"annotations": {"multicluster.antrea.io/imported-service": null}}}),
        json!({"spec": more}),
        json!({"spec": {"type": "NodePort"}}),
        json!({"spec": {"type": "LoadBalancer", "loadBalancerSourceRanges": ["10.0.0.0/8"]}}),
        json!({"spec": {"selector": {"app": "evil"}}}),
        json!({"spec": {"type": "ExternalName", "externalName": "example.com", "clusterIP": null, "clusterIPs": null}}),
    ]
}

fn of_import() -> Vec<Value> {
    vec![
        labels(&[(MANAGED_BY, Some("helm"))]),
        json!({"metadata": {"annotations": {"multicluster.freeport.dev/hub": "other"}}}),
        json!({"spec": {"ports": [{"name": "evil", "port": 666}], "sessionAffinity": "ClientIP"}}),
    ]
}

fn of_slice() -> Vec<Value> {
    vec![
        labels(&[("kubernetes.io/service-name", None)]),
        labels(&[("endpointslice.kubernetes.io/managed-by", Some("nobody"))]),
        labels(&[(OF_IMPORT, Some("other"))]),
        labels(&[("multicluster.kubernetes.io/source-cluster", Some("other"))]),
        labels(&[(MANAGED_BY, None), ("endpointslice.kubernetes.io/managed-by", None), (OF_IMPORT, None)]),
    ]
}

fn of_record() -> Vec<Value> {
    vec![
        labels(&[("sourceClusterID", Some("other"))]),
        labels(&[("sourceName", Some("other"))]),
        labels(&[("sourceKind", Some("ClusterInfo"))]),
        json!({"metadata": {"labels": {"sourceName": "other"}}, "spec": {"name": "other"}}),
    ]
}

fn of_resource_import() -> Vec<Value> {
    let port = json!({"name": "evil", "port": 666, "protocol": "TCP"});
    vec![
        json!({"spec": {"name": "other"}}),
        json!({"spec": {"kind": "Endpoints"}}),
        json!({"spec": {"namespace": "other", "serviceImport": {"spec": {"ports": [port]}}}}),
    ]
}

#[e2e::test]
fn a6_whatever_somebody_edits_on_what_is_ours_is_put_back() {
    shared(async |world| {
        let ns = world.namespace("edits", &["east", "west"]).await;
        let (leader, east, west) = (world.leader(), world.cluster("east"), world.cluster("west"));
        east.exported(&ns, "web", &["10.1.0.1"]).await;
        let before = eventually("imported", || async {
            right(imported(west, &ns, "web").await, |seen| seen.endpoints.len() == 1)
        })
        .await;
        let slice = imported_slices(west, &ns, "web").await.remove(0).name_any();
        let mut all = vec![
            Edited::of::<Service>(west, &ns, "antrea-mc-web", &of_service()).await,
            Edited::of::<ServiceImport>(west, &ns, "web", &of_import()).await,
            Edited::of::<EndpointSlice>(west, &ns, &slice, &of_slice()).await,
        ];
        for record in records(world, &ns, "web").await {
            all.push(match leader.api::<ResourceImport>(AREA).get_opt(&record).await.unwrap() {
                Some(_) => Edited::of::<ResourceImport>(leader, AREA, &record, &of_resource_import()).await,
                None => Edited::of::<ResourceExport>(leader, AREA, &record, &of_record()).await,
            });
        }
        assert_eq!(all.len(), 6);
        let watches =
            (Watched::<ServiceImport>::of(west, &ns).await, Watched::<EndpointSlice>::of(west, &ns).await);
        for number in 0..all.iter().map(|edited| edited.edits.len()).max().unwrap() {
            join_all(all.iter().map(|edited| edited.edit(number))).await;
        }
        watches.0.nothing_deleted("the ServiceImport");
        let ours = ListParams::default().labels("kubernetes.io/service-name=antrea-mc-web");
        eventually("no slices of a selector are left", || async {
            let slices = west.api::<EndpointSlice>(&ns).list(&ours).await.unwrap().items;
            let names: Vec<_> = slices.iter().map(ResourceExt::name_any).collect();
            if names == [slice.clone()] { Ok(()) } else { Err(format!("{names:?}")) }
        })
        .await;
        // One by one: the Service gets its address back from the ServiceImport.
        for edited in &all {
            edited.delete_held().await;
        }
        eventually("the import is as it was", || async {
            right(imported(west, &ns, "web").await, |seen| {
                (&seen.vip, &seen.ports, &seen.endpoints) == (&before.vip, &before.ports, &before.endpoints)
            })
        })
        .await;
        // What was held while it had to go is gone, too.
        east.unexport(&ns, "web").await;
        eventually("nothing is left", || e2e::seen::not_imported(west, &ns, "web")).await;
        world.release(&ns).await;
    });
}
