//! The provider is restored from a backup that knows less, and more, than there was.

use std::time::Duration;

use api::bind::binding::ClusterBinding;
use e2e::{
    binding::{
        BINDING, Offered, becomes, bind_with, binding_says,
        provider::{contract_for, granted},
        vanishes,
    },
    cluster::Cluster,
    seen::event,
    waiting::{FIVE_MINUTES, eventually, within},
    world::World,
};
use futures::{StreamExt, stream};
use k8s_openapi::{api::core::v1::ConfigMap, jiff::Timestamp};
use kube::{
    Api,
    api::{DeleteParams, DynamicObject, Patch, PatchParams},
};
use serde_json::json;

use super::super::konnector::unbind;

/// Has the konnector's watches hear of the newest version there is.
async fn is_heard(leader: &Cluster, cns: &str, copies: &Api<DynamicObject>, objects: &Api<DynamicObject>) {
    let (bindings, with) = (leader.api::<ClusterBinding>(cns), PatchParams::default());
    let heard = json!({"metadata": {"annotations": {"example.com/heard": ""}}});
    bindings.patch("cluster", &with, &Patch::Merge(&heard)).await.unwrap();
    let status = Patch::Merge(json!({"status": {"phase": "Heard"}}));
    copies.patch_status("kept", &with, &status).await.unwrap();
    becomes("has the status", objects, "kept", |object| object.data["status"]["phase"] == "Heard").await;
}

/// Waits until copies are certainly younger than the konnector: one whose object it has not seen it takes back only where the copy was made
/// five minutes after the konnector began, or later.
async fn runs_for_long(world: &World, konnector: &str) {
    const LONG: Duration = Duration::from_secs(310);
    within(FIVE_MINUTES, "the konnector runs for long enough", || async {
        let begun = world.metrics(konnector).await?.sum("process_start_time_seconds");
        let age = Timestamp::now().duration_since(Timestamp::UNIX_EPOCH).as_secs_f64() - begun;
        if age > LONG.as_secs_f64() { Ok(()) } else { Err(format!("{age:.0} s")) }
    })
    .await;
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

#[e2e::test(real)]
fn a_provider_that_is_restored_is_read_anew_and_statuses_flow_again() {
    BINDING.alone(async |world| {
        // Nobody restores this one: after that, too, no copy is taken back whose object was not seen.
        runs_for_long(world, "freeport-member-west").await;
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
        is_heard(leader, &cns, &there, &here).await;
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
