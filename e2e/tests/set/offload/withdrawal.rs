//! A twin ends when its owner says so, whoever was away meanwhile.

use std::time::{Duration, Instant};

use api::offload::{
    label::SCHEDULING_ENABLED,
    map::NamespaceMap,
    namespace::{NamespaceOffloading, OFFLOADING_REQUIRED, READY},
};
use e2e::{
    daemon::End,
    fixture::{AREA, World},
    ground::is_simulated,
    waiting::eventually,
};
use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};

use super::{
    vanish::{stays, twin},
    world::{OFFLOADING, agreed, gone, offload, phase},
};

const HOME: &str = "freeport-member-west";
const HOST: &str = "freeport-member-east";
const CONNECTED: (&str, &str) = ("True", "Connected");

/// Time in which a withdrawal ends once everybody is back, and time that the simulated Namespace controller takes beside that.
const ENDS: Duration = Duration::from_secs(10);
const NAMESPACE: Duration = Duration::from_secs(6);

/// Waits until the NamespaceOffloading of `west` is gone.
async fn comes_home(world: &World, namespace: &str) {
    let offloadings = world.cluster("west").api::<NamespaceOffloading>(namespace);
    eventually(&format!("the deletion of NamespaceOffloading {namespace} completes"), || async {
        let Some(there) = offloadings.get_opt("offloading").await.unwrap() else { return Ok(()) };
        assert_consistent(&there);
        Err(format!("{:?} {:?}", there.metadata.finalizers, there.status))
    })
    .await;
}

/// Fails if the status reports a twin as made in a cluster that is not selected.
fn assert_consistent(offloading: &NamespaceOffloading) {
    let status = offloading.status.clone().unwrap_or_default();
    for (cluster, said) in &status.remote_namespaces_conditions {
        let has = |type_: &str, status: &str| said.iter().any(|it| it.type_ == type_ && it.status == status);
        let is_contradiction = has(OFFLOADING_REQUIRED, "False") && has(READY, "True");
        assert!(!is_contradiction, "{cluster}: {said:?}");
    }
}

#[e2e::test]
fn a_twin_that_is_withdrawn_while_its_host_is_away_goes_when_the_host_is_back() {
    OFFLOADING.alone(async |world| {
        let west = world.cluster("west");
        agreed(world).await;
        let ns = world.namespace("withdrawn", &["west"]).await;
        let beside = world.namespace("withdrawn-beside", &["west"]).await;
        for ns in [&ns, &beside] {
            offload(world, ns, json!({"podOffloadingStrategy": "Local"})).await;
            phase(world, ns, "Ready").await;
        }
        let before = twin(world, "withdrawn-beside-west").await.unwrap();
        // As it is left on a Namespace whose NamespaceOffloading is missing.
        let labelled = world.namespace("withdrawn-label", &["west"]).await;
        let label = json!({"metadata": {"labels": {SCHEDULING_ENABLED: "true"}}});
        let namespaces = Api::<Namespace>::all(west.client.clone());
        namespaces.patch(&labelled, &PatchParams::default(), &Patch::Merge(label)).await.unwrap();

        world.end(HOST, End::Stop).await;
        west.delete::<NamespaceOffloading>(&ns, "offloading").await;
        let maps = world.leader().api::<NamespaceMap>(AREA);
        eventually("the home does not want it any more", || async {
            let spec = maps.get("1.west.east").await.map_err(|error| error.to_string())?.spec;
            if spec.desired_mapping.contains_key(&ns) { Err(format!("{spec:?}")) } else { Ok(()) }
        })
        .await;
        world.start(HOST).await;
        gone(world, "east", "withdrawn-west").await;
        comes_home(world, &ns).await;
        stays(world, "withdrawn-beside-west", &before).await;

        west.delete::<NamespaceOffloading>(&beside, "offloading").await;
        gone(world, "east", "withdrawn-beside-west").await;
        for ns in [&ns, &beside, &labelled] {
            world.release(ns).await;
        }
    });
}

/// Withdraws a Namespace while a member is away: before it goes, meanwhile, and when it is back.
async fn withdrawn_around(world: &World, away: &str, seconds: u64) {
    let west = world.cluster("west");
    let mut all = Vec::new();
    for when in ["before", "while", "after"] {
        let who = if away == HOST { "host" } else { "home" };
        let ns = world.namespace(&format!("end-{when}-{who}-{seconds}"), &["west"]).await;
        offload(world, &ns, json!({"podOffloadingStrategy": "Local"})).await;
        phase(world, &ns, "Ready").await;
        all.push(ns);
    }
    let [before, meanwhile, after] = all.as_slice() else { unreachable!("three") };
    end(world, before).await;
    world.end(away, End::Stop).await;
    end(world, meanwhile).await;
    let offloadings = west.api::<NamespaceOffloading>(meanwhile);
    for _ in 0..seconds {
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_consistent(&offloadings.get("offloading").await.unwrap());
    }
    let back = comes_back(world, away).await;
    end(world, after).await;
    all_end(world, &all, back, &format!("{away} was away for {seconds} s")).await;
    for ns in &all {
        world.release(ns).await;
    }
}

/// A user withdraws the Namespace.
async fn end(world: &World, ns: &str) {
    world.cluster("west").delete::<NamespaceOffloading>(ns, "offloading").await;
}

