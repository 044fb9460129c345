//! Worlds that tests have for themselves, one after the other.

use std::{
    panic::{AssertUnwindSafe, resume_unwind},
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use futures::{
    FutureExt,
    future::{LocalBoxFuture, join_all},
};
use tokio::sync::{Notify, Semaphore};

use crate::{
    harness::record,
    shared::{RUNTIME, in_turn},
    world::{World, room},
};

/// Tests that have a world for themselves run three at a time, since they wait more than they work.
const AT_ONCE: usize = 3;

/// Worlds of one kind: as many as tests have one at the same time. Their processes end with the last test that waits for one.
pub struct Pool {
    name: &'static str,
    clusters: &'static [&'static str],
    /// Makes the clusters of one the ClusterSet that tests find.
    set_up: fn(World) -> LocalBoxFuture<'static, World>,
    /// Makes one what it was before the test that had it.
    make_whole: fn(&'static World) -> LocalBoxFuture<'static, ()>,
    turns: Semaphore,
    /// Those that nobody has now, all as they were made.
    free: Mutex<Vec<&'static World>>,
    /// One was given back.
    freed: Notify,
    made: AtomicUsize,
    /// Tests that wait for one or have one.
    users: AtomicUsize,
}

impl Pool {
    pub const fn new(
        name: &'static str,
        clusters: &'static [&'static str],
        set_up: fn(World) -> LocalBoxFuture<'static, World>,
        make_whole: fn(&'static World) -> LocalBoxFuture<'static, ()>,
    ) -> Self {
        Self {
            name,
            clusters,
            set_up,
            make_whole,
            turns: Semaphore::const_new(AT_ONCE),
            free: Mutex::new(Vec::new()),
            freed: Notify::const_new(),
            made: AtomicUsize::new(0),
            users: AtomicUsize::new(0),
        }
    }

    /// Runs a test that has a world for itself and leaves it as it was, except for daemons, which are started again. Nobody gets the
    /// world of a test that failed.
    pub fn alone<F: Future<Output = ()>>(&self, test: impl FnOnce(&'static World) -> F) {
        self.users.fetch_add(1, Ordering::SeqCst);
        RUNTIME.block_on(async {
            let result = AssertUnwindSafe(self.has_one(test)).catch_unwind().await;
            if self.users.fetch_sub(1, Ordering::SeqCst) == 1 {
                let free = std::mem::take(&mut *self.free.lock().unwrap());
                join_all(free.into_iter().map(World::discard)).await;
            }
            if let Err(failure) = result {
                resume_unwind(failure);
            }
        });
    }

    async fn has_one<F: Future<Output = ()>>(&self, test: impl FnOnce(&'static World) -> F) {
        let _turn = self.turns.acquire().await.unwrap();
        let world = self.one().await;
        record::uses_fleet(world.fleet.dir());
        let whole = async {
            in_turn(test(world)).await;
            (self.make_whole)(world).await;
        };
        if let Err(failure) = AssertUnwindSafe(whole).catch_unwind().await {
            world.discard().await;
            resume_unwind(failure);
        }
        self.free.lock().unwrap().push(world);
        self.freed.notify_one();
    }

    /// One that is free, or a new one, whichever is there first: who waited for room alone might wait for the room of a free one.
    async fn one(&self) -> &'static World {
        let room = loop {
            let free = self.free.lock().unwrap().pop();
            if let Some(world) = free {
                return world;
            }
            tokio::select! {
                room = room(self.clusters.len()) => break room,
                () = self.freed.notified() => {}
            }
        };
        let name = format!("{}-{}", self.name, self.made.fetch_add(1, Ordering::Relaxed));
        let world = World::bring_up_in(room, &name, self.clusters).await;
        Box::leak(Box::new((self.set_up)(world).await))
    }
}
