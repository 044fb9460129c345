//! Endpoints of the own cluster in what is imported there: they follow what is here, whatever keeps the member from its leader.

use api::mcs::ServiceImport;
use cli::objects::access;
use e2e::{
    daemon::End,
    fixture::{AREA, SYSTEM, World, alone},
    seen::{Imported, imported, right},
    waiting::{VOUCHED, eventually, within},
    watched::Watched,
};
use fleet::Component;
use k8s_openapi::api::{core::v1::Secret, rbac::v1::Role};
use kube::{ResourceExt, api::PostParams};

const EAST: &str = "freeport-member-east";
/// The Secret of `east` that holds its credential at the leader.
const SECRET: &str = "freeport-leader-demo";
const CONNECTED: (&str, &str) = ("True", "Connected");

/// A Pod of `east` behind `web` is replaced by one with this address: the import in `east` follows.
async fn follows(world: &World, ns: &str, what: &str, address: &str) -> Imported {
    let east = world.cluster("east");
    east.replace_slice(ns, "web", "web-1", &[address], &[("http", 8080)]).await;
    eventually(what, || async {
        let own = format!("{address}:8080");
        let seen = right(imported(east, ns, "web").await, |seen| seen.addresses("east") == [own.as_str()]);
        seen.map_err(|other| format!("{other}; its log:\n{}", world.log_tail(EAST)))
    })
    .await
}

/// Waits until `east` imports from both.
async fn both(world: &World, ns: &str) -> Imported {
    eventually("both", || async {
        right(imported(world.cluster("east"), ns, "web").await, |seen| seen.endpoints.len() == 2)
    })
    .await
}

/// Issue 14, A3: a member that starts while the leader is away, and one whose Secret is gone, so that it has no session at all.
#[e2e::test(real)]
fn a3_own_endpoints_follow_without_the_leader_from_the_first_second() {
    alone(async |world| {
        let ns = &world.namespace("own", &["east", "west"]).await;
        let (east, leader) = (world.cluster("east"), world.real().fleet.cluster("leader").unwrap());
        for (cluster, address) in [("east", "10.1.0.1"), ("west", "10.2.0.1")] {
            world.cluster(cluster).exported(ns, "web", &[address]).await;
        }
        let before = both(world, ns).await;
        let imports = Watched::<ServiceImport>::of(east, ns).await;

        world.end(EAST, End::Crash).await;
        leader.kill(Component::ApiServer).await.unwrap();
        world.launch(EAST).await;
        follows(world, ns, "a member that started while the leader was away", "10.1.0.3").await;
        leader.start(Component::ApiServer).await.unwrap();
        eventually("east is present again", || async {
            let present = world.metrics(EAST).await?.sum("freeport_present");
            if present > 0.0 { Ok(()) } else { Err(world.log_tail(EAST)) }
        })
        .await;
        world.member_says("east", CONNECTED).await;

        let had: Secret = east.take(SYSTEM, SECRET).await;
        world.member_says("east", ("False", "SecretMissing")).await;
        follows(world, ns, "a member without its Secret", "10.1.0.4").await;
        world.end(EAST, End::Stop).await;
        world.launch(EAST).await;
        follows(world, ns, "one that started without its Secret", "10.1.0.5").await;
        east.put_back(had).await;
        world.member_says("east", CONNECTED).await;
        let after = follows(world, ns, "with the leader again", "10.1.0.6").await;
        assert_eq!((before.vip, before.import_uid), (after.vip, after.import_uid));
        assert_eq!(before.endpoints["west"], after.endpoints["west"]);
        imports.nothing_deleted("the ServiceImport");
        world.release(ns).await;
    });
}

/// Issue 14, A9: the read that confirms an absence is refused. That absence stays a doubt; own endpoints do not wait for it.
#[e2e::test(real)]
fn a9_a_confirming_read_that_fails_does_not_hold_own_endpoints() {
    alone(async |world| {
        let ns = &world.namespace("unconfirmed", &["east", "west"]).await;
        let (east, west) = (world.cluster("east"), world.cluster("west"));
        for (cluster, address) in [(east, "10.1.0.1"), (west, "10.2.0.1")] {
            cluster.exported(ns, "web", &[address]).await;
        }
        both(world, ns).await;
        world.end(EAST, End::Crash).await;
        west.unexport(ns, "web").await;
        let roles = world.leader().api::<Role>(AREA);
        let mut role = roles.get(&access::account("east")).await.unwrap();
        let whole = role.rules.clone();
        for rule in role.rules.iter_mut().flatten() {
            if rule.resources.iter().flatten().any(|resource| resource == "resourceexports") {
                rule.verbs.retain(|verb| verb != "get");
            }
        }
        let mut role = roles.replace(&role.name_any(), &PostParams::default(), &role).await.unwrap();
        world.start(EAST).await;
        within(VOUCHED, "the read is refused", || async {
            let metrics = world.metrics(EAST).await?;
            let failed = metrics.of("freeport_reconcile_total", "controller=\"import\",result", "error");
            if failed > Some(0.0) { Ok(()) } else { Err(world.log_tail(EAST)) }
        })
        .await;
        follows(world, ns, "own endpoints all the same", "10.1.0.3").await;
        role.rules = whole;
        roles.replace(&role.name_any(), &PostParams::default(), &role).await.unwrap();
        eventually("west is gone", || async {
            right(imported(east, ns, "web").await, |seen| seen.clusters == ["east".to_owned()].into())
        })
        .await;
        world.release(ns).await;
    });
}
