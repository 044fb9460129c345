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
    binding::Bindings,
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
        let mut active = BTreeMap::<String, usize>::new();
        loop {
            let now = wanted.borrow_and_update().clone();
            self.running.retain(|api, (bound, ending)| {
                let stays = now.get(api) == Some(bound);
                if !stays {
                    ending.cancel();
                }
                stays
            });
            for (api, bound) in now {
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
                *active.entry(bound.binding.clone()).or_default() += 1;
                let binding = bound.binding.clone();
                tasks.spawn(async {
                    run.await;
                    binding
                });
                self.running.insert(api, (bound, ending));
            }
            bindings.set_active(active.keys().cloned().collect());
            bindings.enqueue();
            tokio::select! {
                () = stop.cancelled() => break,
                Ok(()) = wanted.changed() => {}
                Ok(()) = changes.changed() => {}
                Ok(()) = unsynced.changed() => {}
                Ok(()) = self.beating.changed() => {}
                Some(ended) = tasks.join_next() => match ended {
                    Ok(binding) => {
                        let left = active.remove(&binding).unwrap_or_default().saturating_sub(1);
                        active.extend((left > 0).then_some((binding, left)));
                    }
                    Err(error) => resume(error),
                },
            }
        }
        while let Some(ended) = tasks.join_next().await {
            ended.map(drop).unwrap_or_else(resume);
        }
    }
}
