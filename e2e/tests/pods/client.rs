//! A client on a cluster's node that asks a server fifty times a second, each time over a new connection, and notes what it hears.

use std::{
    collections::BTreeSet,
    fs::File,
    io,
    net::{Ipv4Addr, SocketAddr},
    ops::Range,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use e2e::{say::say, waiting::eventually, world::World};
use nix::sched::{CloneFlags, setns};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpSocket,
    runtime,
    task::JoinSet,
    time::{MissedTickBehavior, interval, timeout},
};

/// Between two questions.
const EVERY: Duration = Duration::from_millis(20);
/// A question that is not answered by then has failed: servers of a busy machine may get no processor time for seconds, and who was sent to an
/// endpoint that is not there stays with it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);
/// Ports that questions come from, one after the other: a node's connection tracking remembers for two minutes where a connection went that
/// nobody answered, and sends who has its port there again. These are none that the kernel or NodePorts give away.
const PORTS: Range<u16> = 12_000..30_000;
/// So long nobody may have failed to get an answer, for a client to be served again.
const CALM: Duration = Duration::from_secs(2);

/// A question.
struct Asked {
    at: Instant,
    heard: Option<Heard>,
}

/// What came of it: who answered, or why nobody did.
struct Heard {
    after: Duration,
    from: Result<String, String>,
}

/// What happens meanwhile, from then on.
struct Phase {
    name: &'static str,
    since: Instant,
}

/// What was not answered in a phase.
pub(crate) struct Failures {
    pub(crate) phase: &'static str,
    pub(crate) why: Vec<String>,
}

/// Asks all the time.
pub(crate) struct Client {
    asked: Arc<Mutex<Vec<Asked>>>,
    is_over: Arc<AtomicBool>,
    asking: JoinHandle<()>,
    phases: Vec<Phase>,
}

impl Client {
    /// On the node of `cluster`, as a Pod with the node's network. Returns after its first answer: an import is there before kube-proxy
    /// knows it.
    pub(crate) async fn start(world: &World, cluster: &str, server: SocketAddr) -> Self {
        let machine = world.real().fleet.cluster(cluster).unwrap().machine().await.unwrap();
        let network = File::open(format!("/proc/{machine}/ns/net")).unwrap();
        let (asked, is_over) = (Arc::default(), Arc::new(AtomicBool::new(false)));
        let (to, over) = (Arc::clone(&asked), Arc::clone(&is_over));
        let asking = std::thread::spawn(move || {
            // Only this thread gets there, and the sockets that it makes.
            setns(network, CloneFlags::CLONE_NEWNET).unwrap();
            let runtime = runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(ask_all_the_time(server, to, &over));
        });
        let client = Self { asked, is_over, asking, phases: Vec::new() };
        eventually("the client is answered", || async {
            let asked = lock(&client.asked);
            let heard: Vec<_> = asked.iter().filter_map(|one| Some(&one.heard.as_ref()?.from)).collect();
            if heard.iter().any(|from| from.is_ok()) { Ok(()) } else { Err(format!("{:?}", heard.last())) }
        })
        .await;
        client
    }

    /// Something else happens from now on. What was asked before has been heard by then.
    pub(crate) async fn enter(&mut self, name: &'static str) {
        let since = Instant::now();
        self.phases.push(Phase { name, since });
        eventually("what was asked before is answered", || async {
            let asked = lock(&self.asked);
            let open = asked.iter().filter(|one| one.at < since && one.heard.is_none()).count();
            if open == 0 { Ok(()) } else { Err(format!("{open} are not")) }
        })
        .await;
    }

    /// Waits until all of these have answered, in this phase.
    pub(crate) async fn hears(&self, servers: &BTreeSet<String>) {
        let since = self.phases.last().unwrap().since;
        eventually("all servers answer", || async {
            let asked = lock(&self.asked);
            let answers = asked.iter().rev().take_while(|one| one.at >= since);
            let heard: BTreeSet<_> =
                answers.filter_map(|one| one.heard.as_ref()?.from.clone().ok()).collect();
            if heard.is_superset(servers) { Ok(()) } else { Err(format!("{heard:?} of {servers:?}")) }
        })
        .await;
    }

