//! Somebody floods one Common Area with records that cannot be judged.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

use api::resource_export::ResourceExport;
use e2e::{
    seen::event,
    waiting::{VOUCHED, eventually, within},
};
use futures::future::join_all;
use kube::api::ListParams;

use crate::areas::fixture::{AREAS, Areas, FIRST, SECOND, area};

const RECORDS: usize = 3000;
const WRITERS: usize = 32;

/// Records of the flood, all of them and those that the leader has said something about.
async fn told(world: &Areas) -> (usize, usize) {
    let records = world
        .leader()
        .api::<ResourceExport>(&area(SECOND))
        .list(&ListParams::default().labels("!sourceClusterID"))
        .await
        .unwrap();
    let failed = |record: &&ResourceExport| {
        let conditions =
            record.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
        conditions.iter().any(|condition| condition.type_.as_deref() == Some("Failure"))
    };
    (records.items.len(), records.iter().filter(failed).count())
}

#[e2e::test(real)]
fn a_flood_in_one_area_does_not_wet_the_other_and_is_reported() {
    AREAS.beside(async |world| {
        let ns = world.namespace_everywhere("flood").await;
        let (written, goes_on) = (AtomicUsize::new(0), AtomicBool::new(true));
        let flood = join_all((0..WRITERS).map(|writer| {
            let (written, goes_on) = (&written, &goes_on);
            async move {
                let mut next = 0;
                // Until the other set has done what it had to do: then it was done during the flood.
                while written.load(SeqCst) < RECORDS || goes_on.load(SeqCst) {
                    world.bad_record(SECOND, &format!("flood-{writer}-{next}")).await;
                    next += 1;
                    written.fetch_add(1, SeqCst);
                }
            }
        }));
        let other = async {
            eventually("the flood has come", || async {
                let refused = world.measured("freeport_records_refused", SECOND).await?;
                if refused > Some(1000.0) { Ok(()) } else { Err(format!("{refused:?}")) }
            })
            .await;
            world.first_goes_on(&ns, "dry").await;
            world.bad_record(FIRST, "one-bad").await;
            let first = area(FIRST);
            let about = || event(world.leader(), &first, "one-bad", "ForeignTuple");
            eventually("Events of the first set are sent", about).await;
            goes_on.store(false, SeqCst);
        };
        futures::join!(flood, other);

        let all = written.load(SeqCst);
        e2e::note!("{all} records");
        within(VOUCHED, "the flood is counted", || async {
            let refused = world.measured("freeport_records_refused", SECOND).await?;
            if refused == Some(all as f64) {
                Ok(())
            } else {
                Err(format!("{refused:?} of {all}; {}", world.log()))
            }
        })
        .await;
        within(VOUCHED, "each record says what is wrong with it", || async {
            let told = told(world).await;
            if told == (all, all) { Ok(()) } else { Err(format!("{told:?} of {all}; {}", world.log())) }
        })
        .await;
        // The flood stays, for deleting it takes longer than all the rest: the other tests get along with it.
        world.release(&ns).await;
    });
}
