//! A watch and what is done about each of its objects: one thing at a time for each object, so many at once in all.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    time::Duration,
};

use futures::StreamExt;
use kube::{
    ResourceExt,
    api::DynamicObject,
    runtime::{WatchStreamExt, watcher},
};
use tokio::task::JoinSet;

use super::objects::Objects;
use crate::set::AT_ONCE;

/// Between two attempts of a watch.
const PAUSE: Duration = Duration::from_millis(100);

pub(super) enum Heard {
    New(DynamicObject),
    Changed(DynamicObject),
    Gone(DynamicObject),
}

impl Heard {
    pub(super) fn object(&self) -> &DynamicObject {
        match self {
            Self::New(object) | Self::Changed(object) | Self::Gone(object) => object,
        }
    }
}

/// Does `act` about each object that is new, different or gone. Of what changed several times meanwhile, the last state counts.
pub(super) fn hears<F>(
    working: &mut JoinSet<()>,
    objects: &Objects,
    act: impl Fn(Heard) -> F + Send + 'static,
) where
    F: Future<Output = ()> + Send + 'static,
{
    let mut events = watcher(objects.0.clone(), watcher::Config::default()).default_backoff().boxed();
    working.spawn(async move {
        let (mut queue, mut acts) = (Queue::default(), JoinSet::new());
        loop {
            tokio::select! {
                event = events.next() => match event {
                    Some(Ok(event)) => queue.take_in(event),
                    Some(Err(_)) => tokio::time::sleep(PAUSE).await,
                    None => return,
                },
                Some(done) = acts.join_next() => drop(queue.busy.remove(&done.unwrap())),
            }
            while let Some((name, heard)) = queue.next() {
                let act = act(heard);
                acts.spawn(async move {
                    act.await;
                    name
                });
            }
        }
    });
}

#[derive(Default)]
struct Queue {
    /// Their generations.
    known: HashMap<String, Option<i64>>,
    waiting: VecDeque<String>,
    heard: HashMap<String, Heard>,
    busy: HashSet<String>,
}

impl Queue {
    fn take_in(&mut self, event: watcher::Event<DynamicObject>) {
        let (object, is_there) = match event {
            watcher::Event::Apply(object) | watcher::Event::InitApply(object) => (object, true),
            watcher::Event::Delete(object) => (object, false),
            watcher::Event::Init | watcher::Event::InitDone => return,
        };
        let name = object.name_any();
        // What only a status says changes no generation; EndpointSlices count all changes.
        let generation = object.metadata.generation;
        let heard = match (self.known.get(&name), is_there) {
            (_, false) => {
                self.known.remove(&name);
                Heard::Gone(object)
            }
            (None, true) => {
                self.known.insert(name.clone(), generation);
                Heard::New(object)
            }
            (Some(known), true) if *known == generation => return,
            (Some(_), true) => {
                self.known.insert(name.clone(), generation);
                Heard::Changed(object)
            }
        };
        self.wait(name, heard);
    }

    fn wait(&mut self, name: String, heard: Heard) {
        let is_new = !self.heard.contains_key(&name);
        let heard = match (self.heard.remove(&name), heard) {
            // Nothing was done about it yet.
            (Some(Heard::New(_)), Heard::Changed(object)) => Heard::New(object),
            // What is withdrawn is taken out because of that.
            (Some(Heard::Changed(object)), Heard::Gone(_)) => Heard::Changed(object),
            (_, heard) => heard,
        };
        self.heard.insert(name.clone(), heard);
        if is_new {
            self.waiting.push_back(name);
        }
    }

    fn next(&mut self) -> Option<(String, Heard)> {
        if self.busy.len() >= AT_ONCE {
            return None;
        }
        let at = self.waiting.iter().position(|name| !self.busy.contains(name))?;
        let name = self.waiting.remove(at)?;
        let heard = self.heard.remove(&name)?;
        self.busy.insert(name.clone());
        Some((name, heard))
    }
}
