//! CRDs of the Multi-Cluster Services API that are not as this Freeport brings them: newer, older, and asked for in either version.

use api::mcs::{ServiceExport, ServiceImport};
use cli::{
    KubeContext,
    status::{StatusOptions, status},
};
use e2e::{
    cluster::Cluster,
    fixture::{SET, World, alone, shared},
    seen::{imported, right, says},
    waiting::eventually,
};
use fleet::cluster_set;
use k8s_openapi::api::{core::v1::Service, discovery::v1::EndpointSlice};
use kube::{
    Api, Resource,
    api::{ApiResource, DynamicObject, ListParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

const IMPORTS: &str = "serviceimports.multicluster.x-k8s.io";
const RELEASE: &str = "multicluster.x-k8s.io/release-version";
const MANAGED_BY: &str = "app.kubernetes.io/managed-by";

/// Objects of a kind as `v1beta1`.
fn beta<K: Resource<DynamicType = ()>>(cluster: &Cluster, namespace: &str) -> Api<DynamicObject> {
    let alpha = ApiResource::erase::<K>(&());
    let api_version = format!("{}/v1beta1", alpha.group);
    let beta = ApiResource { api_version, version: "v1beta1".into(), ..alpha };
    Api::namespaced_with(cluster.client.clone(), namespace, &beta)
}

#[e2e::test]
fn r78_an_export_written_as_v1beta1_is_read_as_v1alpha1_and_its_import_is_served_as_both() {
    shared(async |world| {
        let ns = world.namespace("versions", &["east", "west"]).await;
        let (east, west) = (world.cluster("east"), world.cluster("west"));
        east.service(&ns, "web", &[("http", 80)]).await;
        east.slice(&ns, "web", "web-1", &["10.1.0.1"], &[("http", 8080)]).await;
        let export = json!({
            "apiVersion": "multicluster.x-k8s.io/v1beta1",
            "kind": "ServiceExport",
            "metadata": {"name": "web"},
            "spec": {"exportedLabels": {"team": "shop"}},
        });
        let export = serde_json::from_value(export).unwrap();
        beta::<ServiceExport>(east, &ns).create(&PostParams::default(), &export).await.unwrap();
        let read = east.api::<ServiceExport>(&ns).get("web").await.unwrap();
        assert_eq!(read.spec.exported_labels["team"], "shop");
        eventually("exported", || says(east, (&ns, "web"), "Ready", "True", "Exported")).await;
        let told = beta::<ServiceExport>(east, &ns).get("web").await.unwrap().data["status"].take();
        let read = east.api::<ServiceExport>(&ns).get("web").await.unwrap();
        assert_eq!(told, json!(read.status));

        eventually("imported", || imported(west, &ns, "web")).await;
        let alpha = west.api::<ServiceImport>(&ns).get("web").await.unwrap();
        let beta = beta::<ServiceImport>(west, &ns).get("web").await.unwrap();
        assert_eq!((&beta.data["spec"], &beta.data["status"]), (&json!(alpha.spec), &json!(alpha.status)));
        assert_eq!(beta.metadata.labels.unwrap()["team"], "shop");
        world.release(&ns).await;
    });
}

/// Changes west's CRD of ServiceImports: its labels, and the schema of each version.
async fn change(world: &World, labels: Value, schema: impl Fn(&mut Value)) {
    let crds = world.cluster("west").crds();
    let mut versions = json!(crds.get(IMPORTS).await.unwrap().spec.versions);
    for version in versions.as_array_mut().unwrap() {
        schema(version);
    }
    let patch = json!({"metadata": {"labels": labels}, "spec": {"versions": versions}});
    crds.patch(IMPORTS, &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
}

/// Installs again, as users do; what was said of west.
async fn installed_again(world: &World) -> String {
    let mut said = String::new();
    cluster_set::set_up(&world.real().fleet, SET, &mut |line: &str| {
        said.extend(line.starts_with("west: ").then(|| format!("{line}\n")));
    })
    .await
    .unwrap();
    said
}

#[e2e::test]
fn r78_a_newer_crd_survives_installing_again_and_serves_all_the_same() {
    alone(async |world| {
        let west = world.cluster("west");
        change(world, json!({RELEASE: "v0.9.0"}), |version| {
            let spec = &mut version["schema"]["openAPIV3Schema"]["properties"]["spec"];
            spec["properties"]["later"] = json!({"type": "string"});
        })
        .await;
        let newer = west.crds().get(IMPORTS).await.unwrap();
        let said = installed_again(world).await;
        let left =
            format!("west: left CustomResourceDefinition {IMPORTS} as it is: its schema is newer (v0.9.0");
        assert!(said.contains(&left), "{said}");
        assert_eq!(west.crds().get(IMPORTS).await.unwrap().spec, newer.spec);

        let ns = world.namespace("newer-crd", &["east", "west"]).await;
        world.cluster("east").exported(&ns, "web", &["10.1.0.1"]).await;
        eventually("imported", || imported(west, &ns, "web")).await;
        world.member_says("west", ("True", "Connected")).await;
        // What we do not know survives what we write.
        let (imports, later) = (beta::<ServiceImport>(west, &ns), json!({"spec": {"later": "theirs"}}));
        imports.patch("web", &PatchParams::default(), &Patch::Merge(&later)).await.unwrap();
        let ports = json!({"spec": {"ports": [{"name": "http", "port": 81}]}});
        let _: Service = world.cluster("east").patch(&ns, "web", &ports).await;
        eventually("the port is another one, and the field is still there", || async {
            let spec = imports.get("web").await.map_err(|error| error.to_string())?.data["spec"].take();
            assert_eq!(spec["later"], "theirs", "{spec}");
            if spec["ports"][0]["port"] == 81 { Ok(()) } else { Err(spec.to_string()) }
        })
        .await;
        world.release(&ns).await;

        change(world, json!({RELEASE: "v0.5.2"}), |_| ()).await;
        let said = installed_again(world).await;
        assert!(said.contains(&format!("west: changed CustomResourceDefinition {IMPORTS}")), "{said}");
        let ours = json!(west.crds().get(IMPORTS).await.unwrap().spec);
        assert!(!ours.to_string().contains("\"later\""), "{ours}");
    });
}

/// As releases before v0.4 had it, by whoever installed that: no labels, one version, and fields missing.
async fn make_old(world: &World) {
    change(
        world,
        json!({RELEASE: null, "multicluster.x-k8s.io/crd-schema-revision": null, MANAGED_BY: null}),
        |version| {
            let fields = &mut version["schema"]["openAPIV3Schema"]["properties"];
            fields["spec"]["properties"].as_object_mut().unwrap().remove("ipFamilies");
            let status = fields["status"]["properties"].as_object_mut().unwrap();
            status.retain(|field, _| field == "clusters");
            version["served"] = json!(version["name"] == "v1alpha1");
        },
    )
    .await;
}

/// The import as far as the old CRD knows it, or what is missing.
async fn imported_without(west: &Cluster, ns: &str) -> Result<(), String> {
    let import = west.api::<ServiceImport>(ns).get_opt("web").await.unwrap().ok_or("no ServiceImport")?;
    let service = west.api::<Service>(ns).get_opt("antrea-mc-web").await.unwrap().ok_or("no Service")?;
    let slices = west.api::<EndpointSlice>(ns).list(&ListParams::default()).await.unwrap();
    let vip = service.spec.and_then(|spec| spec.cluster_ip);
    let clusters = import.status.as_ref().map(|status| status.clusters.len());
    assert!(import.spec.ip_families.is_empty() && import.status.is_none_or(|s| s.conditions.is_empty()));
    match (import.spec.ips.first() == vip.as_ref(), clusters, slices.items.len()) {
        (true, Some(1), 1) => Ok(()),
        other => Err(format!("{:?} {vip:?} {other:?}", import.spec)),
    }
}

#[e2e::test]
fn r78_an_older_crd_is_reported_and_upgraded_and_imports_work_as_far_as_they_can() {
    alone(async |world| {
        let west = world.cluster("west");
        make_old(world).await;
        let said = world.member_says("west", ("True", "CRDOutdated")).await;
        let lost = "ServiceImport lacks spec.ipFamilies, status.conditions, status.endpointSliceObjects, version v1beta1.";
        assert!(said.contains(lost), "{said}");
        let of = KubeContext {
            file: Some(world.real().fleet.kubeconfig()),
            name: Some("west".into()),
            ..KubeContext::default()
        };
        let report = status(&StatusOptions { cluster: of, cluster_set: None }).await.unwrap();
        let problem = report.problems.iter().find(|problem| problem.what.contains("ServiceImport lacks"));
        assert!(
            problem.is_some_and(|problem| problem.next.contains("freeport join")),
            "{:?}",
            report.problems
        );

        let ns = world.namespace("older-crd", &["east", "west"]).await;
        world.cluster("east").exported(&ns, "web", &["10.1.0.1"]).await;
        eventually("imported as far as it can be", || imported_without(west, &ns)).await;
        let before = world.reconciles().await["freeport-member-west"];
        tokio::time::sleep(std::time::Duration::from_secs(3)).await;
        let reconciles = world.reconciles().await["freeport-member-west"] - before;
        assert!(reconciles < 100.0, "{reconciles} in three seconds: a storm");

        let said = installed_again(world).await;
        let upgraded =
            format!("west: upgraded CustomResourceDefinition {IMPORTS}, which freeport did not install");
        assert!(said.contains(&upgraded), "{said}");
        world.member_says("west", ("True", "Connected")).await;
        eventually("what was lost is written", || async {
            let import = west.api::<ServiceImport>(&ns).get("web").await.unwrap();
            if import.spec.ip_families == ["IPv4"] { Ok(()) } else { Err(format!("{import:?}")) }
        })
        .await;
        eventually("the import is whole", || imported(west, &ns, "web")).await;
        west.exported(&ns, "web", &["10.2.0.1"]).await;
        let has = async |clusters: &[&str]| {
            eventually(&format!("exporters are {clusters:?}"), || async {
                right(imported(west, &ns, "web").await, |seen| seen.clusters.iter().eq(clusters)).map(drop)
            })
            .await;
        };
        has(&["east", "west"]).await;
        world.cluster("east").unexport(&ns, "web").await;
        has(&["west"]).await;
        let left =
            format!("west: left CustomResourceDefinition {IMPORTS} as it is: freeport did not install it");
        let said = installed_again(world).await;
        assert!(said.contains(&left), "{said}");
        world.release(&ns).await;

        change(world, json!({MANAGED_BY: "freeport"}), |_| ()).await;
        let said = installed_again(world).await;
        assert!(!said.contains(IMPORTS), "it is as it should be: {said}");
    });
}
