//! What is written when nothing changes.

use std::{
    ops::RangeInclusive,
    time::{Duration, Instant},
};

use api::bind::binding::ClusterBinding;
use e2e::{
    audit,
    binding::{
        BINDING, Offered, becomes, bind_with, binding_says,
        provider::{contract_for, granted},
        vanishes,
    },
    daemon::{End, LEADER},
    metrics::Metrics,
    waiting::eventually,
    world::World,
};
use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api,
    api::{DeleteParams, Patch, PatchParams},
};
use serde_json::json;

use super::konnector::unbind;

const KONNECTOR: &str = "freeport-member-east";

fn is_heartbeat(write: &str) -> bool {
    write.contains("/clusterbindings/cluster/status")
}

/// Without heartbeats.
fn writes(world: &World, mark: &audit::Mark) -> Vec<String> {
    let all = audit::writes(world, mark).into_iter();
    all.filter(|write| !is_heartbeat(write)).collect()
}

/// No fewer and no more heartbeats than are due, of a konnector that has begun so many times.
fn heartbeats_are_due(world: &World, (mark, begun): (&audit::Mark, Instant), times: RangeInclusive<u64>) {
    const EVERY: u64 = 150;
    let beats = audit::writes(world, mark).into_iter().filter(|write| is_heartbeat(write));
    // A write that somebody else's had overtaken (409) wrote nothing.
    let arrived = |write: &String| write.contains(":kube-binder ") && write.trim_end().ends_with("200");
    let beats: Vec<_> = beats.filter(arrived).collect();
    let due = *times.start()..=times.end() + begun.elapsed().as_secs() / EVERY;
    assert!(due.contains(&(beats.len() as u64)), "{due:?} are due: {beats:#?}");
}

async fn quiet(world: &World) {
    const PAUSE: Duration = Duration::from_secs(2);
    eventually("nothing is written any more", || async {
        let mark = audit::mark(world);
        tokio::time::sleep(PAUSE).await;
        match writes(world, &mark)[..] {
            [] => Ok(()),
            ref writes => Err(format!("{writes:?}")),
        }
    })
    .await;
}

