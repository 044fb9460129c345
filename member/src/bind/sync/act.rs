//! Does what was decided about one object, step by step.

use std::time::Instant;

use api::bind::{label::FINALIZER, mapping::Place};
use kit::{metrics::Direction, write::Error};
use kube::{ResourceExt, core::ObjectMeta};
use serde_json::{Value, json};

use super::{
    BY, Sync,
    entry::{At, Here, Pair, There},
    plan::Step,
};
use crate::bind::absence::takes_more;

impl Sync {
    /// Does a step; whether another one may follow at once.
    pub(super) async fn act(&self, place: &Place, pair: &Pair, step: Step) -> Result<bool, Error> {
        let (here, there) = (pair.here.as_deref(), pair.there.as_deref());
        match (step, here, there) {
            (Step::Assign(namespace), ..) => {
                // A Namespace that goes is not asked for again; what is held by one still needs it.
                if pair.is_going() || takes_more(&self.contract.env.client, &namespace).await? {
                    self.contract.assign(&namespace).await?;
                }
                Ok(false)
            }
            (Step::Hold, Some(here), _) => {
                self.store.write(BY, here, self.here.hold(here, FINALIZER)).await?;
                Ok(true)
            }
            (Step::TakeOver(fields), _, Some(there)) => {
                let at = There { side: At::of(place), ..there.clone() };
                let request = async { Ok(self.there.manage(there, fields).await?.with(At::of(place))) };
                self.store.write(BY, &at, request).await?;
                Ok(true)
            }
            (Step::Apply(target, want), Some(_), there) => {
                self.apply(place, &target, there, want).await?;
                Ok(true)
            }
            (Step::Status(status), Some(here), _) => {
                self.say(place, here, status).await?;
                Ok(true)
            }
            (Step::Annotate(annotations), Some(here), _) => {
                let patch = json!({"metadata": {"annotations": annotations}});
                self.store.write(BY, here, self.here.merge(here, None, patch)).await?;
                Ok(true)
            }
            (Step::Delete, _, Some(there)) => {
                self.may_go(place, here).await?;
                // It may have to wait for others there: the watch tells when it is gone.
                self.there.delete(there, false).await?;
                Ok(false)
            }
            (Step::Release, Some(here), _) => {
                self.here.release(here, &[FINALIZER]).await?;
                Ok(false)
            }
            (Step::LetGo, Some(here), _) => {
                self.let_go(place, here).await?;
                Ok(false)
            }
            _ => Ok(false),
        }
    }

    async fn apply(
        &self,
        place: &Place,
        target: &Place,
        there: Option<&There>,
        want: Value,
    ) -> Result<(), Error> {
        let metadata = ObjectMeta {
            name: Some(target.name.clone()),
            namespace: target.namespace.clone(),
            uid: there.and_then(ResourceExt::uid),
            ..ObjectMeta::default()
        };
        let at = There { metadata, content: Default::default(), error: None, side: At::of(place) };
        let request = async {
            let answer = self.there.apply::<There>(&at, want.clone()).await?;
            Ok(answer.with(At::of(place)))
        };
        let answer = self.store.write(BY, &at, request).await?;
        let mut due = None;
        self.store.note(place, |pair| {
            pair.applied = Some((want, Pair::essence(&answer)));
            due = pair.due_up.take();
        });
        self.carried(Direction::Up, due);
        Ok(())
    }

    async fn say(&self, place: &Place, here: &Here, status: Option<Value>) -> Result<(), Error> {
        let mut want = here.clone();
        match status.clone() {
            Some(status) => want.content.insert("status".into(), status),
            None => want.content.remove("status"),
        };
        let subresource = self.bound.has_status.then_some("status");
        let answer = self.store.write(BY, here, self.here.replace(&want, subresource)).await?;
        let became = answer.content.get("status").cloned();
        let mut due = None;
        self.store.note(place, |pair| {
            pair.said = Some((status, became));
            due = pair.due_down.take();
        });
        self.carried(Direction::Down, due);
        Ok(())
    }

    fn carried(&self, direction: Direction, due: Option<Instant>) {
        if let Some(due) = due {
            self.contract.env.metrics.bind().carried(direction, due.elapsed());
        }
    }
}
