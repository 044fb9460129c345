//! What an importing cluster's API server does not take is said on the ServiceImport, and done when it can be.

use api::mcs::ServiceImport;
use e2e::{
    cluster::Cluster,
    fixture::shared,
    seen::{event, imported},
    waiting::eventually,
};
use k8s_openapi::api::core::v1::{ResourceQuota, Service};
use serde_json::json;

/// `Ready` of the ServiceImport `web`.
async fn ready(cluster: &Cluster, ns: &str, status: &str, reason: &str) -> Result<String, String> {
    let import = cluster.api::<ServiceImport>(ns).get_opt("web").await.unwrap().ok_or("no ServiceImport")?;
    let conditions = import.status.unwrap_or_default().conditions;
    match conditions.into_iter().find(|condition| condition.type_ == "Ready") {
        Some(ready) if (ready.status.as_str(), ready.reason.as_str()) == (status, reason) => {
            Ok(ready.message)
        }
        other => Err(format!("{other:?}")),
    }
}

#[e2e::test(real)]
fn r24_a_quota_that_leaves_no_room_is_said_and_room_is_used() {
    shared(async |world| {
        let ns = &world.namespace("quota", &["east", "west"]).await;
        let (east, west) = (world.cluster("east"), world.cluster("west"));
        let quota = json!({"metadata": {"name": "no-services"}, "spec": {"hard": {"services": "0"}}});
        let _: ResourceQuota = west.create(ns, quota).await;
        eventually("the quota counts", || async {
            let quota = west.api::<ResourceQuota>(ns).get("no-services").await.unwrap();
            quota.status.and_then(|status| status.hard).map(drop).ok_or_else(|| "not yet".to_owned())
        })
        .await;
        east.exported(ns, "web", &["10.1.0.1"]).await;
        eventually("east has it", || imported(east, ns, "web")).await;
        let message = eventually("ServiceRefused", || ready(west, ns, "False", "ServiceRefused")).await;
        for part in ["antrea-mc-web", "exceeded quota: no-services"] {
            assert!(message.contains(part), "{message}");
        }
        eventually("its Event", || event(west, ns, "web", "ServiceRefused")).await;
        west.delete::<ResourceQuota>(ns, "no-services").await;
        eventually("there is room", || imported(west, ns, "web")).await;
        eventually("its Event", || event(west, ns, "web", "Ready")).await;
        world.release(ns).await;
    });
}

#[e2e::test]
fn r46_a_local_traffic_policy_is_passed_on_and_said() {
    shared(async |world| {
        let ns = &world.namespace("local-policy", &["east", "west"]).await;
        let (east, west) = (world.cluster("east"), world.cluster("west"));
        east.exported(ns, "web", &["10.1.0.1"]).await;
        eventually("Ready", || ready(west, ns, "True", "Ready")).await;
        let _: Service = east.patch(ns, "web", &json!({"spec": {"internalTrafficPolicy": "Local"}})).await;
        eventually("said", || async {
            let message = ready(west, ns, "True", "Ready").await?;
            if message.contains("internalTrafficPolicy is Local") { Ok(()) } else { Err(message) }
        })
        .await;
        let derived = west.api::<Service>(ns).get("antrea-mc-web").await.unwrap();
        assert_eq!(derived.spec.unwrap().internal_traffic_policy.as_deref(), Some("Local"));
        world.release(ns).await;
    });
}
