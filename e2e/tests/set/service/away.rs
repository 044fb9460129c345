//! Daemons that start while the leader's API server is away (issue 14, B, odd moments): what they import stays, and what happened
//! meanwhile is caught up with.

use api::mcs::ServiceImport;
use e2e::{
    daemon::{DAEMONS, End},
    fixture::{CLUSTERS, World, alone},
    seen::{Imported, holds, imported, not_imported, right},
    waiting::{VOUCHED, always, eventually, within},
    watched::Watched,
};
use fleet::Component;
use k8s_openapi::api::{core::v1::Service, discovery::v1::EndpointSlice};
use kube::ResourceExt;

const NS: &str = "away-at-start";

/// What `cluster` imports of this Service, once it has an endpoint.
async fn complete(world: &World, cluster: &str, service: &str) -> Imported {
    eventually(&format!("{cluster} imports {service}"), || async {
        right(imported(world.cluster(cluster), NS, service).await, |seen| seen.endpoints.len() == 1)
    })
    .await
}

#[e2e::test(real)]
fn daemons_that_start_while_the_leader_is_away_take_nothing_away() {
    alone(async |world| {
        world.namespace(NS, &CLUSTERS).await;
        let (east, west) = (world.cluster("east"), world.cluster("west"));
        for (service, address) in [("stays", "10.1.0.1"), ("goes", "10.1.0.2"), ("changes", "10.1.0.3")] {
            east.exported(NS, service, &[address]).await;
        }
        west.exported(NS, "mine", &["10.2.0.1"]).await;
        let mut before = Vec::new();
        for cluster in [east, west] {
            for service in ["stays", "goes", "changes", "mine"] {
                before.push((cluster, service, complete(world, &cluster.name, service).await));
            }
        }
        let mut watched = Vec::new();
        for cluster in [east, west] {
            let services = Watched::<Service>::of(cluster, NS).await;
            let imports = Watched::<ServiceImport>::of(cluster, NS).await;
            watched.push((services, imports, Watched::<EndpointSlice>::of(cluster, NS).await));
        }

        for daemon in DAEMONS {
            world.end(daemon, End::Crash).await;
        }
        let leader = world.real().fleet.cluster("leader").unwrap();
        leader.kill(Component::ApiServer).await.unwrap();
        for daemon in DAEMONS {
            world.launch(daemon).await;
        }
        for member in ["east", "west"] {
            world.member_says(member, ("False", "LeaderUnreachable")).await;
        }
        always("everything stays", || async {
            for (cluster, service, before) in &before {
                right(imported(cluster, NS, service).await, |seen| seen == before)?;
            }
            Ok(())
        })
        .await;
        east.unexport(NS, "goes").await;
        east.replace_slice(NS, "changes", "changes-1", &["10.1.0.9"], &[("http", 8080)]).await;
        east.exported(NS, "new", &["10.1.0.5"]).await;
        for (services, imports, slices) in &watched {
            services.nothing_deleted("without the leader");
            imports.nothing_deleted("without the leader");
            slices.nothing_deleted("without the leader");
        }

        leader.start(Component::ApiServer).await.unwrap();
        for cluster in [east, west] {
            complete(world, &cluster.name, "new").await;
            within(VOUCHED, "gone", || not_imported(cluster, NS, "goes")).await;
            eventually("changed", || async {
                let seen = imported(cluster, NS, "changes").await;
                right(seen, |seen| seen.addresses("east") == ["10.1.0.9:8080"])
            })
            .await;
        }
        eventually("nothing is left", || holds(world, NS, "goes", 0)).await;
        for (cluster, service, before) in before {
            if ["stays", "mine"].contains(&service) {
                assert_eq!(imported(cluster, NS, service).await, Ok(before));
            }
        }
        for (services, imports, slices) in &watched {
            let gone = services.deleted().iter().map(ResourceExt::name_any).collect::<Vec<_>>();
            let gone_imports = imports.deleted().iter().map(ResourceExt::name_any).collect::<Vec<_>>();
            assert_eq!((gone, gone_imports), (vec!["antrea-mc-goes".to_owned()], vec!["goes".to_owned()]));
            for slice in slices.deleted() {
                assert!(slice.name_any().starts_with("antrea-mc-goes-"), "{slice:?}");
            }
        }
        world.release(NS).await;
    });
}
