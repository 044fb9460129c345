//! The demonstrations of the quickstart: a Service is exported from one cluster and imported in another; [`bind`] is the other one.

pub mod bind;
mod import;
mod pods;

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use api::{
    label,
    mcs::{ServiceExport, ServiceExportSpec},
};
use k8s_openapi::api::{
    core::v1::{Namespace, Service},
    discovery::v1::EndpointSlice,
};
use kube::{
    Api, Client, Resource,
    api::{DeleteParams, Patch, PatchParams},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use tokio::time::sleep;

use self::import::Import;
use crate::{Cluster, Families, Family, Fleet};

/// Namespace of the exported Service, in every cluster.
pub const NAMESPACE: &str = "shop";
/// The exported Service.
pub const SERVICE: &str = "web";
/// Its endpoints in clusters without nodes: unused addresses, written by hand.
const IPV4_ADDRESSES: [&str; 2] = ["10.1.0.7", "10.1.0.8"];
const IPV6_ADDRESSES: [&str; 2] = ["fd00:1::7", "fd00:1::8"];
const SLICE: &str = "web-by-hand";
/// Much longer than an export takes.
const LIMIT: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(20);
/// How often a wait reports what is missing.
const SAY: Duration = Duration::from_secs(5);

/// Why the demonstration failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The fleet failed.
    #[error(transparent)]
    Fleet(#[from] crate::Error),
    /// Provider, consumer or their daemons could not be set up.
    #[error(transparent)]
    Binding(#[from] Box<crate::cluster_set::Error>),
    /// An API server refused something.
    #[error("{0}: {1}")]
    Request(String, #[source] Box<kube::Error>),
    /// What was to be written is malformed.
    #[error("{0}")]
    Object(#[from] serde_json::Error),
    /// What was waited for did not come, or did not go.
    #[error("{cluster}, after {LIMIT:?}: {state}")]
    Late {
        /// Where.
        cluster: String,
        /// What is not as it should be.
        state: String,
    },
}

/// The exporting and the importing cluster: the second, and the last of the others that can reach it.
pub fn roles(fleet: &Fleet) -> Option<(&Cluster, &Cluster)> {
    let exporter = fleet.clusters().get(1)?;
    let can_import = |other: &&Cluster| other.name() != exporter.name() && family(exporter, other).is_some();
    Some((exporter, fleet.clusters().iter().rfind(can_import)?))
}

/// Of the addresses by which a cluster reaches another's Pods.
fn family(exporter: &Cluster, importer: &Cluster) -> Option<Family> {
    importer.families().shared_with(exporter.families())
}

/// Exports `shop/web` from one cluster and prints what another imports.
///
/// # Errors
/// See [`Error`].
pub async fn run(fleet: &Fleet) -> Result<(), Error> {
    let who = roles(fleet).and_then(|(from, to)| Some((from, to, family(from, to)?)));
    let Some((from, to, family)) = who else {
        println!("\n4. Nothing is exported: the second cluster has no IP family in common with another");
        return Ok(());
    };
    let (exporter, importer) = (from.client().await?, to.client().await?);
    println!(
        "\n4. In {}: a Service `{SERVICE}` in Namespace `{NAMESPACE}`, and its ServiceExport",
        from.name()
    );
    withdraw(&exporter, &importer, from.name(), to.name()).await?;
    for cluster in fleet.clusters() {
        let namespace: Namespace = serde_json::from_value(json!({"metadata": {"name": NAMESPACE}}))?;
        apply(Api::all(cluster.client().await?), NAMESPACE, &namespace).await?;
    }
    println!("   Namespace      {NAMESPACE:13} in every cluster: the same name is the same Namespace");
    let addresses = if from.has_node() {
        let servers = pods::serve(&exporter, from, family).await?;
        servers.into_values().collect()
    } else {
        by_hand(&exporter, from, family).await?
    };

    import::may_begin(&importer).await.map_err(at(to.name()))?;
    let begun = Instant::now();
    let export = ServiceExport::new(SERVICE, ServiceExportSpec::default());
    apply(Api::namespaced(exporter.clone(), NAMESPACE), SERVICE, &export).await?;
    println!("   ServiceExport  {SERVICE:13} this is all a user has to write");
    let import = until(to.name(), async || import::look(&importer, from.name(), &addresses).await).await?;
    println!("\n5. In {}, {:.2} s after the ServiceExport:", to.name(), begun.elapsed().as_secs_f64());
    show(&import);
    if from.has_node() {
        pods::ask(&exporter, &importer, [from.name(), to.name()], family, &import.ip).await?;
    }
    Ok(())
}

/// Creates a Service with unused addresses as endpoints. Returns the addresses.
async fn by_hand(exporter: &Client, from: &Cluster, family: Family) -> Result<BTreeSet<String>, Error> {
    let addresses = match family {
        Family::Ipv4 => IPV4_ADDRESSES,
        Family::Ipv6 => IPV6_ADDRESSES,
    };
    let spec = json!({"ports": [{"name": "http", "port": 80, "targetPort": 8080}]});
    service(exporter, from, spec).await?;
    let ready = |address| json!({"addresses": [address], "conditions": {"ready": true}});
    let slice: EndpointSlice = serde_json::from_value(json!({
        "metadata": {"name": SLICE, "labels": {label::SERVICE_NAME: SERVICE}},
        "addressType": family.to_string(),
        "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
        "endpoints": addresses.map(ready),
    }))?;
    apply(Api::namespaced(exporter.clone(), NAMESPACE), SLICE, &slice).await?;
    println!(
        "   EndpointSlice  {SLICE:13} {} port 8080: written by hand, because no Pods run",
        addresses.join(", ")
    );
    Ok(addresses.map(str::to_owned).into())
}

async fn service(exporter: &Client, from: &Cluster, mut spec: Value) -> Result<(), Error> {
    if from.families() == Families::Dual {
        spec["ipFamilyPolicy"] = json!("RequireDualStack");
    }
    let service: Service = serde_json::from_value(json!({"metadata": {"name": SERVICE}, "spec": spec}))?;
    let service = apply(Api::namespaced(exporter.clone(), NAMESPACE), SERVICE, &service).await?;
    let ips = service.spec.and_then(|spec| spec.cluster_ips).unwrap_or_default().join(", ");
    println!("   Service        {SERVICE:13} {ips} port 80, for {} alone", from.name());
    Ok(())
}

fn show(import: &Import) {
    let Import { ip, ports, service, slices } = import;
    println!("   ServiceImport  {SERVICE:13} the Service as the whole set sees it, here at {ip}");
    println!("   Service        {service:13} {ip} port {ports}: what Pods of this cluster talk to");
    for slice in slices {
        println!("   EndpointSlice  {:13} {}, labelled with where they are:", "", slice.addresses);
        println!("   {:14} {:13} {}={}", "", "", label::MCS_SOURCE_CLUSTER, slice.cluster);
    }
}

/// Withdraws the export of an earlier run, so that the next measurement is of a new export.
async fn withdraw(exporter: &Client, importer: &Client, from: &str, to: &str) -> Result<(), Error> {
    let exports = Api::<ServiceExport>::namespaced(exporter.clone(), NAMESPACE);
    if exports.get_opt(SERVICE).await.map_err(at(from))?.is_none() {
        return Ok(());
    }
    let begun = Instant::now();
    match exports.delete(SERVICE, &DeleteParams::default()).await {
        Err(error) if !matches!(&error, kube::Error::Api(status) if status.code == 404) => {
            return Err(at(from)(error));
        }
        _ => {}
    }
    until(to, async || import::gone(importer, from).await).await?;
    let seconds = begun.elapsed().as_secs_f64();
    println!("   the export of an earlier run is taken back, and gone from {to} after {seconds:.2} s");
    Ok(())
}

/// The path on the importing cluster's API server that makes its Pod send requests to the Service by name.
pub fn question() -> String {
    pods::question()
}

async fn apply<K>(api: Api<K>, name: &str, object: &K) -> Result<K, Error>
where
    K: Resource<DynamicType = ()> + Clone + Serialize + DeserializeOwned + std::fmt::Debug,
{
    let params = PatchParams::apply("quickstart").force();
    let applied = api.patch(name, &params, &Patch::Apply(object)).await;
    applied.map_err(|e| Error::Request(format!("applying {} {name}", K::kind(&())), Box::new(e)))
}

/// Polls until there is a result. Now and then prints what is missing.
async fn until<T>(
    cluster: &str,
    look: impl AsyncFn() -> kube::Result<Result<T, String>>,
) -> Result<T, Error> {
    let (begun, mut said) = (Instant::now(), Instant::now());
    loop {
        let seen = match look().await {
            // An error of the API server or of a server behind it is temporary.
            Err(kube::Error::Api(status)) if status.code >= 500 => Err(status.message),
            seen => seen.map_err(at(cluster))?,
        };
        match seen {
            Ok(seen) => return Ok(seen),
            Err(state) if begun.elapsed() > LIMIT => {
                return Err(Error::Late { cluster: cluster.to_owned(), state });
            }
            Err(state) => {
                if said.elapsed() > SAY {
                    println!("   {cluster}: waiting: {state}");
                    said = Instant::now();
                }
                sleep(POLL).await;
            }
        }
    }
}

/// For `map_err` of a request to this cluster.
fn at(cluster: &str) -> impl FnOnce(kube::Error) -> Error {
    move |error| Error::Request(format!("looking into {cluster}"), Box::new(error))
}
