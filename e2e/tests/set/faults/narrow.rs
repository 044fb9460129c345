//! A member whose link to the leader is narrow and far for good.

use std::time::Instant;

use e2e::{
    disturbed::{Disturbed, Side},
    faults::Fault,
    fixture::{CLUSTERS, alone},
    seen::imported,
    waiting::{VOUCHED, within},
};

/// As many as an EndpointSlice usually has at the most.
const OF_ONE: usize = 100;
const SLICES: usize = 10;
const PORT: (&str, i32) = ("http", 8080);

/// Issue 18: on a link of 64 kbit/s and 600 ms all arrives, and what is small does not wait for what is large.
#[e2e::test(real)]
fn on_a_narrow_link_what_is_small_does_not_wait_for_what_is_large_and_all_arrives() {
    alone(async |world| {
        let ns = world.namespace("narrow", &CLUSTERS).await;
        let (east, west) = (world.cluster("east"), world.cluster("west"));
        let disturbed = Disturbed::of(world, "freeport-member-east").await;
        disturbed.set(Side::Leader, Some(Fault::Narrow));
        let begun = Instant::now();
        for (at, cluster) in [east, west].into_iter().enumerate() {
            cluster.service(&ns, "large", &[("http", 80)]).await;
            for slice in 0..SLICES {
                let addresses: Vec<_> = (0..OF_ONE).map(|n| format!("10.{}.{slice}.{n}", at + 1)).collect();
                let addresses: Vec<_> = addresses.iter().map(String::as_str).collect();
                cluster.slice(&ns, "large", &format!("large-{slice}"), &addresses, &[PORT]).await;
            }
            cluster.export(&ns, "large").await;
        }
        east.exported(&ns, "small", &["10.1.100.1"]).await;

        within(VOUCHED, "what is small arrives", || imported(west, &ns, "small")).await;
        e2e::note!("what is small arrives after {:.1} s", begun.elapsed().as_secs_f64());
        let large = imported(west, &ns, "large").await.map_or(0, |seen| seen.addresses("east").len());
        e2e::note!("{large} of {} endpoints of what is large are there", SLICES * OF_ONE);
        assert!(large < SLICES * OF_ONE, "it waited");
        for (cluster, name) in [(west, "west"), (east, "east")] {
            within(VOUCHED, &format!("all arrives in {name}"), || async {
                let seen = imported(cluster, &ns, "large").await?;
                let are_there = ["east", "west"].map(|from| seen.addresses(from).len());
                if are_there == [SLICES * OF_ONE; 2] { Ok(()) } else { Err(format!("{are_there:?}")) }
            })
            .await;
            e2e::note!("all is in {name} after {:.1} s", begun.elapsed().as_secs_f64());
        }

        disturbed.free().await;
        world.release(&ns).await;
    });
}
