//! A ClusterSet of a fleet's clusters, set up by the code users run, with its daemons under the fleet's care.
//!
//! The clusters have no nodes, so the daemons run beside them as processes, each under its own ServiceAccount.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    path::PathBuf,
    time::Duration,
};

use api::cluster_set::{ClusterSet, READY};
use cli::{InitOptions, JoinOptions, KubeContext};
use kube::Api;
use tokio::time::{Instant, sleep};

use crate::{Fleet, Process, ProcessSpec, program};

/// Limit of each request-and-wait while setting up.
const LIMIT: Duration = Duration::from_secs(60);

/// Why there is no ClusterSet.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The fleet failed.
    #[error(transparent)]
    Fleet(#[from] crate::Error),
    /// `freeport init` or `join` failed.
    #[error(transparent)]
    Cli(#[from] cli::Error),
    /// A daemon could not be built.
    #[error(transparent)]
    Program(#[from] program::Error),
    /// No free port.
    #[error("no free port on 127.0.0.1: {0}")]
    Port(#[source] io::Error),
    /// A daemon ended.
    #[error("{name} ended ({exit}); its log is {}", log.display())]
    Ended {
        /// Of the process.
        name: String,
        /// How.
        exit: String,
        /// What it said.
        log: PathBuf,
    },
    /// A member did not get ready in time.
    #[error("cluster {cluster} is not ready: {message}; the daemon's log is {}", log.display())]
    NotReady {
        /// Which member.
        cluster: String,
        /// What its ClusterSet says.
        message: String,
        /// What its daemon says.
        log: PathBuf,
    },
}

/// A daemon of the set.
#[derive(Clone, Debug)]
pub struct Daemon {
    /// The cluster it serves.
    pub cluster: String,
    /// How it is started.
    pub spec: ProcessSpec,
    /// Where its `/metrics` is.
    pub listen: SocketAddr,
}

impl Daemon {
    /// Starts it; one of that name that runs already is stopped first.
    ///
    /// # Errors
    /// [`Error::Fleet`].
    pub async fn start(&self, fleet: &Fleet) -> Result<Process, Error> {
        if let Some(running) = fleet.process(&self.spec.name).await? {
            running.stop().await?;
        }
        Ok(fleet.run(self.spec.clone()).await?)
    }
}

/// Makes the clusters of the fleet a ClusterSet: the first leads and is a member too, the others join. Safe to run again.
/// The daemons are built, but not started.
///
/// # Errors
/// See [`Error`].
pub async fn set_up(
    fleet: &Fleet,
    set: &str,
    say: &mut (dyn FnMut(&str) + Send),
) -> Result<Vec<Daemon>, Error> {
    let context = |name: &str| KubeContext { file: Some(fleet.kubeconfig()), name: Some(name.to_owned()) };
    let leader_program = program::path("leader", "freeport-leader").await?;
    let member_program = program::path("member", "freeport-member").await?;
    let mut daemons = Vec::new();
    let mut leads: Option<&str> = None;
    for cluster in fleet.clusters() {
        let name = cluster.name();
        let external = fleet.dir().join("daemons").join(name);
        let installed = match leads {
            None => {
                let options = InitOptions {
                    cluster_set: set.to_owned(),
                    cluster_id: name.to_owned(),
                    dedicated: false,
                    external,
                    cluster: context(name),
                    leader_server: None,
                    timeout: LIMIT,
                    dry_run: false,
                };
                cli::init(&options, say).await?
            }
            Some(leader) => {
                let options = JoinOptions {
                    cluster_set: set.to_owned(),
                    cluster_id: name.to_owned(),
                    external,
                    cluster: context(name),
                    leader: context(leader),
                    leader_server: None,
                    timeout: LIMIT,
                    dry_run: false,
                };
                cli::join(&options, say).await?
            }
        };
        leads = leads.or(Some(name));
        for (kubeconfig, program, kind) in [
            (installed.leader, &leader_program, "freeport-leader"),
            (installed.member, &member_program, "freeport-member"),
        ] {
            let Some(kubeconfig) = kubeconfig else { continue };
            let listen = free_address().map_err(Error::Port)?;
            let spec = ProcessSpec::new(format!("{kind}-{name}"), program)
                .args(["--kubeconfig".to_owned(), kubeconfig.display().to_string()])
                .args(["--listen".to_owned(), listen.to_string()]);
            daemons.push(Daemon { cluster: name.to_owned(), spec, listen });
        }
    }
    Ok(daemons)
}

fn free_address() -> io::Result<SocketAddr> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()
}

/// Waits until the ClusterSet of every member says that it is ready.
///
/// # Errors
/// [`Error::Ended`], [`Error::NotReady`].
pub async fn ready(fleet: &Fleet, set: &str, daemons: &[Daemon]) -> Result<(), Error> {
    let begun = Instant::now();
    for cluster in fleet.clusters() {
        let sets = Api::<ClusterSet>::namespaced(cluster.client().await?, cli::objects::SYSTEM);
        let member = daemons.iter().rfind(|daemon| daemon.cluster == cluster.name());
        loop {
            let message = match sets.get_opt(set).await {
                Ok(found) => {
                    let conditions =
                        found.and_then(|set| set.status).map(|s| s.conditions).unwrap_or_default();
                    match conditions.into_iter().find(|c| c.type_.as_deref() == Some(READY)) {
                        Some(ready) if ready.status.as_deref() == Some("True") => break,
                        Some(ready) => ready.message.unwrap_or_default(),
                        None => "its ClusterSet says nothing yet".to_owned(),
                    }
                }
                Err(error) => error.to_string(),
            };
            let process = match member {
                Some(member) => fleet.process(&member.spec.name).await?,
                None => None,
            };
            let log = process.as_ref().map(|process| process.log().to_owned()).unwrap_or_default();
            if let Some(process) = process
                && let Some(exit) = process.exit().await?
            {
                return Err(Error::Ended { name: process.name().to_owned(), exit: exit.to_string(), log });
            }
            if begun.elapsed() > LIMIT {
                return Err(Error::NotReady { cluster: cluster.name().to_owned(), message, log });
            }
            sleep(Duration::from_millis(100)).await;
        }
    }
    Ok(())
}
