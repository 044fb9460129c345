//! The daemons as processes: end them, start them, read what they measure.

use std::{cell::RefCell, collections::BTreeMap, fs, path::Path};

use api::{
    lease::{LeaseView, Settled},
    name,
};
use fleet::Exit;
use k8s_openapi::jiff::Timestamp;
use kube::{Api, ResourceExt, api::ListParams};

use crate::{
    fixture::{AREA, CLUSTERS, World},
    metrics::Metrics,
    waiting::{VOUCHED, eventually, within},
    world::{Ground, Simulated},
};

pub const LEADER: &str = "freeport-leader-leader";
pub const DAEMONS: [&str; 4] =
    [LEADER, "freeport-member-leader", "freeport-member-east", "freeport-member-west"];

/// How a daemon is made to end.
#[derive(Clone, Copy, Debug)]
pub enum End {
    /// SIGTERM: it has to exit with 0, within the 25 seconds the fleet gives it.
    Stop,
    /// SIGKILL.
    Crash,
}

impl World {
    pub async fn end(&self, daemon: &str, how: End) {
        if let Ground::Simulated(Simulated { world, .. }) = &self.ground {
            return match how {
                End::Crash => world.kill(daemon),
                End::Stop => world.stop(daemon).await,
            };
        }
        let process = self.real().fleet.process(daemon).await.unwrap().unwrap();
        match how {
            End::Crash => drop(process.kill().await.unwrap()),
            End::Stop => {
                let exit = process.stop().await.unwrap();
                assert_eq!(exit, Exit::Status(0), "{daemon}: {}", self.log_tail(daemon));
            }
        }
    }

    /// Starts the daemon, and waits until it is present and has listed something.
    pub async fn start(&self, daemon: &str) {
        self.launch(daemon).await;
        self.is_there(daemon).await;
    }

    /// Waits until the daemon is present and has listed something: where nobody exports anything it has no key to reconcile.
    pub async fn is_there(&self, daemon: &str) {
        eventually(&format!("{daemon} is there again"), || async {
            let metrics = self.metrics(daemon).await?;
            let present = metrics.sum("freeport_present");
            let lists = metrics.sum("freeport_watch_lists_total");
            if present > 0.0 && lists > 0.0 {
                Ok(())
            } else {
                Err(format!("present: {present}, lists: {lists}; its log: {}", self.log_tail(daemon)))
            }
        })
        .await;
    }

    /// Starts the daemon.
    pub async fn launch(&self, daemon: &str) {
        match &self.ground {
            Ground::Real(real) => drop(self.daemon(daemon).start(&real.fleet).await.unwrap()),
            Ground::Simulated(Simulated { world, .. }) => world.start(daemon),
        }
    }

    /// Tells one process of a daemon from another. It has to run.
    pub async fn process(&self, daemon: &str) -> u32 {
        if let Ground::Simulated(Simulated { world, .. }) = &self.ground {
            assert!(world.is_running(daemon), "{}", self.log_tail(daemon));
            return world.starts(daemon);
        }
        let process = self.real().fleet.process(daemon).await.unwrap().unwrap();
        assert!(process.is_running().await.unwrap(), "{}", self.log_tail(daemon));
        process.pid().unwrap()
    }

    /// What a daemon measures now.
    pub async fn metrics(&self, daemon: &str) -> Result<Metrics, String> {
        if let Ground::Simulated(Simulated { world, .. }) = &self.ground {
            let metrics = world.metrics(daemon).ok_or_else(|| format!("{daemon} was never started"))?;
            return metrics.render().map(|(_, text)| Metrics::parse(text)).map_err(|error| error.to_string());
        }
        let read = Metrics::read(self.daemon(daemon).listen).await;
        read.map_err(|error| format!("{daemon}: {error}; its log: {}", self.log_tail(daemon)))
    }

    /// How often each daemon has reconciled a key, whatever its controller.
    pub async fn reconciles(&self) -> BTreeMap<&'static str, f64> {
        let mut reconciles = BTreeMap::new();
        for daemon in DAEMONS {
            reconciles.insert(daemon, self.metrics(daemon).await.unwrap().sum("freeport_reconcile_total"));
        }
        reconciles
    }

    /// Waits until every daemon has renewed its Lease twice more and said that nothing is left to write. Members and the leader
    /// themselves believe an absence then.
    pub async fn settled(&self) {
        // The Lease of a member has the name of its daemon. In the world of API binding one cluster has no member.
        let runs = |lease: &String| match &self.ground {
            Ground::Real(real) => real.daemons.iter().any(|daemon| daemon.spec.name == *lease),
            Ground::Simulated(_) => true,
        };
        let members = CLUSTERS.map(name::member_lease).into_iter().filter(runs);
        let names: Vec<_> = members.chain([name::LEADER_LEASE.to_owned()]).collect();
        let leases = Api::<LeaseView>::namespaced(self.leader().client.clone(), AREA);
        let heard = RefCell::new(BTreeMap::<String, Vec<Timestamp>>::new());
        within(VOUCHED, "settled", || async {
            let found = leases.list(&ListParams::default()).await.map_err(|error| error.to_string())?;
            let mut heard = heard.borrow_mut();
            for lease in found {
                let renewals = heard.entry(lease.name_any()).or_default();
                match lease.renew_time() {
                    _ if lease.settled() != Settled::Yes => renewals.clear(),
                    Some(at) if renewals.last() != Some(&at) => renewals.push(at),
                    _ => {}
                }
            }
            // The first is the one we found.
            let twice = |name: &&String| heard.get(*name).is_some_and(|renewals| renewals.len() > 2);
            if names.iter().all(|name| twice(&name)) { Ok(()) } else { Err(format!("{heard:?}")) }
        })
        .await;
    }

    /// Waits until the daemon whose Lease this is has renewed it several times and said that nothing is left to write: by then
    /// the others have believed it.
    pub async fn vouches(&self, lease: &str) {
        let leases = Api::<LeaseView>::namespaced(self.leader().client.clone(), AREA);
        let heard = RefCell::new(Vec::new());
        within(VOUCHED, &format!("{lease} vouches"), || async {
            let lease = leases.get(lease).await.map_err(|error| error.to_string())?;
            let mut heard = heard.borrow_mut();
            match lease.renew_time() {
                Some(at) if lease.settled() == Settled::Yes && heard.last() != Some(&at) => heard.push(at),
                _ => {}
            }
            if heard.len() > 3 { Ok(()) } else { Err(format!("{heard:?}, now {lease:?}")) }
        })
        .await;
    }

    /// The last lines of a daemon's log, for failure messages.
    pub fn log_tail(&self, daemon: &str) -> String {
        let real = match &self.ground {
            Ground::Real(real) => real,
            Ground::Simulated(simulated) => return simulated.log.tail(),
        };
        let log = real.fleet.dir().join("logs").join(format!("{daemon}.log"));
        log_tail(&log)
    }
}

/// The last lines of a log.
pub fn log_tail(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<_> = text.lines().collect();
    lines[lines.len().saturating_sub(15)..].join("\n")
}