/// Waits until the daemon measures at least `least`: after a crash nobody is the konnector for a while.
async fn measured(world: &World, daemon: &str, (metric, label, is): (&str, &str, &str), least: f64) {
    eventually(&format!("{daemon} measures {metric} of {is}"), || async {
        let metrics = Metrics::read(world.daemon(daemon).listen).await.map_err(|error| error.to_string())?;
        match metrics.of(metric, label, is) {
            Some(value) if value >= least => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
}

/// How often the leader looked at something of a contract.
async fn looked(world: &World) -> Vec<(String, f64)> {
    let metrics = Metrics::read(world.daemon(LEADER).listen).await.unwrap();
    let all = metrics.by("freeport_reconcile_total", "controller").into_iter();
    all.filter(|(controller, _)| controller.starts_with("bind-")).collect()
}

/// Whatever a konnector says of itself, and however often: nobody else has to do anything.
async fn heartbeats_wake_no_controller(world: &World, cns: &str) {
    let beats = world.leader().api::<ClusterBinding>(cns);
    // Requests of other tests may go meanwhile, ten minutes after their answers.
    let (mark, begun) = eventually("no controller looks at anything", || async {
        let (mark, begun, before) = (audit::mark(world), Instant::now(), looked(world).await);
        for nth in 0..20 {
            let beat = Patch::Merge(json!({"status": {"heartbeatInterval": format!("{nth}m0s")}}));
            beats.patch_status("cluster", &PatchParams::default(), &beat).await.unwrap();
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        let now = looked(world).await;
        if now == before { Ok((mark, begun)) } else { Err(format!("{before:?}, then {now:?}")) }
    })
    .await;
    // Another konnector that says otherwise each time does not make ours answer each time; it has two credentials of the contract.
    heartbeats_are_due(world, (&mark, begun), 0..=2);
}

/// While no konnector runs.
async fn a_namespace_that_goes_meanwhile_is_taken_back(world: &World, offered: &Offered, cns: &str) {
    let (leader, east) = (world.leader(), world.cluster("east"));
    let ns = world.namespace("bind-meanwhile", &["east"]).await;
    offered.create(east, Some(&ns), "foo", json!({"spec": {"size": "l"}})).await;
    let there = format!("{cns}-{ns}");
    becomes("is at the provider", &offered.objects(leader, Some(&there)), "foo", |_| true).await;
    let here = offered.objects(east, Some(&ns));
    here.delete("foo", &DeleteParams::default()).await.unwrap();
    vanishes(&here, "foo").await;
    world.end(KONNECTOR, End::Stop).await;
    world.release(&ns).await;
    world.start(KONNECTOR).await;
    eventually("the provider's Namespace is gone", || async {
        match Api::<Namespace>::all(leader.client.clone()).get_opt(&there).await.unwrap() {
            None => Ok(()),
            Some(there) => Err(format!("{:?}; its log:\n{}", there.metadata, world.log_tail(KONNECTOR))),
        }
    })
    .await;
}

#[e2e::test(real)]
fn a_settled_contract_writes_heartbeats_alone_and_a_restart_nothing() {
    BINDING.alone(async |world| {
        let (leader, east) = (world.leader(), world.cluster("east"));
        let (near, far) = (Offered::new("quietnears", "Namespaced"), Offered::new("quietfars", "Cluster"));
        let (cns, kubeconfig) = contract_for(world, "quiet-east", &[&near, &far]).await;
        for offered in [&near, &far] {
            granted(world, &cns, offered).await;
        }
        let (mark, begun) = (audit::mark(world), Instant::now());
        bind_with(east, "quietnears", &near, kubeconfig.clone()).await;
        bind_with(east, "quietfars", &far, kubeconfig).await;
        let ns = world.namespace("bind-quiet", &["east"]).await;
        let spec = json!({"spec": {"size": "l", "free": {"f": 0.1, "big": 9_007_199_254_740_993_i64, "n": null, "m": {}, "l": []}}});
        near.create(east, Some(&ns), "foo", spec.clone()).await;
        far.create(east, None, "foo", spec).await;
        let status = Patch::Merge(json!({"status": {"phase": "Ready", "f": 1e-7, "l": []}}));
        for (offered, there, name) in
            [(&near, Some(format!("{cns}-{ns}")), "foo".to_owned()), (&far, None, format!("{cns}-foo"))]
        {
            let there = offered.objects(leader, there.as_deref());
            becomes("is at the provider", &there, &name, |_| true).await;
            there.patch_status(&name, &PatchParams::default(), &status).await.unwrap();
        }
        for (offered, ns) in [(&near, Some(ns.as_str())), (&far, None)] {
            let here = offered.objects(east, ns);
            becomes("has the status", &here, "foo", |object| object.data["status"]["phase"] == "Ready").await;
            binding_says(world, "east", &offered.plural, "Ready", "True", "").await;
        }
        quiet(world).await;
        heartbeats_are_due(world, (&mark, begun), 1..=2);
        heartbeats_wake_no_controller(world, &cns).await;
        quiet(world).await;
        for how in [End::Stop, End::Crash] {
            let writes = audit::while_all_are_heard(world, async |_| {
                let (mark, begun) = (audit::mark(world), Instant::now());
                for daemon in [LEADER, KONNECTOR] {
                    world.end(daemon, how).await;
                    world.start(daemon).await;
                }
                for offered in [&near, &far] {
                    measured(world, KONNECTOR, ("freeport_bind_objects", "api", &offered.name()), 1.0).await;
                    measured(world, KONNECTOR, ("freeport_bind_watches", "api", &offered.name()), 1.0).await;
                }
                measured(world, KONNECTOR, ("freeport_bind_contracts", "state", "Connected"), 2.0).await;
                measured(world, LEADER, ("freeport_bind_contracts", "state", "Exporting"), 1.0).await;
                quiet(world).await;
                heartbeats_are_due(world, (&mark, begun), 0..=1);
                writes(world, &mark)
            })
            .await;
            assert_eq!(writes, Vec::<String>::new(), "{how:?}");
        }

        // And they are not just idle.
        let change = Patch::Merge(json!({"spec": {"size": "s"}}));
        near.objects(east, Some(&ns)).patch("foo", &PatchParams::default(), &change).await.unwrap();
        let there = near.objects(leader, Some(&format!("{cns}-{ns}")));
        becomes("is changed", &there, "foo", |copy| copy.data["spec"]["size"] == "s").await;
        measured(world, KONNECTOR, ("freeport_bind_seconds_count", "direction", "up"), 1.0).await;
        a_namespace_that_goes_meanwhile_is_taken_back(world, &near, &cns).await;
        for offered in [&near, &far] {
            unbind(world, "east", offered).await;
        }
        world.release(&ns).await;
        leader.release_namespace(&cns).await;
        for offered in [&near, &far] {
            leader.take_crd(&offered.name()).await;
        }
    });
}
