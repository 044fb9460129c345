//! Waits for what daemons report about refused writes.

use std::collections::BTreeSet;

use api::{label, membership::NAME};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use sim::api::NOT_THIS_ONE;

use super::Refused;
use crate::{cluster::Cluster, fixture::SYSTEM, waiting::eventually, world::World};

/// Waits until the metrics of the daemons count each of these refusals.
pub async fn counted(world: &World, refused: &[Refused]) {
    let daemons: BTreeSet<_> = refused.iter().map(|refused| refused.by).collect();
    eventually("each refusal is counted", || async {
        let mut missing = Vec::new();
        for daemon in &daemons {
            let counts = world.metrics(daemon).await?.by_all("freeport_writes_refused", &["kind", "verb"]);
            let of_daemon = refused.iter().filter(|refused| refused.by == *daemon);
            let writes = of_daemon.map(Refused::counted_as);
            missing.extend(writes.filter(|write| counts.get(write).is_none_or(|count| *count < 1.0)));
        }
        if missing.is_empty() { Ok(()) } else { Err(format!("not counted: {missing:?}")) }
    })
    .await;
}

/// Waits until the note of a member that leaves names the refused deletion, with the API server's message.
pub async fn noted(cluster: &Cluster, refused: &Refused) {
    let notes = cluster.api::<ConfigMap>(SYSTEM);
    eventually(&format!("the note names {}", refused.counted_as()), || async {
        let note = notes.get(NAME).await.map_err(|error| error.to_string())?;
        let message = note.annotations().get(label::REFUSED).cloned().unwrap_or_default();
        let is_named = [refused.kind, "delete", NOT_THIS_ONE].iter().all(|part| message.contains(part));
        if is_named { Ok(()) } else { Err(format!("{message:?}")) }
    })
    .await;
}

/// Waits until the member has left, so that it deleted its note.
pub async fn left(cluster: &Cluster) {
    let notes = cluster.api::<ConfigMap>(SYSTEM);
    eventually(&format!("{} has left", cluster.name), || async {
        let note = notes.get_opt(NAME).await.map_err(|error| error.to_string())?;
        note.map_or(Ok(()), |note| Err(format!("{:?}", note.metadata)))
    })
    .await;
}
