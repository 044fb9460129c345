//! Services of a cluster that nobody exports: most of what a member is told, and nothing that it uses.

use std::time::Instant;

use e2e::waiting::{MEASURED, within};
use k8s_openapi::api::{core::v1::Service, discovery::v1::EndpointSlice};
use serde_json::{Value, json};

use super::start::{has_looked_at, member};
use crate::{
    meter::Meter,
    run::{Phase, Side},
    set::{EXPORTER, Set, each},
};

/// Endpoints of each, as Kubernetes writes them.
const ENDPOINTS: usize = 10;
/// So many of them are exported.
const EXPORTED: usize = 10;

/// The exporter's member starts beside so many Services of its cluster, until it has looked at all that is exported.
pub(crate) async fn unused(set: &Set, count: usize) -> Phase {
    let names: Vec<_> = (0..count).map(|n| format!("own-{n:05}")).collect();
    each(&names, |name| create(set, name)).await;
    set.export_all(Side::Freeport, &names[..EXPORTED.min(count)]).await;
    set.quiet().await;
    let exporter = member(EXPORTER);
    set.stop(&exporter).await;
    let meter = Meter::start(set, Side::Freeport).await;
    let begun = Instant::now();
    set.world.launch(&exporter).await;
    within(MEASURED, "all is reconciled", || has_looked_at(set, &exporter, EXPORTED)).await;
    let seconds = begun.elapsed().as_secs_f64();
    Phase {
        what: "unused".to_owned(),
        side: Side::Freeport,
        services: count,
        seconds,
        first_seconds: None,
        latency: None,
        costs: meter.stop_when_quiet().await,
    }
}

/// Headless: there are not so many addresses.
async fn create(set: &Set, name: &str) {
    let (east, ns) = (set.world.cluster(EXPORTER), Side::Freeport.namespace());
    let labels = json!({"app": name, "team": "a"});
    let service = json!({"metadata": {"name": name, "labels": labels},
        "spec": {"clusterIP": "None", "selector": {"app": name}, "ports": [{"name": "http", "port": 80}]}});
    let _: Service = east.create(ns, service).await;
    let endpoints: Value = (0..ENDPOINTS).map(|n| endpoint(ns, name, n)).collect();
    let labels = json!({"app": name, "kubernetes.io/service-name": name,
        "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io"});
    let slice = json!({"metadata": {"name": format!("{name}-x7k2p"), "labels": labels}, "addressType": "IPv4",
        "endpoints": endpoints, "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}]});
    let _: EndpointSlice = east.create(ns, slice).await;
}

fn endpoint(ns: &str, service: &str, nth: usize) -> Value {
    let seed = service
        .bytes()
        .fold(nth as u64 + 1, |sum, byte| sum.wrapping_mul(0x0100_0000_01b3) ^ u64::from(byte));
    let seed = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let pod = format!("{service}-5d4c8b7f9-{:05x}", seed & 0xf_ffff);
    let uid = format!(
        "{:08x}-{:04x}-4{:03x}-9{:03x}-{:012x}",
        seed >> 32,
        seed >> 16 & 0xffff,
        seed & 0xfff,
        seed >> 8 & 0xfff,
        seed >> 16
    );
    json!({
        "addresses": [format!("10.{}.{}.{}", seed >> 40 & 0x7f, seed >> 32 & 0xff, seed >> 24 & 0xff)],
        "conditions": {"ready": true, "serving": true, "terminating": false},
        "nodeName": format!("node-{}", seed % 300), "zone": "zone-a",
        "targetRef": {"kind": "Pod", "namespace": ns, "name": pod, "uid": uid},
    })
}
