//! Daemons that are killed between any two writes about a Service: while it is exported, while its endpoints change, and while its export
//! ends (issue 14, B, odd moments). Each write has a Service of its own, whose daemon was up and running before. When a member starts again, the
//! leader's API server is away at first.

use std::{
    collections::BTreeMap,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use api::{label, mcs::ServiceImport};
use e2e::{
    audit,
    daemon::LEADER,
    fixture::{CLUSTERS, World, alone},
    life::Fall,
    seen::{holds, imported, imported_slices, not_imported, right, says},
    trap::{Side, Trap},
    victim::Victim,
    waiting::{VOUCHED, eventually, within},
    watched::Watched,
};
use futures::future::join_all;
use k8s_openapi::api::{core::v1::Service, discovery::v1::EndpointSlice};
use kube::ResourceExt;

const NS: &str = "moments";
/// A Service in a Namespace of its own, with which nothing happens.
const STEADY: &str = "moments-steady";
const OLD: &str = "10.1.0.1";
const NEW: &str = "10.1.0.2";

/// What a user does about a Service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verb {
    Export,
    Change,
    Withdraw,
}

/// A Service, and the cluster that exports it.
#[derive(Clone, Debug)]
struct Exported {
    name: String,
    by: String,
}

impl Exported {
    async fn act(&self, world: &World, verb: Verb) {
        let exporter = world.cluster(&self.by);
        match verb {
            Verb::Export => exporter.exported(NS, &self.name, &[OLD]).await,
            Verb::Change => {
                let slice = format!("{}-1", self.name);
                exporter.replace_slice(NS, &self.name, &slice, &[NEW], &[("http", 8080)]).await;
            }
            Verb::Withdraw => exporter.unexport(NS, &self.name).await,
        }
    }

    /// What the verb means has come about everywhere, and nothing else is left of it.
    async fn is_done(&self, world: &World, verb: Verb) -> Result<(), String> {
        match verb {
            Verb::Export => self.is_imported(world, OLD).await,
            Verb::Change => self.is_imported(world, NEW).await,
            Verb::Withdraw => {
                for cluster in CLUSTERS {
                    not_imported(world.cluster(cluster), NS, &self.name).await?;
                }
                holds(world, NS, &self.name, 0).await
            }
        }
    }

    async fn is_imported(&self, world: &World, address: &str) -> Result<(), String> {
        for cluster in CLUSTERS.map(|cluster| world.cluster(cluster)) {
            let seen = imported(cluster, NS, &self.name).await;
            right(seen, |seen| {
                seen.clusters == [self.by.clone()].into()
                    && seen.endpoints.len() == 1
                    && seen.addresses(&self.by) == [format!("{address}:8080")]
            })?;
            let slices = imported_slices(cluster, NS, &self.name).await.len();
            if slices != 1 {
                return Err(format!("{slices} slices in {}", cluster.name));
            }
        }
        says(world.cluster(&self.by), (NS, &self.name), "Ready", "True", "Exported").await?;
        holds(world, NS, &self.name, 3).await
    }
}

/// The Services of the test.
struct Services {
    world: &'static World,
    made: AtomicUsize,
    /// Those that are exported and were not changed, by exporter.
    exported: Mutex<BTreeMap<String, Vec<Exported>>>,
}

impl Services {
    fn new(world: &'static World) -> Self {
        Self { world, made: AtomicUsize::default(), exported: Mutex::default() }
    }

    /// One more. No name is part of another one, nor of a uid.
    fn new_one(&self, by: &str) -> Exported {
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        Exported { name: format!("moment{number:03}"), by: by.to_owned() }
    }

    /// One with which the verb can be done.
    async fn one_for(&self, verb: Verb, by: &str) -> Exported {
        if verb == Verb::Export {
            return self.new_one(by);
        }
        let had = self.exported.lock().unwrap().get_mut(by).and_then(Vec::pop);
        if let Some(service) = had {
            return service;
        }
        let service = self.new_one(by);
        service.act(self.world, Verb::Export).await;
        self.wait(&service, Verb::Export).await;
        service
    }

    async fn wait(&self, service: &Exported, verb: Verb) {
        within(VOUCHED, &format!("{verb:?} of {}", service.name), || service.is_done(self.world, verb)).await;
    }

    /// Does the verb with a Service for each write of the daemon about it, and kills the daemon there; the Services, and how many writes
    /// there were.
    async fn at_each_write(&self, victim: &Victim, verb: Verb) -> (Vec<Exported>, usize) {
        // Not the cluster of another victim: who waits for that one dies less often.
        let by = if victim.cluster() == "east" { "east" } else { "leader" };
        let mut services = Vec::new();
        for nth in 1.. {
            let mut falls = 0;
            for side in sides(nth) {
                let service = self.one_for(verb, by).await;
                victim.set(Trap::at(nth, side).about(&service.name));
                service.act(self.world, verb).await;
                if let Some(fall) = self.falls(victim, &service, verb).await {
                    e2e::note!("{verb:?}: {} killed {side:?} its write {nth}: {fall}", victim.name());
                    victim.start().await;
                    falls += 1;
                }
                services.push(service);
            }
            if falls == 0 {
                return (services, nth - 1);
            }
        }
        unreachable!("a verb has an end")
    }

