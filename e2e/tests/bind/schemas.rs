//! A BoundSchema that is gone, is wrong, or is another one, and an export that is: what is installed goes on.

use api::bind::{
    binding::APIServiceBinding,
    bound_schema::BoundSchema,
    export::APIServiceExport,
    resource::{InformerScope, Isolation},
};
use cli::objects::bind as objects;
use e2e::{
    binding::{BINDING, Offered, becomes, bind_with, binding_says, install, vanishes},
    seen::event,
    waiting::eventually,
};
use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, Patch, PatchParams},
};
use serde_json::{Value, json};

use super::{backend::Backend, konnector::unbind};

#[e2e::test]
fn without_its_schema_an_api_goes_on_as_it_is_and_another_that_has_a_wrong_one_keeps_none_up() {
    BINDING.beside(async |world| {
        let (leader, east) = (world.leader(), world.cluster("east"));
        let offered = Offered::new("schemaless", "Cluster");
        offered.install(leader).await;
        let (backend, kubeconfig) =
            Backend::begin(world, "east", &offered, (Isolation::Prefixed, InformerScope::Cluster)).await;
        let cns = backend.cluster_namespace.as_str();
        // Beside it an API whose schema is that of another one.
        let wrong = Offered::new("wrongs", "Cluster");
        let mut schema = json!(leader.api::<BoundSchema>(cns).get(&offered.name()).await.unwrap().spec);
        schema["names"] = json!({"plural": "others", "kind": "Other"});
        let _: BoundSchema =
            leader.create(cns, json!({"metadata": {"name": wrong.name()}, "spec": schema})).await;
        let had: APIServiceExport = leader.take(cns, "schemaless").await;
        let mut spec = json!(had.spec);
        spec["resources"] = json!([wrong.resource(), offered.resource()]);
        let _: APIServiceExport =
            leader.create(cns, json!({"metadata": {"name": "schemaless"}, "spec": spec})).await;

        bind_with(east, "schemaless", &offered, kubeconfig).await;
        binding_says(world, "east", "schemaless", "Connected", "False", "BoundSchemaFetchFailed").await;
        let (here, there) = (offered.objects(east, None), offered.objects(leader, None));
        let copy = |name: &str| format!("{cns}-{name}");
        for name in ["foo", "bar"] {
            offered.create(east, None, name, json!({"spec": {"size": "l"}})).await;
            becomes("is at the provider", &there, &copy(name), |_| true).await;
        }
        let crds: Vec<_> = east.crds().list(&Default::default()).await.unwrap().items;
        let brought = |name: &str| crds.iter().any(|crd| crd.name_any() == name);
        assert!(!brought(&wrong.name()) && !brought("others.provider.example.com"));

        leader.delete::<BoundSchema>(cns, &offered.name()).await;
        let bindings = Api::<APIServiceBinding>::all(east.client.clone());
        eventually("it is said of both", || async {
            let said = bindings.get("schemaless").await.unwrap().status.unwrap_or_default().conditions;
            let connected = said.into_iter().find(|said| said.type_ == "Connected").unwrap();
            let message = connected.message.clone().unwrap_or_default();
            let is_so = connected.reason.as_deref() == Some("BoundSchemaFetchFailed")
                && message.contains(&offered.name());
            if is_so { Ok(()) } else { Err(format!("{connected:?}")) }
        })
        .await;
        let status = Patch::Merge(json!({"status": {"phase": "Ready"}}));
        there.patch_status(&copy("foo"), &PatchParams::default(), &status).await.unwrap();
        becomes("has the status", &here, "foo", |object| object.data["status"]["phase"] == "Ready").await;
        here.delete("bar", &DeleteParams::default()).await.unwrap();
        vanishes(&there, &copy("bar")).await;
        vanishes(&here, "bar").await;
        unbind(world, "east", &offered).await;
        vanishes(&there, &copy("foo")).await;
        backend.release().await;
        leader.take_crd(&offered.name()).await;
    });
}

