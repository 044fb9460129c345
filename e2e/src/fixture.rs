//! ClusterSet `demo` of three clusters without nodes, with its daemons: one that most tests share, and some that a test has for
//! itself.

use api::{announce::MemberClusterAnnounce, name, resource_import::ResourceImport};
use fleet::cluster_set::{self, Composition};
use kube::{ResourceExt, api::ListParams};

use crate::{
    ground,
    pool::{Pool, Set},
    shared::Shared,
    simulated,
    waiting::eventually,
};

use crate::world::{Ground, Simulated};

pub use crate::world::World;
/// Namespace of the daemons.
pub use cli::objects::SYSTEM;

pub const SET: &str = "demo";
pub const AREA: &str = "clusterset-demo";
pub const CLUSTERS: [&str; 3] = ["leader", "east", "west"];
/// Their IP families: Services of `leader` and `east` can have IPv6, too.
pub(crate) const FAMILIES: [&str; 3] = ["leader=dual", "east=dual", "west=ipv4"];
/// The same with more clusters.
const FOUR: [&str; 4] = ["leader=dual", "east=dual", "west=ipv4", "north=ipv4"];
const FIVE: [&str; 5] = ["leader=dual", "east=dual", "west=ipv4", "north=ipv4", "south=ipv4"];

/// The ClusterSet of all tests that get along with each other.
static SHARED: Shared<World> = Shared::new("shared", FAMILIES.len(), || {
    Box::pin(async { with_set(World::bring_up("e2e-shared", &FAMILIES).await).await })
});
/// One of a few for each test that needs one for itself; those of three clusters come first.
static POOLS: [Pool; 3] = [pool("e2e", &FAMILIES), pool("e2e-four", &FOUR), pool("e2e-five", &FIVE)];

const fn pool(name: &'static str, clusters: &'static [&'static str]) -> Pool {
    Pool::new(
        name,
        clusters,
        Set { name: SET, offload: false },
        |world| Box::pin(with_set(world)),
        |world| {
            Box::pin(async {
                make_whole(world).await;
                nothing_imported(world).await;
            })
        },
    )
}

async fn with_set(mut world: World) -> World {
    let set = Composition::of_all(&world.real().fleet, SET);
    world.add_set(&set).await;
    // A member that joined before the leader told it of the others starts its session again when it does.
    world.vouches(name::LEADER_LEASE).await;
    world
}

/// Runs a test that gets along with others.
pub fn shared<F: Future<Output = ()>>(test: impl FnOnce(&'static World) -> F) {
    if ground::is_simulated() {
        return simulated::with_set(SET, &FAMILIES, false, test);
    }
    SHARED.beside(test);
}

/// Runs a test that has a ClusterSet for itself, in which nothing of earlier tests is left; see [`Pool::alone`].
pub fn alone<F: Future<Output = ()>>(test: impl FnOnce(&'static World) -> F) {
    alone_among(CLUSTERS.len(), test);
}

/// [`alone`] in a ClusterSet of so many clusters: three, four or five.
pub fn alone_among<F: Future<Output = ()>>(clusters: usize, test: impl FnOnce(&'static World) -> F) {
    POOLS[clusters - CLUSTERS.len()].alone(|world| async move {
        world.quiet().await;
        test(world).await;
    });
}

/// Waits until the leader has no import of this test: in the next one members would say and write what is not about it.
async fn nothing_imported(world: &World) {
    eventually("no import of this test is left", || async {
        let left = world.leader().api::<ResourceImport>(AREA).list_metadata(&ListParams::default()).await;
        let left: Vec<_> = left.unwrap().items.iter().map(ResourceExt::name_any).collect();
        if left.is_empty() { Ok(()) } else { Err(format!("{left:?}")) }
    })
    .await;
}

/// Starts what does not run of control planes and daemons, and waits until every member says that it is connected.
pub async fn make_whole(world: &World) {
    world.mend().await;
    match &world.ground {
        Ground::Real(real) => {
            for daemon in &real.daemons {
                daemon.ensure(&real.fleet).await.unwrap();
            }
            cluster_set::ready(&real.fleet, SET, &real.daemons).await.unwrap();
        }
        Ground::Simulated(Simulated { world, .. }) => {
            world.start_all_that_ended();
            eventually("all members are connected", || async { world.is_connected() }).await;
        }
    }
    // The test may have deleted one, and its member does not put it back at once.
    let announces = world.leader().api::<MemberClusterAnnounce>(AREA);
    eventually("all members are announced", || async {
        let there =
            announces.list_metadata(&ListParams::default()).await.map_err(|error| error.to_string())?;
        let there: Vec<_> = there.items.iter().map(ResourceExt::name_any).collect();
        match world.clusters().iter().all(|cluster| there.contains(&name::announce(&cluster.name))) {
            true => Ok(()),
            false => Err(format!("{there:?}")),
        }
    })
    .await;
}
