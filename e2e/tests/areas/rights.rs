//! The leader's rights in one Common Area are missing: that is said, the other set goes on, and when they are given back all
//! goes on by itself.

use e2e::{
    daemon::{End, LEADER},
    seen::not_imported,
    waiting::{VOUCHED, always, eventually, within},
};

use crate::areas::fixture::{AREAS, FIRST, SECOND};

#[e2e::test(real)]
fn rights_lost_in_one_area_are_said_and_the_other_goes_on() {
    AREAS.alone(async |world| {
        let ns = world.namespace_everywhere("rights-lost").await;
        let (west, process) = (world.cluster("west"), world.leader_process().await);
        world
            .without_rights(SECOND, async || {
                world.is_served(SECOND, false).await;
                world.first_goes_on(&ns, "meanwhile").await;
                west.exported(&ns, "waits", &["10.3.0.1"]).await;
                always("nothing gets through", || not_imported(west, &ns, "waits")).await;
                world.is_served(FIRST, true).await;
            })
            .await;
        within(VOUCHED, "the second set goes on", || world.gets_to("west", &ns, "waits")).await;
        world.is_served(SECOND, true).await;
        assert_eq!(world.leader_process().await, process);
        world.release(&ns).await;
    });
}

#[e2e::test(real)]
fn rights_missing_from_the_start_are_said_and_the_other_goes_on() {
    AREAS.alone(async |world| {
        let ns = world.namespace_everywhere("rights-missing").await;
        world
            .without_rights(SECOND, async || {
                world.end(LEADER, End::Crash).await;
                world.cluster("west").exported(&ns, "waits", &["10.3.0.1"]).await;
                world.launch(LEADER).await;
                world.first_goes_on(&ns, "meanwhile").await;
                eventually("watches fail, and it is said whose", || async {
                    let failed = |set| world.measured("freeport_watch_errors_total", set);
                    match (failed(FIRST).await?, failed(SECOND).await?) {
                        (None, Some(failures)) if failures >= 4.0 => Ok(()),
                        other => Err(format!("{other:?}; {}", world.log())),
                    }
                })
                .await;
                world.is_served(SECOND, false).await;
                world.is_served(FIRST, true).await;
            })
            .await;
        within(VOUCHED, "the second set goes on", || world.gets_to("west", &ns, "waits")).await;
        world.is_served(SECOND, true).await;
        world.release(&ns).await;
    });
}
