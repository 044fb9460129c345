//! One member floods the Common Area: with many records, with large ones, with changes; another starts and crashes again and again. Services
//! of the others are exported meanwhile, and what it took is printed, with the memory of the daemons. `FREEPORT_FLOOD=10000` for as many
//! records; in CI there are fewer.
//!
//! Nothing is asserted of times. The figures of a long run are in docs/operations.md.

use std::{
    env,
    sync::atomic::{AtomicBool, Ordering::SeqCst},
    time::{Duration, Instant},
};

use api::{
    ServiceName, name,
    resource_export::{FAILURE, OVER_QUOTA, ResourceExport},
};
use e2e::{
    daemon::{DAEMONS, End, LEADER},
    fixture::{AREA, World, alone},
    record,
    seen::{imported, not_imported},
    waiting::{VOUCHED, eventually, within},
};
use futures::{
    StreamExt,
    future::{join_all, ready},
    stream,
};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

const MEMBER: &str = "north";
const EXPORTS: usize = 10;
const RECORDS: usize = 400;
/// Requests at once.
const WRITERS: usize = 16;
/// So many records of a megabyte are more than a member may have.
const LARGE: usize = 70;

#[test]
fn a_member_that_floods_the_common_area_holds_nobody_up() {
    alone(async |world| {
        let ns = world.namespace_everywhere("quiet").await;
        let processes = processes(world).await;
        report(world, &ns, "without a flood", async |_| {}).await;
        let count = env::var("FREEPORT_FLOOD").map_or(RECORDS, |count| count.parse().unwrap());
        report(world, &ns, &format!("{count} records"), async |_| write(world, count, &Value::Null).await)
            .await;
        clear(world).await;
        let large = json!({"text": "x".repeat(1_000_000)});
        report(world, &ns, &format!("{LARGE} records of 1 MB"), async |_| write(world, LARGE, &large).await)
            .await;
        within(VOUCHED, "the newest are refused", || over_quota(world)).await;
        clear(world).await;
        write(world, 1, &Value::Null).await;
        report(world, &ns, "changes of one record", async |over| change(world, over).await).await;
        clear(world).await;
        assert_eq!(self::processes(world).await, processes, "no daemon was started again");
        report(world, &ns, "a member that crashes again and again", async |over| crash(world, over).await)
            .await;
        world.release(&ns).await;
    });
}

/// Exports Services one after another, again and again until the flood is over, and prints how long they took.
async fn report(world: &World, ns: &str, what: &str, flood: impl AsyncFn(&AtomicBool)) {
    let (exporter, west) = (world.leader(), world.cluster("west"));
    let (has_ended, is_enough) = (AtomicBool::new(false), AtomicBool::new(false));
    let flood = async {
        flood(&is_enough).await;
        has_ended.store(true, SeqCst);
    };
    let exports = async {
        let mut times = Vec::new();
        while times.len() < EXPORTS || !has_ended.load(SeqCst) {
            let begun = Instant::now();
            exporter.exported(ns, "web", &["10.1.0.1"]).await;
            eventually("imported", || imported(west, ns, "web")).await;
            times.push(begun.elapsed());
            exporter.unexport(ns, "web").await;
            eventually("taken back", || not_imported(west, ns, "web")).await;
            exporter.delete::<k8s_openapi::api::core::v1::Service>(ns, "web").await;
            exporter.delete::<k8s_openapi::api::discovery::v1::EndpointSlice>(ns, "web-1").await;
            is_enough.store(times.len() >= EXPORTS, SeqCst);
        }
        times.sort();
        times
    };
    let ((), times) = futures::join!(flood, exports);
    let median = times[times.len() / 2];
    let (leader, west) = (memory(world, LEADER).await, memory(world, "freeport-member-west").await);
    eprintln!(
        "{what}: {} exports, median {median:.2?}, longest {:.2?}; memory: leader {leader} MiB, west {west} MiB",
        times.len(),
        times.last().unwrap_or(&Duration::ZERO)
    );
}

/// What the daemon has resident now, in MiB.
async fn memory(world: &World, daemon: &str) -> u64 {
    let bytes = world.metrics(daemon).await.unwrap().sum("process_resident_memory_bytes");
    (bytes / f64::from(1 << 20)) as u64
}

