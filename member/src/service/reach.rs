//! Whether endpoints of other clusters answer from here, by TCP connects to a few of them. What is found out decides about imports here
//! alone; only of a cluster that the leader does not hear it is told that its endpoints answer, or its records would go. Watches and writes nothing; imports are reconciled when a cluster is not reached any more, or is again.

mod endpoints;
mod path;

use std::{
    collections::{BTreeMap, BTreeSet},
    io::ErrorKind,
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use clap::ValueEnum;
use futures::{StreamExt, stream::FuturesUnordered};
use jiff::Timestamp;
use kit::{hold::Hold, index::Shared, metrics};
use tokio::{
    net::TcpStream,
    sync::Notify,
    time::{sleep_until, timeout},
};

use self::{
    endpoints::Endpoints,
    path::{Answer, Path, SPREAD},
};
use super::{index::known::Known, knowledge::Knowledge};
use crate::{chance::chance, home::Home};

/// For a connect. A link of 600 ms has room to send the first packet twice.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often it is looked which endpoints there are.
const LOOK: Duration = Duration::from_secs(10);
/// The same as long as there are none.
const LOOK_FOR_FIRST: Duration = Duration::from_secs(1);

/// Whether it is tried to connect to endpoints of other clusters.
#[derive(ValueEnum, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Probe {
    /// To three of each.
    #[default]
    On,
    /// Nothing is found out of them.
    Off,
}

/// The ways to the other clusters, by cluster ID.
#[derive(Debug, Default)]
pub(crate) struct Reach {
    paths: BTreeMap<String, Path>,
    /// Whether it was looked for what the process before had found out.
    has_begun: bool,
}

impl Reach {
    /// Takes in clusters that an earlier process reached, or did not any more, which are asked at once. `first` says when others are.
    fn begin(&mut self, before: Before, now: Instant, mut first: impl FnMut() -> Instant) {
        if !std::mem::replace(&mut self.has_begun, true) {
            let Before { reached, demoted } = before;
            let reached = reached.into_iter().map(|cluster| (cluster, Path::new(first(), true, None)));
            let lost =
                demoted.into_iter().map(|(cluster, since)| (cluster, Path::new(now, true, Some(since))));
            self.paths.extend(reached.chain(lost));
        }
    }

    /// Chooses whom to ask, of each cluster that has a part in what is imported here. `reached` answered once, as far as the Lease tells, which
    /// may be known later than [`begin`](Self::begin). `first` says when a new one is asked.
    fn aim(&mut self, all: &Endpoints, reached: &BTreeSet<String>, mut first: impl FnMut() -> Instant) {
        self.paths.retain(|cluster, _| all.contains_key(cluster));
        for (cluster, endpoints) in all {
            let path = self.paths.entry(cluster.clone()).or_insert_with(|| Path::new(first(), false, None));
            if reached.contains(cluster) {
                path.answered_once();
            }
            path.aim(endpoints);
        }
    }

    /// Whom to ask now.
    fn ask(&mut self, now: Instant, mut jitter: impl FnMut() -> Duration) -> Vec<(String, SocketAddr)> {
        let due = self.paths.iter_mut();
        due.filter_map(|(cluster, path)| Some((cluster.clone(), path.ask(now, jitter())?))).collect()
    }

    /// When it is time again.
    fn due(&self) -> Option<Instant> {
        self.paths.values().map(Path::due).min()
    }

    fn unreached(&self) -> BTreeMap<String, Timestamp> {
        let all = self.paths.iter();
        all.filter_map(|(cluster, path)| Some((cluster.clone(), path.unreached()?))).collect()
    }

    /// Those that took a connection of this process and are asked, and when they did last.
    fn connected(&self) -> BTreeMap<String, Instant> {
        let all = self.paths.iter();
        all.filter_map(|(cluster, path)| Some((cluster.clone(), path.connected()?))).collect()
    }

    /// Those that answered once, whether they still do or not.
    fn ever_reached(&self) -> BTreeSet<String> {
        let all = self.paths.iter().filter(|(_, path)| path.was_reached());
        all.map(|(cluster, _)| cluster.clone()).collect()
    }
}

