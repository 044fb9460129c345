//! What watches tell, in any order: whoever has to look at something again is told, so that nobody's last look is out of date.
//!
//! A controller under test is its queue and what it sees when it looks at a key. The two controllers that note something in what is known, or
//! ask others to look, run beside it as far as they do that.

mod world;

use std::{
    collections::BTreeMap,
    fmt::Debug,
    time::{Duration, Instant},
};

use api::lease::Pace;
use jiff::Timestamp;
use kit::{
    drive::drive,
    index::Shared,
    metrics::Metrics,
    objects::Change,
    queue::{Outcome, Queue},
    write::Error,
};
use presence::{heartbeat::Heartbeats, leases::Leases};
use proptest::{collection, prelude::*, sample::Index};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use self::world::{CONTENTS, Kind, OBJECTS};
use super::{
    knowledge::Knowledge,
    namespace, own_map,
    view::{HostedPod, OwnOffer, PeerOffer, VirtualNode},
};
use crate::identity::Identity;

/// More than the pace of any queue.
const LOOKED: Duration = Duration::from_millis(200);

/// Something that becomes of an object, and how it is told.
#[derive(Clone, Debug)]
pub(super) struct Event {
    object: Index,
    /// None: it is deleted.
    content: Option<Index>,
    /// All objects of that kind are listed, in place of an event.
    is_list: bool,
    /// Controllers look before anything else is told.
    is_seen: bool,
}

/// Some of what may come.
pub(super) fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = (any::<Index>(), prop::option::weighted(0.75, any::<Index>()), any::<bool>(), any::<bool>());
    let event =
        event.prop_map(|(object, content, is_list, is_seen)| Event { object, content, is_list, is_seen });
    collection::vec(event, 1..40)
}

/// What is told.
enum Told {
    Event { object: Value, is_there: bool },
    List(Vec<Value>),
}

impl Told {
    fn read<T: DeserializeOwned>(self) -> Change<T> {
        let read = |object: Value| serde_json::from_value(object).unwrap();
        match self {
            Self::Event { object, is_there: true } => Change::Apply(read(object)),
            Self::Event { object, is_there: false } => Change::Remove(read(object)),
            Self::List(objects) => Change::Reset(objects.into_iter().map(read).collect()),
        }
    }
}

/// The objects that are there.
#[derive(Default)]
struct World {
    there: BTreeMap<usize, Value>,
    /// How often something became of one.
    version: u64,
}

impl World {
    /// What is told of an event, and of what kind.
    fn told(&mut self, event: &Event) -> Option<(Kind, Told)> {
        let number = event.object.index(OBJECTS.len());
        let object = &OBJECTS[number];
        let told = match event.content.map(|content| content.index(CONTENTS)) {
            None if !object.stays => Told::Event { object: self.there.remove(&number)?, is_there: false },
            content => self.is(number, content.unwrap_or_default()),
        };
        let of_kind = self.there.iter().filter(|(number, _)| OBJECTS[**number].kind == object.kind);
        let told = match event.is_list {
            true => Told::List(of_kind.map(|(_, object)| object.clone()).collect()),
            false => told,
        };
        Some((object.kind, told))
    }

    /// The object has this content now.
    fn is(&mut self, number: usize, content: usize) -> Told {
        self.version += 1;
        let mut object = (OBJECTS[number].content)(content);
        // One that is being deleted is not kept: it went, and was made again.
        let is_going = |object: &Value| object["metadata"].get("deletionTimestamp").is_some();
        let before = self.there.get(&number).filter(|before| is_going(&object) || !is_going(before));
        let before = before.map(|before| before["metadata"]["uid"].clone());
        object["metadata"]["uid"] = before.unwrap_or_else(|| format!("u{}", self.version).into());
        object["metadata"]["resourceVersion"] = self.version.to_string().into();
        self.there.insert(number, object.clone());
        Told::Event { object, is_there: true }
    }
}

/// The time at which all of it happens: nobody becomes silent by that the test takes long.
#[derive(Clone)]
pub(super) struct Known {
    pub(super) all: Knowledge,
    pub(super) now: Instant,
    leases: Shared<Leases>,
}

impl Known {
    fn new() -> Self {
        let us = Identity { cluster: "west".into(), common_area: "area".into() };
        let leases = Shared::new(Leases::new(Pace::default(), Heartbeats::default(), false));
        Self { all: Knowledge::new(us, "freeport".into(), Some(leases.clone())), now: Instant::now(), leases }
    }

