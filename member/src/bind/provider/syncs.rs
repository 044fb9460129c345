//! Which APIs of a contract are kept in step: those that its bindings want.
//!
//! Watches what the bindings want. Starts and ends a [`Sync`] for each API.

use std::collections::BTreeMap;

use api::label::MEMBER;
use kit::{drive::resume, write::Writer};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use crate::bind::{
    absence::Absence,
    binding::{Active, Bindings, Wanted},
    contract::Contract,
    heartbeat::Beating,
    local::Local,
    sync::{Bound, Sync, Unsynced},
};

/// The APIs whose objects are kept in step.
pub(super) struct Syncs {
    contract: Contract,
    local: Local,
    absence: Absence,
    unsynced: Unsynced,
    beating: Beating,
    running: BTreeMap<String, (Bound, CancellationToken)>,
}

impl Syncs {
    pub(super) fn new(
        (contract, local): (&Contract, &Local),
        absence: Absence,
        unsynced: Unsynced,
        beating: Beating,
    ) -> Self {
        let (contract, local) = (contract.clone(), local.clone());
        Self { contract, local, absence, unsynced, beating, running: BTreeMap::new() }
    }

    /// Starts and ends what the bindings say, until `stop`.
    pub(super) async fn keep(mut self, bindings: Bindings, stop: &CancellationToken) {
        let (mut wanted, mut tasks) = (bindings.bound(), JoinSet::new());
        let (mut changes, mut unsynced) = (self.contract.changes(), self.unsynced.changes());
        let mut active = Active::new();
        loop {
            let now = wanted.borrow_and_update().clone();
            self.running.retain(|api, (bound, ending)| {
                let stays = now.get(api) == Some(bound);
                if !stays {
                    ending.cancel();
                }
                stays
            });
            for (api, bound) in beginning(now, &active) {
                if self.running.contains_key(&api) {
                    continue;
                }
                tracing::info!(api, binding = bound.binding, "keeping objects in step");
                let ending = stop.child_token();
                let env = &self.contract.env;
                let writer = Writer::new(env.client.clone(), MEMBER, "local", env.metrics.clone());
                let sync = Sync::new(
                    bound.clone(),
                    (&self.contract, &self.local),
                    (writer, self.absence.clone()),
                    self.unsynced.clone(),
                );
                let span = tracing::info_span!("api", name = api);
                let run = Box::pin(sync.run(ending.clone()).instrument(span));
                active.insert(api.clone(), bound.binding.clone());
                let ended = api.clone();
                tasks.spawn(async {
                    run.await;
                    ended
                });
                self.running.insert(api, (bound, ending));
            }
            bindings.set_active(active.clone());
            bindings.enqueue();
            tokio::select! {
                () = stop.cancelled() => break,
                Ok(()) = wanted.changed() => {}
                Ok(()) = changes.changed() => {}
                Ok(()) = unsynced.changed() => {}
                Ok(()) = self.beating.changed() => {}
                Some(ended) = tasks.join_next() => match ended {
                    Ok(api) => drop(active.remove(&api)),
                    Err(error) => resume(error),
                },
            }
        }
        while let Some(ended) = tasks.join_next().await {
            ended.map(drop).unwrap_or_else(resume);
        }
    }
}

/// Those that may begin. One that is ending forgets at last which objects of the API were not in step; so the next one waits for that.
fn beginning(wanted: Wanted, active: &Active) -> Wanted {
    wanted.into_iter().filter(|(api, _)| !active.contains_key(api)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bind::fixture;

    #[test]
    fn an_api_that_is_kept_in_step_otherwise_waits_for_the_end_of_what_was() {
        let wanted = Wanted::from([("mangodbs".to_owned(), fixture::bound())]);
        let active = Active::from([("mangodbs".to_owned(), "mango".to_owned())]);
        assert_eq!(beginning(wanted.clone(), &active).len(), 0);
        assert_eq!(beginning(wanted, &Active::new()).len(), 1);
    }
}
