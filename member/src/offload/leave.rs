//! Leaving: takes our offers, ShadowPods and maps back from the Common Area; deletes the Nodes and twins that this member made, by name and
//! maker; takes finalizer, label and status from what users wrote. Safe to run twice: each step looks at what is left. Where the CRDs
//! or the rights for a kind are missing, nothing of it was made.

mod hosted;
mod pages;

use std::{
    fmt::Debug,
    time::{Duration, Instant},
};

use api::{
    label as general,
    offload::{
        label, names,
        namespace::NamespaceOffloadingStatus,
        shadow_pod::{Deletion, ShadowPodSpec},
        view::{NamespaceOffloadingView, OffloadPeerView},
    },
    view::Lenient,
};
use kit::{
    boot::Env,
    failure::{Failure, classify},
    list,
    write::{Error, Writer},
};
use kube::{Api, Client, Resource, ResourceExt, api::ListParams};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use self::pages::Records;
use super::{
    local_writer,
    pod::view::OwnShadowPod,
    view::{Namespace, OwnMap, OwnOffer, VirtualNode},
};
use crate::feature::Access;

/// For the hosts to delete our Pods and twins. That none is wanted any more is said, and enough where a host is away.
const PATIENCE: Duration = Duration::from_secs(60);
/// Between two looks at what they have done.
const PAUSE: Duration = Duration::from_secs(1);

