//! What was there before us is left alone, and said.

use api::mcs::{ServiceImport, ServiceImportSpec};
use k8s_openapi::api::{core::v1::Service, discovery::v1::EndpointSlice};
use kube::api::{ListParams, PostParams};

use e2e::{
    cluster::Cluster,
    fixture::shared,
    seen::{event, imported},
    waiting::{always, eventually},
};

/// The ServiceImport says that the name of its Service is taken, and has no address.
pub(crate) async fn says_taken(cluster: &Cluster, namespace: &str, import: &str) -> Result<(), String> {
    let import = cluster.api::<ServiceImport>(namespace).get_opt(import).await.unwrap();
    let import = import.ok_or("no ServiceImport")?;
    let ready = import.status.unwrap_or_default().conditions.into_iter().find(|c| c.type_ == "Ready");
    match ready {
        Some(c) if (c.status.as_str(), c.reason.as_str()) == ("False", "ServiceNameTaken") => {
            if import.spec.ips.is_empty() { Ok(()) } else { Err(format!("{:?}", import.spec)) }
        }
        other => Err(format!("{other:?}")),
    }
}

#[e2e::test]
fn r24_what_was_there_before_us_is_left_alone_and_said() {
    shared(async |world| {
        let ns = world.namespace("foreign", &["east", "west"]).await;
        let (east, west) = (world.cluster("east"), world.cluster("west"));
        let service = west.service(&ns, "antrea-mc-web", &[("mine", 7)]).await;
        let import = ServiceImport::new("api", ServiceImportSpec::default());
        let import = west.api(&ns).create(&PostParams::default(), &import).await.unwrap();
        for (service, address) in [("web", "10.1.0.1"), ("api", "10.1.0.2"), ("other", "10.1.0.3")] {
            east.exported(&ns, service, &[address]).await;
        }
        eventually("others go on", || imported(west, &ns, "other")).await;
        eventually("ServiceNameTaken", || says_taken(west, &ns, "web")).await;
        eventually("its Event", || event(west, &ns, "web", "ServiceNameTaken")).await;
        eventually("an Event on their ServiceImport", || event(west, &ns, "api", "NotOurs")).await;
        always("theirs is untouched", || async {
            let service_now = west.api::<Service>(&ns).get("antrea-mc-web").await.unwrap();
            let import_now = west.api::<ServiceImport>(&ns).get("api").await.unwrap();
            let of_theirs = ListParams::default().labels("kubernetes.io/service-name=antrea-mc-web");
            let slices = west.api::<EndpointSlice>(&ns).list(&of_theirs).await.unwrap();
            let behind = west.api::<Service>(&ns).get_opt("antrea-mc-api").await.unwrap();
            match (service_now == service, import_now == import, slices.items.len(), behind) {
                (true, true, 0, None) => Ok(()),
                other => Err(format!("{other:?}")),
            }
        })
        .await;

        west.delete::<Service>(&ns, "antrea-mc-web").await;
        west.delete::<ServiceImport>(&ns, "api").await;
        for service in ["web", "api"] {
            eventually("once they are gone", || imported(west, &ns, service)).await;
        }
        world.release(&ns).await;
    });
}
