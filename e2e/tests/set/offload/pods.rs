//! Pods of a home at their host. The clusters have no nodes: tests bind Pods, and are the host's kubelet.

pub(super) mod world;

use api::offload::{
    namespace::{NamespaceOffloading, PODS_ACCEPTED},
    pod_status::ACCEPTED,
    shadow_pod::ShadowPod,
};
use e2e::{
    fixture::{AREA, World},
    seen::event,
    waiting::{always, eventually},
};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ListParams},
};
use serde_json::{Value, json};

use self::world::{bind, bind_with, is, kubelet_says, no_record, offloaded, twin_pod, twin_pod_gone};
use super::world::{OFFLOADING, agreed, gone, measures, offload, peer, phase};

#[e2e::test]
fn a_pod_runs_at_its_host_and_says_so_at_home() {
    OFFLOADING.alone(async |world| {
        let (west, east) = (world.cluster("west"), world.cluster("east"));
        let (ns, twin) = offloaded(world, "runs").await;
        let pod = bind(west, &ns, "web").await;
        let there = twin_pod(world, &twin, "web", None).await;
        assert_eq!(there.labels()["liqo.io/managed-by"], "shadowpod");
        assert_eq!(there.labels()["app"], "web");
        let spec = there.spec.clone().unwrap();
        assert_eq!((spec.node_name, spec.automount_service_account_token), (None, Some(false)));
        let name = format!("1.west.east.{}", pod.uid().unwrap());
        let records = world.leader().api::<ShadowPod>(AREA);
        let record = serde_json::to_string(&records.get(&name).await.unwrap()).unwrap();
        assert!(!record.contains("a word for the host alone"), "every member reads it: {record}");

        kubelet_says(east, &twin, "web", running("10.99.0.7")).await;
        let here = is(world, &ns, "web", "Running", "").await;
        let status = here.status.clone().unwrap();
        assert_eq!(
            (status.pod_ip.as_deref(), status.qos_class.as_deref()),
            (Some("10.99.0.7"), Some("BestEffort"))
        );
        assert_eq!(status.container_statuses.unwrap()[0].restart_count, 2);
        for (daemon, metric, label, is) in [
            ("freeport-member-west", "freeport_offload_pods", "cluster=\"east\",phase", "Running"),
            ("freeport-member-west", "freeport_offload_namespaces", "phase", "Ready"),
            ("freeport-member-east", "freeport_offload_hosted_pods", "cluster=\"west\",phase", "Running"),
            ("freeport-member-east", "freeport_offload_twins", "cluster=\"west\",phase", "Accepted"),
        ] {
            measures(world, daemon, (metric, label, is), 1.0).await;
        }

        records.delete(&name, &DeleteParams::default()).await.unwrap();
        eventually("the record is written again, and the host answers", || async {
            let record = records.get(&name).await.map_err(|error| error.to_string())?;
            let said = record.status.and_then(|status| status.pod).and_then(|pod| pod.phase);
            if said.as_deref() == Some("Running") { Ok(()) } else { Err(format!("{said:?}")) }
        })
        .await;
        assert_eq!(twin_pod(world, &twin, "web", None).await.uid(), there.uid());

        east.delete::<Pod>(&twin, "web").await;
        let again = twin_pod(world, &twin, "web", there.uid()).await;
        assert_eq!(
            west.api::<Pod>(&ns).get("web").await.unwrap().uid(),
            pod.uid(),
            "of which the home knows nothing"
        );
        kubelet_says(east, &twin, "web", running("10.99.0.8")).await;
        eventually("the home has the new address", || async {
            let status = west.api::<Pod>(&ns).get("web").await.unwrap().status.unwrap_or_default();
            if status.pod_ip.as_deref() == Some("10.99.0.8") { Ok(()) } else { Err(format!("{status:?}")) }
        })
        .await;

        west.delete::<Pod>(&ns, "web").await;
        twin_pod_gone(world, &twin, "web").await;
        eventually("the Pod is gone at home", || async {
            match west.api::<Pod>(&ns).get_opt("web").await.unwrap() {
                None => Ok(()),
                Some(pod) => Err(format!("{:?}; {}", pod.metadata, world.log_tail("freeport-member-west"))),
            }
        })
        .await;
        no_record(world, &name).await;
        assert_ne!(again.uid(), there.uid());
        unoffload(world, &ns, &twin).await;
    });
}

