//! How many writes an export and its end cost each API server: what all clusters pay for each Service.

use std::collections::BTreeMap;

use api::membership;
use e2e::{
    audit::{self, while_all_are_heard},
    fixture::{AREA, CLUSTERS, World, alone},
    seen::{imported, not_imported, right, says},
    waiting::eventually,
};

/// What was written since `mark`, by where that is: a cluster where nothing else is said.
fn counted(world: &World, mark: &audit::Mark) -> BTreeMap<String, Vec<String>> {
    let area = format!("/namespaces/{AREA}/");
    let note = format!("/configmaps/{}", membership::NAME);
    let places = [
        ("/events", "Events"),
        ("/serviceexports/", "status"),
        (area.as_str(), "Common Area"),
        (note.as_str(), "notes of addresses"),
    ];
    let mut counted = BTreeMap::<_, Vec<_>>::new();
    for write in audit::writes(world, mark) {
        let cluster = write.split(' ').nth(1).unwrap();
        let place = places.iter().find(|(part, _)| write.contains(part)).map_or(cluster, |(_, place)| place);
        counted.entry(place.to_owned()).or_default().push(write);
    }
    counted
}

/// No more writes than these, and none elsewhere; `importer` for each importing cluster.
fn at_most(counted: &BTreeMap<String, Vec<String>>, area: usize, importer: usize, status: usize) {
    let importers = CLUSTERS.map(|cluster| (cluster, importer));
    // Of imports that have ended, one for all of some seconds.
    let notes = ("notes of addresses", CLUSTERS.len());
    let elsewhere = [("Common Area", area), ("status", status), notes];
    let most: Vec<_> = elsewhere.into_iter().chain(importers).collect();
    for &(place, most) in &most {
        let writes = counted.get(place).map(Vec::as_slice).unwrap_or_default();
        assert!(writes.len() <= most, "{place}, of {most}: {counted:#?}");
    }
    assert_eq!(counted.keys().find(|place| most.iter().all(|(of, _)| of != place)), None, "{counted:#?}");
}

#[e2e::test]
fn an_export_and_its_end_cost_few_writes() {
    alone(async |world| {
        let (ns, east) = (world.namespace("writes", &CLUSTERS).await, world.cluster("east"));
        world.settled().await;
        let [exported, withdrawn] = while_all_are_heard(world, async |turn| {
            let service = &format!("web-{turn}");
            let mark = audit::mark(world);
            east.exported(&ns, service, &["10.1.0.1"]).await;
            for name in CLUSTERS {
                let cluster = world.cluster(name);
                eventually(&format!("in {name}"), || async {
                    right(imported(cluster, &ns, service).await, |seen| seen.endpoints.len() == 1)
                })
                .await;
            }
            eventually("Ready", || says(east, (&ns, service), "Ready", "True", "Exported")).await;
            world.settled().await;
            let exported = counted(world, &mark);

            let mark = audit::mark(world);
            east.unexport(&ns, service).await;
            for name in CLUSTERS {
                let cluster = world.cluster(name);
                eventually(&format!("gone from {name}"), || not_imported(cluster, &ns, service)).await;
            }
            world.settled().await;
            [exported, counted(world, &mark)]
        })
        .await;
        // On a machine that is slow it is said that the leader has not answered yet.
        at_most(&exported, 3, 4, 2);
        at_most(&withdrawn, 5, 3, 0);
        world.release(&ns).await;
    });
}