#[e2e::test]
fn objects_of_an_api_that_an_export_has_no_more_stay_and_go_when_somebody_deletes_them() {
    BINDING.beside(async |world| {
        let (leader, east) = (world.leader(), world.cluster("east"));
        let (offered, backend) = Backend::bound(world, "droppeds").await;
        let cns = backend.cluster_namespace.as_str();
        let (here, there) = (offered.objects(east, None), offered.objects(leader, None));
        for name in ["foo", "bar"] {
            offered.create(east, None, name, json!({"spec": {"size": "l"}})).await;
            becomes("is at the provider", &there, &format!("{cns}-{name}"), |_| true).await;
        }
        // The provider makes its export anew, with another API.
        let kept = Offered::new("keptones", "Cluster");
        install(east, &objects::bound(&kept.resource())).await;
        let mut schema = json!(leader.api::<BoundSchema>(cns).get(&offered.name()).await.unwrap().spec);
        schema["names"] = json!({"plural": "keptones", "kind": "Keptones"});
        let _: BoundSchema =
            leader.create(cns, json!({"metadata": {"name": kept.name()}, "spec": schema})).await;
        let had: APIServiceExport = leader.take(cns, "droppeds").await;
        let mut spec = json!(had.spec);
        spec["resources"] = json!([kept.resource()]);
        let _: APIServiceExport =
            leader.create(cns, json!({"metadata": {"name": "droppeds"}, "spec": spec})).await;
        binding_says(world, "east", "droppeds", "Connected", "False", "NotExported").await;

        here.delete("bar", &DeleteParams::default()).await.unwrap();
        vanishes(&here, "bar").await;
        eventually("an Event says it", || event(east, "default", "droppeds", "CopiesMayStay")).await;
        assert!(here.get("foo").await.unwrap().metadata.deletion_timestamp.is_none());
        unbind(world, "east", &offered).await;
        for api in [&offered, &kept] {
            assert!(east.crds().get_opt(&api.name()).await.unwrap().is_none());
        }
        assert!(there.get_opt(&format!("{cns}-foo")).await.unwrap().is_some(), "it is not ours to delete");
        backend.release().await;
        leader.take_crd(&offered.name()).await;
    });
}

#[e2e::test]
fn what_others_put_on_a_crd_stays_when_its_schema_is_another_one() {
    BINDING.beside(async |world| {
        let (leader, east) = (world.leader(), world.cluster("east"));
        let (offered, backend) = Backend::bound(world, "decorateds").await;
        let cns = backend.cluster_namespace.as_str();
        binding_says(world, "east", "decorateds", "Ready", "True", "").await;
        let crds = east.crds();
        let has = async || crds.get(&offered.name()).await.unwrap();
        let other = Api::<Namespace>::all(east.client.clone()).get("default").await.unwrap();
        let mut owners = json!(has().await.owner_references());
        let other = json!({"apiVersion": "v1", "kind": "Namespace", "name": "default", "uid": other.uid()});
        owners.as_array_mut().unwrap().push(other);
        let metadata = |finalizers: Value| {
            Patch::Merge(json!({"metadata": {"labels": {"team": "a"}, "annotations": {"note": "theirs"},
                "finalizers": finalizers, "ownerReferences": owners}}))
        };
        let theirs = metadata(json!(["example.com/held"]));
        let before = crds.patch(&offered.name(), &PatchParams::default(), &theirs).await.unwrap();

        let mut schema = json!(leader.api::<BoundSchema>(cns).get(&offered.name()).await.unwrap().spec);
        schema["versions"][0]["additionalPrinterColumns"] =
            json!([{"name": "Size", "type": "string", "jsonPath": ".spec.size"}]);
        let _: BoundSchema = leader.patch(cns, &offered.name(), &json!({ "spec": schema })).await;
        eventually("the CRD is as the schema says", || async {
            let columns = has().await.spec.versions[0].additional_printer_columns.clone();
            let is_so = columns.iter().flatten().any(|column| column.name == "Size");
            is_so.then_some(()).ok_or_else(|| format!("{columns:?}"))
        })
        .await;
        let after = has().await;
        assert_eq!(after.labels(), before.labels());
        assert_eq!(after.annotations()["note"], "theirs");
        assert_eq!(after.finalizers(), before.finalizers());
        assert_eq!(after.owner_references(), before.owner_references());
        let released = crds.patch(&offered.name(), &PatchParams::default(), &metadata(Value::Null)).await;
        // The API server's own goes with the objects.
        assert_eq!(released.unwrap().finalizers(), [""; 0]);
        unbind(world, "east", &offered).await;
        backend.release().await;
        leader.take_crd(&offered.name()).await;
    });
}