fn service(number: usize) -> ServiceName {
    ServiceName::new("flood", format!("s{number}"))
}

/// Writes so many records of the member, with this in their field `raw`.
async fn write(world: &World, count: usize, raw: &Value) {
    let records = world.leader().api::<ResourceExport>(AREA);
    let written = stream::iter(0..count).map(|number| {
        let mut object = record::service(MEMBER, &service(number));
        object["spec"]["raw"] = raw.clone();
        let (records, object) = (&records, serde_json::from_value(object).unwrap());
        async move { records.create(&PostParams::default(), &object).await.map(drop) }
    });
    written.buffer_unordered(WRITERS).for_each(|written| async { written.unwrap() }).await;
}

/// Changes the first record as fast as the API server takes it.
async fn change(world: &World, is_enough: &AtomicBool) {
    let records = world.leader().api::<ResourceExport>(AREA);
    let (name, begun) = (name::service_export(MEMBER, &service(0)), Instant::now());
    let changes = stream::iter(1_u32..).take_while(|_| ready(!is_enough.load(SeqCst))).map(async |number| {
        let port = 1 + i64::from(number % 60_000);
        let patch =
            json!({"spec": {"service": {"serviceSpec": {"ports": [{"port": port, "protocol": "TCP"}]}}}});
        records.patch(&name, &PatchParams::default(), &Patch::Merge(&patch)).await.map(drop)
    });
    let done = changes.buffer_unordered(WRITERS).filter(|changed| ready(changed.is_ok())).count().await;
    eprintln!("{:.0} changes a second", done as f64 / begun.elapsed().as_secs_f64());
}

/// A member that crashes as soon as it has begun.
async fn crash(world: &World, is_enough: &AtomicBool) {
    let mut crashes = 0;
    while !is_enough.load(SeqCst) {
        world.end("freeport-member-east", End::Crash).await;
        world.launch("freeport-member-east").await;
        crashes += 1;
    }
    eprintln!("{crashes} crashes");
}

/// Some records say that they are too much, the oldest do not.
async fn over_quota(world: &World) -> Result<(), String> {
    let records = of_member(world).await?;
    let is_refused = |record: &ResourceExport| {
        let conditions = record.status.iter().flat_map(|status| &status.conditions);
        conditions
            .filter(|c| c.type_.as_deref() == Some(FAILURE))
            .any(|c| c.reason.as_deref() == Some(OVER_QUOTA))
    };
    let refused = records.iter().filter(|record| is_refused(record)).count();
    if refused > 0 && refused < records.len() {
        Ok(())
    } else {
        Err(format!("{refused} of {}", records.len()))
    }
}

async fn of_member(world: &World) -> Result<Vec<ResourceExport>, String> {
    let records = world.leader().api::<ResourceExport>(AREA);
    let of_member = ListParams::default().labels(&format!("sourceClusterID={MEMBER}"));
    records.list(&of_member).await.map(|list| list.items).map_err(|error| error.to_string())
}

/// Takes all records of the member back.
async fn clear(world: &World) {
    let records = world.leader().api::<ResourceExport>(AREA);
    let names: Vec<_> =
        of_member(world).await.unwrap().into_iter().filter_map(|record| record.metadata.name).collect();
    let withdrawn = Patch::Merge(json!({"spec": {"raw": null, "service": {"withdrawn": true}}}));
    let (records, withdrawn) = (&records, &withdrawn);
    let gone = stream::iter(names).map(|name| async move {
        drop(records.patch(&name, &PatchParams::default(), withdrawn).await);
        drop(records.delete(&name, &DeleteParams::default()).await);
    });
    gone.buffer_unordered(WRITERS).collect::<Vec<()>>().await;
    within(VOUCHED, "the flood is gone", || async {
        let left = of_member(world).await?.len();
        if left == 0 { Ok(()) } else { Err(format!("{left} records")) }
    })
    .await;
}

async fn processes(world: &World) -> Vec<Option<u32>> {
    let processes =
        DAEMONS.map(|daemon| async move { world.fleet.process(daemon).await.unwrap().unwrap().pid() });
    join_all(processes).await
}