    fn take_in(&self, kind: Kind, told: Told) {
        let known = &self.all;
        match kind {
            Kind::Peer => known.change_peers(told.read()),
            Kind::Node => known.change::<VirtualNode>(told.read()),
            Kind::OwnMap => known.change_own_maps(told.read()),
            Kind::PeerMap => known.change_peer_maps(told.read(), self.now),
            Kind::OwnOffer => known.clusters.change::<OwnOffer>(told.read()),
            Kind::PeerOffer => known.clusters.change::<PeerOffer>(told.read()),
            Kind::Offloading => known.change_offloadings(told.read()),
            Kind::Namespace => known.change_namespaces(told.read()),
            Kind::Binding => known.change_bindings(told.read()),
            Kind::Account => known.change_accounts(told.read()),
            Kind::Record => drop(known.change_records(told.read())),
            Kind::Pod => known.shadows.change::<HostedPod>(told.read()),
            Kind::Lease => {
                let change = told.read();
                self.leases.with(|leases| leases.change(change, self.now, Timestamp::UNIX_EPOCH));
                known.hear(self.now);
            }
        }
    }

    /// As the controller of OffloadPeers finds out that one was deleted.
    fn look_for_peer(&self, cluster: &String) -> Outcome {
        let Some(entry) = self.all.clusters.get(cluster) else { return Outcome::Done };
        if entry.made_for_missing_peer().is_some() {
            self.all.peer_is_gone(cluster, true);
        }
        Outcome::Done
    }

    /// As the controller of Namespaces asks for maps that do not say what they have to.
    fn look_at_namespace(&self, name: &String) -> Outcome {
        match self.all.namespaces.get(name) {
            Some(entry) => namespace::ask_maps(&self.all, name, &entry),
            None => own_map::enqueue(&self.all, name),
        }
        Outcome::Done
    }
}

/// A queue, the keys that may come by it, and what its controller sees of one.
#[derive(Clone)]
pub(super) struct Looks<V> {
    pub(super) queue: fn(&Knowledge) -> Queue<String>,
    pub(super) keys: fn(&Knowledge) -> Vec<String>,
    pub(super) at: fn(&Known, &str) -> BTreeMap<String, V>,
}

/// What the controller has seen last, and what it would see now of all keys of its first queue.
pub(super) fn seen<V>(events: &[Event], first: &Looks<V>, others: &[Looks<V>]) -> [BTreeMap<String, V>; 2]
where
    V: Clone + Default + PartialEq + Debug + Send + 'static,
{
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.unwrap().block_on(async {
        let (known, last) = (Known::new(), Shared::<BTreeMap<String, V>>::default());
        let (metrics, stop) = (Metrics::new().unwrap(), CancellationToken::new());
        let run = |queue, look: Box<dyn Fn(&String) -> Outcome>| {
            let look = move |key: String| std::future::ready(Ok::<_, Error>(look(&key)));
            drive("test", queue, metrics.clone(), stop.clone(), look)
        };
        let looking = std::iter::once(first).chain(others).map(|looks| {
            let (queue, known, last, at) = ((looks.queue)(&known.all), known.clone(), last.clone(), looks.at);
            let look = move |key: &String| {
                last.with(|last| last.extend(at(&known, key)));
                Outcome::Done
            };
            run(queue, Box::new(look))
        });
        let (peers, namespaces) = (known.clone(), known.clone());
        let noting = [
            run(known.all.clusters.queue(0), Box::new(move |id| peers.look_for_peer(id))),
            run(known.all.namespaces.queue(0), Box::new(move |name| namespaces.look_at_namespace(name))),
        ];
        let all = futures::future::join_all(noting.into_iter().chain(looking));
        let telling = async {
            let mut world = World::default();
            for (number, object) in OBJECTS.iter().enumerate().filter(|(_, object)| object.stays) {
                known.take_in(object.kind, world.is(number, 0));
            }
            for event in events {
                if let Some((kind, told)) = world.told(event) {
                    known.take_in(kind, told);
                }
                if event.is_seen {
                    tokio::time::sleep(LOOKED).await;
                }
            }
            tokio::time::sleep(2 * LOOKED).await;
        };
        tokio::select! {
            _ = all => {}
            () = telling => {}
        }
        let mut now = BTreeMap::new();
        for key in (first.keys)(&known.all) {
            now.extend((first.at)(&known, &key));
        }
        // Of what it was never told it knows nothing, and nothing is to be known of what has gone.
        last.with(|last| {
            last.keys().for_each(|key| _ = now.entry(key.clone()).or_default());
            now.keys().for_each(|key| _ = last.entry(key.clone()).or_default());
            [last.clone(), now]
        })
    })
}
