//! A host that leaves: its twins go, and its homes hear so. They can hear nothing of it later.

use std::{collections::BTreeMap, time::Instant};

use api::offload::{
    pod_status::{ABORTED, PodState},
    shadow_pod::ShadowPodStatus,
};
use kit::{failure::Failure, write::Writer};
use kube::{Api, api::ListParams};
use serde_json::{Value, json};

use super::{PATIENCE, PAUSE, acted, delete_twins, local_writer, pages::Records};
use crate::{
    feature::Access,
    offload::view::{PeerMap, PeerPod},
};

/// Deletes the twins, and says of each Pod that it has ended and in each map that nothing is left, until all records say so: homes write
/// them meanwhile.
pub(super) async fn withdraw(access: &Access, leader_writer: &Writer) -> Result<(), Failure> {
    let Access { env, us, leader, .. } = access;
    let deleted = delete_twins(&local_writer(env), &env.client, Some(&us.cluster))
        .await
        .map_err(|error| error.failure());
    let is_us = ListParams::default().fields(&format!("spec.destination={}", us.cluster));
    let pods = Api::<PeerPod>::namespaced(leader.clone(), &us.common_area);
    let maps = Api::<PeerMap>::namespaced(leader.clone(), &us.common_area);
    let (begun, mut refused) = (Instant::now(), Ok(()));
    loop {
        let mut is_said = true;
        let mut pages = Records::of(&pods, is_us.clone());
        while let Some(page) = pages.next().await? {
            for pod in page {
                let want = ended(pod.status.0.as_ref().ok(), &us.cluster);
                if pod.status.0.as_ref() != Ok(&want) {
                    let said = leader_writer.put_status(&pod, &want).await.map(drop);
                    is_said &= !acted(said, &mut refused)?;
                }
            }
        }
        let mut pages = Records::of(&maps, is_us.clone());
        while let Some(page) = pages.next().await? {
            for map in page.iter().filter(|map| !has_left(map)) {
                let patch = json!({"status": left(map)});
                let said = leader_writer.merge(map, Some("status"), patch).await.map(drop);
                is_said &= !acted(said, &mut refused)?;
            }
        }
        if is_said || begun.elapsed() >= PATIENCE {
            return deleted.and(refused);
        }
        tokio::time::sleep(PAUSE).await;
    }
}

fn has_left(map: &PeerMap) -> bool {
    let said = map.status.0.as_ref().ok();
    said.is_some_and(|said| said.current_mapping.is_empty() && said.observed_generation == Some(i64::MAX))
}

/// What is said of a Pod that ends with the membership of its host.
fn ended(said: Option<&ShadowPodStatus>, us: &str) -> ShadowPodStatus {
    let said = said.cloned().unwrap_or_default();
    let before = said.pod.clone().unwrap_or_default();
    let pod = match before.is_final() {
        true => before,
        false => PodState {
            phase: Some("Failed".to_owned()),
            reason: Some(ABORTED.to_owned()),
            message: Some(format!("cluster {us} has left the ClusterSet")),
            ..before
        },
    };
    ShadowPodStatus { pod: Some(pod), deleted: true, ..said }
}

/// No entry, whatever the map asks for, in this and in any later generation.
fn left(map: &PeerMap) -> Value {
    let entries = map.status.0.as_ref().map(|status| &status.current_mapping);
    let none: BTreeMap<_, _> = entries.into_iter().flatten().map(|(name, _)| (name, Value::Null)).collect();
    json!({"currentMapping": none, "observedGeneration": i64::MAX})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_runs_ends_and_what_has_finished_stays_so() {
        let said = |phase: &str| {
            let pod = json!({"phase": phase, "podIPs": [{"ip": "10.1.0.7"}]});
            serde_json::from_value::<ShadowPodStatus>(json!({"pod": pod})).unwrap()
        };
        let ended = |said: Option<&ShadowPodStatus>| {
            let status = super::ended(said, "east");
            assert!(status.deleted);
            let pod = status.pod.unwrap();
            (pod.phase.unwrap(), pod.reason)
        };
        let aborted = ("Failed".to_owned(), Some(ABORTED.to_owned()));
        assert_eq!(ended(None), aborted);
        assert_eq!(ended(Some(&said("Running"))), aborted);
        assert_eq!(ended(Some(&said("Succeeded"))), ("Succeeded".to_owned(), None));
    }

    #[test]
    fn all_entries_go() {
        let entry = json!({"remoteNamespace": "shop-west", "phase": "Accepted"});
        let map = json!({"metadata": {"name": "1.west.east", "generation": 3}, "status": {"currentMapping": {"shop": entry}}});
        let said = left(&serde_json::from_value(map).unwrap());
        assert_eq!(said, json!({"currentMapping": {"shop": null}, "observedGeneration": i64::MAX}));
    }
}