/// Deletes our offers, and ends what we run for others; says of our Pods that they end, withdraws all twins in our maps, and deletes each
/// record once its host has nothing left. A map whose host does not answer in time stays: by it the host deletes the twins when it is back,
/// with all Pods in them.
pub(super) async fn withdraw(access: &Access) -> Result<(), Failure> {
    let Access { env, us, leader, .. } = access;
    let writer = Writer::new(leader.clone(), general::MEMBER, "leader", env.metrics.clone());
    let is_us = |field: &str| ListParams::default().fields(&format!("{field}={}", us.cluster));
    let offers = Api::<OwnOffer>::namespaced(leader.clone(), &us.common_area);
    let mut refused = Ok(());
    let mut pages = Records::of(&offers, is_us("spec.host"));
    while let Some(page) = pages.next().await? {
        for offer in page {
            acted(writer.delete(&offer, false).await, &mut refused)?;
        }
    }
    let hosted = hosted::withdraw(access, &writer).await;
    let pods = Api::<OwnShadowPod>::namespaced(leader.clone(), &us.common_area);
    let maps = Api::<OwnMap>::namespaced(leader.clone(), &us.common_area);
    let begun = Instant::now();
    loop {
        let is_late = begun.elapsed() >= PATIENCE;
        let mut is_left = false;
        let mut pages = Records::of(&pods, is_us("spec.origin"));
        while let Some(page) = pages.next().await? {
            for pod in &page {
                is_left |= acted(end(&writer, pod, is_late).await, &mut refused)?;
            }
        }
        let mut pages = Records::of(&maps, is_us("spec.origin"));
        while let Some(page) = pages.next().await? {
            for map in page.iter().filter(|_| !is_late) {
                is_left |= acted(take_back(&writer, map).await, &mut refused)?;
            }
        }
        if is_late || !is_left {
            return hosted.and(refused);
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Reports whether the record is to be looked at again. A write that its API server refuses is not waited for, and stops no other one: it goes
/// to `refused`.
fn acted(done: Result<(), Error>, refused: &mut Result<(), Failure>) -> Result<bool, Failure> {
    match done {
        Ok(()) | Err(Error::Stale | Error::Gone) => Ok(true),
        Err(error) if error.refusal().is_some() => {
            *refused = Err(error.failure());
            Ok(false)
        }
        Err(error) => Err(error.failure()),
    }
}

/// Says that the Pod ends; deletes its record when the host has ended it, or nobody waits any longer.
async fn end(writer: &Writer, pod: &OwnShadowPod, is_late: bool) -> Result<(), Error> {
    match pod.wanted() {
        Some(spec) if spec.deletion.is_none() && !is_late => {
            let spec = ShadowPodSpec { deletion: Some(Deletion::default()), ..spec.clone() };
            let want = OwnShadowPod { spec: Lenient(Ok(Some(spec))), ..pod.clone() };
            writer.put(Some(pod), &want).await.map(drop)
        }
        Some(_) if !pod.is_done() && !is_late => Ok(()),
        Some(_) | None => writer.delete(pod, false).await,
    }
}

async fn take_back(writer: &Writer, map: &OwnMap) -> Result<(), Error> {
    let is_done = map.status.0.as_ref().is_ok_and(|status| {
        // A twin that was only just made is in no entry yet.
        status.current_mapping.is_empty() && status.observed_generation >= map.metadata.generation
    });
    match map.spec.0.as_ref() {
        Ok(Some(spec)) if spec.desired_mapping.is_empty() && is_done => writer.delete(map, true).await,
        Ok(Some(spec)) => {
            let said = map.status.0.clone().unwrap_or_default();
            let emptied = spec.emptied(map.metadata.generation.unwrap_or_default(), &said);
            let want = OwnMap { spec: Lenient(Ok(Some(emptied))), ..map.clone() };
            writer.put(Some(map), &want).await.map(drop)
        }
        // Nobody acts on what cannot be read.
        Ok(None) | Err(_) => writer.delete(map, false).await,
    }
}

/// Takes the label off Namespaces and the finalizer off NamespaceOffloadings, so that nothing of ours holds them; then deletes twins
/// and Nodes. One that fails does not keep the others from being tried.
pub(super) async fn remove_imports(env: &Env, us: Option<&str>) -> Result<(), Error> {
    let (writer, client) = (&local_writer(env), &env.client);
    let mut done = Ok(());
    let scheduled = format!("{}={}", label::SCHEDULING_ENABLED, general::TRUE);
    for namespace in listed::<Namespace>(client, &scheduled).await? {
        let patch = json!({"metadata": {"labels": {label::SCHEDULING_ENABLED: Value::Null}}});
        done = done.and(gone_is_fine(writer.merge(&namespace, None, patch).await.map(drop)));
    }
    for offloading in listed::<NamespaceOffloadingView>(client, "").await? {
        if offloading.finalizers().iter().any(|finalizer| finalizer == label::FINALIZER) {
            done = done.and(writer.release(&offloading, &[label::FINALIZER]).await);
        }
    }
    let ours = ours();
    done = done.and(delete_twins(writer, client, us).await);
    let nodes = format!("{},{}={}", ours, label::TYPE, label::VIRTUAL_NODE);
    // A copy has the labels as well; the policy refuses its deletion, so leaving would never end.
    for node in listed::<VirtualNode>(client, &nodes).await?.iter().filter(|node| node.is_made_here()) {
        done = done.and(writer.delete(node, false).await);
    }
    done
}

/// What we made for or of another cluster.
fn ours() -> String {
    format!("{}={},{}", general::MANAGED_BY, general::FREEPORT, label::REMOTE_CLUSTER_ID)
}

/// Deletes the Namespaces of other clusters that are here, with all that is in them. Without our ID nothing proves that they were made here.
async fn delete_twins(writer: &Writer, client: &Client, us: Option<&str>) -> Result<(), Error> {
    let Some(us) = us else { return Ok(()) };
    let mut done = Ok(());
    for twin in listed::<Namespace>(client, &ours()).await? {
        if names::is_twin(twin.meta(), us) && !twin.is_going() {
            done = done.and(writer.delete(&twin, false).await);
        }
    }
    done
}

/// Empties the status of NamespaceOffloadings and OffloadPeers.
pub(super) async fn clear_status(env: &Env) -> Result<(), Error> {
    let (writer, client) = (&local_writer(env), &env.client);
    // An empty list, and not nothing or an empty map: the API server would take that for null.
    let nothing = json!({"conditions": []});
    let mut done = Ok(());
    for offloading in listed::<NamespaceOffloadingView>(client, "").await? {
        if offloading.status.0 != Ok(NamespaceOffloadingStatus::default()) {
            done = done.and(gone_is_fine(writer.put_status(&offloading, &nothing).await.map(drop)));
        }
    }
    for peer in listed::<OffloadPeerView>(client, "").await? {
        if peer.status.0.as_ref().is_ok_and(|status| !status.conditions.is_empty()) {
            done = done.and(gone_is_fine(writer.put_status(&peer, &nothing).await.map(drop)));
        }
    }
    done
}

fn gone_is_fine(done: Result<(), Error>) -> Result<(), Error> {
    match done {
        Err(Error::Gone) => Ok(()),
        done => done,
    }
}

/// All objects of a kind that the selector selects.
async fn listed<K>(client: &Client, selector: &str) -> Result<Vec<K>, Error>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
{
    let which = ListParams::default().labels(selector);
    match list::all(&Api::<K>::all(client.clone()), which, |object| object).await {
        Ok(objects) => Ok(objects),
        Err(error) => match classify(&error) {
            Failure::KindMissing | Failure::Forbidden(_) => Ok(vec![]),
            _ => Err(error.into()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_of_a_virtual_node_is_nobodys_to_delete() {
        let node = |name: &str, manager: &str| -> VirtualNode {
            let labels = json!({general::MANAGED_BY: general::FREEPORT, label::TYPE: label::VIRTUAL_NODE,
                label::REMOTE_CLUSTER_ID: "east"});
            let made = json!([{"manager": manager, "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {}}]);
            let metadata = json!({"name": name, "uid": "n", "labels": labels, "managedFields": made});
            serde_json::from_value(json!({ "metadata": metadata })).unwrap()
        };
        assert!(node("freeport-east", general::MEMBER).is_made_here());
        assert!(!node("freeport-east", "kubectl").is_made_here(), "somebody else wrote it");
        assert!(!node("spare", general::MEMBER).is_made_here(), "with all metadata, under another name");
        assert!(!node("freeport-spare", general::MEMBER).is_made_here());
    }
}
