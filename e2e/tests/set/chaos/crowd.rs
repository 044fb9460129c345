//! API servers and etcds of all clusters are killed and the leader's cluster is restored, while a crowd of Services comes, changes and
//! goes.

use std::{env, time::Duration};

use e2e::{
    chaos::{
        beginning::begin,
        places::{Place, Places},
        plan::deed::{Deed, What},
        run::differs,
        users::does,
        vigil::Vigil,
    },
    fixture::{CLUSTERS, World, alone},
    waiting::PUT_RIGHT,
};
use fleet::Component;
use futures::{StreamExt, stream};

/// Services that are there before, unless `FREEPORT_CHAOS_CROWD` says otherwise.
const CROWD: usize = 30;
/// How many clusters export.
const EXPORTERS: usize = 2;
/// How many users do something at once.
const AT_ONCE: usize = 8;
/// How often a user tries.
const TRIES: usize = 20;
const AWAY: Duration = Duration::from_secs(2);

/// The n-th Service of the crowd; every second one is of another cluster.
fn deed(places: &Places, number: usize, what: What) -> Deed {
    let cluster = places.exporters()[number % EXPORTERS];
    let namespace = places.all().remove(0);
    Deed { place: Place { cluster, namespace, service: format!("s{number}") }, what }
}

fn address(number: usize, nth: usize) -> String {
    format!("10.{}.{nth}.{}", 1 + number % EXPORTERS + 10 * (number / 250), 1 + number % 250)
}

/// Users do all this, and try again where no API server answers.
async fn all_do(world: &World, deeds: impl IntoIterator<Item = Deed>) {
    let tries = |deed: Deed| async move {
        for _ in 0..TRIES {
            match does(world, &deed).await {
                Ok(()) => return,
                Err(why) => e2e::note!("{deed}: {why}"),
            }
            tokio::time::sleep(AWAY).await;
        }
        panic!("{deed} was not done");
    };
    stream::iter(deeds).map(tries).buffer_unordered(AT_ONCE).collect::<Vec<()>>().await;
}

async fn all_fail_once(world: &World) {
    for cluster in CLUSTERS {
        for component in [Component::ApiServer, Component::Etcd] {
            world.without(cluster, component, AWAY).await;
        }
    }
    world.mend().await;
}

async fn is_as_users_want_it(world: &World, places: &Places, when: &str) {
    let differing = differs(world, places, PUT_RIGHT.time).await;
    assert!(differing.is_empty(), "{when}: {}", differing.join("\n"));
}

/// Issue 18.
#[e2e::test(real)]
fn a_crowd_is_what_users_want_though_clusters_are_killed_and_the_leaders_is_restored() {
    alone(async |world| {
        let places = Places::new("crowd");
        let count = env::var("FREEPORT_CHAOS_CROWD").map_or(CROWD, |count| count.parse().unwrap());
        begin(world, &places).await;
        let vigil = Vigil::over(world.clusters(), &places.anchors()).await;
        let export = |number| deed(&places, number, What::Export(address(number, 1)));
        all_do(world, (0..count).map(export)).await;
        is_as_users_want_it(world, &places, "before").await;
        let backup = world.back_up("leader").await;

        let third = count / 3;
        let changes = (0..third).map(|number| {
            let addresses = [2, 3].map(|nth| address(number, nth));
            deed(&places, number, What::Endpoints(addresses.to_vec()))
        });
        let goes = (third..2 * third).map(|number| deed(&places, number, What::Unexport));
        let comes = (count..count + third).map(export);
        tokio::join!(all_do(world, changes.chain(goes).chain(comes)), all_fail_once(world));
        is_as_users_want_it(world, &places, "all API servers and etcds were killed").await;
        world.restore(&backup).await;
        is_as_users_want_it(world, &places, "the leader's cluster is restored").await;
        assert_eq!(vigil.wrong(), Vec::<String>::new());
        for namespace in places.all() {
            world.release(&namespace).await;
        }
    });
}
