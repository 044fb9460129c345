//! What takes too long, and what failed: said where the user looks.

use std::time::Instant;

use api::bind::mapping::Place;
use kit::{
    failure::{Failure, classify},
    queue::Outcome,
    watch::Watches,
    write::Error,
};
use kube::Resource;

use super::{Sync, copies::LOOK, entry::Pair, plan::Problem, unsynced::Halt};
use crate::bind::contract::IN_TIME;

impl Sync {
    pub(super) fn in_step(&self, place: &Place) -> Outcome {
        // What others changed there and we put back later is no delay.
        self.store.note(place, |pair| {
            (pair.due_up, pair.due_down, pair.failing) = (None, None, None);
        });
        self.unsynced.remove(self.name(), place);
        Outcome::Done
    }

    /// A step that failed; `refused` is why the copy cannot be seen, if it cannot.
    pub(super) fn failed(&self, place: &Place, pair: &Pair, refused: Option<Failure>, error: Error) -> Error {
        let problem = match &error {
            Error::Refused(message) => {
                // By us or by the provider: a right may have been taken back here.
                self.doubts.notify_one();
                Some(Problem::Refused(message.clone()))
            }
            Error::Unreachable(error) => match too_large(error) {
                Some(message) => Some(Problem::Refused(message)),
                None if self.fails_for_long(place) => Some(Problem::Unavailable(classify(error))),
                None => None,
            },
            _ => refused.map(Problem::Unwatched),
        };
        if let Some(problem) = problem {
            self.report(place, pair, &problem);
        }
        error
    }

    /// The object waits for a Namespace at the provider, and no event says that none comes.
    pub(super) fn waits(&self, place: &Place, pair: &Pair, now: Instant) -> Outcome {
        let mut since = now;
        self.store.note(place, |pair| since = *pair.unassigned.get_or_insert(now));
        let left = IN_TIME.checked_sub(now.saturating_duration_since(since)).filter(|left| !left.is_zero());
        if left.is_none() {
            let silent = format!("it has not said which one for {} s", IN_TIME.as_secs());
            self.report(place, pair, &Problem::NotAssigned(silent));
        }
        // Its APIServiceNamespace may be gone by then, and is made again.
        Outcome::Requeue(left.unwrap_or(IN_TIME))
    }

    /// Whether API servers have not been able to serve this for some time.
    fn fails_for_long(&self, place: &Place) -> bool {
        let mut since = None;
        self.store.note(place, |pair| since = Some(*pair.failing.get_or_insert_with(Instant::now)));
        since.is_some_and(|since| since.elapsed() > IN_TIME)
    }

    /// Says again and again what no watch has told in time.
    pub(super) async fn say_late(self, watches: Watches) {
        let begun = Instant::now();
        loop {
            tokio::time::sleep(LOOK).await;
            let are_late = begun.elapsed() > IN_TIME && !watches.are_listed();
            let late = match are_late {
                true => Some("objects in this cluster"),
                false => self.copies.are_late().then_some("copies at the provider"),
            };
            let message = late
                .map(|what| format!("{}: no list of {what} came within {} s", self.api, IN_TIME.as_secs()));
            self.unsynced.put_halt(self.name(), Halt::InformerSyncTimeout, message.as_deref());
        }
    }

    /// Says on the object, once, why it is not in step.
    pub(super) fn report(&self, place: &Place, pair: &Pair, problem: &Problem) {
        let said = (problem.reason(), problem.to_string());
        let is_news = self.unsynced.put(self.name(), place, said);
        if let Some(here) = pair.here.as_deref().filter(|_| is_news) {
            let reference = here.object_ref(&self.bound.resource);
            self.contract.env.events.warn(reference, "Synchronize", problem.reason(), &problem.to_string());
        }
    }
}

/// What is too large for an API server's store (1.5 MiB) it answers as a failure of its own, each time.
fn too_large(error: &kube::Error) -> Option<String> {
    match error {
        kube::Error::Api(status) if status.message.contains("request is too large") => {
            Some(status.message.clone())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use kit::{objects::Change, write::Writer};
    use serde_json::json;

    use super::*;
    use crate::{
        bind::{
            absence::Absence,
            fixture,
            local::Local,
            sync::{Here, Unsynced},
        },
        feature::fixture::access,
    };

    #[tokio::test]
    async fn what_waits_for_a_namespace_for_long_says_so() {
        let (contract, access) = (fixture::contract(), access());
        let writer = Writer::new(access.env.client.clone(), "m", "local", access.env.metrics.clone());
        let absence = Absence::new(&access.home, None, jiff::Timestamp::now());
        let unsynced = Unsynced::new(access.env.metrics.bind().unsynced());
        let local = Local::new();
        let sync = Sync::new(fixture::bound(), (&contract, &local), (writer, absence), unsynced.clone());
        let object = json!({"metadata": {"name": "foo", "namespace": "team1", "uid": "u1"}});
        let (place, begun) = (Place::within("team1", "foo"), Instant::now());
        sync.store.change(Change::Apply(serde_json::from_value::<Here>(object).unwrap()));
        let waits = |seconds| {
            let pair = sync.store.get(&place).unwrap();
            sync.waits(&place, &pair, begun + Duration::from_secs(seconds))
        };
        assert_eq!(waits(0), Outcome::Requeue(IN_TIME));
        assert_eq!(waits(10), Outcome::Requeue(Duration::from_secs(20)));
        assert!(unsynced.of("mango").is_empty());
        assert_eq!(waits(30), Outcome::Requeue(IN_TIME), "somebody may have deleted what it waits for");
        assert_eq!(unsynced.of("mango")[&place].0, "NotAssigned");
    }
}
