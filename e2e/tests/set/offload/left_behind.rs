//! What a home leaves in the Common Area that has left, while its host did not run.

use api::offload::{map::NamespaceMap, offer::OffloadOffer, shadow_pod::ShadowPod};
use e2e::{
    daemon::End,
    fixture::AREA,
    waiting::{SWEPT, within},
};
use kube::Api;
use serde_json::{Value, json};

use super::{
    guest::{Guest, MAP, plain},
    world::{OFFLOADING, agreed, gone},
};

const HOST: &str = "freeport-member-east";

#[e2e::test]
fn a_home_that_left_while_its_host_did_not_run_leaves_no_twin_and_then_no_records() {
    OFFLOADING.alone(async |world| {
        agreed(world).await;
        let leader = world.leader();
        let guest = Guest::new(world, "swept").await;
        let record = guest.write(&guest.asks("web", "u-9", plain())).await;
        guest.is_told(&record, "Accepted").await;
        // It offered something, too.
        let spec = json!({"host": "south", "home": "east", "resources": {}, "publicKey": ""});
        let _: OffloadOffer =
            leader.create(AREA, json!({"metadata": {"name": "1.south.east"}, "spec": spec})).await;
        let (maps, pods): (Api<NamespaceMap>, Api<ShadowPod>) = (leader.api(AREA), leader.api(AREA));
        let offers = leader.api::<OffloadOffer>(AREA);
        within(SWEPT, "it has no Lease, and nothing comes of what it offers", || async {
            let there = offers.get_opt("1.south.east").await.map_err(|error| error.to_string())?;
            there.map_or(Ok(()), |_| Err(world.log_tail("freeport-leader")))
        })
        .await;
        let map = maps.get(MAP).await.unwrap();
        assert_eq!(map.spec.desired_mapping.len(), 1, "by this the twin is there");
        assert!(pods.get_opt(&record).await.unwrap().is_some(), "and by this its Pod");

        // Its host, when it is back, has never heard of the key, nor of a Lease.
        world.end(HOST, End::Crash).await;
        guest.wants_nothing().await;
        world.launch(HOST).await;
        gone(world, "east", &guest.twin).await;
        within(SWEPT, "nothing is left of it", || async {
            let map = maps.get_opt(MAP).await.map_err(|error| error.to_string())?;
            let pod = pods.get_opt(&record).await.map_err(|error| error.to_string())?;
            match (map.is_none(), pod.is_none()) {
                (true, true) => Ok(()),
                left => Err(format!("{left:?} {:?}; {}", json!(map), world.log_tail("freeport-leader"))),
            }
        })
        .await;
        let own: Value = json!(maps.get_opt("1.west.east").await.unwrap().map(|map| map.spec));
        let offered = offers.get_opt("1.east.west").await.unwrap();
        assert!(offered.is_some(), "those of members stay, beside {own}");
        guest.is_forgotten().await;
    });
}
