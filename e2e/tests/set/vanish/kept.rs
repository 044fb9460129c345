//! Imports that must stay as they are, watched in every cluster.

use std::collections::BTreeSet;

use api::{mcs::ServiceImport, name};
use e2e::{
    cluster::Cluster,
    fixture::{CLUSTERS, World},
    seen::{Imported, imported, right},
    waiting::{VOUCHED, within},
    watched::Watched,
    world::PACE,
};
use futures::future::join;
use k8s_openapi::api::{core::v1::Service, discovery::v1::EndpointSlice};

/// What one cluster has of an import, and what its watches tell of it.
struct Part {
    cluster: &'static Cluster,
    before: Imported,
    imports: Watched<ServiceImport>,
    services: Watched<Service>,
    slices: Watched<EndpointSlice>,
}

/// Import `web` of a Namespace, exported by `east` and `west`, in all clusters or some.
pub(crate) struct Kept {
    namespace: String,
    parts: Vec<Part>,
}

impl Kept {
    /// Exports `web` from `east` and `west`, waits until it is complete everywhere, and watches it in `clusters`.
    pub(crate) async fn set_up(world: &'static World, namespace: &str, clusters: &[&str]) -> Self {
        let ns = world.namespace(namespace, &CLUSTERS).await;
        for (cluster, address) in [("east", "10.1.0.1"), ("west", "10.2.0.1")] {
            world.cluster(cluster).exported(&ns, "web", &[address]).await;
        }
        for name in CLUSTERS {
            complete(world.cluster(name), &ns).await;
        }
        Self { namespace: ns, parts: Vec::new() }.watch(world, clusters).await
    }

    /// Watches it as it is now.
    pub(crate) async fn watch(self, world: &'static World, clusters: &[&str]) -> Self {
        let ns = self.namespace;
        let mut parts = Vec::new();
        for cluster in clusters.iter().map(|name| world.cluster(name)) {
            let before = complete(cluster, &ns).await;
            parts.push(Part {
                cluster,
                before,
                imports: Watched::of(cluster, &ns).await,
                services: Watched::of(cluster, &ns).await,
                slices: Watched::of(cluster, &ns).await,
            });
        }
        Self { namespace: ns, parts }
    }

    pub(crate) fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Fails if anything went, or an endpoint did, however shortly.
    pub(crate) async fn nothing_went(&self, while_: &str) {
        for part in &self.parts {
            let what = format!("{while_}, in {}", part.cluster.name);
            part.imports.nothing_deleted(&what);
            part.services.nothing_deleted(&what);
            part.slices.nothing_deleted(&what);
            part.slices.each(|slice| {
                let addresses = slice.endpoints.iter().flatten().flat_map(|e| e.addresses.clone());
                let addresses: BTreeSet<_> = addresses.collect();
                assert!(!addresses.is_empty(), "{what}: a slice was emptied: {slice:?}");
            });
            let now = imported(part.cluster, &self.namespace, "web").await;
            assert_eq!(now.as_ref(), Ok(&part.before), "{what}");
        }
    }

    /// Fails unless all is as it was once the daemons have settled, and follows from then on: a change of `east` and one of
    /// `west` get everywhere, and so does an end.
    pub(crate) async fn converges(self, world: &World) {
        world.settled().await;
        self.nothing_went("all has settled").await;
        self.follows(world).await;
        world.release(&self.namespace).await;
    }

    /// Waits until a change of `east` and one of `west` is everywhere: all links work again.
    async fn follows(&self, world: &World) {
        let ns = &self.namespace;
        let ports = [("http", 8080)];
        world.cluster("east").replace_slice(ns, "web", "web-1", &["10.1.0.1", "10.1.0.9"], &ports).await;
        world.cluster("west").replace_slice(ns, "web", "web-1", &["10.2.0.1", "10.2.0.9"], &ports).await;
        for name in CLUSTERS {
            let cluster = world.cluster(name);
            within(VOUCHED, &format!("{name} follows again"), || async {
                right(imported(cluster, ns, "web").await, |seen| {
                    seen.addresses("east").len() == 2 && seen.addresses("west").len() == 2
                })
            })
            .await;
        }
        world.cluster("east").unexport(ns, "web").await;
        for name in CLUSTERS {
            let cluster = world.cluster(name);
            within(VOUCHED, &format!("{name} lets go of what is taken back"), || async {
                right(imported(cluster, ns, "web").await, |seen| {
                    seen.clusters == ["west".to_owned()].into() && seen.addresses("east").is_empty()
                })
            })
            .await;
        }
    }
}

/// Longer than it takes to believe an absence: leader and `west` have vouched for what they do not have.
pub(crate) async fn time_goes_by(world: &World) {
    let west = name::member_lease("west");
    join(world.vouches(name::LEADER_LEASE), world.vouches(&west)).await;
}

/// As long, where nobody can vouch for anything.
pub(crate) async fn a_while() {
    tokio::time::sleep(PACE.stale()).await;
}

async fn complete(cluster: &Cluster, namespace: &str) -> Imported {
    within(VOUCHED, &format!("complete in {}", cluster.name), || async {
        right(imported(cluster, namespace, "web").await, |seen| seen.endpoints.len() == 2)
    })
    .await
}
