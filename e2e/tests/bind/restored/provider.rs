//! The provider is restored from a backup that knows less, and more, than there was.

use api::bind::binding::ClusterBinding;
use e2e::{
    binding::{
        BINDING, Offered, becomes, bind_with, binding_says,
        provider::{contract_for, granted},
        vanishes,
    },
    cluster::Cluster,
    seen::event,
    waiting::eventually,
};
use futures::{StreamExt, stream};
use k8s_openapi::{
    api::core::v1::ConfigMap,
    jiff::{SignedDuration, Timestamp},
};
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;

use super::super::konnector::unbind;

/// Has the konnector beat within half a minute: another one seems to have written the last heartbeat. That is put back at once where ours is
/// old, and otherwise half a minute after it.
async fn beats_soon(leader: &Cluster, cns: &str) {
    const OTHER: &str = "another";
    let other = json!({"status": {"konnectorVersion": OTHER}});
    let bindings = leader.api::<ClusterBinding>(cns);
    let write = async || {
        bindings.patch_status("cluster", &PatchParams::default(), &Patch::Merge(&other)).await.unwrap();
    };
    write().await;
    eventually("the konnector answers, or is going to", || async {
        let said = bindings.get("cluster").await.unwrap().status.unwrap_or_default();
        let beat = said.last_heartbeat_time.as_ref().map(|beat| Timestamp::now().duration_since(beat.0));
        let is_recent = beat.is_some_and(|age| age < SignedDuration::from_secs(20));
        let is_answered = said.konnector_version.as_deref() != Some(OTHER);
        if is_answered || is_recent { Ok(()) } else { Err(format!("{said:?}")) }
    })
    .await;
    write().await;
}

/// Many versions pass: whose watches go on at the version they were at hears nothing for longer than any test waits.
async fn much_is_written(leader: &Cluster, namespace: &str) {
    const WRITES: usize = 1500;
    let write = |nth: usize| async move {
        let filler = json!({"metadata": {"name": format!("filler-{nth}")}});
        let _: ConfigMap = leader.create(namespace, filler).await;
    };
    stream::iter(0..WRITES).map(write).buffer_unordered(16).collect::<Vec<_>>().await;
}

#[test]
fn a_provider_that_is_restored_is_read_anew_and_statuses_flow_again() {
    BINDING.alone(async |world| {
        // Nobody restores this one: for five minutes after that no copy is taken back whose object was not seen.
        let (leader, west) = (world.leader(), world.cluster("west"));
        let offered = Offered::new("rewinds", "Namespaced");
        let (cns, kubeconfig) = contract_for(world, "rewound-west", &[&offered]).await;
        granted(world, &cns, &offered).await;
        bind_with(west, "rewinds", &offered, kubeconfig).await;
        let ns = world.namespace("bind-rewound", &["west"]).await;
        let (here, there_ns) = (offered.objects(west, Some(&ns)), format!("{cns}-{ns}"));
        let there = offered.objects(leader, Some(&there_ns));
        let spec = || json!({"spec": {"size": "l"}});
        for name in ["kept", "gone"] {
            offered.create(west, Some(&ns), name, spec()).await;
            becomes("is at the provider", &there, name, |_| true).await;
        }
        let backup = world.back_up("leader").await;

        offered.create(west, Some(&ns), "late", spec()).await;
        becomes("is at the provider", &there, "late", |_| true).await;
        here.delete("gone", &DeleteParams::default()).await.unwrap();
        vanishes(&here, "gone").await;
        much_is_written(leader, &there_ns).await;
        beats_soon(leader, &cns).await;
        world.restore(&backup).await;

        eventually("the binding says so", || event(west, "default", "rewinds", "ProviderRestored")).await;
        becomes("is made again", &there, "late", |_| true).await;
        vanishes(&there, "gone").await;
        let status = Patch::Merge(json!({"status": {"phase": "Ready"}}));
        for name in ["kept", "late"] {
            there.patch_status(name, &PatchParams::default(), &status).await.unwrap();
            becomes("has the status", &here, name, |object| object.data["status"]["phase"] == "Ready").await;
        }
        binding_says(world, "west", "rewinds", "Ready", "True", "").await;

        // The leader hears of what is new as well.
        let new = world.namespace("bind-rewound-new", &["west"]).await;
        offered.create(west, Some(&new), "foo", spec()).await;
        let there = offered.objects(leader, Some(&format!("{cns}-{new}")));
        becomes("is at the provider", &there, "foo", |_| true).await;
        unbind(world, "west", &offered).await;
        for namespace in [&ns, &new] {
            world.release(namespace).await;
        }
        leader.release_namespace(&cns).await;
        leader.take_crd(&offered.name()).await;
    });
}
