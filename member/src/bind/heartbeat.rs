//! Shows the provider that we live, and keeps the credential up to date.
//!
//! Watches `ClusterBinding/cluster` and the Secret that it names. Writes the status of the ClusterBinding every two and a half minutes, and
//! the Secret of our cluster where the provider's has another kubeconfig that can be used. Shows as well whether what our watches
//! know is still there: a provider that was restored from a backup may have come to the version they are at, so that they do not notice.

mod beat;
mod due;
mod mirror;

use std::time::{Duration, Instant};

use api::bind::{
    binding::{ClusterBinding, ClusterBindingStatus, SecretName},
    condition::{Answer, Severity, Verdict, conditions},
    duration::GoDuration,
    holder::{held_by, is_released, noted},
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kit::{drive::before, failure::Failure, objects::version, watch::Watches, write::Error};
use kube::ResourceExt;
use serde_json::json;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

pub(crate) use self::beat::{Beat, Health, ends_contract};
use self::{
    beat::after,
    due::{AT_MOST_EVERY, EVERY, due},
};
use super::{
    contract::{Contract, IN_TIME},
    holder,
    local::{Local, NAMESPACE},
};

/// After how long without a heartbeat the provider may take us for gone, twice.
const INTERVAL: Duration = Duration::from_secs(300);
/// How soon one is tried again that failed.
const AGAIN: Duration = Duration::from_secs(10);

/// The last write.
#[derive(Default)]
struct Wrote {
    at: Option<Instant>,
    /// The version of the ClusterBinding that the provider answered then.
    heard: u64,
}

/// What they tell.
pub(crate) type Beating = watch::Receiver<Health>;

/// Of one contract.
pub(crate) struct Heartbeat {
    contract: Contract,
    local: Local,
    secret: String,
    now: fn() -> Timestamp,
    failures: watch::Receiver<Option<Instant>>,
    said: watch::Sender<Health>,
}

impl Heartbeat {
    /// `secret` is that of our cluster, `now` the clock. `watches` are of what is in the cluster namespace.
    pub(crate) fn new(
        (contract, local): (&Contract, &Local),
        secret: &str,
        now: fn() -> Timestamp,
        watches: &Watches,
    ) -> Self {
        let (said, failures) = (watch::Sender::default(), watches.failures());
        Self {
            contract: contract.clone(),
            local: local.clone(),
            secret: secret.to_owned(),
            now,
            failures,
            said,
        }
    }

    /// Tells how each one went.
    pub(crate) fn beating(&self) -> Beating {
        self.said.subscribe()
    }

    /// Goes on until `stop`, whatever the provider still has to answer then: nothing here cannot be done again.
    pub(crate) async fn keep(self, stop: CancellationToken) {
        before(&stop, self.go_on()).await;
    }

    async fn go_on(&self) {
        let (mut changes, mut wrote) = (self.contract.changes(), Wrote::default());
        let (mut failures, mut doubted) = (self.failures.clone(), None);
        loop {
            changes.mark_unchanged();
            failures.mark_unchanged();
            // The old credential counts as long as the new one does not.
            let mirrored = self.mirror().await;
            let again = match &mirrored {
                Err(Error::Stale) => Some(AT_MOST_EVERY),
                Ok(()) => None,
                Err(error) => {
                    tracing::warn!(%error, "the provider's new credential was not taken over, trying again");
                    Some(AGAIN)
                }
            };
            self.note(|health| health.mirrored(&mirrored));
            let wait = match self.lives(&mut doubted).await {
                true => self.pulse(&mut wrote).await,
                false => AGAIN,
            };
            tokio::select! {
                () = tokio::time::sleep(wait.min(again.unwrap_or(wait))) => {}
                Ok(()) = changes.changed() => {}
                // The next heartbeat is not due for long.
                Ok(()) = failures.changed(), if doubted.is_none() => doubted = Some(Instant::now()),
            }
        }
    }

    /// Asks the provider if it is in doubt whether it lives, and says what is known then. Who is just started again has a moment for that.
    async fn lives(&self, doubted: &mut Option<Instant>) -> bool {
        let Some(since) = *doubted else { return true };
        let has_ended = self.contract.has_ended().await;
        if has_ended == Ok(false) {
            *doubted = None;
            return true;
        }
        let beat = self.after(has_ended, "it was in doubt whether the provider lives");
        if beat == Beat::Evicted || since.elapsed() >= AGAIN {
            self.say(beat);
        }
        false
    }

    /// Sends a heartbeat if one is due, and says how that went; when to look again.
    async fn pulse(&self, wrote: &mut Wrote) -> Duration {
        let beat = tokio::time::timeout(IN_TIME, self.beat(wrote)).await;
        let failed = match beat {
            Ok(Ok(Some(wait))) => {
                self.say(Beat::Arrived);
                return wait;
            }
            Ok(Err(Error::Stale)) => return AGAIN,
            Ok(Ok(None)) => "there is no ClusterBinding cluster".to_owned(),
            // The same words for the same cause.
            Ok(Err(error)) => error.failure().to_string(),
            Err(_) => "no answer in time".to_owned(),
        };
        tracing::warn!(failed, "the provider was not told that we live, trying again");
        let has_ended = self.contract.has_ended().await;
        self.say(self.after(has_ended, &failed));
        AGAIN
    }

    fn after(&self, has_ended: Result<bool, Failure>, why: &str) -> Beat {
        after(self.said.borrow().beat.as_ref(), has_ended, why)
    }

    fn say(&self, now: Beat) {
        self.note(|health| health.beat = Some(now));
    }

    fn note(&self, change: impl FnOnce(&mut Health)) {
        self.said.send_if_modified(|said| {
            let before = said.clone();
            change(said);
            *said != before
        });
    }

    /// Writes the status if that is due; when the next one is. Nothing where there is no ClusterBinding.
    async fn beat(&self, wrote: &mut Wrote) -> Result<Option<Duration>, Error> {
        let Some(binding) = self.contract.known.with(|known| known.cluster_bindings.get("cluster").cloned())
        else {
            return Ok(None);
        };
        let is_wanted = || holder::is_wanted(&self.contract, &self.local, &self.secret);
        if self.contract.releasing.is_cancelled() && !is_wanted() {
            return Ok(Some(AGAIN));
        }
        if holder::known_other(&self.contract).is_some() {
            return Err(Error::Stale);
        }
        let now = (self.now)();
        let have = binding.status.clone().unwrap_or_default();
        let want = self.status(&have, now);
        if let Some(left) = due(&have, &want, now, wrote.at.map(|at| at.elapsed())) {
            return Ok(Some(left));
        }
        let mut patch = json!({ "status": want });
        patch["metadata"]["resourceVersion"] = json!(binding.resource_version());
        let answer = self.contract.writer.merge::<ClusterBinding>(&binding, Some("status"), patch).await;
        match answer {
            Ok(answer) => {
                *wrote = Wrote { at: Some(Instant::now()), heard: version(&answer) };
                Ok(Some(EVERY))
            }
            Err(Error::Stale) => {
                // Who writes faster than we read would have us try all the time.
                wrote.at = Some(Instant::now());
                let now = version(&self.contract.writer.read(&binding).await?);
                if are_deaf(version(&binding), wrote.heard, now) {
                    self.contract.restored.cancel();
                }
                wrote.heard = now;
                Err(Error::Stale)
            }
            Err(error) => Err(error),
        }
    }

    /// The Secret of ours that the status names: the one it names, while that is there. Two may hold credentials of one contract, and
    /// would otherwise take turns for ever.
    fn named(&self, have: &ClusterBindingStatus) -> SecretName {
        let is_there = |named: &&SecretName| {
            named.namespace == NAMESPACE
                && self.local.known.with(|known| known.secrets.get(&named.name).is_some())
        };
        let named = have.consumer_secret_ref.as_ref().filter(is_there).cloned();
        named.unwrap_or_else(|| SecretName { name: self.secret.clone(), namespace: NAMESPACE.into() })
    }

    fn status(&self, have: &ClusterBindingStatus, now: Timestamp) -> ClusterBindingStatus {
        let key = self.contract.known.with(|known| {
            let named = &known.cluster_bindings.get("cluster")?.spec.kubeconfig_secret_ref;
            let secret = known.secrets.get(&named.name);
            Some(secret.map(|secret| secret.data.iter().flatten().any(|(key, _)| *key == named.key)))
        });
        let no = |reason, message: &str| Answer::No(Severity::Warning, reason, message.to_owned());
        let secret = match key.flatten() {
            Some(true) => Answer::Yes,
            Some(false) => no("ProviderSecretInvalid", "the Secret with the kubeconfig lacks its key"),
            None => no("ProviderSecretNotFound", "the Secret with the kubeconfig is not there"),
        };
        let verdicts = [Verdict::new("SecretValid", secret), Verdict::new("ValidVersion", Answer::Yes)];
        let said = conditions(&have.conditions, &verdicts, &[], now);
        ClusterBindingStatus {
            last_heartbeat_time: Some(Time(Timestamp::from_second(now.as_second()).unwrap_or(now))),
            heartbeat_interval: Some(GoDuration(INTERVAL)),
            konnector_version: Some(format!("v{}", env!("CARGO_PKG_VERSION"))),
            consumer_secret_ref: Some(self.named(have)),
            conditions: match held_by(have) {
                // The ClusterBinding was made anew: this cluster held the contract before.
                None if !is_released(have) || !self.local.bindings_of(&self.secret).is_empty() => {
                    noted(&said, &self.contract.us, now)
                }
                _ => said,
            },
        }
    }
}

/// Whether watches hear nothing of what the provider has `now`: it is at a version before the one they `know`, or they do not even know the
/// one that was `heard` when we wrote before, which is half a minute ago and more.
fn are_deaf(know: u64, heard: u64, now: u64) -> bool {
    now < know || know < heard
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bind::fixture::silent_contract;

    #[tokio::test]
    async fn a_contract_ends_at_once_whatever_its_provider_has_to_answer() {
        let (contract, server) = silent_contract().await;
        let us = (&contract, &Local::new());
        let heartbeat = Heartbeat::new(us, "east", Timestamp::now, &Watches::default());
        let stop = CancellationToken::new();
        let kept = tokio::time::timeout(Duration::from_secs(10), heartbeat.keep(stop.clone()));
        let asked = async {
            let asked = server.accept().await.unwrap();
            stop.cancel();
            asked
        };
        assert!(tokio::join!(kept, asked).0.is_ok());
    }

    #[test]
    fn a_provider_that_was_restored_is_one_that_our_watches_do_not_hear() {
        assert!(are_deaf(100, 0, 90), "it was restored");
        assert!(
            are_deaf(100, 110, 110),
            "what was written before its restore is as it was, and what we wrote since is not told"
        );
        assert!(!are_deaf(100, 100, 101) && !are_deaf(100, 0, 101), "somebody else has written it");
    }
}
