//! How many writes an export and its end cost each API server: what all clusters pay for each Service.

use std::collections::BTreeMap;

use e2e::{
    audit,
    fixture::{AREA, CLUSTERS, World, alone},
    seen::{imported, not_imported, right, says},
    waiting::eventually,
};

/// What was written since `mark`, by where that is: a cluster where nothing else is said.
fn counted(world: &World, mark: &audit::Mark) -> BTreeMap<String, Vec<String>> {
    let area = format!("/namespaces/{AREA}/");
    let places = [("/events", "Events"), ("/serviceexports/", "status"), (area.as_str(), "Common Area")];
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
    let most: Vec<_> = [("Common Area", area), ("status", status)].into_iter().chain(importers).collect();
    for &(place, most) in &most {
        let writes = counted.get(place).map(Vec::as_slice).unwrap_or_default();
        assert!(writes.len() <= most, "{place}, of {most}: {counted:#?}");
    }
    assert_eq!(counted.keys().find(|place| most.iter().all(|(of, _)| of != place)), None, "{counted:#?}");
}

#[test]
fn an_export_and_its_end_cost_few_writes() {
    alone(async |world| {
        let (ns, east) = (world.namespace("writes", &CLUSTERS).await, world.cluster("east"));
        world.settled().await;
        let mark = audit::mark(world);
        east.exported(&ns, "web", &["10.1.0.1"]).await;
        for name in CLUSTERS {
            eventually(&format!("in {name}"), || async {
                right(imported(world.cluster(name), &ns, "web").await, |seen| seen.endpoints.len() == 1)
            })
            .await;
        }
        eventually("Ready", || says(east, (&ns, "web"), "Ready", "True", "Exported")).await;
        world.settled().await;
        // On a machine that is slow it is said that the leader has not answered yet.
        at_most(&counted(world, &mark), 3, 4, 2);

        let mark = audit::mark(world);
        east.unexport(&ns, "web").await;
        for name in CLUSTERS {
            eventually(&format!("gone from {name}"), || not_imported(world.cluster(name), &ns, "web")).await;
        }
        world.settled().await;
        at_most(&counted(world, &mark), 5, 3, 0);
        world.release(&ns).await;
    });
}
