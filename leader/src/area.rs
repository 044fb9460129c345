//! One Common Area. Its failures are its own.

mod session;
mod urgent;

use std::time::Duration;

use api::{antrea::Members, quota::Quota};
use kit::boot::Env;
use presence::{kin::Kinship, lease::Presence};
use tokio::{sync::watch, task::JoinSet};
use tokio_util::sync::CancellationToken;

use self::session::Session;
use crate::{feature::Table, schemas};

/// What is the same in all Common Areas.
pub(crate) struct Of {
    pub(crate) quota: Quota,
    /// After which the records of a silent member go.
    pub(crate) evict_after: Duration,
    pub(crate) table: Table,
    pub(crate) schemas: watch::Receiver<schemas::Said>,
}

/// Serves the Common Area `common_area` until `stop`; from the beginning again whenever it was restored from a backup, or other
/// members run Antrea's controllers. Gives its name back when nothing of it is left here.
pub(crate) async fn run(env: Env, common_area: String, of: Of, stop: CancellationToken) -> String {
    let (mut antrea, kinship) = (Members::default(), Kinship::at_home());
    while !stop.is_cancelled() {
        let session = Session::new(&env, &common_area, &of, antrea.clone(), kinship.clone());
        match serve(&session, &stop).await {
            Ended::Stopped => break,
            Ended::Restored => {
                tracing::warn!(
                    "the Common Area was restored from a backup or emptied: reading everything again"
                );
                env.metrics.restored(&common_area);
            }
            Ended::Marked(members) => {
                tracing::info!(
                    members = members.annotation(),
                    "the list of members that run Antrea's controllers changed: starting again with it"
                );
                antrea = members;
            }
        }
    }
    env.metrics.forget(&common_area);
    common_area
}

/// Why a session ended.
#[derive(PartialEq, Eq)]
enum Ended {
    Stopped,
    Restored,
    /// These members run Antrea's controllers, and no others: every record may mean something else now.
    Marked(Members),
}

async fn serve(session: &Session, stop: &CancellationToken) -> Ended {
    tracing::info!("serving");
    let mut tasks = JoinSet::new();
    // Before anything can change.
    let mut marked = session.marked();
    session.watch(&mut tasks);
    let mut presence = session.keep_lease(&mut tasks);
    let controllers = session.run(stop);
    tokio::pin!(controllers);
    let ended = loop {
        tokio::select! {
            () = &mut controllers => break Ended::Stopped,
            () = session.restored() => break Ended::Restored,
            Ok(()) = marked.changed() => break Ended::Marked(marked.borrow_and_update().clone()),
            Ok(()) = presence.changed() => {
                let now = presence.borrow_and_update().clone();
                session.present(&now);
                if now == Presence::Restored {
                    break Ended::Restored;
                }
            }
            Some(Err(error)) = tasks.join_next() => kit::drive::resume(error),
        }
    };
    // What still runs must not count in what is forgotten next.
    tasks.shutdown().await;
    session.absent();
    tracing::info!("served");
    ended
}
