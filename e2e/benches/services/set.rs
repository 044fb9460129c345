//! A ClusterSet of three clusters, and what its users do.

use std::sync::Arc;

use api::mcs::ServiceExport;
use e2e::{
    daemon::End,
    fixture::{AREA, SET},
    waiting::{MEASURED, within},
    world::World,
};
use fleet::cluster_set::{self, Composition};
use futures::{StreamExt, future::join_all, stream};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::ResourceExt;
use serde_json::{Value, json};

use crate::{endpoints, meter, run::Side};

pub(crate) const EXPORTER: &str = "east";
/// Who has the Namespace: a cluster imports what it exports, too. The leader's member has nothing to import.
pub(crate) const IMPORTERS: [&str; 2] = [EXPORTER, IMPORTER];
/// The member whose imports are looked at one by one, and which starts last.
pub(crate) const IMPORTER: &str = "west";
/// Requests at once of one client.
pub(crate) const AT_ONCE: usize = 16;
/// Higher than anybody measures. Leases have the usual pace.
const LIMITS: [(&str, &str); 4] = [
    ("FREEPORT_MAX_IMPORTS", "20000"),
    ("FREEPORT_MAX_RECORDS_PER_MEMBER", "100000"),
    ("FREEPORT_MAX_BYTES_PER_MEMBER", "1Gi"),
    // Nobody has the addresses of the endpoints.
    ("FREEPORT_PROBE", "off"),
];
const PORT: (&str, i32) = ("http", 80);

impl Side {
    /// Of users. The floor has one of its own, for daemons that start later.
    pub(crate) fn namespace(self) -> &'static str {
        match self {
            Self::Freeport => "bench",
            Self::Floor => "floor",
        }
    }

    /// Of the records, in the leader's cluster.
    pub(crate) fn area(self) -> &'static str {
        match self {
            Self::Freeport => AREA,
            Self::Floor => "floor-area",
        }
    }
}

#[derive(Clone)]
pub(crate) struct Set {
    pub(crate) world: Arc<World>,
}

impl Set {
    pub(crate) async fn up(env: &[(String, String)]) -> Self {
        let mut world = World::bring_up("bench-services", &["leader", EXPORTER, IMPORTER]).await;
        let limits = LIMITS.map(|(limit, number)| (limit.to_owned(), number.to_owned()));
        world.real_mut().env = limits.into_iter().chain(env.iter().cloned()).collect();
        let composition = Composition::of_all(&world.real().fleet, SET);
        world.add_set(&composition).await;
        for side in [Side::Freeport, Side::Floor] {
            world.namespace(side.namespace(), &IMPORTERS).await;
        }
        world.namespace(Side::Floor.area(), &["leader"]).await;
        Self { world: Arc::new(world) }
    }

    /// Lets a side work: the daemons run, or nothing of Freeport does.
    pub(crate) async fn turn_to(&self, side: Side) {
        match side {
            Side::Freeport => self.start_all().await,
            Side::Floor => self.stop_all().await,
        }
        self.quiet().await;
    }

    pub(crate) async fn stop_all(&self) {
        let running = self.world.real().daemons.iter().map(|daemon| self.stop(&daemon.spec.name));
        join_all(running).await;
    }

    pub(crate) async fn stop(&self, daemon: &str) {
        let process = self.world.real().fleet.process(daemon).await.unwrap().unwrap();
        if process.is_running().await.unwrap() {
            self.world.end(daemon, End::Stop).await;
        }
    }

    pub(crate) async fn start_all(&self) {
        for daemon in &self.world.real().daemons {
            daemon.ensure(&self.world.real().fleet).await.unwrap();
        }
        cluster_set::ready(&self.world.real().fleet, SET, &self.world.real().daemons).await.unwrap();
    }

    /// Services with endpoints in the exporter's cluster, not yet exported. Their names.
    pub(crate) async fn services(&self, side: Side, prefix: &str, count: usize) -> Vec<String> {
        let names: Vec<_> = (0..count).map(|n| format!("{prefix}-{n:05}")).collect();
        let (east, ns) = (self.world.cluster(EXPORTER), side.namespace());
        each(&names, |name| async move {
            east.service(ns, name, &[PORT]).await;
            let addresses = endpoints::addresses(endpoints::FIRST);
            let addresses: Vec<_> = addresses.iter().map(String::as_str).collect();
            east.slice(ns, name, &slice(name), &addresses, &[(PORT.0, 8080)]).await;
        })
        .await;
        names
    }

    pub(crate) async fn remove_services(&self, side: Side, names: &[String]) {
        let (east, ns) = (self.world.cluster(EXPORTER), side.namespace());
        each(names, |name| async move {
            east.delete::<EndpointSlice>(ns, &slice(name)).await;
            east.delete::<k8s_openapi::api::core::v1::Service>(ns, name).await;
        })
        .await;
    }

    pub(crate) async fn export(&self, side: Side, name: &str) {
        self.world.cluster(EXPORTER).export(side.namespace(), name).await;
    }

    pub(crate) async fn export_all(&self, side: Side, names: &[String]) {
        each(names, |name| self.export(side, name)).await;
    }

    pub(crate) async fn unexport_all(&self, side: Side, names: &[String]) {
        let east = self.world.cluster(EXPORTER);
        each(names, |name| async move {
            east.delete::<ServiceExport>(side.namespace(), name).await;
        })
        .await;
    }

    /// Gives the Service other endpoints.
    pub(crate) async fn change(&self, side: Side, name: &str, mark: u32) {
        let addresses = endpoints::addresses(mark);
        let endpoint =
            |a: &String| json!({"addresses": [a], "conditions": {"ready": true}, "nodeName": "n1"});
        let endpoints: Value = addresses.iter().map(endpoint).collect();
        let east = self.world.cluster(EXPORTER);
        let _: EndpointSlice =
            east.patch(side.namespace(), &slice(name), &json!({ "endpoints": endpoints })).await;
    }

    /// Waits until nobody has written for a while.
    pub(crate) async fn quiet(&self) {
        within(MEASURED, "nobody writes", || async {
            match meter::writes_of_a_while(&self.world).await {
                0 => Ok(()),
                writes => Err(format!("{writes} writes")),
            }
        })
        .await;
    }
}

fn slice(service: &str) -> String {
    format!("{service}-1")
}

/// The Service of an EndpointSlice that a user made.
pub(crate) fn service_of(slice: &impl ResourceExt) -> String {
    slice.labels()[api::label::SERVICE_NAME].clone()
}

/// So many at once.
pub(crate) async fn each<'a, F: Future<Output = ()>>(names: &'a [String], act: impl Fn(&'a str) -> F) {
    let acts = names.iter().map(|name| act(name));
    stream::iter(acts).buffer_unordered(AT_ONCE).collect::<Vec<()>>().await;
}
