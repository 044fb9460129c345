//! A ClusterSet of a fleet's clusters, set up by the code users run, with its daemons under the fleet's care.
//!
//! The clusters have no nodes, so the daemons run beside them as processes, each under its own ServiceAccount.

mod daemon;
mod ready;

use std::{io, path::PathBuf, time::Duration};

use cli::{Daemons, InitOptions, JoinOptions, KubeContext, Run};

pub use self::{
    daemon::{Daemon, Ensured},
    ready::{ready, ready_saying},
};
use crate::{Exit, Fleet, program};

/// Limit of each wait of `init` and `join`.
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
    #[error("{name} ended ({exit}). The end of {}:\n{tail}", log.display())]
    Ended {
        /// Of the process.
        name: String,
        /// How.
        exit: Exit,
        /// What it said.
        log: PathBuf,
        /// The last lines of it.
        tail: String,
    },
    /// A member did not get ready in time.
    #[error("cluster {cluster} is not ready: {message}. The end of {}:\n{tail}", log.display())]
    NotReady {
        /// Which member.
        cluster: String,
        /// What its ClusterSet says.
        message: String,
        /// What its daemon says.
        log: PathBuf,
        /// The last lines of it.
        tail: String,
    },
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
        // In the cluster's own directory, which `down` removes.
        let run = Run {
            daemons: Daemons::Outside(cluster.dir().join("daemons")),
            only: vec![],
            wait: false,
            timeout: LIMIT,
            dry_run: false,
        };
        let installed = match leads {
            None => {
                let options = InitOptions {
                    cluster_set: set.to_owned(),
                    cluster_id: name.to_owned(),
                    dedicated: false,
                    cluster: context(name),
                    leader_server: None,
                    run,
                };
                cli::init(&options, say).await?
            }
            Some(leader) => {
                let options = JoinOptions {
                    cluster_set: set.to_owned(),
                    cluster_id: name.to_owned(),
                    cluster: context(name),
                    leader: context(leader),
                    leader_server: None,
                    run,
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
            daemons.push(Daemon::plan(fleet, kind, name, program, &kubeconfig).await?);
        }
    }
    Ok(daemons)
}
