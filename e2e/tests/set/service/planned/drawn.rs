//! A set of exports of one Service, and a change of it in one cluster.

use api::mcs::ServiceExport;
use e2e::{cluster::Cluster, fixture::World};
use k8s_openapi::api::{core::v1::Service, discovery::v1::EndpointSlice};
use kube::api::PostParams;
use picture::plan::Change;
use serde_json::{Value, json};
use sim::random::Random;

/// Objects of one cluster.
#[derive(Clone, Debug, Default)]
struct Place {
    cluster: &'static str,
    service: Option<Value>,
    slices: Vec<Value>,
    /// Spec of the ServiceExport.
    export: Option<Value>,
    /// Somebody has the name of the derived Service.
    is_taken: bool,
}

/// A Service of the set, and how it changes.
#[derive(Clone, Debug)]
pub(super) struct Drawn {
    pub(super) name: String,
    places: Vec<Place>,
    /// The Service to apply.
    service: Option<Value>,
    export: Option<Value>,
    is_unexported: bool,
}

impl Drawn {
    pub(super) fn of(random: &mut Random, name: &str, here: &[&'static str], target: &str) -> Self {
        let places: Vec<_> = here.iter().map(|cluster| Place::of(random, name, cluster)).collect();
        let there = places.iter().find(|place| place.cluster == target).cloned().unwrap_or_default();
        let is_exported = there.export.is_some();
        let is_unexported = is_exported && random.one_in(3);
        let export = (!is_unexported && random.below(3) > 0).then(|| export(random));
        // Whether it has an address a Service does not change.
        let before = there.service.as_ref().map(is_headless);
        let service = random.one_in(2).then(|| service(random, name, before));
        Self { name: name.to_owned(), places, service, export, is_unexported }
    }

    /// The change, as `freeport plan` reads it.
    pub(super) fn changes(&self, ns: &str) -> Vec<Change> {
        let mut changes = Vec::new();
        if let Some(service) = &self.service {
            let object = json!({"metadata": {"name": self.name, "namespace": ns}, "spec": service});
            changes.push(Change::Service(serde_json::from_value(object).unwrap()));
        }
        if let Some(export) = &self.export {
            let object = json!({"metadata": {"name": self.name, "namespace": ns}, "spec": export});
            changes.push(Change::Export(serde_json::from_value(object).unwrap()));
        }
        if self.is_unexported {
            changes.push(Change::Unexport(api::ServiceName::new(ns, &self.name)));
        }
        changes
    }
}

impl Place {
    fn of(random: &mut Random, name: &str, cluster: &'static str) -> Self {
        let has_service = random.below(8) > 0;
        let slices = (0..random.below(3)).filter(|_| has_service).map(|at| slice(random, name, at)).collect();
        Self {
            cluster,
            service: has_service.then(|| service(random, name, None)),
            slices,
            export: (random.below(5) > 1).then(|| export(random)),
            is_taken: random.one_in(12),
        }
    }
}

fn is_headless(spec: &Value) -> bool {
    spec["clusterIP"] == "None"
}

/// A Service's spec. `before`: whether it was headless.
fn service(random: &mut Random, name: &str, before: Option<bool>) -> Value {
    if random.one_in(20) {
        return json!({"type": "ExternalName", "externalName": format!("{name}.example.com")});
    }
    let mut spec = json!({"ports": ports(random)});
    if before.unwrap_or_else(|| random.one_in(6)) {
        spec["clusterIP"] = json!("None");
    }
    if random.one_in(4) {
        spec["sessionAffinity"] = json!("ClientIP");
        let seconds = *random.pick(&[60, 10_800]);
        spec["sessionAffinityConfig"] = json!({"clientIP": {"timeoutSeconds": seconds}});
    }
    if random.one_in(5) {
        spec["internalTrafficPolicy"] = json!("Local");
    }
    if random.one_in(5) {
        spec["trafficDistribution"] = json!(random.pick(&["PreferSameZone", "PreferSameNode"]));
    }
    spec
}

fn ports(random: &mut Random) -> Vec<Value> {
    let all = [
        ("http", 80, "TCP"),
        ("web", 80, "TCP"),
        ("http", 8080, "TCP"),
        ("dns", 53, "UDP"),
        ("metrics", 9090, "TCP"),
    ];
    let mut ports: Vec<(&str, i32, &str)> = Vec::new();
    for _ in 0..=random.below(3) {
        let port = *random.pick(&all);
        if ports.iter().all(|(name, number, _)| *name != port.0 && *number != port.1) {
            ports.push(port);
        }
    }
    let port =
        |(name, port, protocol): (&str, i32, &str)| json!({"name": name, "port": port, "protocol": protocol});
    ports.into_iter().map(port).collect()
}

fn slice(random: &mut Random, name: &str, at: usize) -> Value {
    let endpoint = |random: &mut Random| {
        let address = format!("10.{}.{}.{}", 1 + random.below(9), random.below(200), 1 + random.below(200));
        json!({"addresses": [address], "conditions": {"ready": random.below(4) > 0}})
    };
    let endpoints: Vec<_> = (0..random.below(4)).map(|_| endpoint(random)).collect();
    let ports = [("http", 8080, "TCP"), ("web", 8081, "TCP"), ("dns", 5353, "UDP")];
    let port =
        |(name, port, protocol): (&str, i32, &str)| json!({"name": name, "port": port, "protocol": protocol});
    json!({
        "metadata": {"name": format!("{name}-{at}"), "labels": {"kubernetes.io/service-name": name}},
        "addressType": "IPv4",
        "endpoints": endpoints,
        "ports": ports.map(port),
    })
}

fn export(random: &mut Random) -> Value {
    let mut spec = json!({});
    if random.one_in(3) {
        spec["exportedLabels"] = json!({"team": random.pick(&["shop", "pay"])});
    }
    if random.one_in(5) {
        spec["exportedAnnotations"] = json!({"argocd.argoproj.io/x": "1", "note": "n"});
    }
    spec
}

/// Creates what the clusters have before the change.
pub(super) async fn create(world: &World, ns: &str, drawn: &Drawn) {
    for place in &drawn.places {
        let cluster = world.cluster(place.cluster);
        if place.is_taken {
            cluster.service(ns, &format!("antrea-mc-{}", drawn.name), &[("mine", 7)]).await;
        }
        if let Some(spec) = &place.service {
            let _: Service =
                cluster.create(ns, json!({"metadata": {"name": drawn.name}, "spec": spec})).await;
        }
        for slice in &place.slices {
            let _: EndpointSlice = cluster.create(ns, slice.clone()).await;
        }
        if let Some(spec) = &place.export {
            create_export(cluster, ns, &drawn.name, spec).await;
        }
    }
}

async fn create_export(cluster: &Cluster, ns: &str, name: &str, spec: &Value) {
    let _: ServiceExport = cluster.create(ns, json!({"metadata": {"name": name}, "spec": spec})).await;
}

/// Makes the change in the cluster.
pub(super) async fn apply(world: &World, ns: &str, target: &str, drawn: &Drawn) {
    let (cluster, name) = (world.cluster(target), drawn.name.as_str());
    if let Some(spec) = &drawn.service {
        let services = cluster.api::<Service>(ns);
        match services.get_opt(name).await.unwrap() {
            None => {
                let _: Service = cluster.create(ns, json!({"metadata": {"name": name}, "spec": spec})).await;
            }
            Some(mut there) => {
                let had = there.spec.take().unwrap_or_default();
                let mut want: k8s_openapi::api::core::v1::ServiceSpec =
                    serde_json::from_value(spec.clone()).unwrap();
                if want.type_.as_deref() != Some("ExternalName") {
                    (want.cluster_ip, want.cluster_ips) =
                        (want.cluster_ip.or(had.cluster_ip), had.cluster_ips);
                    (want.ip_families, want.ip_family_policy) = (had.ip_families, had.ip_family_policy);
                }
                there.spec = Some(want);
                services.replace(name, &PostParams::default(), &there).await.unwrap();
            }
        }
    }
    if let Some(spec) = &drawn.export {
        let exports = cluster.api::<ServiceExport>(ns);
        match exports.get_opt(name).await.unwrap() {
            None => create_export(cluster, ns, name, spec).await,
            Some(_) => {
                // The member may write its status meanwhile.
                let spec = json!({
                    "exportedLabels": spec["exportedLabels"], "exportedAnnotations": spec["exportedAnnotations"],
                });
                let _: ServiceExport = cluster.patch(ns, name, &json!({"spec": spec})).await;
            }
        }
    }
    if drawn.is_unexported {
        cluster.unexport(ns, name).await;
    }
}
