//! Issue 38, 4: each write that a daemon of Services sends is refused by a policy of its API server. Each is reported, other Services are
//! not affected, and when the policies are gone everything is as users want it, without a restart.

use api::{
    cluster_set::WRITES_ACCEPTED,
    mcs::{READY, ServiceImport},
};
use e2e::{
    cluster::Cluster,
    cluster_set::{imports_complete, status},
    fixture::{AREA, SYSTEM, alone},
    forbidden::{NOT_THIS_ONE, forbid_daemons, permit},
    seen::{event, imported, not_imported, right},
    waiting::eventually,
    walk::{
        reported::counted,
        services::{IMPORTER, REFUSED},
    },
};
use futures::future::join_all;
use k8s_openapi::api::core::v1::Service;
use serde_json::json;

use crate::cli::program::status as status_of;

const POLICY: &str = "no-writes";
/// Refuses an operation on a resource where the object's name says so: see [`REFUSED`].
const POLICY_REFUSES: &str = "variables.name.contains('no-' + request.resource.resource + variables.subresource + '-' + request.operation.lowerAscii())";
/// Names of Services to which this happens while the policies are in force: `create`, `update` or `delete`. The first status of a new one is
/// refused.
fn named(what: &'static str) -> impl Iterator<Item = String> {
    let these = REFUSED
        .iter()
        .filter(move |of| what == if of.resource.ends_with("status") { "create" } else { of.operation });
    these.map(|of| format!("no-{}-{}", of.resource, of.operation))
}

/// The message of `WritesAccepted`, if that has this status.
async fn writes(cluster: &Cluster, ns: &str, is: &str) -> Result<String, String> {
    let conditions = status(cluster, ns).await?.conditions;
    let said = conditions.into_iter().find(|said| said.type_.as_deref() == Some(WRITES_ACCEPTED));
    let said = said.ok_or("not reported")?;
    match said.status.as_deref() == Some(is) {
        true => Ok(said.message.unwrap_or_default()),
        false => Err(format!("{said:?}")),
    }
}

/// Whether this ServiceImport says that its deletion is refused, in an Event, too, and names no cluster and no address that is free.
async fn stays(west: &Cluster, ns: &str, name: &str, has_service: bool) -> Result<(), String> {
    let import: ServiceImport = west.api(ns).get(name).await.map_err(|error| error.to_string())?;
    let said = import.status.unwrap_or_default();
    let reason = said.conditions.iter().find(|said| said.type_ == READY).map(|said| said.reason.as_str());
    let is_true = said.clusters.is_empty() && import.spec.ips.is_empty() != has_service;
    if reason != Some("DeletionRefused") || !is_true {
        return Err(format!("{said:?} {:?}", import.spec.ips));
    }
    event(west, ns, name, "DeletionRefused").await
}

#[e2e::test(real)]
fn each_write_that_is_refused_is_reported_and_done_when_it_is_accepted() {
    alone(async |world| {
        let ns = &world.namespace("no-writes", &["east", "west"]).await;
        let (leader, east, west) = (world.leader(), world.cluster("east"), world.cluster("west"));
        let before: Vec<_> = named("update").chain(named("delete")).collect();
        join_all(before.iter().map(|name| east.exported(ns, name, &["10.1.0.1"]))).await;
        for name in &before {
            eventually(&format!("west imports {name}"), || imported(west, ns, name)).await;
        }
        // The leader's cluster has no such Namespace.
        leader.create_namespace(ns).await;
        join_all([leader, east, west].map(|cluster| forbid_daemons(cluster, ns, POLICY, POLICY_REFUSES)))
            .await;

        for name in named("create") {
            east.exported(ns, &name, &["10.1.0.1"]).await;
        }
        for name in named("update") {
            let ports =
                json!({"spec": {"ports": [{"name": "http", "port": 80}, {"name": "more", "port": 81}]}});
            let _: Service = east.patch(ns, &name, &ports).await;
            east.replace_slice(ns, &name, &format!("{name}-1"), &["10.1.0.2"], &[("http", 8080)]).await;
        }
        for name in named("delete") {
            east.unexport(ns, &name).await;
        }
        counted(world, REFUSED).await;
        let reports = [
            (west, SYSTEM, "the API server of this cluster"),
            (east, SYSTEM, "the leader's API server"),
            (leader, AREA, ""),
        ];
        for (cluster, place, server) in reports {
            // Those of one API server may be reported before those of another.
            eventually("refusals are reported", || async {
                let said = writes(cluster, place, "False").await?;
                let is_said = [server, "/no-", NOT_THIS_ONE].iter().all(|part| said.contains(part));
                if is_said { Ok(()) } else { Err(said) }
            })
            .await;
        }
        for of in REFUSED.iter().filter(|of| of.by == IMPORTER && of.operation == "delete") {
            let (resource, has_service) = (of.resource, of.resource == "services");
            let name = format!("no-{resource}-delete");
            let is_said = async || stays(west, ns, &name, has_service).await;
            eventually(&format!("so does the import whose {resource} stay"), is_said).await;
        }
        eventually("imports are not said to be complete", || async {
            let (reason, message) = imports_complete(west).await?;
            let is_said = reason == "ImportsNotReady" && message.contains("/no-");
            if is_said { Ok(()) } else { Err(format!("{reason}: {message}")) }
        })
        .await;
        for context in ["west", "east", "leader"] {
            status_of(world, context).await.reported(1, &["WritesAccepted is False", NOT_THIS_ONE]);
        }
        eventually("an Event tells it", || event(west, SYSTEM, "demo", "Refused")).await;
        east.exported(ns, "web", &["10.1.0.3"]).await;
        eventually("other Services are not affected", || imported(west, ns, "web")).await;

        for cluster in [leader, east, west] {
            permit(cluster, POLICY).await;
        }
        for (cluster, place, _) in reports {
            eventually("nothing is refused any more", || writes(cluster, place, "True")).await;
        }
        for context in ["west", "east", "leader"] {
            eventually("freeport status names no refusal any more", || async {
                let said = status_of(world, context).await;
                if said.stdout.contains(NOT_THIS_ONE) { Err(said.to_string()) } else { Ok(()) }
            })
            .await;
        }
        for name in named("create") {
            eventually(&format!("west imports {name}"), || imported(west, ns, &name)).await;
        }
        for name in named("update") {
            eventually(&format!("west has the change of {name}"), || async {
                right(imported(west, ns, &name).await, |seen| {
                    seen.ports.len() == 2
                        && seen.addresses("east").iter().all(|address| address.starts_with("10.1.0.2:"))
                })
            })
            .await;
        }
        for name in named("delete") {
            eventually(&format!("west has no import of {name}"), || not_imported(west, ns, &name)).await;
        }
        world.release(ns).await;
        leader.release_namespace(ns).await;
    });
}
