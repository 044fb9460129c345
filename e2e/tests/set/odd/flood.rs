//! One member floods the Common Area: with many records, with large ones, with changes; another starts and crashes again and again. Services
//! of the others are exported meanwhile, and what it took is printed, with the memory of the daemons. `FREEPORT_FLOOD=10000` for as many
//! records; in CI there are fewer.
//!
//! Nothing is asserted of times; of memory, that daemons which start while the records are there need little. The figures of a long run are in docs/operations.md, with those of the API servers alone.

mod flooder;
mod relay;

use std::{
    env,
    sync::atomic::{AtomicBool, Ordering::SeqCst},
    time::{Duration, Instant},
};

use e2e::{
    daemon::{DAEMONS, End, LEADER},
    figures::peak,
    fixture::{World, alone},
    seen::{imported, not_imported},
    waiting::{VOUCHED, eventually, within},
};
use k8s_openapi::api::{core::v1::Service, discovery::v1::EndpointSlice};

use self::{flooder::Flooder, relay::Relay};
use super::processes;

const IMPORTER: &str = "freeport-member-west";
const EXPORTS: usize = 10;
const RECORDS: usize = 400;
/// So many records of a megabyte are more than a member may have, though each of them is refused for what it says itself.
const LARGE: usize = 70;
/// Decoded, they would take 50 MB each.
const DENSE: usize = 8;
/// Decoded, they would take 4 MB each; nobody reads them.
const ENDPOINTS: usize = 80;
/// An eighth more than a member may have, since each counts as 640 KB; and the leader cannot say so: it does not run.
const SLICES: usize = 120;
/// Most memory of a daemon, in MiB: the manifests give it 512.
const MEMORY_MAX: u64 = 256;
/// Each of them costs every cluster four writes.
const IMPORTS: usize = 1000;
/// A Namespace that no cluster has, so that nobody imports what is said to be in it.
const NOWHERE: &str = "flood";

#[e2e::test]
fn a_member_that_floods_the_common_area_holds_nobody_up() {
    alone(async |world| {
        let ns = world.namespace_everywhere("quiet").await;
        let flooder = Flooder::new(world, NOWHERE).await;
        report(world, &ns, "without a flood", async |_| {}).await;
        let began = processes(world).await;
        let count = records();
        report(world, &ns, &format!("{count} records"), async |_| flooder.write(count, 0).await).await;
        report(world, &ns, &format!("changes of {count} records"), async |over| {
            flooder.change(count, over).await
        })
        .await;
        flooder.clear().await;
        report(world, &ns, &format!("{LARGE} records of 1 MB"), async |_| flooder.write(LARGE, 1000).await)
            .await;
        flooder.create(LARGE, 0).await.unwrap();
        within(VOUCHED, "the newest is refused", || flooder.over_quota()).await;
        assert_eq!(processes(world).await, began, "no daemon was started again");
        within_memory(world).await;
        flooder.write_dense(DENSE).await;
        flooder.write_endpoints(ENDPOINTS).await;
        for daemon in [LEADER, IMPORTER] {
            world.end(daemon, End::Crash).await;
        }
        flooder.write_slices(SLICES).await;
        world.launch(IMPORTER).await;
        within(VOUCHED, "the importer leaves out what is too much", || leaves_out(world)).await;
        world.launch(LEADER).await;
        report(world, &ns, "after a start beside them", async |_| {}).await;
        within_memory(world).await;
        let began = processes(world).await;
        flooder.leave().await;
        let (flooder, count) = (Flooder::new(world, &ns).await, count.min(IMPORTS));
        report(world, &ns, &format!("{count} imports"), async |_| flooder.write(count, 0).await).await;
        flooder.leave().await;
        assert_eq!(processes(world).await, began, "no daemon was started again");
        report(world, &ns, "a member that crashes again and again", async |over| crash(world, over).await)
            .await;
        world.release(&ns).await;
    });
}

#[e2e::test]
#[ignore = "measures API servers, for docs/operations.md"]
fn a_flood_without_daemons() {
    alone(async |world| {
        let ns = world.namespace_everywhere("quiet").await;
        let flooder = Flooder::new(world, NOWHERE).await;
        for daemon in DAEMONS {
            world.end(daemon, End::Stop).await;
        }
        let relay = Relay::start(world, &ns).await;
        report(world, &ns, "API servers alone, without a flood", async |_| {}).await;
        let count = records();
        report(world, &ns, &format!("API servers alone, {count} records"), async |_| {
            flooder.write(count, 0).await;
        })
        .await;
        report(world, &ns, &format!("API servers alone, changes of {count} records"), async |over| {
            flooder.change(count, over).await;
        })
        .await;
        flooder.clear().await;
        report(world, &ns, &format!("API servers alone, {LARGE} records of 1 MB"), async |_| {
            flooder.write(LARGE, 1000).await;
        })
        .await;
        flooder.leave().await;
        drop(relay);
        world.release(&ns).await;
    });
}

