//! What API binding costs: `cargo bench -p e2e --bench bind`. Provider `leader` and consumer `east`, control planes without nodes; they and
//! the daemons share this machine, so ratios to the floor count and not seconds.
//!
//! The floor is what the same requests cost without daemons: made by one client, as many at once as fit, in the order in which they depend
//! on each other.

#![allow(clippy::unwrap_used)]

mod objects;

use std::time::{Duration, Instant};

use e2e::{
    audit,
    binding::{self, Offered, bind_with, binding_says, provider},
    figures::{percentiles, say},
    world::World,
};
use futures::{StreamExt, stream};
use kube::{
    Api,
    api::{DynamicObject, Patch, PatchParams, PostParams},
};
use serde_json::json;

use self::objects::Seen;

/// Objects one after the other.
const ALONE: usize = 60;
/// Objects at once.
const TOGETHER: usize = 1000;
/// Requests at once of one client.
const AT_ONCE: usize = 16;

fn main() {
    e2e::shared::RUNTIME.block_on(async {
        let world = binding::up("bench-bind").await;
        let bound = Box::pin(Bound::new(&world)).await;
        Box::pin(one_after_the_other(&bound)).await;
        Box::pin(together(&bound)).await;
        world.discard().await;
    });
}

/// An API that `east` uses.
struct Bound<'a> {
    world: &'a World,
    offered: Offered,
    here: Api<DynamicObject>,
    there: Api<DynamicObject>,
}

impl<'a> Bound<'a> {
    async fn new(world: &'a World) -> Self {
        let (leader, east) = (world.leader(), world.cluster("east"));
        let offered = Offered::new("benches", "Namespaced");
        provider::offer(leader, &offered, json!({})).await;
        let (cns, kubeconfig) = provider::contract(world, "bench", "benches").await;
        let of = json!({"resources": [{"group": offered.resource().group, "resource": offered.plural}]});
        provider::request(world, &cns, "benches", of).await;
        bind_with(east, "benches", &offered, kubeconfig).await;
        binding_says(world, "east", "benches", "Ready", "True", "").await;
        let ns = world.namespace("bench", &["east"]).await;
        let here = offered.objects(east, Some(&ns));
        let there = offered.objects(leader, Some(&format!("{cns}-{ns}")));
        // The Namespace at the provider is there before anything is measured.
        offered.create(east, Some(&ns), "first", json!({"spec": {"size": "l"}})).await;
        binding::becomes("is at the provider", &there, "first", |_| true).await;
        Self { world, offered, here, there }
    }

    async fn create(&self, name: &str) {
        let object = self.offered.object(name, json!({"spec": {"size": "l", "opts": {"a": 1}}}));
        self.here.create(&PostParams::default(), &object).await.unwrap();
    }
}

async fn one_after_the_other(bound: &Bound<'_>) {
    let (copies, statuses) = (Seen::copies(&bound.there), Seen::statuses(&bound.here));
    let (mut up, mut down) = (Vec::new(), Vec::new());
    for n in 0..ALONE {
        let name = format!("alone-{n}");
        let begun = Instant::now();
        bound.create(&name).await;
        up.push(copies.when(&name).await - begun);
        let begun = Instant::now();
        let status = Patch::Merge(json!({"status": {"phase": "Ready"}}));
        bound.there.patch_status(&name, &PatchParams::default(), &status).await.unwrap();
        down.push(statuses.when(&name).await - begun);
    }
    say("object to copy", &percentiles(up));
    say("status there to status here", &percentiles(down));
}

async fn together(bound: &Bound<'_>) {
    let floor = Box::pin(floor(bound)).await;
    let copies = Seen::copies(&bound.there);
    let mark = audit::mark(bound.world);
    let begun = Instant::now();
    let created = (0..TOGETHER).map(|n| async move { bound.create(&format!("together-{n}")).await });
    stream::iter(created).buffer_unordered(AT_ONCE).collect::<Vec<()>>().await;
    let mut last = begun;
    for n in 0..TOGETHER {
        last = last.max(copies.when(&format!("together-{n}")).await);
    }
    let took = last - begun;
    // What follows the copies is part of the cost of the next ones.
    tokio::time::sleep(Duration::from_secs(5)).await;
    let writes = audit::writes(bound.world, &mark);
    let of = |cluster: &str| {
        let writer = format!(" {cluster} system:serviceaccount:");
        writes.iter().filter(|write| write.contains(&writer)).count() as f64 / TOGETHER as f64
    };
    println!(
        "{TOGETHER} objects at once: {:.1} s until the last copy, the same writes {:.1} s, {:.2} times",
        took.as_secs_f64(),
        floor.as_secs_f64(),
        took.as_secs_f64() / floor.as_secs_f64()
    );
    println!("  writes for each object: here {:.1}, at the provider {:.1}", of("east"), of("leader"));
}

/// Object, finalizer, copy, and the annotations of the object.
async fn floor(bound: &Bound<'_>) -> Duration {
    let other = Offered::new("floors", "Namespaced");
    let (leader, east) = (bound.world.leader(), bound.world.cluster("east"));
    other.install(leader).await;
    other.install(east).await;
    let (here, there) = (&other.objects(east, Some("default")), &other.objects(leader, Some("default")));
    let (other, begun) = (&other, Instant::now());
    let all = (0..TOGETHER).map(|n| async move {
        let name = format!("floor-{n}");
        let object = other.object(&name, json!({"spec": {"size": "l", "opts": {"a": 1}}}));
        here.create(&PostParams::default(), &object).await.unwrap();
        let patch = |metadata| Patch::Merge(json!({ "metadata": metadata }));
        let (params, held) = (PatchParams::default(), patch(json!({"annotations": {"held": "1"}})));
        here.patch(&name, &params, &held).await.unwrap();
        let copy = json!({
            "apiVersion": other.api_resource().api_version, "kind": other.api_resource().kind,
            "metadata": {"name": name}, "spec": {"size": "l", "opts": {"a": 1}},
        });
        there.patch(&name, &PatchParams::apply("floor").force(), &Patch::Apply(copy)).await.unwrap();
        let said = patch(json!({"annotations": {"there": "1", "uid": "2"}}));
        here.patch(&name, &params, &said).await.unwrap();
    });
    stream::iter(all).buffer_unordered(AT_ONCE).collect::<Vec<()>>().await;
    begun.elapsed()
}
