//! Odd objects of every kind that somebody else can write. What an API server takes of them leaves the Services of other clusters
//! flowing: they are exported, change and are withdrawn while the odd objects stand, also by daemons that started after they were
//! written and find them in their first lists.
//!
//! 300 cases; `FREEPORT_ODD_CASES=10000` for a long run. What fails prints the cases that stood, and how to have them again.

use std::collections::BTreeMap;

use api::{
    cluster_set::ClusterSet,
    lease::{LeaseView, Settled},
    mcs::ServiceExport,
    name,
    resource_export::{FAILURE, ResourceExport},
    resource_import::ResourceImport,
    slice::SlicePayload,
};
use e2e::{
    cluster::Cluster,
    daemon::{End, LEADER},
    fixture::{AREA, SET, SYSTEM, World, alone},
    odd::{
        Cases, MEMBER,
        authors::{Authors, Taken},
        good::TARGET,
    },
    seen::{imported, not_imported, right},
    waiting::{VOUCHED, eventually, within},
};
use futures::{StreamExt, future::join_all, stream};
use k8s_openapi::api::{core::v1::Service, discovery::v1::EndpointSlice};
use kube::{Resource, core::NamespaceResourceScope};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};

use super::processes;

const CONNECTED: (&str, &str) = ("True", "Connected");
const SEED: u64 = 14;
const CASES: u64 = 300;
/// Odd objects that stand together.
const BATCH: usize = 50;

/// Service, cluster that exports it, one that imports it. None is `east`, where administrators write oddly.
const FLOWS: [(&str, &str, &str); 3] =
    [("one", "leader", "west"), ("two", "west", "leader"), ("three", "leader", "west")];

#[e2e::test]
fn odd_objects_stop_nothing_that_is_not_about_them() {
    alone(async |world| {
        let ns = world.namespace_everywhere("odd").await;
        let flow = world.namespace_everywhere("flow").await;
        world.cluster("east").exported(&ns, TARGET, &["10.1.0.1"]).await;
        let cases = Cases::of_environment(SEED, CASES);
        let authors = Authors::new(world, &ns).await;
        let mut untaken = authors.kinds();
        for batch in cases.batches(BATCH) {
            let taken = stream::iter(&batch).map(|number| authors.write(cases, *number)).buffered(4);
            let taken: Vec<_> = taken.collect::<Vec<_>>().await.into_iter().flatten().collect();
            e2e::note!("{} of {} were taken:", taken.len(), batch.len());
            for taken in &taken {
                e2e::note!("  {}", taken.what);
                untaken.remove(taken.kind());
            }
            join_all(FLOWS.map(|flows| goes_on(world, &flow, flows))).await;
            join_all([LEADER, "freeport-member-west"].map(|daemon| again(world, daemon))).await;
            let before = processes(world).await;
            join_all(FLOWS.map(|flows| goes_on(world, &flow, flows))).await;
            within(VOUCHED, "leader and west settle beside them", || settled_beside(world)).await;
            within(VOUCHED, "an odd ClusterSet is judged", || is_connected_or_says_why(world, &taken)).await;
            // A member whose ClusterSet is odd judges nothing.
            let (patched, created): (Vec<_>, Vec<_>) =
                taken.into_iter().partition(|taken| authors.is_patched(taken));
            join_all(patched.iter().map(|taken| authors.undo(taken))).await;
            within(VOUCHED, "every odd object is judged", || judged(world, &created)).await;
            assert_eq!(processes(world).await, before, "no daemon was started again");
            join_all(created.iter().map(|taken| authors.undo(taken))).await;
        }
        authors.leave().await;
        assert!(
            untaken.is_empty() || cases.batches(BATCH).concat().len() < CASES as usize,
            "no odd object was taken of {untaken:?}"
        );
        // Without a session a Lease says what it said last.
        join_all(world.clusters().iter().map(|member| world.member_says(&member.name, CONNECTED))).await;
        within(VOUCHED, "all daemons see everything", || seeing(world)).await;
        for namespace in [&ns, &flow] {
            world.release(namespace).await;
        }
    });
}

/// The daemon lists everything anew.
async fn again(world: &World, daemon: &str) {
    world.end(daemon, End::Crash).await;
    world.launch(daemon).await;
}

/// Exports a Service, changes its endpoints and withdraws it.
async fn goes_on(world: &World, ns: &str, (service, from, to): (&str, &str, &str)) {
    let (exporter, importer) = (world.cluster(from), world.cluster(to));
    let has = async |address: &'static str| {
        eventually(&format!("{service} of {from} in {to} with {address}"), || async {
            right(imported(importer, ns, service).await, |seen| seen.addresses(from) == [address])
        })
        .await
    };
    exporter.exported(ns, service, &["10.7.0.1"]).await;
    has("10.7.0.1:8080").await;
    exporter.replace_slice(ns, service, &format!("{service}-1"), &["10.7.0.2"], &[("http", 8080)]).await;
    has("10.7.0.2:8080").await;
    exporter.unexport(ns, service).await;
    eventually(&format!("{service} of {from} is gone in {to}"), || not_imported(importer, ns, service)).await;
    exporter.delete::<Service>(ns, service).await;
    exporter.delete::<EndpointSlice>(ns, &format!("{service}-1")).await;
}

