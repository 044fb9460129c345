//! A member that writes core Endpoints beside the slices, for data planes that read nothing else.

use std::collections::BTreeSet;

use k8s_openapi::api::{core::v1::Endpoints, discovery::v1::EndpointSlice};
use kube::{ResourceExt, api::ListParams};
use serde_json::json;

use e2e::{
    cluster::Cluster,
    daemon::End,
    fixture::{CLUSTERS, alone},
    seen::{imported, not_imported, right},
    waiting::eventually,
};

const WEST: &str = "freeport-member-west";

/// Addresses of the Endpoints of an import; none if there are no Endpoints.
async fn addresses(cluster: &Cluster, namespace: &str, service: &str) -> Option<BTreeSet<String>> {
    let name = format!("antrea-mc-{service}");
    let found = cluster.api::<Endpoints>(namespace).get_opt(&name).await.unwrap()?;
    assert_eq!(found.labels()["endpointslice.kubernetes.io/skip-mirror"], "true");
    let subsets = found.subsets.into_iter().flatten();
    let port = |subset: &k8s_openapi::api::core::v1::EndpointSubset| {
        subset.ports.iter().flatten().next().unwrap().port
    };
    let subsets = subsets.inspect(|subset| assert_eq!(port(subset), 8080));
    Some(
        subsets.flat_map(|subset| subset.addresses.into_iter().flatten()).map(|address| address.ip).collect(),
    )
}

async fn until(cluster: &Cluster, namespace: &str, service: &str, wanted: &[&str]) {
    let wanted: BTreeSet<String> = wanted.iter().map(|&ip| ip.to_owned()).collect();
    eventually(&format!("Endpoints of {service}"), || async {
        match addresses(cluster, namespace, service).await {
            Some(seen) if seen == wanted => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
}

async fn until_none(cluster: &Cluster, namespace: &str, service: &str) {
    eventually(&format!("no Endpoints of {service}"), || async {
        addresses(cluster, namespace, service).await.map_or(Ok(()), |seen| Err(format!("{seen:?}")))
    })
    .await;
}

#[e2e::test(real)]
fn endpoints_objects_follow_the_slices_and_go_with_the_flag() {
    alone(async |world| {
        let ns = &world.namespace("endpoints-objects", &CLUSTERS).await;
        let (east, west) = (world.cluster("east"), world.cluster("west"));
        for service in ["web", "api"] {
            east.exported(ns, service, &["10.1.0.1"]).await;
            eventually("imported", || imported(west, ns, service)).await;
        }
        assert_eq!(addresses(west, ns, "web").await, None);
        world.end(WEST, End::Stop).await;
        world.real().fleet.run(world.daemon(WEST).spec.clone().args(["--endpoints-objects"])).await.unwrap();
        for service in ["web", "api"] {
            until(west, ns, service, &["10.1.0.1"]).await;
        }
        east.replace_slice(ns, "web", "web-1", &["10.1.0.2", "10.1.0.3"], &[("http", 8080)]).await;
        until(west, ns, "web", &["10.1.0.2", "10.1.0.3"]).await;
        let slices = west.api::<EndpointSlice>(ns);
        let mirrored = ListParams::default().labels("endpointslice.kubernetes.io/managed-by!=freeport");
        assert_eq!(slices.list(&mirrored).await.unwrap().items.len(), 0, "Kubernetes makes slices of them");

        // Whatever somebody does to them is put back.
        let nothing =
            json!({"metadata": {"labels": {"app.kubernetes.io/managed-by": null}}, "subsets": null});
        let _: Endpoints = west.patch(ns, "antrea-mc-web", &nothing).await;
        until(west, ns, "web", &["10.1.0.2", "10.1.0.3"]).await;
        west.delete::<Endpoints>(ns, "antrea-mc-web").await;
        until(west, ns, "web", &["10.1.0.2", "10.1.0.3"]).await;

        east.unexport(ns, "api").await;
        eventually("not imported", || not_imported(west, ns, "api")).await;
        until_none(west, ns, "api").await;

        world.end(WEST, End::Stop).await;
        world.start(WEST).await;
        until_none(west, ns, "web").await;
        eventually("the slices stay", || async {
            right(imported(west, ns, "web").await, |seen| seen.addresses("east").len() == 2)
        })
        .await;
        east.unexport(ns, "web").await;
        world.release(ns).await;
    });
}
