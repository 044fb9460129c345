//! What offloading costs: `cargo bench -p e2e --bench offload`, or of the webhook alone with `-- placement`. Three control planes without
//! nodes: home `west`, hosts `east` and `leader`; all of them and the daemons share this machine, so ratios to the floor count and not seconds.
//!
//! `-- small` does a tenth of everything: to see that it works, not for figures.
//!
//! The floor is what the same requests cost without daemons: made by one client, as many at once as fit, in the order in which they depend
//! on each other.

#![allow(clippy::unwrap_used)]

mod floor;
mod placement;
mod set;

use std::time::Instant;

use e2e::{
    audit,
    figures::{percentiles, say},
};
use serde_json::json;

use self::set::{HOME, Offloaded, Set};

/// NamespaceOffloadings one after the other.
const ALONE: usize = 60;
/// NamespaceOffloadings at once.
const TOGETHER: usize = 200;
/// Pods one after the other.
const PODS: usize = 40;

fn is_asked_for(what: &str) -> bool {
    std::env::args().any(|argument| argument == what)
}

/// How many there are to be of what are `all` otherwise.
fn share(all: usize) -> usize {
    if is_asked_for("small") { all / 10 } else { all }
}

fn main() {
    e2e::shared::RUNTIME.block_on(async {
        if is_asked_for("placement") {
            return placement::measure().await;
        }
        let set = Set::up().await;
        one_after_the_other(&set).await;
        together(&set).await;
        Box::pin(pods(&set)).await;
        set.world.discard().await;
        placement::measure().await;
    });
}

/// From the NamespaceOffloading to `Ready`, one host; and back, where the twin is empty.
async fn one_after_the_other(set: &Set) {
    let offloaded = Offloaded::watch(set).await;
    let names: Vec<_> = (0..share(ALONE)).map(|n| format!("alone-{n}")).collect();
    set.namespaces(HOME, &names).await;
    let mut there = Vec::new();
    for name in &names {
        let begun = Instant::now();
        set.offload(
            name,
            json!({"matchExpressions": [{"key": "liqo.io/region", "operator": "In", "values": ["east"]}]}),
        )
        .await;
        there.push(offloaded.ready(name).await - begun);
    }
    say("NamespaceOffloading to Ready, one host", &percentiles(there));

    let (mut back, mut floor) = (Vec::new(), Vec::new());
    for (n, name) in names.iter().enumerate().take(10) {
        let begun = Instant::now();
        set.unoffload(name).await;
        offloaded.gone(name).await;
        back.push(begun.elapsed());
        floor.push(floor::deleted_namespace(set, &format!("floor-{n}")).await);
    }
    say("unoffload, empty twin", &percentiles(back));
    say("  Kubernetes deletes an empty Namespace", &percentiles(floor));
}

/// Many NamespaceOffloadings to two hosts at once.
async fn together(set: &Set) {
    let offloaded = Offloaded::watch(set).await;
    let many = share(TOGETHER);
    let names: Vec<_> = (0..many).map(|n| format!("together-{n}")).collect();
    set.namespaces(HOME, &names).await;
    let floor = floor::of_offloading(set, many).await;
    let mark = audit::mark(&set.world);
    let begun = Instant::now();
    futures::future::join_all(names.iter().map(|name| {
        set.offload(name, json!({"matchExpressions": [{"key": "liqo.io/region", "operator": "Exists"}]}))
    }))
    .await;
    let mut last = begun;
    for name in &names {
        last = last.max(offloaded.ready(name).await);
    }
    let took = last - begun;
    let ratio = took.as_secs_f64() / floor.as_secs_f64();
    let writes = audit::writes(&set.world, &mark);
    let of = |cluster: &str| {
        let writer = format!(" {cluster} system:serviceaccount:freeport-system:");
        writes.iter().filter(|write| write.contains(&writer)).count() as f64 / many as f64
    };
    println!(
        "{many} Namespaces to 2 hosts at once: {:.1} s, the same writes {:.1} s, {ratio:.2} times",
        took.as_secs_f64(),
        floor.as_secs_f64()
    );
    println!("  writes for each Namespace: at home {:.1}, at a host {:.1}", of(HOME), of("east"));
}

/// From Running at the host to Running at home. No kubelet runs: the test says what one would.
async fn pods(set: &Set) {
    let ns = "pods";
    set.namespaces(HOME, &[ns.to_owned()]).await;
    let offloaded = Offloaded::watch(set).await;
    set.offload(
        ns,
        json!({"matchExpressions": [{"key": "liqo.io/region", "operator": "In", "values": ["east"]}]}),
    )
    .await;
    offloaded.ready(ns).await;
    let mut took = Vec::new();
    for n in 0..share(PODS) {
        let name = format!("pod-{n}");
        set.bound_pod(ns, &name).await;
        let watched = set.running(ns, &name);
        let begun = set.runs_at_the_host(&format!("{ns}-{HOME}"), &name).await;
        took.push(watched.await - begun);
    }
    say("Running there to Running here", &percentiles(took));
}