/// The importer has listed what other clusters export, and does not keep what is too much.
async fn leaves_out(world: &World) -> Result<(), String> {
    let left_out = world.metrics(IMPORTER).await?.sum("freeport_records_left_out");
    if left_out > 0.0 { Ok(()) } else { Err(format!("{left_out} are left out")) }
}

fn records() -> usize {
    env::var("FREEPORT_FLOOD").map_or(RECORDS, |count| count.parse().unwrap())
}

/// Exports Services one after another, again and again until the flood is over, and prints how long they took.
async fn report(world: &World, ns: &str, what: &str, flood: impl AsyncFn(&AtomicBool)) {
    let (exporter, west) = (world.leader(), world.cluster("west"));
    let (has_ended, is_enough) = (AtomicBool::new(false), AtomicBool::new(false));
    let (begun, busy) = (Instant::now(), busy(world).await);
    let flood = async {
        flood(&is_enough).await;
        has_ended.store(true, SeqCst);
    };
    let exports = async {
        let (mut times, mut longest) = (Vec::new(), 0);
        while times.len() < EXPORTS || !has_ended.load(SeqCst) {
            let begun = Instant::now();
            exporter.exported(ns, "web", &["10.1.0.1"]).await;
            eventually("imported", || imported(west, ns, "web")).await;
            times.push(begun.elapsed());
            longest = longest.max(waiting(world).await);
            exporter.unexport(ns, "web").await;
            eventually("taken back", || not_imported(west, ns, "web")).await;
            exporter.delete::<Service>(ns, "web").await;
            exporter.delete::<EndpointSlice>(ns, "web-1").await;
            is_enough.store(times.len() >= EXPORTS, SeqCst);
        }
        times.sort();
        (times, longest)
    };
    let ((), (times, longest)) = futures::join!(flood, exports);
    let median = times[times.len() / 2];
    let (busy, begun, memory) = (self::busy(world).await - busy, begun.elapsed(), memory(world).await);
    e2e::note!(
        "{what}: {} exports in {begun:.0?}, median {median:.2?}, longest {:.2?}; the daemons were busy for {busy:.1} s; at most {longest} \
         keys waited in the leader{memory}",
        times.len(),
        times.last().unwrap_or(&Duration::ZERO)
    );
}

/// For how long the daemons that run had a CPU, all together, in seconds.
async fn busy(world: &World) -> f64 {
    let mut busy = 0.0;
    for daemon in DAEMONS {
        busy += world.metrics(daemon).await.map_or(0.0, |metrics| metrics.sum("process_cpu_seconds_total"));
    }
    busy
}

/// Keys that wait in the leader now, if it runs.
async fn waiting(world: &World) -> u64 {
    world.metrics(LEADER).await.map_or(0, |metrics| metrics.sum("freeport_queue_keys") as u64)
}

/// No daemon had more than it may since it was started.
async fn within_memory(world: &World) {
    for daemon in [LEADER, IMPORTER] {
        let mebibytes = peak(world, daemon).await;
        assert!(mebibytes < MEMORY_MAX, "{daemon} had {mebibytes} MiB");
    }
}

/// What the daemons that run have resident now.
async fn memory(world: &World) -> String {
    let mut memory = String::new();
    for daemon in [LEADER, IMPORTER] {
        if let Some(mebibytes) = resident(world, daemon).await {
            memory += &format!("; {daemon} {mebibytes} MiB");
        }
    }
    memory
}

/// The same of one, in MiB.
async fn resident(world: &World, daemon: &str) -> Option<u64> {
    let metrics = world.metrics(daemon).await.ok()?;
    Some((metrics.sum("process_resident_memory_bytes") / f64::from(1 << 20)) as u64)
}

/// A member that crashes as soon as it has begun.
async fn crash(world: &World, is_enough: &AtomicBool) {
    let mut crashes = 0;
    while !is_enough.load(SeqCst) {
        world.end("freeport-member-east", End::Crash).await;
        world.launch("freeport-member-east").await;
        crashes += 1;
    }
    e2e::note!("{crashes} crashes");
}