    /// Waits until the daemon is killed or the verb is done. Where it was.
    async fn falls(&self, victim: &Victim, service: &Exported, verb: Verb) -> Option<Fall> {
        within(VOUCHED, &format!("{verb:?} of {}, or a kill", service.name), || async {
            match victim.fell() {
                Some(_) => Ok(()),
                None => service.is_done(self.world, verb).await,
            }
        })
        .await;
        victim.disarm().await
    }

    /// The verb at each write of each daemon; returns once what it means has come about for all Services. How many writes each
    /// daemon was killed at.
    async fn at_each_write_of_all(&self, victims: &[Victim], verb: Verb) -> Vec<usize> {
        let all = join_all(victims.iter().map(|victim| self.at_each_write(victim, verb))).await;
        for service in all.iter().flat_map(|(services, _)| services) {
            self.wait(service, verb).await;
            if verb == Verb::Export {
                let mut exported = self.exported.lock().unwrap();
                exported.entry(service.by.clone()).or_default().push(service.clone());
            }
        }
        all.into_iter().map(|(_, writes)| writes).collect()
    }
}

/// Where to kill at the n-th write. That the n-th has been carried out and the next has not been sent is the same for who comes after;
/// `FREEPORT_MOMENTS=all` asks for both all the same, as in between others may write.
fn sides(nth: usize) -> Vec<Side> {
    let all = std::env::var("FREEPORT_MOMENTS").is_ok_and(|value| value == "all");
    if all || nth == 1 { vec![Side::Before, Side::After] } else { vec![Side::After] }
}

/// Everything of imports in a Namespace of all clusters, from now on.
struct Imports(Vec<(Watched<Service>, Watched<ServiceImport>, Watched<EndpointSlice>)>);

impl Imports {
    async fn of(world: &World, namespace: &str) -> Self {
        Self(
            join_all(CLUSTERS.map(|cluster| async move {
                let cluster = world.cluster(cluster);
                let services = Watched::of(cluster, namespace).await;
                (services, Watched::of(cluster, namespace).await, Watched::of(cluster, namespace).await)
            }))
            .await,
        )
    }

    /// No import went, and no slice was ever without endpoints.
    fn stayed(&self, what: &str) {
        for (services, imports, slices) in &self.0 {
            services.nothing_deleted(what);
            imports.nothing_deleted(what);
            slices.nothing_deleted(what);
            slices.each(|slice| {
                assert!(slice.endpoints.as_ref().is_some_and(|e| !e.is_empty()), "{what}: {slice:?}");
            });
        }
    }

    /// Nothing came back after it had gone. But a member that starts finds out first why a ServiceExport is not there, and serves its own
    /// endpoints as before until it knows.
    fn nothing_returned(&self) {
        for ((services, imports, slices), cluster) in self.0.iter().zip(CLUSTERS) {
            assert_eq!((services.returned(), imports.returned()), (vec![], vec![]), "in {cluster}");
            for slice in slices.returned() {
                let from = slice.labels().get(label::MCS_SOURCE_CLUSTER);
                assert_eq!(from.map(String::as_str), Some(cluster), "{slice:?}");
            }
        }
    }
}

/// No daemon has written what is a user's.
fn nothing_foreign(writes: &[String]) {
    for write in writes {
        for kind in ["/services/", "/endpointslices/"] {
            let foreign = write.split_once(kind).is_some_and(|(_, name)| !name.starts_with("antrea-mc-"));
            assert!(!foreign, "{write}");
        }
    }
}

#[e2e::test(real)]
fn daemons_killed_at_any_write_about_a_service_go_on_where_they_were() {
    alone(async |world| {
        for namespace in [NS, STEADY] {
            world.namespace_everywhere(namespace).await;
        }
        world.cluster("east").exported(STEADY, "steady", &[OLD]).await;
        for cluster in CLUSTERS {
            eventually("steady", || async {
                right(imported(world.cluster(cluster), STEADY, "steady").await, |seen| {
                    seen.endpoints.len() == 1
                })
            })
            .await;
        }
        let mark = audit::mark(world);
        let steady = Imports::of(world, STEADY).await;
        let victims = ["freeport-member-east", LEADER, "freeport-member-west"];
        let victims = join_all(victims.map(|victim| Victim::of(world, victim))).await;
        let services = Services::new(world);
        for verb in [Verb::Export, Verb::Change] {
            let imports = Imports::of(world, NS).await;
            let writes = services.at_each_write_of_all(&victims, verb).await;
            e2e::note!("{verb:?}: writes of east, leader and west: {writes:?}");
            let leader = usize::from(verb == Verb::Export);
            assert!(writes[0] > 1 && writes[1] >= leader && writes[2] > 0, "a trap never sprang: {writes:?}");
            imports.stayed(&format!("{verb:?}"));
        }
        let imports = Imports::of(world, NS).await;
        let writes = services.at_each_write_of_all(&victims, Verb::Withdraw).await;
        e2e::note!("Withdraw: writes of east, leader and west: {writes:?}");
        assert!(writes.iter().all(|writes| *writes > 1), "a trap never sprang: {writes:?}");
        imports.nothing_returned();
        let rest = std::mem::take(&mut *services.exported.lock().unwrap());
        for service in rest.into_values().flatten() {
            services.wait(&service, Verb::Export).await;
        }
        steady.stayed("what nobody did anything about");
        nothing_foreign(&audit::writes(world, &mark));
        join_all(victims.into_iter().map(Victim::free)).await;
        for namespace in [NS, STEADY] {
            world.release(namespace).await;
        }
    });
}
