//! What members get of the leader's API server follows their number.

use api::name::MEMBERS_LEVEL;
use e2e::{
    fixture::{AREA, shared},
    waiting::eventually,
};
use futures::future::join_all;
use k8s_openapi::api::{coordination::v1::Lease, flowcontrol::v1::PriorityLevelConfiguration};
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use serde_json::json;

#[e2e::test]
fn more_members_get_more_of_the_leaders_api_server() {
    shared(async |world| {
        let leader = world.leader();
        let levels = Api::<PriorityLevelConfiguration>::all(leader.client.clone());
        let shares = async || {
            let level = levels.get(MEMBERS_LEVEL).await.map_err(|error| error.to_string())?;
            level
                .spec
                .limited
                .and_then(|limited| limited.nominal_concurrency_shares)
                .ok_or("Exempt".to_owned())
        };
        assert_eq!(shares().await, Ok(1), "three members");
        let names: Vec<_> = (0..16).map(|n| format!("crowd-{n}")).collect();
        join_all(names.iter().map(|name| leader.create::<Lease>(AREA, json!({"metadata": {"name": name}}))))
            .await;
        eventually("16 more Leases are two more shares", || async {
            match shares().await? {
                3 => Ok(()),
                other => Err(format!("{other}; {}", world.log_tail("freeport-leader-leader"))),
            }
        })
        .await;
        join_all(names.iter().map(|name| leader.delete::<Lease>(AREA, name))).await;
        let back = Patch::Merge(json!({"spec": {"limited": {"nominalConcurrencyShares": 1}}}));
        levels.patch(MEMBERS_LEVEL, &PatchParams::default(), &back).await.unwrap();
    });
}