/// Starts the daemon; when its member is connected.
async fn comes_back(world: &World, away: &str) -> Instant {
    world.start(away).await;
    world.member_says(if away == HOST { "east" } else { "west" }, CONNECTED).await;
    Instant::now()
}

/// Waits until nothing is left of these Namespaces: twins, NamespaceOffloadings, and what the map says of them. In virtual time that
/// takes no longer than it should.
async fn all_end(world: &World, all: &[String], back: Instant, what: &str) {
    for ns in all {
        gone(world, "east", &format!("{ns}-west")).await;
        comes_home(world, ns).await;
    }
    let maps = world.leader().api::<NamespaceMap>(AREA);
    eventually("the map says nothing of them any more", || async {
        let map = maps.get("1.west.east").await.map_err(|error| error.to_string())?;
        let said = map.status.clone().unwrap_or_default().current_mapping;
        let is_left = |ns: &&String| {
            let spec = &map.spec;
            spec.desired_mapping.contains_key(*ns)
                || spec.withdrawn.contains_key(*ns)
                || said.contains_key(*ns)
        };
        if all.iter().any(|ns| is_left(&ns)) { Err(format!("{map:?}")) } else { Ok(()) }
    })
    .await;
    let took = back.elapsed();
    e2e::note!("{what}: all has ended {:.1} s after everybody was back", took.as_secs_f32());
    assert!(!is_simulated() || took <= ENDS + NAMESPACE, "{what}: it took {took:?} to end");
}

#[e2e::test]
fn a_withdrawal_ends_whoever_is_away_before_it_meanwhile_or_after() {
    OFFLOADING.alone(async |world| {
        agreed(world).await;
        // Within a Lease of six seconds, and beyond; for as long as virtual time costs nothing.
        let times: &[u64] = if is_simulated() { &[3, 60, 600] } else { &[3, 15] };
        for away in [HOST, HOME] {
            for seconds in times {
                withdrawn_around(world, away, *seconds).await;
            }
        }
    });
}

/// What somebody does to a map by hand.
#[derive(Clone, Copy, Debug)]
enum Edit {
    /// The entry is removed.
    Removed,
    /// The entry names another twin.
    Elsewhere,
    /// That the entry is withdrawn is removed.
    NotWithdrawn,
    /// The entry is put back as it was before it was withdrawn, as by who restores a map from a copy.
    PutBack,
}

impl Edit {
    fn patch(self, ns: &str) -> Value {
        match self {
            Self::Removed => json!({"spec": {"desiredMapping": {ns: null}, "withdrawn": {ns: null}}}),
            Self::Elsewhere => json!({"spec": {"desiredMapping": {ns: elsewhere(ns)}}}),
            Self::NotWithdrawn => json!({"spec": {"withdrawn": {ns: null}}}),
            Self::PutBack => {
                json!({"spec": {"desiredMapping": {ns: format!("{ns}-west")}, "withdrawn": {ns: null}}})
            }
        }
    }
}

fn elsewhere(ns: &str) -> String {
    format!("{ns}-elsewhere")
}

/// Edits the map of a Namespace that is withdrawn, while a member is away or while nobody is.
async fn edited(world: &World, edit: Edit, away: Option<&str>) {
    let what = format!("{edit:?}, away: {away:?}");
    let who = away.map_or("nobody", |away| if away == HOST { "host" } else { "home" });
    let ns = world.namespace(&format!("edit-{edit:?}-{who}").to_lowercase(), &["west"]).await;
    offload(world, &ns, json!({"podOffloadingStrategy": "Local"})).await;
    phase(world, &ns, "Ready").await;
    if let Some(away) = away {
        world.end(away, End::Stop).await;
    }
    end(world, &ns).await;
    let maps = world.leader().api::<NamespaceMap>(AREA);
    if away == Some(HOST) {
        eventually("the home has withdrawn it", || async {
            let spec = maps.get("1.west.east").await.map_err(|error| error.to_string())?.spec;
            if spec.withdraws(&ns) { Ok(()) } else { Err(format!("{spec:?}")) }
        })
        .await;
    }
    let patch = Patch::Merge(edit.patch(&ns));
    maps.patch("1.west.east", &PatchParams::default(), &patch).await.unwrap();
    let back = match away {
        Some(away) => {
            // Who is there acts on it.
            tokio::time::sleep(Duration::from_secs(20)).await;
            comes_back(world, away).await
        }
        None => Instant::now(),
    };
    all_end(world, std::slice::from_ref(&ns), back, &what).await;
    let other = twin(world, &elsewhere(&ns)).await;
    assert!(other.is_err(), "{what}: nobody asked for Namespace {}: {other:?}", elsewhere(&ns));
    world.release(&ns).await;
}

#[e2e::test]
fn a_withdrawal_ends_whatever_is_done_to_the_map_by_hand() {
    OFFLOADING.alone(async |world| {
        agreed(world).await;
        for edit in [Edit::Removed, Edit::Elsewhere, Edit::NotWithdrawn, Edit::PutBack] {
            for away in [None, Some(HOST), Some(HOME)] {
                edited(world, edit, away).await;
            }
        }
    });
}
