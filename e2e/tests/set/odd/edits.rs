//! Somebody with all rights changes, relabels, deletes and makes anew what Freeport made, at random, while Services are exported and
//! taken back. At the end everything is as the exports say, whatever was done; and the daemons themselves never took away an import
//! that had to be there, nor touched what is not theirs.
//!
//! What is said in the Common Area is believed, so an edit of a record there may say that an import is withdrawn. So half of the Services
//! are edited in the importing cluster alone: those must not go for a moment. What members say about themselves is edited, too.

use api::{mcs::ServiceExport, name};
use e2e::{
    audit::{self, Mark},
    cluster::Cluster,
    fixture::{AREA, World, alone},
    odd::{Cases, editor::Editor},
    seen::{Imported, imported, not_imported, right},
    waiting::{VOUCHED, eventually, within},
};
use futures::future::join_all;
use k8s_openapi::api::{core::v1::Service, discovery::v1::EndpointSlice};
use kube::ResourceExt;
use serde_json::Value;

const SEED: u64 = 41;
const EDITS: u64 = 200;
const BATCH: usize = 20;
/// The first half is edited in the importing cluster, the others in the Common Area.
const SERVICES: usize = 20;

#[e2e::test]
fn whatever_somebody_does_to_our_objects_they_become_what_the_exports_say() {
    alone(async |world| {
        let ns = world.namespace("edits", &["east", "west"]).await;
        let (east, west) = (world.cluster("east"), world.cluster("west"));
        let services: Vec<_> = (0..SERVICES).map(|number| format!("s{number}")).collect();
        join_all(services.iter().enumerate().map(|(number, service)| export(east, &ns, service, number)))
            .await;
        eventually("all are imported", || are_imported(west, &ns, &services)).await;
        let foreign = foreign(west, &ns).await;
        let mark = audit::mark(world);

        let (here_all, there_all) = services.split_at(SERVICES / 2);
        let here = importing(west, &ns, here_all).await;
        let there = common_area(world.leader(), &ns, there_all).await;
        let presence = presence(world.leader()).await;
        let cases = Cases::of_environment(SEED, EDITS);
        for (turn, batch) in cases.batches(BATCH).into_iter().enumerate() {
            for number in batch {
                let editor = match number % 5 {
                    0 | 2 => &here,
                    1 | 3 => &there,
                    _ => &presence,
                };
                editor.edit(cases, number).await;
            }
            // Exports go and come meanwhile: one that is edited here, and each in turn that is edited in the Common Area.
            let going = [&here_all[0], &there_all[turn % there_all.len()]];
            for service in going {
                east.unexport(&ns, service).await;
            }
            for service in going {
                within(VOUCHED, "taken back", || not_imported(west, &ns, service)).await;
                east.export(&ns, service).await;
            }
        }
        within(VOUCHED, "all is as the exports say", || are_imported(west, &ns, &services)).await;
        never_removed(world, &mark, &ns, &services[1..SERVICES / 2]);
        assert_eq!(self::foreign(west, &ns).await, foreign, "what is not ours");
        for service in &services {
            east.delete::<ServiceExport>(&ns, service).await;
        }
        within(VOUCHED, "all is taken back", || async {
            for service in &services {
                not_imported(west, &ns, service).await?;
            }
            Ok(())
        })
        .await;
        world.release(&ns).await;
    });
}

async fn export(east: &Cluster, ns: &str, service: &str, number: usize) {
    east.exported(ns, service, &[&format!("10.1.0.{}", number + 1)]).await;
}

async fn are_imported(west: &Cluster, ns: &str, services: &[String]) -> Result<(), String> {
    for (number, service) in services.iter().enumerate() {
        let address = format!("10.1.0.{}:8080", number + 1);
        let is_right = |seen: &Imported| {
            seen.addresses("east") == [address.as_str()]
                && seen.clusters.len() == 1
                && seen.ports == [("http".to_owned(), 80)]
        };
        let seen = imported(west, ns, service).await;
        right(seen, is_right).map_err(|seen| format!("{service}: {seen}"))?;
    }
    Ok(())
}

/// Edits what these Services are imported as.
async fn importing<'a>(west: &'a Cluster, ns: &str, services: &'a [String]) -> Editor<'a> {
    let kinds = [
        ("Service", "api/v1", "services"),
        ("ServiceImport", "apis/multicluster.x-k8s.io/v1alpha1", "serviceimports"),
        ("EndpointSlice", "apis/discovery.k8s.io/v1", "endpointslices"),
    ];
    let is_of = |object: &Value| {
        let name = object["metadata"]["name"].as_str().unwrap();
        services.iter().any(|service| {
            let derived = name::imported_service(service);
            name == service || name == derived || name.starts_with(&format!("{derived}-"))
        })
    };
    Editor::new(west, ns, &kinds, is_of).await
}

/// Edits the records of these Services.
async fn common_area<'a>(leader: &'a Cluster, ns: &str, services: &'a [String]) -> Editor<'a> {
    let group = "apis/multicluster.crd.antrea.io/v1alpha1";
    let kinds = [("ResourceExport", group, "resourceexports"), ("ResourceImport", group, "resourceimports")];
    let ns = ns.to_owned();
    let is_of = move |object: &Value| {
        let name = object["metadata"]["name"].as_str().unwrap();
        services.iter().any(|service| {
            name == format!("{ns}-{service}-service")
                || name == format!("east-{ns}-{service}-service")
                || name.starts_with(&format!("east.{ns}.{service}.slice."))
        })
    };
    Editor::new(leader, AREA, &kinds, is_of).await
}

/// Edits what the members say about themselves.
async fn presence(leader: &Cluster) -> Editor<'_> {
    let kinds = [
        ("Lease", "apis/coordination.k8s.io/v1", "leases"),
        ("MemberClusterAnnounce", "apis/multicluster.crd.antrea.io/v1alpha1", "memberclusterannounces"),
    ];
    let is_of_a_member = |object: &Value| {
        let name = object["metadata"]["name"].as_str().unwrap();
        object["kind"] == "MemberClusterAnnounce" || name.starts_with("freeport-member-")
    };
    Editor::new(leader, AREA, &kinds, is_of_a_member).await
}

/// Objects that look a little like ours, made at the first call, and their versions.
async fn foreign(west: &Cluster, ns: &str) -> Vec<Option<String>> {
    if west.api::<Service>(ns).get_opt("antrea-mc-foreign").await.unwrap().is_none() {
        west.service(ns, "antrea-mc-foreign", &[("http", 80)]).await;
        west.slice(ns, "antrea-mc-foreign", "antrea-mc-foreign-1", &["10.6.6.6"], &[("http", 8080)]).await;
    }
    let service = west.api::<Service>(ns).get("antrea-mc-foreign").await.unwrap();
    let slice = west.api::<EndpointSlice>(ns).get("antrea-mc-foreign-1").await.unwrap();
    vec![service.resource_version(), slice.resource_version()]
}

/// The daemons themselves deleted no Service and no ServiceImport of these.
fn never_removed(world: &World, mark: &Mark, ns: &str, services: &[String]) {
    let deletions: Vec<_> =
        audit::writes(world, mark).into_iter().filter(|write| write.contains(r#""delete""#)).collect();
    for service in services {
        for path in [format!("services/antrea-mc-{service}?"), format!("serviceimports/{service}?")] {
            let path = format!("/namespaces/{ns}/{path}");
            let removed: Vec<_> =
                deletions.iter().filter(|write| write.replace(' ', "? ").contains(&path)).collect();
            assert!(removed.is_empty(), "{removed:?}");
        }
    }
}
