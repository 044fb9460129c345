//! What offloading leaves behind. In the member's cluster: the webhook's configuration; and, when no member does it, labels, finalizers,
//! Nodes and twins. In the Common Area: maps, offers and ShadowPods of a member that will not return; all twins are
//! withdrawn before a map is deleted, since a map that is merely missing deletes none.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use api::{
    label as general,
    offload::{
        label,
        map::NamespaceMap,
        names,
        namespace::NamespaceOffloading,
        offer::OffloadOffer,
        peer::OffloadPeer,
        shadow_pod::ShadowPod,
        view::{NamespaceMapView, OffloadPeerView},
    },
};
use k8s_openapi::{
    api::core::v1::{Namespace, Node},
    jiff::Timestamp,
};
use kube::CustomResourceExt;
use serde_json::{Map, Value, json};

use super::lease;
use crate::{
    Error,
    cluster::list,
    eraser::{Eraser, PAUSE, release},
    error::Failure,
    objects::{
        Object,
        offload::{member_crds, webhook},
    },
    offload::vanished::Vanished,
    view::live_holder,
};

/// Whether this cluster has Freeport's offloading. Label, finalizer and NamespaceOffloadings are also Liqo's, and then not ours to clear.
async fn is_set_up(here: &Eraser<'_>) -> Result<bool, Error> {
    let peers = OffloadPeer::crd_name();
    let crds = member_crds();
    let Some(crd) = crds.iter().find(|crd| crd.name == peers) else { return Ok(false) };
    Ok(if_allowed(here.cluster.read(crd).await)?.flatten().is_some())
}

