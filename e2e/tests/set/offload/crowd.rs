//! Many Namespaces at once, and more than a host allows.

use std::{collections::BTreeMap, env};

use api::offload::{
    map::{ENTRIES_MAX, NamespaceMap},
    namespace::NamespaceOffloading,
    peer::OffloadPeer,
};
use e2e::{
    audit::{self, while_all_are_heard, writes_while},
    fixture::{AREA, SYSTEM},
    waiting::eventually,
    world::World,
};
use futures::future::join_all;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{
    Api,
    api::{DeleteParams, PostParams},
};
use serde_json::json;

use super::{
    life::looked_again,
    world::{OFFLOADING, agreed, gone, offload, peer, peer_says, phase},
};

const RECORD: &str = "1.north.east";
/// Twins that the host allows.
const ALLOWED: usize = 10;
/// Keys with names that it allows.
const NAMED: usize = 100;

/// Namespaces at once; `FREEPORT_CROWD` says another number.
const MANY: usize = 30;
/// Writes for each, whatever comes first: at home a finalizer, a label, a key, an Event, and where hosts take long three statuses; at a host a
/// twin, its RoleBinding and an answer. How few they are where nothing is slow says the benchmark.
const WRITES: (usize, usize) = (7, 4);

/// Writes of a member, in its own cluster and in the Common Area, that API servers did in time.
fn by<'a>(writes: &'a [String], cluster: &str) -> Vec<&'a String> {
    let at_home = format!(" {cluster} system:serviceaccount:{SYSTEM}:freeport-member ");
    let in_area = format!(" system:serviceaccount:{AREA}:freeport-member-{cluster} ");
    let is_by = |write: &&String| write.contains(&at_home) || write.contains(&in_area);
    writes.iter().filter(is_by).filter(|write| !write.ends_with(" 504")).collect()
}

/// Names of so many Namespaces.
fn names(turn: usize, many: usize) -> Vec<String> {
    (0..many).map(|n| format!("many-{turn}-{n}")).collect()
}

/// The Namespaces, and their twins, go.
async fn taken_back(world: &World, names: &[String]) {
    let west = world.cluster("west");
    join_all(names.iter().map(|name| west.delete::<NamespaceOffloading>(name, "offloading"))).await;
    for (name, host) in names.iter().flat_map(|name| [(name, "east"), (name, "leader")]) {
        gone(world, host, &format!("{name}-west")).await;
    }
    join_all(names.iter().map(|name| world.release(name))).await;
}

/// What is written until each of these Namespaces has its twins.
async fn writes_for(world: &World, names: &[String]) -> Vec<String> {
    let west = world.cluster("west");
    world.settled().await;
    join_all(names.iter().map(|name| west.create_namespace(name))).await;
    let mark = audit::mark(world);
    join_all(names.iter().map(|name| offload(world, name, json!({})))).await;
    for name in names {
        let status = phase(world, name, "Ready").await;
        let hosts: Vec<_> =
            status.remote_namespaces_conditions.iter().filter(is_ready).map(|(host, _)| host).collect();
        assert_eq!(hosts, ["east", "leader"], "{status:?}");
    }
    audit::writes(world, &mark)
}