/// Each odd object that does not do what it was written for says so.
async fn judged(world: &World, taken: &[Taken]) -> Result<(), String> {
    let all = world.leader().listed::<ResourceExport>(AREA).await?.into_iter();
    let records: BTreeMap<_, _> =
        all.filter_map(|record| Some((record["metadata"]["name"].as_str()?.to_owned(), record))).collect();
    let imports: Vec<_> = named::<ResourceImport>(world.leader(), AREA).await?.into_values().collect();
    for taken in taken {
        match taken.kind() {
            "ResourceExport" => {
                if let Some(record) = records.get(taken.name()) {
                    is_judged(record, &imports).map_err(|why| format!("{why}: {}", taken.what))?;
                }
            }
            "ServiceExport" => is_valid_or_not(world, taken).await?,
            _ => {}
        }
    }
    Ok(())
}

/// The leader has nothing left to write, and west sees everything, whatever of its own may be refused.
async fn settled_beside(world: &World) -> Result<(), String> {
    let leases = named::<LeaseView>(world.leader(), AREA).await?;
    let said = |lease: &str| leases.get(lease).map(LeaseView::settled);
    match (said(name::LEADER_LEASE), said(&name::member_lease("west"))) {
        (Some(Settled::Yes), Some(Settled::Yes | Settled::Writing(_))) => Ok(()),
        other => Err(format!("{other:?}")),
    }
}

/// The ClusterSet of east, if it is odd: its status is about what it says now, or says what is wrong. With an odd CRD it may have none.
async fn is_connected_or_says_why(world: &World, taken: &[Taken]) -> Result<(), String> {
    let is_any = |kind: &str| taken.iter().any(|taken| taken.kind() == kind);
    if !is_any("ClusterSet") || is_any("CustomResourceDefinition") {
        return Ok(());
    }
    let sets = world.cluster("east").listed::<ClusterSet>(SYSTEM).await?;
    let Some(set) = sets.iter().find(|set| set["metadata"]["name"] == SET) else { return Ok(()) };
    let status = &set["status"];
    let conditions = status["conditions"].as_array().into_iter().flatten();
    let is_current = status["observedGeneration"] == set["metadata"]["generation"];
    let says = |condition: &Value| is_current || condition["status"] == "False";
    match conditions.into_iter().find(|condition| condition["type"] == "Ready") {
        Some(ready) if says(ready) => Ok(()),
        _ => Err(format!("{status}")),
    }
}

/// A Service record is part of an import or has condition `Failure`, whatever is in it; a slice record is one that importers take, or
/// has condition `Failure`.
fn is_judged(record: &Value, imports: &[ResourceImport]) -> Result<(), String> {
    let (spec, conditions) = (&record["spec"], &record["status"]["conditions"]);
    let has_failed =
        conditions.as_array().into_iter().flatten().any(|condition| condition["type"] == FAILURE);
    let is_merged = imports.iter().any(|import| {
        let exporters = import.spec.exporters.as_deref().unwrap_or_default();
        json!(import.spec.namespace) == spec["namespace"]
            && json!(import.spec.name) == spec["name"]
            && exporters.iter().any(|exporter| exporter.cluster_id == MEMBER)
    });
    let passes = match spec["kind"].as_str() {
        Some("Service") => is_merged,
        Some("EndpointSlice") => {
            SlicePayload::deserialize(&spec["endpointSlice"]).is_ok_and(|slice| slice.check().is_ok())
        }
        _ => true,
    };
    if has_failed || passes { Ok(()) } else { Err(format!("not judged: {conditions}")) }
}

async fn is_valid_or_not(world: &World, taken: &Taken) -> Result<(), String> {
    let namespace = taken.object["metadata"]["namespace"].as_str().unwrap();
    for cluster in ["east", "west"] {
        let exports: BTreeMap<_, _> = named::<ServiceExport>(world.cluster(cluster), namespace).await?;
        let Some(export) = exports.get(taken.name()) else { continue };
        let status = export.status.clone().unwrap_or_default();
        if !status.conditions.iter().any(|condition| condition.type_ == "Valid") {
            return Err(format!("{status:?} in {cluster}: {}", taken.what));
        }
    }
    Ok(())
}

/// Those that our own types can hold, by name: each is read by itself.
async fn named<K>(cluster: &Cluster, namespace: &str) -> Result<BTreeMap<String, K>, String>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + DeserializeOwned,
{
    let typed = cluster.listed::<K>(namespace).await?.into_iter().filter_map(|object| {
        let name = object["metadata"]["name"].as_str()?.to_owned();
        Some((name, serde_json::from_value(object).ok()?))
    });
    Ok(typed.collect())
}

/// The leader and the members say on their Leases that they see everything they have to.
async fn seeing(world: &World) -> Result<(), String> {
    let leases = named::<LeaseView>(world.leader(), AREA).await?;
    for lease in
        ["leader", "east", "west"].map(name::member_lease).into_iter().chain([name::LEADER_LEASE.to_owned()])
    {
        match leases.get(&lease).map(LeaseView::settled) {
            Some(Settled::Yes) => {}
            other => return Err(format!("{lease}: {other:?}")),
        }
    }
    Ok(())
}