/// How a container of the Pod runs there.
pub(super) fn running(address: &str) -> Value {
    let container = json!({"name": "main", "image": "i", "imageID": "x", "ready": true, "restartCount": 2,
        "started": true, "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}});
    json!({
        "phase": "Running", "startTime": "2026-01-01T00:00:00Z", "podIP": address, "podIPs": [{"ip": address}],
        "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}],
        "containerStatuses": [container],
    })
}

async fn unoffload(world: &World, ns: &str, twin: &str) {
    world.cluster("west").delete::<NamespaceOffloading>(ns, "offloading").await;
    gone(world, "east", twin).await;
    world.release(ns).await;
}

#[e2e::test]
fn what_cannot_run_elsewhere_or_not_yet_says_why() {
    OFFLOADING.alone(async |world| {
        let (west, east) = (world.cluster("west"), world.cluster("east"));
        agreed(world).await;
        let ns = world.namespace("waits", &["west"]).await;
        bind(west, &ns, "early").await;
        is(world, &ns, "early", "Pending", "OffloadingBackOff").await;
        bind(west, &ns, "never").await;
        is(world, &ns, "never", "Pending", "OffloadingBackOff").await;
        west.delete::<Pod>(&ns, "never").await;
        eventually("a Pod that never went out goes at once", || async {
            let there = west.api::<Pod>(&ns).get_opt("never").await.unwrap();
            there.map_or(Ok(()), |pod| Err(format!("{:?}", pod.metadata)))
        })
        .await;
        offload(world, &ns, json!({"podOffloadingStrategy": "Local"})).await;
        phase(world, &ns, "Ready").await;
        twin_pod(world, "waits-west", "early", None).await;

        let volumes = json!({"volumes": [{"name": "conf", "configMap": {"name": "conf"}}]});
        bind_with(west, &ns, "bound", volumes).await;
        let bound = is(world, &ns, "bound", "Pending", "OffloadingRefused").await;
        let message = bound.status.as_ref().unwrap().message.clone().unwrap();
        assert!(message.contains("spec.volumes[conf].configMap"), "{message}");
        let (reason, why) = refusal(&bound).unwrap();
        assert!(
            reason == "OffloadingRefused" && why.contains("spec.volumes[conf].configMap"),
            "{reason}: {why}"
        );
        eventually("an Event says so", || event(west, &ns, "bound", "OffloadingRefused")).await;
        refused_pods_are_named(world, &ns, &["bound"]).await;
        west.delete::<Pod>(&ns, "bound").await;
        refused_pods_are_named(world, &ns, &[]).await;

        let claims = running("127.0.0.1");
        kubelet_says(east, "waits-west", "early", claims).await;
        let early = is(world, &ns, "early", "Running", "").await;
        assert_eq!(early.status.unwrap().pod_ip, None, "no Pod of another cluster is at home");
        eventually("it is said", || event(west, &ns, "early", "AddressRefused")).await;
        a_host_runs_no_more_than_its_consent_allows(world, &ns, "waits-west").await;
        unoffload(world, &ns, "waits-west").await;
    });
}

/// The NamespaceOffloading names Pods that are refused at virtual nodes while there are some, also to a member that starts meanwhile.
async fn refused_pods_are_named(world: &World, ns: &str, names: &[&str]) {
    let offloadings = world.cluster("west").api::<NamespaceOffloading>(ns);
    eventually("refused Pods are named", || async {
        let conditions = offloadings.get("offloading").await.unwrap().status.unwrap_or_default().conditions;
        let refused = conditions.into_iter().find(|condition| condition.type_ == PODS_ACCEPTED);
        match (&refused, names) {
            (None, []) => Ok(()),
            (Some(refused), [_, ..])
                if refused.status == "False" && names.iter().all(|name| refused.message.contains(name)) =>
            {
                Ok(())
            }
            _ => Err(format!("{refused:?}")),
        }
    })
    .await;
}

/// Reason and message of the condition that the Pod is refused.
fn refusal(pod: &Pod) -> Option<(String, String)> {
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    let refused =
        conditions.iter().find(|condition| condition.type_ == ACCEPTED && condition.status == "False")?;
    Some((refused.reason.clone()?, refused.message.clone()?))
}

/// Pods without requests are there already.
async fn a_host_runs_no_more_than_its_consent_allows(world: &World, ns: &str, twin: &str) {
    let (west, east) = (world.cluster("west"), world.cluster("east"));
    let allowed =
        async |cpu: Value| peer(east, "west", json!({"incoming": {"resources": {"cpu": cpu}}})).await;
    let bind = async |name: &str, cpu: &str| {
        let container = json!({"name": "main", "image": "i", "resources": {"requests": {"cpu": cpu}}});
        bind_with(west, ns, name, json!({"containers": [container]})).await
    };
    allowed(json!("1")).await;
    let nodes = Api::<Node>::all(west.client.clone());
    eventually("the Node has no more", || async {
        let capacity = nodes.get("freeport-east").await.unwrap().status.unwrap().capacity.unwrap();
        if capacity["cpu"].0 == "1" { Ok(()) } else { Err(format!("{capacity:?}")) }
    })
    .await;
    bind("large", "800m").await;
    let large = twin_pod(world, twin, "large", None).await;
    bind("beyond", "300m").await;
    let refused = is(world, ns, "beyond", "Pending", "ResourcesExceeded").await;
    let (reason, why) = refusal(&refused).unwrap();
    let message = refused.status.unwrap().message.unwrap();
    assert_eq!((reason.as_str(), &why), ("ResourcesExceeded", &message));
    assert!(message.contains("allows 1 of cpu, of which its Pods take 800m"), "{message}");
    eventually("an Event says so", || event(west, ns, "beyond", "HostRefused")).await;

    allowed(json!("1100m")).await;
    twin_pod(world, twin, "beyond", None).await;
    assert_eq!(refusal(&is(world, ns, "beyond", "Pending", "").await), None);
    allowed(json!("100m")).await;
    bind("small", "50m").await;
    is(world, ns, "small", "Pending", "ResourcesExceeded").await;
    assert_eq!(twin_pod(world, twin, "large", None).await.uid(), large.uid(), "those that are there stay");
    allowed(Value::Null).await;
    twin_pod(world, twin, "small", None).await;
}

#[e2e::test]
fn a_pod_ends_by_decision_only() {
    OFFLOADING.alone(async |world| {
        let (west, east) = (world.cluster("west"), world.cluster("east"));
        let (ns, twin) = offloaded(world, "ends").await;
        let finished = bind(west, &ns, "job").await;
        twin_pod(world, &twin, "job", None).await;
        let done = json!({"phase": "Succeeded", "startTime": "2026-01-01T00:00:00Z"});
        kubelet_says(east, &twin, "job", done).await;
        is(world, &ns, "job", "Succeeded", "").await;

        let forced = bind(west, &ns, "forced").await;
        twin_pod(world, &twin, "forced", None).await;
        let at_once = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
        west.api::<Pod>(&ns).delete("forced", &at_once).await.unwrap();
        twin_pod_gone(world, &twin, "forced").await;
        no_record(world, &format!("1.west.east.{}", forced.uid().unwrap())).await;

        bind(west, &ns, "web").await;
        let there = twin_pod(world, &twin, "web", None).await;
        kubelet_says(east, &twin, "web", running("10.99.0.9")).await;
        is(world, &ns, "web", "Running", "").await;
        for daemon in ["freeport-member-west", "freeport-member-east"] {
            world.end(daemon, e2e::daemon::End::Stop).await;
            world.launch(daemon).await;
        }
        world.member_says("west", ("True", "Connected")).await;
        always("a restart takes nothing along", || async {
            let now = east.api::<Pod>(&twin).get("web").await.map_err(|error| error.to_string())?;
            if now.uid() == there.uid() { Ok(()) } else { Err(format!("{:?}", now.metadata)) }
        })
        .await;
        west.delete::<NamespaceOffloading>(&ns, "offloading").await;
        gone(world, "east", &twin).await;
        is(world, &ns, "web", "Failed", "OffloadingAborted").await;
        let job = west.api::<Pod>(&ns).get("job").await.unwrap();
        assert_eq!(job.uid(), finished.uid());
        assert_eq!(job.status.unwrap().phase.as_deref(), Some("Succeeded"));
        eventually("no record is left", || async {
            let left = world.leader().api::<ShadowPod>(AREA).list(&ListParams::default()).await.unwrap();
            let ours = left.iter().filter(|record| record.spec.origin == "west");
            let left: Vec<_> = ours.map(ResourceExt::name_any).collect();
            if left.is_empty() { Ok(()) } else { Err(format!("{left:?}")) }
        })
        .await;
        world.release(&ns).await;
    });
}
