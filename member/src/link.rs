//! The link to a leader: watches here and in the Common Area, the controllers between them, and our presence there.

mod announce;
mod antrea;
mod appear;
mod control;
mod families;
mod heartbeat;
mod report;
mod schemas;
mod watches;
mod wire;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use api::{ServiceName, antrea::Members, label, membership::Wire, name};
use k8s_openapi::api::coordination::v1::Lease;
use kit::{boot::Env, index::Shared, watch::Watches, write::Writer};
use kube::{Api, Client};
use presence::{
    heartbeat::Heartbeats, lease::Presence, leases::Leases, restore::RestoreDetector, vouch::Vouching,
};
use tokio::{
    sync::{Notify, watch},
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;

pub use self::report::{Report, State};
use crate::{
    membership::Target,
    service::{export::EndpointIp, knowledge::Knowledge},
};

/// Once present at the leader, the first lists come within seconds, or something is wrong.
const PATIENCE: Duration = Duration::from_secs(5);

/// What all parts of a link share.
#[derive(Clone)]
struct Link {
    env: Env,
    /// Whose leader it is.
    wire: Wire,
    knowledge: Knowledge,
    vouching: Vouching<ServiceName>,
    leases: Shared<Leases>,
    /// Members that write as Antrea's controllers do, as we take it.
    antrea: Members,
    /// Who they are as the leader said last.
    marked: Arc<watch::Sender<Members>>,
    told: Arc<Notify>,
    /// What the CRDs of this cluster do not know.
    lacking: Shared<schemas::Lacking>,
    local: Watches,
    hub: Watches,
    /// Writes our records.
    there: Writer,
    /// Writes to this cluster.
    here: Writer,
}

/// Why a link ended.
#[derive(PartialEq, Eq)]
enum Ended {
    /// It was stopped, or our ID turned out to be taken.
    Over,
    /// The Common Area was restored from a backup: all that is known of it is to be looked at anew.
    Restored,
    /// These members run Antrea's controllers, and no others: all is to be looked at anew.
    Marked(Members),
    /// The leader is Antrea's: it is to be talked to in its own way.
    Antrea,
}

/// What is known when a link begins.
#[derive(Clone, Default)]
struct Beginning {
    wire: Wire,
    /// That is certain, by the note or by what was seen: it does not change any more.
    is_certain: bool,
    /// The Common Area was restored from a backup while we were linked to it.
    restored: bool,
    antrea: Members,
    endpoint_ip: EndpointIp,
}

impl Beginning {
    fn by(noted: Option<Wire>, endpoint_ip: EndpointIp) -> Self {
        let wire = noted.unwrap_or_default();
        let antrea = if wire == Wire::Antrea { Members::everyone() } else { Members::default() };
        Self { wire, is_certain: noted.is_some(), restored: false, antrea, endpoint_ip }
    }
}

/// Exports and imports by way of the leader that `client` reaches, until `stop`, or until our ID turns out to be taken. Nothing is
/// exported or imported before `begin` says that it is noted whom we belong to.
pub async fn run(
    env: Env,
    endpoint_ip: EndpointIp,
    target: Target,
    client: Client,
    report: watch::Sender<Report>,
    begin: watch::Receiver<bool>,
    stop: CancellationToken,
) {
    let mut beginning = Beginning::by(target.wire, endpoint_ip);
    loop {
        let ended = once(&env, &target, &client, beginning.clone(), &report, &begin, &stop).await;
        // A link ends like that only when it was one.
        beginning.is_certain = true;
        match ended {
            Ended::Over => break,
            Ended::Restored => {
                tracing::warn!(
                    "the Common Area was restored from a backup or emptied: what is imported is kept until vouched for"
                );
                env.metrics.restored(&target.us.common_area);
                beginning.restored = true;
            }
            Ended::Marked(members) => {
                tracing::info!(members = members.annotation(), "members that run Antrea's controllers");
                beginning.antrea = members;
            }
            Ended::Antrea => {
                tracing::info!("the leader is Antrea's: talking to it in its own way");
                beginning = Beginning::by(Some(Wire::Antrea), endpoint_ip);
            }
        }
    }
}

async fn once(
    env: &Env,
    target: &Target,
    client: &Client,
    Beginning { wire, is_certain, restored, antrea, endpoint_ip }: Beginning,
    report: &watch::Sender<Report>,
    begin: &watch::Receiver<bool>,
    stop: &CancellationToken,
) -> Ended {
    let leases = Api::<Lease>::namespaced(client.clone(), &target.us.common_area);
    let detector = RestoreDetector::new(leases, name::member_lease(&target.us.cluster));
    let (knowledge, hub) = match wire {
        Wire::Freeport => (Knowledge::default(), Watches::guarded(Arc::new(detector.clone()))),
        // Its announce is looked at with each heartbeat.
        Wire::Antrea => (Knowledge::under_antrea(&target.us.cluster), Watches::default()),
    };
    knowledge.local.with(|local| local.endpoint_ip = endpoint_ip);
    let heartbeats = match wire {
        Wire::Freeport => Heartbeats::new(antrea.clone()),
        Wire::Antrea => Heartbeats::under_antrea(target.us.cluster.clone()),
    };
    let heard = Shared::new(Leases::new(env.pace, heartbeats, restored));
    let link = Link {
        env: env.clone(),
        wire,
        knowledge,
        vouching: Vouching::new(heard.clone()),
        leases: heard,
        marked: Arc::new(watch::Sender::new(antrea.clone())),
        antrea,
        told: Arc::default(),
        lacking: Shared::default(),
        local: Watches::default(),
        hub,
        there: Writer::new(client.clone(), label::MEMBER, "leader", env.metrics.clone()).strict(),
        here: Writer::new(env.client.clone(), label::MEMBER, "local", env.metrics.clone()),
    };
    let mut tasks = JoinSet::new();
    link.watch_here(&mut tasks);
    link.watch_there(&mut tasks, client, target);
    link.watch_schemas(&mut tasks);
    let (known, families) = watch::channel(false);
    tasks.spawn(link.clone().learn_families(known));

    let mut present = link.appear(&mut tasks, client, target, detector);
    let asked = present.clone();
    let antrea_leads = async {
        match is_certain {
            true => std::future::pending().await,
            false => wire::antrea_leads(env, target, client, asked).await,
        }
    };
    tokio::pin!(antrea_leads);

    let gauge = env.metrics.present(&target.us.common_area);
    let ours = {
        let (mut present, mut begin) = (present.clone(), begin.clone());
        async move {
            let held = present.wait_for(|now| *now == Presence::Held).await.is_ok();
            if !(held && begin.wait_for(|noted| *noted).await.is_ok()) {
                // Nobody keeps our Lease any more: the link ends.
                std::future::pending::<()>().await;
            }
        }
    };
    let controllers = link.control(target, client, ours, families, stop.clone());
    tokio::pin!(controllers);
    let mut marks = link.marked.subscribe();
    let (mut since, mut lost) = (None::<Instant>, false);
    loop {
        let now = present.borrow_and_update().clone();
        gauge.set(i64::from(now == Presence::Held));
        if now == Presence::Held && lost {
            // What waits since the leader went need not wait for its turn.
            link.knowledge.services.retry_failed();
        }
        lost = matches!(now, Presence::Failing { .. });
        let waiting = !(link.local.are_listed() && link.hub.are_listed());
        let state = match now {
            Presence::Unknown => State::Connecting,
            Presence::Held => link.sees(since.get_or_insert_with(Instant::now).elapsed()),
            Presence::Failing { failure } => State::Lost { failure },
            // Whoever took our ID while we were silent exports under it now: everything starts anew, and waits.
            Presence::Taken { .. } if since.is_some() => break,
            Presence::Taken { holder } => State::IdTaken { holder },
            Presence::Restored => return Ended::Restored,
        };
        let told = Report { state, wire, members: link.leases.with(|leases| leases.members()) };
        report.send_if_modified(|old| std::mem::replace(old, told.clone()) != told);
        tokio::select! {
            () = &mut controllers => break,
            () = link.hub.restored() => return Ended::Restored,
            () = &mut antrea_leads => return Ended::Antrea,
            Ok(members) = marks.wait_for(|members| *members != link.antrea) => return Ended::Marked(members.clone()),
            Ok(()) = present.changed() => {}
            () = link.told.notified() => {}
            () = everything_listed(&link), if waiting => {}
            () = tokio::time::sleep(PATIENCE) => {}
            Some(Err(error)) = tasks.join_next() => kit::drive::resume(error),
        }
    }
    gauge.set(0);
    env.metrics.doubted(0);
    Ended::Over
}

async fn everything_listed(link: &Link) {
    link.local.listed().await;
    link.hub.listed().await;
}

impl Link {
    /// What we see, having been present at the leader for so long.
    fn sees(&self, present_for: Duration) -> State {
        let now = Instant::now();
        let troubles: Vec<_> = [&self.local, &self.hub].iter().flat_map(|w| w.troubles(now)).collect();
        let unlisted: Vec<_> = [&self.local, &self.hub].iter().flat_map(|w| w.unlisted()).collect();
        match troubles.is_empty() && unlisted.is_empty() {
            true if let Some(pruned) = self.there.pruned() => State::Pruned { what: pruned.to_string() },
            true => self.leases.with(|leases| State::Connected {
                wire: self.wire,
                skew: leases.skew(),
                leader_is_silent: leases.leader_is_silent(),
                lacking: self.lacking.with(|lacking| schemas::words(lacking)),
            }),
            false if present_for < PATIENCE => State::Connecting,
            false => State::Blind { troubles, unlisted },
        }
    }
}
