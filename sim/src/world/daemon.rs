//! The daemons of a ClusterSet, as tasks: started, stopped, killed.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use api::label;
use clap::Parser;
use cli::objects::{SYSTEM, access, area};
use kit::{
    boot::{Env, Instance, Process, live_as_daemon},
    client::{Dial, Error},
    metrics::Metrics,
    serve::Readiness,
};
use tokio::{task::JoinSet, time::timeout};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use super::{World, address};
use crate::{
    api::Server,
    invariant::{self, Author},
    net::{Caller, Net},
};

/// A daemon has to stop within this time.
const GRACE: Duration = Duration::from_secs(25);

pub(super) struct Daemon {
    tasks: JoinSet<()>,
    stop: CancellationToken,
    metrics: Metrics,
    /// How often it was started.
    starts: u32,
}

/// Name of the leader's process in `cluster`.
pub fn leader_name(cluster: &str) -> String {
    format!("{}-{cluster}", label::LEADER)
}

/// Name of the member's process in `cluster`.
pub fn member_name(cluster: &str) -> String {
    format!("{}-{cluster}", label::MEMBER)
}

/// Connects to the API servers of `servers` by their addresses, as `caller` or as the user whom a credential names.
fn dial(servers: BTreeMap<String, Arc<Server>>, net: Arc<Net>, caller: Caller) -> Dial {
    Dial::new(move |url, user| {
        let found = servers.values().find(|server| address(&server.name) == url.trim_end_matches('/'));
        let server = found.ok_or_else(|| Error::Server(url.to_owned()))?;
        let user = user.unwrap_or(&caller.user).to_owned();
        Ok(net.client(server, Caller { user, ..caller.clone() }))
    })
}

impl World {
    /// Names of all daemons, the leader's first.
    pub fn all_daemons(&self) -> Vec<String> {
        [leader_name(self.leader())].into_iter().chain(self.members().map(member_name)).collect()
    }

    pub fn start_all(&self) {
        self.all_daemons().iter().for_each(|daemon| self.start(daemon));
    }

    /// Starts the daemons that do not run.
    pub fn start_all_that_ended(&self) {
        self.all_daemons()
            .iter()
            .filter(|daemon| !self.is_running(daemon))
            .for_each(|daemon| self.start(daemon));
    }

    /// Starts a daemon, which does not run.
    pub fn start(&self, daemon: &str) {
        self.start_process(daemon, daemon, None);
    }

    /// Starts one of several replicas of a daemon: process `<daemon>-<replica>`.
    pub fn start_replica(&self, daemon: &str, replica: &str) {
        self.start_process(&format!("{daemon}-{replica}"), daemon, Some(replica));
    }

    fn start_process(&self, process: &str, daemon: &str, replica: Option<&str>) {
        let program = if daemon.starts_with(label::LEADER) { label::LEADER } else { label::MEMBER };
        let cluster =
            daemon.strip_prefix(program).and_then(|rest| rest.strip_prefix('-')).unwrap_or_default();
        let author =
            invariant::Process { program, cluster: cluster.to_owned(), replica: replica.map(str::to_owned) };
        let account = |namespace: &str, name: &str| Caller {
            process: process.to_owned(),
            author: Author::Daemon(author.clone()),
            user: format!("system:serviceaccount:{namespace}:{name}"),
        };
        let client = self.net.client(self.server(cluster), account(SYSTEM, program));
        let set = self.set_of(cluster).unwrap_or_default();
        let remote = account(&area::name(set), &access::account(cluster));
        let Ok(metrics) = Metrics::new() else { panic!("metrics do not fit together") };
        let stop = CancellationToken::new();
        let starts = self.daemons().get(process).map_or(0, |daemon| daemon.starts) + 1;
        let unique = format!("{process}-{starts}");
        let instance = Instance { name: unique.clone(), random: unique };
        let works_with = Process {
            client,
            dial: dial(self.servers.clone(), self.net.clone(), remote),
            metrics: metrics.clone(),
            ready: Readiness::default(),
            stop: stop.clone(),
        };
        let (seconds, own_address) = (self.plan.lease_seconds.to_string(), address(cluster));
        let shared = ["--lease-seconds", &seconds, "--namespace", SYSTEM].into_iter();
        let shared = shared.chain(replica.map(|replica| ["--replica", replica]).into_iter().flatten());
        let span = tracing::error_span!("daemon", at = process);
        let mut tasks = JoinSet::new();
        if program == label::LEADER {
            let bind = self.plan.bind.then_some(["--bind", "--bind-address", &own_address]);
            let flags = shared.chain(bind.into_iter().flatten());
            let args = leader::Args::parse_from([program].into_iter().chain(flags));
            let of_daemon = args.daemon.clone();
            let run = |env: Env| leader::run(env, args);
            tasks.spawn(live_as_daemon(program, of_daemon, works_with, instance, run).instrument(span));
        } else {
            let offload = self.plan.offload.then_some("--offload");
            let bind = self.plan.bind.then_some("--bind");
            let flags = shared.chain(["--probe", "off"]).chain(offload).chain(bind);
            let args = member::Args::parse_from([program].into_iter().chain(flags));
            let of_daemon = args.daemon.clone();
            let run = |env: Env| member::run(args, env);
            tasks.spawn(live_as_daemon(program, of_daemon, works_with, instance, run).instrument(span));
        }
        self.net.log(format_args!("-- {process} starts"));
        self.daemons().insert(process.to_owned(), Daemon { tasks, stop, metrics, starts });
    }

    /// Kills a daemon: nothing of it runs on. Requests that it has sent arrive.
    pub fn kill(&self, name: &str) {
        self.net.log(format_args!("-- {name} is killed"));
        if let Some(daemon) = self.daemons().get_mut(name) {
            daemon.tasks = JoinSet::new();
        }
    }

    /// Stops a daemon as SIGTERM does; returns when it has ended. Panics if that takes longer than a Pod may take.
    pub async fn stop(&self, name: &str) {
        self.net.log(format_args!("-- {name} stops"));
        let tasks = self.daemons().get_mut(name).map(|daemon| {
            daemon.stop.cancel();
            std::mem::take(&mut daemon.tasks)
        });
        let ended = async {
            if let Some(mut tasks) = tasks {
                while tasks.join_next().await.is_some() {}
            }
        };
        assert!(timeout(GRACE, ended).await.is_ok(), "{name} does not stop");
    }

    /// Reports whether a daemon runs. Panics if it has panicked.
    pub fn is_running(&self, name: &str) -> bool {
        self.check();
        self.daemons().get(name).is_some_and(|daemon| !daemon.tasks.is_empty())
    }

    /// How often a daemon was started.
    pub fn starts(&self, name: &str) -> u32 {
        self.daemons().get(name).map_or(0, |daemon| daemon.starts)
    }

    /// Ends all daemons, and forgets what the clusters hold.
    pub fn end(&self) {
        self.daemons().clear();
        self.names().for_each(|cluster| self.server(cluster).forget());
        self.net.forget_audit();
    }

    /// Panics if a daemon has.
    pub fn check(&self) {
        for (name, daemon) in self.daemons().iter_mut() {
            while let Some(ended) = daemon.tasks.try_join_next() {
                if let Err(error) = ended {
                    panic!("{name} panicked: {error}");
                }
            }
        }
    }

    /// The metrics of a daemon, of its last start if it does not run.
    pub fn metrics(&self, name: &str) -> Option<Metrics> {
        self.daemons().get(name).map(|daemon| daemon.metrics.clone())
    }
}