/// Whether a cluster has the twin. The status may also name a cluster of an earlier test, which is not selected.
fn is_ready((_, conditions): &(&String, &Vec<Condition>)) -> bool {
    conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

/// Liqo's check B24.
#[e2e::test]
fn many_namespaces_at_once_cost_few_writes_each_and_none_when_they_are_there() {
    OFFLOADING.alone(async |world| {
        let many = env::var("FREEPORT_CROWD").map_or(MANY, |many| many.parse().unwrap());
        let (west, leader) = (world.cluster("west"), world.leader());
        agreed(world).await;
        for host in [world.cluster("east"), leader] {
            peer(host, "west", json!({"incoming": {"maxNamespaces": many}})).await;
        }
        peer(west, "leader", json!({"outgoing": {}})).await;
        peer_says(world, "west", "leader", "Ready").await;
        let (turn, writes) = while_all_are_heard(world, async |turn| {
            if turn > 1 {
                taken_back(world, &names(turn - 1, many)).await;
            }
            (turn, writes_for(world, &names(turn, many)).await)
        })
        .await;
        let home = by(&writes, "west");
        assert!(home.len() <= WRITES.0 * many, "{home:#?}");
        for host in ["east", "leader"] {
            let host = by(&writes, host);
            assert!(host.len() <= WRITES.1 * many, "{host:#?}");
        }
        world.settled().await;
        let writes = writes_while(world, async || looked_again(world).await).await;
        assert_eq!(writes, Vec::<String>::new(), "nothing happens");

        taken_back(world, &names(turn, many)).await;
        for (cluster, other) in [(west, "leader"), (leader, "west")] {
            let peers = Api::<OffloadPeer>::all(cluster.client.clone());
            peers.delete(other, &DeleteParams::default()).await.unwrap();
        }
        peer(world.cluster("east"), "west", json!({"incoming": {"maxNamespaces": null}})).await;
    });
}

/// A map of cluster `north`, whose names are as long as they can be.
fn map(keys: usize) -> NamespaceMap {
    let key = |n: usize| match n < NAMED {
        true => {
            let name = format!("crowd-{n:0>51}");
            (name.clone(), format!("{name}-north"))
        }
        false => (format!("crowd-{n:0>57}"), format!("other-{n:0>57}")),
    };
    let desired: BTreeMap<String, String> = (0..keys).map(key).collect();
    let spec = json!({"origin": "north", "destination": "east", "desiredMapping": desired});
    serde_json::from_value(json!({"metadata": {"name": RECORD}, "spec": spec})).unwrap()
}

#[e2e::test]
fn who_asks_for_too_much_gets_what_is_allowed_and_keeps_nobody_else_waiting() {
    OFFLOADING.alone(async |world| {
        let (west, east) = (world.cluster("west"), world.cluster("east"));
        agreed(world).await;
        peer(east, "north", json!({"incoming": {"maxNamespaces": ALLOWED}})).await;
        let maps = world.leader().api::<NamespaceMap>(AREA);
        let create = async |keys| maps.create(&PostParams::default(), &map(keys)).await;
        let refused = create(10_000).await.unwrap_err().to_string();
        assert!(refused.contains(&format!("must have at most {ENTRIES_MAX} items")), "{refused}");
        create(ENTRIES_MAX).await.unwrap();

        let ns = world.namespace("beside", &["west"]).await;
        offload(world, &ns, json!({})).await;
        phase(world, &ns, "Ready").await;
        let said = eventually("each key has its answer", || async {
            let said = maps.get(RECORD).await.unwrap().status.unwrap_or_default().current_mapping;
            match said.len() {
                ENTRIES_MAX => Ok(said),
                len => Err(format!("{len}; {}", world.log_tail("freeport-member-east"))),
            }
        })
        .await;
        let mut answers = BTreeMap::new();
        for entry in said.values() {
            *answers.entry(entry.reason.as_deref().unwrap_or(&entry.phase)).or_default() += 1;
        }
        let want = [
            ("Accepted", ALLOWED),
            ("NameNotAllowed", ENTRIES_MAX - NAMED),
            ("TooManyNamespaces", NAMED - ALLOWED),
        ];
        assert_eq!(answers, BTreeMap::from(want));
        eventually("the twins are counted", || async {
            let metrics = world.metrics("freeport-member-east").await.unwrap();
            let twins = metrics.of("freeport_offload_twins", "cluster=\"north\",phase", "Accepted");
            if twins == Some(ALLOWED as f64) { Ok(()) } else { Err(format!("{twins:?}")) }
        })
        .await;

        // Then nobody makes the twins again.
        maps.delete(RECORD, &DeleteParams::default()).await.unwrap();
        let peers = Api::<OffloadPeer>::all(east.client.clone());
        peers.delete("north", &DeleteParams::default()).await.unwrap();
        for entry in said.values().filter(|entry| entry.phase == "Accepted") {
            east.release_namespace(&entry.remote_namespace).await;
        }
        west.delete::<NamespaceOffloading>(&ns, "offloading").await;
        gone(world, "east", "beside-west").await;
        world.release(&ns).await;
    });
}
