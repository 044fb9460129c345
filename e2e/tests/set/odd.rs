//! What others write oddly, and what they do to our objects, harms nothing that is not about it.

mod edits;
mod flood;
mod objects;

use e2e::{daemon::DAEMONS, fixture::World};
use futures::future::join_all;

/// Which process each daemon is.
async fn processes(world: &World) -> Vec<Option<u32>> {
    let processes =
        DAEMONS.map(|daemon| async move { world.real().fleet.process(daemon).await.unwrap().unwrap().pid() });
    join_all(processes).await
}
