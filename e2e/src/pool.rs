//! Worlds that tests have for themselves, one after the other.

use std::{
    panic::{AssertUnwindSafe, resume_unwind},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use futures::{FutureExt, future::LocalBoxFuture};

use crate::{
    ground,
    harness::record,
    schedule::{Place, Sharing},
    shared::{RUNTIME, in_time, make},
    simulated, turn,
    world::World,
};

/// So many of a kind at once.
const COPIES: usize = 2;

/// The ClusterSet of a pool's clusters.
#[derive(Clone, Copy, Debug)]
pub struct Set {
    pub name: &'static str,
    /// Its members offload Namespaces.
    pub offload: bool,
}

/// Worlds of one kind: as many as tests have one at the same time. The processes of one end when no test waits for one any more.
pub struct Pool {
    place: Place,
    clusters: &'static [&'static str],
    set: Set,
    /// Makes the clusters of one the ClusterSet that tests find.
    set_up: fn(World) -> LocalBoxFuture<'static, World>,
    /// Makes one what it was before the test that had it.
    make_whole: fn(&'static World) -> LocalBoxFuture<'static, ()>,
    /// Those that nobody has now, all as they were made.
    free: Mutex<Vec<&'static World>>,
    made: AtomicUsize,
}

impl Pool {
    pub const fn new(
        name: &'static str,
        clusters: &'static [&'static str],
        set: Set,
        set_up: fn(World) -> LocalBoxFuture<'static, World>,
        make_whole: fn(&'static World) -> LocalBoxFuture<'static, ()>,
    ) -> Self {
        let place = Place { name, planes: clusters.len(), copies: COPIES };
        Self {
            place,
            clusters,
            set,
            set_up,
            make_whole,
            free: Mutex::new(Vec::new()),
            made: AtomicUsize::new(0),
        }
    }

    /// Runs a test that has a world for itself and leaves it as it was, except for daemons, which are started again. Nobody gets the
    /// world of a test that failed. On the simulated ground each test has a new one.
    pub fn alone<F: Future<Output = ()>>(&self, test: impl FnOnce(&'static World) -> F) {
        if ground::is_simulated() {
            return simulated::with_set(self.set.name, self.clusters, self.set.offload, test);
        }
        RUNTIME.block_on(async {
            let used = async {
                let _turn = turn::turn(self.place, Sharing::Alone).await;
                self.has_one(test).await;
            };
            let result = AssertUnwindSafe(used).catch_unwind().await;
            while let Some(_retired) = turn::take_unused(self.place) {
                if let Some(world) = self.take() {
                    world.discard().await;
                }
            }
            if let Err(failure) = result {
                resume_unwind(failure);
            }
        });
    }

    async fn has_one<F: Future<Output = ()>>(&self, test: impl FnOnce(&'static World) -> F) {
        let world = match self.take() {
            Some(world) => world,
            None => self.another().await,
        };
        record::uses_fleet(world.real().fleet.dir());
        let whole = in_time(async {
            test(world).await;
            (self.make_whole)(world).await;
        });
        if let Err(failure) = AssertUnwindSafe(whole).catch_unwind().await {
            let _retired = turn::retire(self.place);
            world.discard().await;
            resume_unwind(failure);
        }
        self.free.lock().unwrap_or_else(PoisonError::into_inner).push(world);
    }

    fn take(&self) -> Option<&'static World> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    async fn another(&self) -> &'static World {
        let name = format!("{}-{}", self.place.name, self.made.fetch_add(1, Ordering::Relaxed));
        let made = async { (self.set_up)(World::bring_up(&name, self.clusters).await).await };
        match make(made).await {
            Ok(world) => Box::leak(Box::new(world)),
            Err(failure) => {
                let _retired = turn::retire(self.place);
                resume_unwind(failure)
            }
        }
    }
}
