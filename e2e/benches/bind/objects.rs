//! When objects were seen to be as they have to be.

use std::{collections::HashMap, sync::Arc, time::Instant};

use futures::{StreamExt, TryStreamExt};
use kube::{
    Api, ResourceExt,
    api::DynamicObject,
    runtime::{WatchStreamExt, watcher},
};
use tokio::{sync::watch, task::JoinSet};

type Known = Arc<HashMap<String, Instant>>;

/// Watches objects, and knows since when each is so.
pub(crate) struct Seen {
    known: watch::Receiver<Known>,
    _watching: JoinSet<()>,
}

impl Seen {
    /// When they were there.
    pub(crate) fn copies(objects: &Api<DynamicObject>) -> Self {
        Self::watch(objects, |_| true)
    }

    /// When they had a status that says `Ready`.
    pub(crate) fn statuses(objects: &Api<DynamicObject>) -> Self {
        Self::watch(objects, |object| object.data["status"]["phase"] == "Ready")
    }

    fn watch(objects: &Api<DynamicObject>, is_so: fn(&DynamicObject) -> bool) -> Self {
        let (send, known) = watch::channel(Known::default());
        let (objects, mut watching) = (objects.clone(), JoinSet::new());
        watching.spawn(async move {
            let mut events = watcher(objects, watcher::Config::default()).default_backoff().boxed();
            while let Some(event) = events.try_next().await.unwrap_or_default() {
                if let watcher::Event::Apply(object) | watcher::Event::InitApply(object) = event
                    && is_so(&object)
                {
                    let now = Instant::now();
                    send.send_modify(|known| {
                        Arc::make_mut(known).entry(object.name_any()).or_insert(now);
                    });
                }
            }
        });
        Self { known, _watching: watching }
    }

    /// Waits until the object of this name is so.
    pub(crate) async fn when(&self, name: &str) -> Instant {
        let mut known = self.known.clone();
        known.wait_for(|known| known.contains_key(name)).await.unwrap()[name]
    }
}