/// Nothing for who may not: he has no rights of offloading, and then there is none of it.
fn if_allowed<T>(done: Result<T, Error>) -> Result<Option<T>, Error> {
    match done {
        Ok(done) => Ok(Some(done)),
        Err(error) if matches!(error.failure(), Failure::Forbidden(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Says which twins go with a member that leaves, with all that is in them.
pub(super) async fn warn(here: &mut Eraser<'_>, us: Option<&str>) -> Result<(), Error> {
    if !is_set_up(here).await? {
        return Ok(());
    }
    let hosted: Vec<_> = if_allowed(twins(here, us).await)?.unwrap_or_default();
    let offloaded = if_allowed(here.list::<NamespaceOffloading>(None, "").await)?.unwrap_or_default();
    let peers = if_allowed(here.list::<OffloadPeer>(None, "").await)?.unwrap_or_default();
    let hosted: Vec<_> = hosted.into_iter().map(|twin| twin.name).collect();
    let offloaded = with_twins(offloaded, &peers);
    for (twins, names) in [
        ("twins of other clusters here", hosted),
        ("twins that these Namespaces have in other clusters", offloaded),
    ] {
        if !names.is_empty() {
            here.say(&format!("{twins} go with all that is in them: {}", list(&names)));
        }
    }
    Ok(())
}

/// Namespaces that have twins in other clusters, also those whose NamespaceOffloading vanished.
fn with_twins(offloaded: Vec<Object>, peers: &[Object]) -> Vec<String> {
    let peers: Vec<_> = peers.iter().filter_map(Object::view::<OffloadPeerView>).collect();
    let vanished = Vanished::new(None, &peers);
    let offloaded = offloaded.into_iter().filter_map(|offloading| offloading.namespace);
    let all: BTreeSet<_> = offloaded.chain(vanished.namespaces().map(str::to_owned)).collect();
    all.into_iter().collect()
}

/// The twins that the member of this cluster made, of whatever home; none where nobody knows its ID.
async fn twins(here: &Eraser<'_>, us: Option<&str>) -> Result<Vec<Object>, Error> {
    let Some(us) = us else { return Ok(Vec::new()) };
    let mut twins = here.list_written::<Namespace>(&mark()).await?;
    twins.retain(|twin| names::is_twin(&twin.metadata(), us));
    Ok(twins)
}

/// Selects what has the mark of a twin, also copies of one.
fn mark() -> String {
    format!("{}={},{}", general::MANAGED_BY, general::FREEPORT, label::REMOTE_CLUSTER_ID)
}

/// Nothing asks the webhook any more.
pub(super) async fn forget_webhook(here: &mut Eraser<'_>) -> Result<(), Error> {
    let forgotten = here.delete_ours(&webhook::configuration(None)).await;
    match is_set_up(here).await? {
        true => forgotten,
        false => if_allowed(forgotten).map(drop),
    }
}

/// Does the member's work: Namespaces of this cluster are its own again, and those of others go. What has our mark goes also where the
/// CRD of OffloadPeers was deleted before.
pub(super) async fn clear(here: &mut Eraser<'_>, us: Option<&str>) -> Result<(), Error> {
    forget_webhook(here).await?;
    if is_set_up(here).await? {
        give_back(here).await?;
        return take_away(here, us).await;
    }
    if_allowed(take_away(here, us).await).map(drop)
}

/// Namespaces are not offloaded any more, and no NamespaceOffloading is waited for.
async fn give_back(here: &mut Eraser<'_>) -> Result<(), Error> {
    let offloaded = format!("{}={}", label::SCHEDULING_ENABLED, general::TRUE);
    for namespace in here.list::<Namespace>(None, &offloaded).await? {
        let none = json!({"metadata": {"labels": {label::SCHEDULING_ENABLED: null}}});
        here.change(&namespace, &none, "not offloaded").await?;
    }
    for offloading in here.list::<NamespaceOffloading>(None, "").await? {
        release(here, offloading, label::FINALIZER, "not waited for").await?;
    }
    Ok(())
}

/// Nodes and twins that the member made.
async fn take_away(here: &mut Eraser<'_>, us: Option<&str>) -> Result<(), Error> {
    let ours = format!("{}={}", general::MANAGED_BY, general::FREEPORT);
    let nodes = format!("{ours},{}={}", label::TYPE, label::VIRTUAL_NODE);
    let mut nodes = here.list_written::<Node>(&nodes).await?;
    nodes.retain(is_virtual_node);
    here.delete_all(&nodes).await?;
    let twins = twins(here, us).await?;
    here.delete_all(&twins).await?;
    let is_deleted = |name: &String| twins.iter().any(|twin| twin.name == *name);
    let left = here.list::<Namespace>(None, &mark()).await?.into_iter();
    // One that somebody is deleting already needs no word.
    let left = left.filter(|namespace| namespace.metadata().deletion_timestamp.is_none());
    let left: Vec<_> = left.map(|namespace| namespace.name).filter(|name| !is_deleted(name)).collect();
    if !left.is_empty() {
        here.say(&format!(
            "left Namespaces as they are, since nothing proves that freeport-member made them in this cluster: {}; delete them if nobody needs \
             them",
            list(&left)
        ));
    }
    Ok(())
}

/// Reports whether the Node has the name of the cluster for which its label says that it is. A copy has another one.
fn is_virtual_node(node: &Object) -> bool {
    let labels = node.metadata().labels.unwrap_or_default();
    let is_of = |of: &str| labels.get(label::REMOTE_CLUSTER_ID).is_none_or(|id| id == of);
    names::of_virtual_node(&node.name).is_some_and(is_of)
}

/// Takes back what member `id` wanted of others, waits until those that run have let go of it, and deletes its maps, offers and
/// ShadowPods.
pub(super) async fn withdraw(
    there: &mut Eraser<'_>,
    area: &str,
    id: &str,
    limit: Duration,
) -> Result<(), Error> {
    let maps = let_go(there, area, id, limit).await?;
    // A host that does not run now deletes its twins by what the map withdraws, when it is back.
    for map in &maps {
        let (_, host) = names::of_namespace_map(&map.name).unwrap_or_default();
        // A host without a Lease does not belong to the set, or not any more: nobody waits for its word.
        let may_answer = has_unseen_end(map) && lease(there.cluster, area, host).await?.is_some();
        match has_twins(map) || may_answer {
            true => there
                .say(&format!("{map} stays until the host, which does not run now, has deleted its twins")),
            false => there.delete(map).await?,
        }
    }
    // Homes that still want something of it write theirs again; what it said it holds is gone with it.
    for map in maps_of(there, area, |_, host| host == id).await? {
        there.delete(&map).await?;
    }
    for offer in there.list::<OffloadOffer>(Some(area), "").await? {
        if names::of_offer(&offer.name).is_some_and(|(host, _)| host == id) {
            there.delete(&offer).await?;
        }
    }
    // Its Pods went with its twins, or go with them when their host is back. Homes whose Pods ran there write theirs again, while
    // they have that Node.
    for pod in there.list::<ShadowPod>(Some(area), "").await? {
        if names::of_shadow_pod(&pod.name).is_some_and(|(origin, host, _)| origin == id || host == id) {
            there.delete(&pod).await?;
        }
    }
    Ok(())
}

/// Empties the maps of member `id`, and waits until no host that runs holds twins for them. The maps as they are then.
async fn let_go(there: &mut Eraser<'_>, area: &str, id: &str, limit: Duration) -> Result<Vec<Object>, Error> {
    let (mut start, mut before) = (Instant::now(), None);
    loop {
        let maps = maps_of(there, area, |origin, _| origin == id).await?;
        // The API server may not keep what is withdrawn, if its CRD is older.
        if empty(there, &maps).await? && start.elapsed() < limit {
            tokio::time::sleep(PAUSE).await;
            continue;
        }
        let holders = holders(there, area, &maps).await?;
        if there.dry_run || holders.is_empty() {
            return Ok(maps);
        }
        let told = format!("clusters with twins of {id:?}: {}", holders.join(", "));
        if before.as_ref() != Some(&holders) {
            there.say(&format!("waiting, {told}"));
            start = Instant::now();
            before = Some(holders);
        }
        if start.elapsed() >= limit {
            return Err(Error::Timeout {
                cluster: there.cluster.name.clone(),
                missing: format!("{told}: does freeport-member there delete them?"),
                limit,
            });
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Withdraws all Namespaces in the maps. Whether that changed one, so that they are to be read again.
async fn empty(there: &mut Eraser<'_>, maps: &[Object]) -> Result<bool, Error> {
    let mut is_changed = false;
    for map in maps {
        if let Some(nothing) = emptied(map) {
            there.change(map, &nothing, "nothing is wanted any more").await?;
            is_changed = !there.dry_run;
        }
    }
    Ok(is_changed)
}

/// The maps whose origin and destination are those.
async fn maps_of(
    there: &Eraser<'_>,
    area: &str,
    are: impl Fn(&str, &str) -> bool,
) -> Result<Vec<Object>, Error> {
    let mut maps = there.list::<NamespaceMap>(Some(area), "").await?;
    maps.retain(|map| names::of_namespace_map(&map.name).is_some_and(|(origin, host)| are(origin, host)));
    Ok(maps)
}

/// Clusters that run and have twins for these maps, or have not said that they have none.
async fn holders(there: &Eraser<'_>, area: &str, maps: &[Object]) -> Result<Vec<String>, Error> {
    let mut holders = Vec::new();
    for map in maps.iter().filter(|map| has_twins(map) || has_unseen_end(map)) {
        let Some((_, host)) = names::of_namespace_map(&map.name) else { continue };
        let lease = lease(there.cluster, area, host).await?;
        if lease.is_some_and(|lease| live_holder(&lease, Timestamp::now()).is_some()) {
            holders.push(host.to_owned());
        }
    }
    Ok(holders)
}

fn has_twins(map: &Object) -> bool {
    let view = map.view::<NamespaceMapView>();
    view.and_then(|view| view.status.0.ok()).is_some_and(|status| !status.current_mapping.is_empty())
}

/// Whether the host has not seen yet that nothing is wanted any more: it may have made twins that it did not name. In the first
/// generation of a map in which nothing is wanted nothing was ever wanted.
fn has_unseen_end(map: &Object) -> bool {
    let Some(view) = map.view::<NamespaceMapView>() else { return false };
    let generation = view.metadata.generation.unwrap_or_default();
    let observed = view.status.0.ok().and_then(|status| status.observed_generation);
    generation > 1 && observed.unwrap_or_default() < generation
}

/// The patch that withdraws all Namespaces that the map desires or whose twins the host names; none if there are none.
fn emptied(map: &Object) -> Option<Value> {
    let desired = map.body.pointer("/spec/desiredMapping")?.as_object()?;
    let view = map.view::<NamespaceMapView>();
    let generation = view.as_ref().and_then(|view| view.metadata.generation).unwrap_or_default();
    let said = view.and_then(|view| view.status.0.ok()).unwrap_or_default().current_mapping;
    let before = map.body.pointer("/spec/withdrawn").and_then(Value::as_object);
    let is_new = |name: &String| before.is_none_or(|before| !before.contains_key(name));
    let names: BTreeSet<_> = desired.keys().chain(said.keys().filter(|name| is_new(name))).collect();
    let withdrawn: Map<String, Value> =
        names.iter().map(|name| ((*name).clone(), json!(generation))).collect();
    let none: Map<String, Value> = desired.keys().map(|name| (name.clone(), Value::Null)).collect();
    (!withdrawn.is_empty()).then(|| json!({"spec": {"desiredMapping": none, "withdrawn": withdrawn}}))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eraser::called;

    #[test]
    fn a_map_is_emptied_key_by_key() {
        let map = |spec: Value, said: Value| Object {
            body: json!({"metadata": {"name": "1.east.west", "generation": 7}, "spec": spec, "status": {"currentMapping": said}}),
            ..called::<NamespaceMap>("clusterset-demo", "1.east.west")
        };
        let desired = |desired: Value| map(json!({"desiredMapping": desired}), json!({}));
        let none = json!({"shop": null, "web": null});
        let want = json!({"spec": {"desiredMapping": none, "withdrawn": {"shop": 7, "web": 7}}});
        assert_eq!(emptied(&desired(json!({"shop": "shop-east", "web": 1}))), Some(want));
        assert_eq!(emptied(&desired(json!({}))), None);
        assert_eq!(emptied(&desired(json!("garbled"))), None);
        let entry = json!({"phase": "Accepted"});
        let left = json!({"shop": entry, "web": entry});
        let want = json!({"spec": {"desiredMapping": {}, "withdrawn": {"web": 7}}});
        let withdrawn = json!({"desiredMapping": {}, "withdrawn": {"shop": 3}});
        assert_eq!(emptied(&map(withdrawn, left)), Some(want), "a twin that only the host names");
    }

    #[test]
    fn twins_of_vanished_offloadings_are_named_too() {
        let shop = called::<NamespaceOffloading>("shop", "offloading");
        let lost = json!({"shop": "shop-west", "web": "web"});
        let peer = json!({"metadata": {"name": "east"}, "spec": {}, "status": {"lostOffloadings": lost}});
        let peer = Object { body: peer, ..called::<OffloadPeer>("", "east") };
        assert_eq!(with_twins(vec![shop], &[peer]), ["shop", "web"]);
        assert_eq!(with_twins(vec![], &[]), [""; 0]);
    }

    #[test]
    fn a_virtual_node_has_the_name_of_its_cluster() {
        let is_virtual_node = |name: &str| {
            let labels = json!({label::REMOTE_CLUSTER_ID: "east"});
            let body = json!({"metadata": {"name": name, "labels": labels}});
            is_virtual_node(&Object { body, ..called::<Node>("", name) })
        };
        assert!(is_virtual_node("freeport-east"));
        assert!(!is_virtual_node("spare") && !is_virtual_node("freeport-spare"), "copies");
    }

    #[test]
    fn twins_are_what_the_host_says() {
        let of = |generation: i64, status: Value| Object {
            body: json!({"metadata": {"name": "1.east.west", "generation": generation}, "status": status}),
            ..called::<NamespaceMap>("clusterset-demo", "1.east.west")
        };
        let map = |status| of(1, status);
        let entry = json!({"remoteNamespace": "shop-east", "phase": "Terminating"});
        assert!(has_twins(&map(json!({"currentMapping": {"shop": entry}}))));
        assert!(!has_twins(&map(json!({"currentMapping": {}}))) && !has_twins(&map(Value::Null)));
        assert!(!has_unseen_end(&of(1, Value::Null)), "nothing was ever wanted");
        assert!(
            has_unseen_end(&of(2, Value::Null)),
            "a hub that was emptied, and a host that was not back since"
        );
        assert!(has_unseen_end(&of(2, json!({"currentMapping": {}, "observedGeneration": 1}))));
        assert!(!has_unseen_end(&of(2, json!({"currentMapping": {}, "observedGeneration": 2}))));
    }
}
