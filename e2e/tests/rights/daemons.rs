//! The daemons need nothing that the policies refuse.

use e2e::{
    seen::{imported, not_imported},
    waiting::eventually,
};

use crate::parties::with_daemons;

#[test]
fn a_service_gets_from_one_cluster_to_another_and_back() {
    with_daemons(async |world| {
        let (east, west) = (world.cluster("east"), world.cluster("west"));
        let ns = world.namespace("rights-daemons", &["east", "west"]).await;
        east.exported(&ns, "web", &["10.1.0.1"]).await;
        eventually("the import is ready", || imported(west, &ns, "web")).await;
        east.unexport(&ns, "web").await;
        eventually("the import is gone", || not_imported(west, &ns, "web")).await;
        world.release(&ns).await;
    });
}
