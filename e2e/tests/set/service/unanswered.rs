//! Issue 38: that no endpoint of an export can answer is said in the cluster that exports it and in those that import it, though nothing is
//! broken.

use api::{condition::Condition, mcs::ServiceImport};
use e2e::{
    cluster::Cluster,
    fixture::shared,
    seen::{conditions, event, says},
    waiting::eventually,
};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use serde_json::json;

fn is_said(said: Option<&Condition>, status: &str, reason: &str) -> Result<(), String> {
    match said {
        Some(said) if (said.status.as_str(), said.reason.as_str()) == (status, reason) => Ok(()),
        other => Err(format!("{other:?}")),
    }
}

/// `Ok` if both objects `web`, in these clusters, say so.
async fn both_say(
    (exporter, importer): (&Cluster, &Cluster),
    ns: &str,
    status: &str,
    (of_export, of_import): (&str, &str),
) -> Result<(), String> {
    let export = conditions(exporter, ns, "web").await;
    is_said(export.get("NoReadyEndpoints"), status, of_export)?;
    let import = importer.api::<ServiceImport>(ns).get("web").await.map_err(|error| error.to_string())?;
    let import = import.status.unwrap_or_default().conditions;
    is_said(import.iter().find(|said| said.type_ == "NoReadyEndpoints"), status, of_import)
}

#[e2e::test]
fn what_has_no_endpoint_that_can_answer_says_so_where_it_is_exported_and_imported() {
    shared(async |world| {
        let ns = &world.namespace("unanswered", &["east", "west"]).await;
        let (east, west) = (world.cluster("east"), world.cluster("west"));
        let both = (east, west);
        east.service(ns, "web", &[("http", 80)]).await;
        east.export(ns, "web").await;
        eventually("none", || both_say(both, ns, "True", ("NoEndpoints", "NoEndpoints"))).await;
        for cluster in [east, west] {
            eventually("its Event", || event(cluster, ns, "web", "NoEndpoints")).await;
        }
        eventually("all else is well", || says(east, (ns, "web"), "Ready", "True", "Exported")).await;

        let names = json!({
            "metadata": {"name": "web-names", "labels": {"kubernetes.io/service-name": "web"}},
            "addressType": "FQDN", "endpoints": [{"addresses": ["a.example.com"]}],
            "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
        });
        let _: EndpointSlice = east.create(ns, names).await;
        eventually("names only", || both_say(both, ns, "True", ("OnlyFQDN", "NoEndpoints"))).await;
        east.slice(ns, "web", "web-1", &["10.1.0.1"], &[("other", 8080)]).await;
        let mismatch = ("PortMismatch", "PortMismatch");
        eventually("another port", || both_say(both, ns, "True", mismatch)).await;
        let ports = json!([{"name": "http", "port": 8080, "protocol": "TCP"}]);
        let not_ready = json!([{"addresses": ["10.1.0.1"], "conditions": {"ready": false}}]);
        let _: EndpointSlice =
            east.patch(ns, "web-1", &json!({"ports": ports, "endpoints": not_ready})).await;
        eventually("none is ready", || both_say(both, ns, "True", ("NotReady", "NotReady"))).await;
        east.replace_slice(ns, "web", "web-1", &["10.1.0.1"], &[("http", 8080)]).await;
        let ready = ("EndpointsReady", "EndpointsReady");
        eventually("one can answer", || both_say(both, ns, "False", ready)).await;
        for cluster in [east, west] {
            eventually("its Event", || event(cluster, ns, "web", "EndpointsReady")).await;
        }
        world.release(ns).await;
    });
}
