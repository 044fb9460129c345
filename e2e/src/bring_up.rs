//! A fleet of a test program's own.

use std::env;

use fleet::{Error, Fleet, Lifetime, Options};

use crate::{cluster::Cluster, harness::record, say::say};

/// Real clusters, each named as `fleet up --clusters` takes it (`east`, `east=ipv6`, `east=dual`), and an administrator in each. `name`
/// tells the fleets of one program apart. They end with this process, whatever ends it.
///
/// # Errors
/// As [`Fleet::up`].
pub async fn bring_up(name: &str, clusters: &[&str]) -> Result<(Fleet, Vec<Cluster>), Error> {
    up(name, clusters, false).await
}

/// [`bring_up`](fn@bring_up), each with a node.
///
/// # Errors
/// As [`Fleet::up`].
pub async fn bring_up_nodes(name: &str, clusters: &[&str]) -> Result<(Fleet, Vec<Cluster>), Error> {
    up(name, clusters, true).await
}

async fn up(name: &str, clusters: &[&str], nodes: bool) -> Result<(Fleet, Vec<Cluster>), Error> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let clusters: Result<_, _> = clusters.iter().map(|cluster| cluster.parse()).collect();
    let options = Options {
        dir: env::temp_dir().join(format!("freeport-{name}-{}", std::process::id())),
        clusters: clusters?,
        nodes,
        lifetime: Lifetime::Attached { remove: !record::is_kept() },
    };
    // The first time this builds for ten minutes.
    record::uses_fleet(&options.dir);
    let fleet = Fleet::up(options, say).await?;
    let administrators = administrators(&fleet).await?;
    Ok((fleet, administrators))
}

/// An administrator in each cluster.
///
/// # Errors
/// As [`fleet::Cluster::client`].
pub async fn administrators(fleet: &Fleet) -> Result<Vec<Cluster>, Error> {
    let mut administrators = Vec::new();
    for cluster in fleet.clusters() {
        administrators.push(Cluster { name: cluster.name().to_owned(), client: cluster.client().await? });
    }
    Ok(administrators)
}