/// What an earlier process of this cluster had found out.
struct Before {
    /// Clusters that answered it.
    reached: BTreeSet<String>,
    /// Those that did not any more, and since when.
    demoted: BTreeMap<String, Timestamp>,
}

/// Asks endpoints of other clusters, in a session or without one.
pub(super) struct Probing {
    pub(super) probe: Probe,
    /// Of this process: only the active replica asks.
    pub(super) hold: Hold,
    /// Where it is noted who answered, for the next process.
    pub(super) home: Home,
    /// What is imported here.
    pub(super) knowledge: Knowledge,
    /// What is known of the ways, also of sessions before.
    pub(super) reach: Shared<Reach>,
    pub(super) metrics: metrics::Reach,
    /// To be notified when there is something new to report on the ClusterSet.
    pub(super) changed: Arc<Notify>,
}

impl Probing {
    /// Waits until this process is the active one, and takes in what was found out before, so that nothing is undone. All of this cluster has
    /// been seen.
    pub(super) async fn begin(&self) {
        self.hold.active().await;
        if self.probe == Probe::Off {
            return;
        }
        // What the one before has noted last.
        self.home.known().await;
        let mut demoted = BTreeMap::new();
        for known in self.imports() {
            demoted.extend(endpoints::demoted(&known));
        }
        let (before, now) = (Before { reached: self.home.reached(), demoted }, Instant::now());
        self.reach.with(|reach| reach.begin(before, now, || now + chance(path::PACE)));
        self.tell();
    }

    /// Clusters of which no endpoint answers any more, and since when.
    pub(super) fn unreached(&self) -> BTreeMap<String, Timestamp> {
        self.reach.with(|reach| reach.unreached())
    }

    /// Asks until it is dropped.
    pub(super) async fn run(&self) {
        if self.probe == Probe::Off {
            return std::future::pending().await;
        }
        let mut connects = FuturesUnordered::new();
        let mut look = Instant::now();
        loop {
            let now = Instant::now();
            if now >= look {
                self.aim(now);
                let is_first = self.reach.with(|reach| reach.paths.is_empty());
                look = now + if is_first { LOOK_FOR_FIRST } else { LOOK };
            }
            for (cluster, target) in self.reach.with(|reach| reach.ask(now, || chance(SPREAD))) {
                connects.push(async move { (cluster, target, connect(target).await) });
            }
            let due = self.reach.with(|reach| reach.due()).map_or(look, |due| due.min(look));
            tokio::select! {
                Some((cluster, target, connected)) = connects.next() => {
                    self.hear(&cluster, target, connected);
                }
                () = sleep_until(due.into()) => {}
            }
        }
    }

    fn aim(&self, now: Instant) {
        let mut all = Endpoints::new();
        self.imports().for_each(|known| endpoints::add(&known, &mut all));
        let reached = self.home.reached();
        self.reach.with(|reach| reach.aim(&all, &reached, || now + chance(path::PACE)));
        // One that has no part in anything any more is not missed.
        self.tell();
    }

    /// All about the names of which something is imported here.
    fn imports(&self) -> impl Iterator<Item = Known> {
        let keys = self.knowledge.services.keys().into_iter();
        let is_here = |known: &Known| !known.entry.imported_slices.is_empty();
        keys.filter_map(|service| self.knowledge.known(&service)).filter(is_here)
    }

    fn hear(&self, cluster: &str, target: SocketAddr, connected: std::io::Result<()>) {
        let (result, answer) = judged(connected);
        self.metrics.probed(result);
        let Some(answer) = answer else { return };
        let is_in_doubt = |reach: &mut Reach| reach.paths.get(cluster).is_some_and(Path::is_in_doubt);
        if answer == Answer::Silent && self.reach.with(is_in_doubt) {
            // It may have gone since it was looked.
            self.aim(Instant::now());
        }
        self.reach.with(|reach| {
            if let Some(path) = reach.paths.get_mut(cluster) {
                path.hear(target, answer, Instant::now(), Timestamp::now());
            }
        });
        self.tell();
    }

