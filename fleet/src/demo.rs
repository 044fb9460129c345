//! What the quickstart shows: a Service exported from one cluster, and what it becomes in another.

use std::time::{Duration, Instant};

use api::{
    label,
    mcs::{ServiceExport, ServiceExportSpec, ServiceImport},
    name,
};
use k8s_openapi::api::{
    core::v1::{Namespace, Service},
    discovery::v1::EndpointSlice,
};
use kube::{
    Api, Client, Resource,
    api::{ListParams, Patch, PatchParams},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::json;
use tokio::time::sleep;

use crate::Fleet;

const NAMESPACE: &str = "shop";
const SERVICE: &str = "web";
/// Far beyond what it takes.
const LIMIT: Duration = Duration::from_secs(60);

/// Why there is nothing to show.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The fleet failed.
    #[error(transparent)]
    Fleet(#[from] crate::Error),
    /// An API server refused something.
    #[error("{0}: {1}")]
    Request(String, #[source] Box<kube::Error>),
    /// What was to be written is malformed.
    #[error("{0}")]
    Object(#[from] serde_json::Error),
    /// The import did not come.
    #[error("the import is not complete in {cluster} after {LIMIT:?}: {missing}")]
    NoImport {
        /// Where.
        cluster: String,
        /// What is missing.
        missing: String,
    },
}

/// Exports `shop/web` from the second cluster and shows what the last one makes of it.
///
/// # Errors
/// See [`Error`].
pub async fn run(fleet: &Fleet) -> Result<(), Error> {
    let clusters = fleet.clusters();
    let (Some(from), Some(to)) = (clusters.get(1), clusters.last()) else { return Ok(()) };
    let (exporter, importer) = (from.client().await?, to.client().await?);
    println!("\n4. In {}: Service {SERVICE} in Namespace {NAMESPACE}, and its ServiceExport", from.name());
    for cluster in clusters {
        let namespace: Namespace = serde_json::from_value(json!({"metadata": {"name": NAMESPACE}}))?;
        apply(Api::all(cluster.client().await?), NAMESPACE, &namespace).await?;
    }
    let service: Service = serde_json::from_value(json!({
        "metadata": {"name": SERVICE},
        "spec": {"ports": [{"name": "http", "port": 80, "targetPort": 8080}]},
    }))?;
    apply(Api::namespaced(exporter.clone(), NAMESPACE), SERVICE, &service).await?;
    println!("   no Pods run here, so its endpoints 10.1.0.7 and 10.1.0.8 are written by hand");
    let slice: EndpointSlice = serde_json::from_value(json!({
        "metadata": {"name": "web-by-hand", "labels": {label::SERVICE_NAME: SERVICE}},
        "addressType": "IPv4",
        "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
        "endpoints": [
            {"addresses": ["10.1.0.7"], "conditions": {"ready": true}},
            {"addresses": ["10.1.0.8"], "conditions": {"ready": true}},
        ],
    }))?;
    apply(Api::namespaced(exporter.clone(), NAMESPACE), "web-by-hand", &slice).await?;
    let begun = Instant::now();
    let export = ServiceExport::new(SERVICE, ServiceExportSpec::default());
    apply(Api::namespaced(exporter, NAMESPACE), SERVICE, &export).await?;
    let shown = complete(&importer, to.name()).await?;
    println!("\n5. In {}, {:.2} s later:", to.name(), begun.elapsed().as_secs_f64());
    shown.iter().for_each(|line| println!("   {line}"));
    Ok(())
}

async fn apply<K>(api: Api<K>, name: &str, object: &K) -> Result<(), Error>
where
    K: Resource<DynamicType = ()> + Clone + Serialize + DeserializeOwned + std::fmt::Debug,
{
    let params = PatchParams::apply("quickstart").force();
    let applied = api.patch(name, &params, &Patch::Apply(object)).await;
    applied.map(drop).map_err(|e| Error::Request(format!("applying {} {name}", K::kind(&())), Box::new(e)))
}

/// Waits for the import, and describes it.
async fn complete(client: &Client, cluster: &str) -> Result<Vec<String>, Error> {
    let begun = Instant::now();
    loop {
        match look(client)
            .await
            .map_err(|e| Error::Request(format!("looking into {cluster}"), Box::new(e)))?
        {
            Ok(lines) => return Ok(lines),
            Err(missing) if begun.elapsed() > LIMIT => {
                return Err(Error::NoImport { cluster: cluster.to_owned(), missing: missing.to_owned() });
            }
            Err(_) => sleep(Duration::from_millis(20)).await,
        }
    }
}

/// The import in words, or what is missing of it.
async fn look(client: &Client) -> kube::Result<Result<Vec<String>, &'static str>> {
    let derived = name::imported_service(SERVICE);
    let import = Api::<ServiceImport>::namespaced(client.clone(), NAMESPACE).get_opt(SERVICE).await?;
    let Some(import) = import else { return Ok(Err("there is no ServiceImport")) };
    let Some(ip) = import.spec.ips.first() else { return Ok(Err("the ServiceImport has no address")) };
    let service = Api::<Service>::namespaced(client.clone(), NAMESPACE).get_opt(&derived).await?;
    let Some(spec) = service.and_then(|service| service.spec) else { return Ok(Err("there is no Service")) };
    let selector = ListParams::default().labels(&format!("{}={SERVICE}", label::MCS_SERVICE_NAME));
    let slices = Api::<EndpointSlice>::namespaced(client.clone(), NAMESPACE).list(&selector).await?.items;
    if slices.is_empty() {
        return Ok(Err("there are no EndpointSlices"));
    }
    let ports = |(port, protocol): (i32, &str)| format!("{port}/{protocol}");
    let mut lines = vec![
        format!("ServiceImport  {SERVICE:16} {ip}, the address of the Service in this cluster"),
        format!(
            "Service        {derived:16} {}, port {}: what Pods here talk to",
            spec.cluster_ip.unwrap_or_default(),
            spec.ports
                .iter()
                .flatten()
                .map(|p| ports((p.port, p.protocol.as_deref().unwrap_or("TCP"))))
                .collect::<Vec<_>>()
                .join(", ")
        ),
    ];
    for slice in slices {
        let labels = slice.metadata.labels.unwrap_or_default();
        let from = labels.get(label::MCS_SOURCE_CLUSTER).cloned().unwrap_or_default();
        let addresses: Vec<_> = slice.endpoints.iter().flatten().flat_map(|e| e.addresses.clone()).collect();
        lines.push(format!("EndpointSlice  of {from:13} {}", addresses.join(", ")));
    }
    Ok(Ok(lines))
}