    /// Waits until nothing fails any more; when that was asked that failed last, counted from the begin of this phase.
    pub(crate) async fn is_served_again(&self) -> Duration {
        let since = self.phases.last().unwrap().since;
        eventually("nothing fails any more", || async {
            let asked = lock(&self.asked);
            let failed = asked.iter().rev().find(|one| one.heard.as_ref().is_some_and(|it| it.from.is_err()));
            let last = failed.map_or(since, |one| one.at.max(since));
            match last.elapsed() > PATIENCE + CALM {
                true => Ok(last - since),
                false => Err(format!("{:?} ago", last.elapsed())),
            }
        })
        .await
    }

    /// Ends it, and prints what was heard. What was not answered, for each phase.
    pub(crate) fn end(self) -> Vec<Failures> {
        self.is_over.store(true, Ordering::Relaxed);
        self.asking.join().unwrap();
        let asked = lock(&self.asked);
        let ends = self.phases.iter().skip(1).map(|phase| phase.since).chain([Instant::now()]);
        let of = |(phase, end): (&Phase, Instant)| {
            let its: Vec<_> = asked.iter().filter(|one| (phase.since..end).contains(&one.at)).collect();
            let heard = || its.iter().filter_map(|one| Some((one.at, one.heard.as_ref()?)));
            let why: Vec<_> = heard()
                .filter_map(|(at, heard)| {
                    let why = heard.from.as_ref().err()?;
                    Some(format!("after {:.2} s: {why}", (at - phase.since).as_secs_f64()))
                })
                .collect();
            let slowest = heard().map(|(_, heard)| heard.after).max().unwrap_or_default();
            say(&format!(
                "{}: {} requests in {:.1} s, {} failed, the slowest took {:.2} s",
                phase.name,
                its.len(),
                (end - phase.since).as_secs_f64(),
                why.len(),
                slowest.as_secs_f64()
            ));
            Failures { phase: phase.name, why }
        };
        self.phases.iter().zip(ends).map(of).collect()
    }
}

fn lock(asked: &Mutex<Vec<Asked>>) -> MutexGuard<'_, Vec<Asked>> {
    asked.lock().unwrap()
}

async fn ask_all_the_time(server: SocketAddr, asked: Arc<Mutex<Vec<Asked>>>, is_over: &AtomicBool) {
    let mut turns = interval(EVERY);
    turns.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let (mut open, mut ports) = (JoinSet::new(), PORTS.cycle());
    while !is_over.load(Ordering::Relaxed) {
        turns.tick().await;
        let at = Instant::now();
        let number = {
            let mut asked = lock(&asked);
            asked.push(Asked { at, heard: None });
            asked.len() - 1
        };
        let (to, from_port) = (Arc::clone(&asked), socket(&mut ports));
        open.spawn(async move {
            let answer = timeout(PATIENCE, ask(from_port, server)).await;
            let answer = answer.unwrap_or_else(|_| Err(io::Error::other("no answer in time")));
            let from = answer.map_err(|error| error.to_string());
            lock(&to)[number].heard = Some(Heard { after: at.elapsed(), from });
        });
        while open.try_join_next().is_some() {}
    }
    while open.join_next().await.is_some() {}
}

/// With the next port that is free.
fn socket(ports: &mut impl Iterator<Item = u16>) -> TcpSocket {
    let bound = ports.find_map(|port| {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind((Ipv4Addr::UNSPECIFIED, port).into()).ok().map(|()| socket)
    });
    bound.unwrap()
}

/// The name of who answers.
async fn ask(from: TcpSocket, server: SocketAddr) -> io::Result<String> {
    let mut connection = from.connect(server).await?;
    connection.write_all(b"GET /hostname HTTP/1.0\r\n\r\n").await?;
    let mut answer = String::new();
    connection.read_to_string(&mut answer).await?;
    match answer.split_once("\r\n\r\n") {
        Some((head, name)) if head.contains(" 200 ") => Ok(name.to_owned()),
        _ => Err(io::Error::other(format!("it said {answer:?}"))),
    }
}