    /// Imports and ClusterSet say what is new.
    fn tell(&self) {
        let (unreached, ever) = self.reach.with(|reach| (reach.unreached(), reach.ever_reached()));
        self.metrics.unreached(unreached.len());
        let reached = ever.iter().filter(|cluster| !unreached.contains_key(*cluster)).cloned().collect();
        self.home.note_reached(ever);
        self.home.note_connected(self.reach.with(|reach| reach.connected()));
        let mut is_news = false;
        self.knowledge.have_links(|links| {
            is_news = links.unreached != unreached;
            (links.unreached, links.reached) = (unreached, reached);
        });
        if is_news {
            self.changed.notify_one();
        }
    }
}

async fn connect(target: SocketAddr) -> std::io::Result<()> {
    timeout(PATIENCE, TcpStream::connect(target)).await?.map(drop)
}

/// What became of a connect, in a word, and what that says of the way; nothing where it failed for a reason of our own.
fn judged(connected: std::io::Result<()>) -> (&'static str, Option<Answer>) {
    let Err(error) = connected else { return ("connected", Some(Answer::Connected)) };
    match error.kind() {
        ErrorKind::ConnectionRefused | ErrorKind::ConnectionReset => ("refused", Some(Answer::Refused)),
        ErrorKind::TimedOut | ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable => {
            ("silent", Some(Answer::Silent))
        }
        _ => ("failed", None),
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn a_refusal_is_an_answer_and_a_failure_of_our_own_says_nothing() {
        let of = |kind: ErrorKind| judged(Err(io::Error::from(kind))).1;
        assert_eq!(judged(Ok(())).1, Some(Answer::Connected));
        assert_eq!(of(ErrorKind::ConnectionRefused), Some(Answer::Refused));
        assert_eq!(of(ErrorKind::TimedOut), Some(Answer::Silent));
        assert_eq!(of(ErrorKind::HostUnreachable), Some(Answer::Silent));
        assert_eq!(of(ErrorKind::PermissionDenied), None);
    }

    #[tokio::test]
    async fn a_connect_finds_out_whether_somebody_is_there() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let target = listener.local_addr().unwrap();
        assert_eq!(judged(connect(target).await), ("connected", Some(Answer::Connected)));
        drop(listener);
        assert_eq!(judged(connect(target).await), ("refused", Some(Answer::Refused)));
    }

    #[test]
    fn ways_that_were_lost_before_this_process_are_lost_until_somebody_answers() {
        let (now, at) = (Instant::now(), Timestamp::UNIX_EPOCH);
        let mut reach = Reach::default();
        let before = |cluster: &str| Before {
            reached: ["east", "north"].map(str::to_owned).into(),
            demoted: [(cluster.to_owned(), at)].into(),
        };
        reach.begin(before("east"), now, || now + path::PACE);
        reach.begin(before("west"), now, || now);
        assert_eq!(reach.unreached(), [("east".to_owned(), at)].into(), "only once");
        assert_eq!(reach.ever_reached(), ["east", "north"].map(str::to_owned).into());
        assert!(reach.paths["north"].is_in_doubt(), "its silence would be news");
        let target = SocketAddr::from(([10, 1, 0, 1], 80));
        let all: Endpoints = [("east".to_owned(), [(0, target)].into())].into();
        let none = BTreeSet::new();
        reach.aim(&all, &none, || now);
        assert_eq!(reach.ask(now, Duration::default), [("east".to_owned(), target)]);
        assert_eq!(reach.due(), Some(now + path::PACE));
        reach.paths.get_mut("east").unwrap().hear(target, Answer::Connected, now, at);
        assert!(reach.unreached().is_empty());
        reach.aim(&Endpoints::new(), &none, || now);
        assert!(reach.paths.is_empty(), "it has no part in anything here");
        reach.aim(&all, &none, || now);
        assert!(!reach.paths["east"].was_reached());
        reach.aim(&all, &["east".to_owned()].into(), || now);
        assert!(reach.paths["east"].was_reached(), "the Lease was read after that");
    }
}
