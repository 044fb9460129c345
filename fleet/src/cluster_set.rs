//! A ClusterSet of a fleet's clusters, set up by the code users run, with its daemons under the fleet's care.
//!
//! Where clusters have no nodes, the daemons run beside them as processes, each under its own ServiceAccount; otherwise in the nodes,
//! as users deploy them.

pub mod binding;
mod daemon;
mod daemon_image;
mod ready;

use std::{
    collections::BTreeMap,
    io,
    path::PathBuf,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use api::label;
use cli::{
    Daemons, DnsOptions, InitOptions, Installed, JoinOptions, KubeContext, Namespaced, Offloading, Run,
};
use futures::future::try_join_all;

pub use self::{
    daemon::{Daemon, Ensured},
    daemon_image::{DaemonImage, load_daemons},
    ready::{ready, ready_saying},
};
use crate::{Cluster, Exit, Families, Fleet, program};

/// Tells a member to take part in offloading.
const OFFLOAD: &str = "FREEPORT_OFFLOAD";

/// Limit of each wait of `init`, `join` and `dns`.
const LIMIT: Duration = Duration::from_secs(120);

/// Why the ClusterSet could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The fleet failed.
    #[error(transparent)]
    Fleet(#[from] crate::Error),
    /// `freeport init`, `join` or `dns` failed.
    #[error(transparent)]
    Cli(#[from] cli::Error),
    /// A daemon could not be built.
    #[error(transparent)]
    Program(#[from] program::Error),
    /// The fleet has no cluster of that name.
    #[error("there is no cluster {0:?} in the fleet")]
    NoCluster(String),
    /// Give one of them the other's families.
    #[error(
        "Pods of cluster {member}, which is {of_member}, do not reach cluster {leader}, which is {of_leader} and is to lead"
    )]
    NoCommonFamily {
        /// Which member.
        member: String,
        /// Its families.
        of_member: Families,
        /// Who leads.
        leader: String,
        /// Its families.
        of_leader: Families,
    },
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

/// Who is in a ClusterSet, by the clusters' names, which are their IDs.
#[derive(Clone, Debug)]
pub struct Composition {
    /// Name of the set.
    pub set: String,
    /// Who leads it. Dedicated to that unless it is a member, too.
    pub leader: String,
    /// Who exports and imports.
    pub members: Vec<String>,
    /// Whether all of them offload Namespaces.
    pub offload: bool,
}

impl Composition {
    /// All clusters of the fleet; the first leads and is a member too. They do not offload.
    pub fn of_all(fleet: &Fleet, set: &str) -> Self {
        let members: Vec<_> = fleet.clusters().iter().map(|cluster| cluster.name().to_owned()).collect();
        Self {
            set: set.to_owned(),
            leader: members.first().cloned().unwrap_or_default(),
            members,
            offload: false,
        }
    }
}

/// Makes all clusters of the fleet a ClusterSet: see [`Composition::of_all`] and [`set_up_as`].
///
/// # Errors
/// See [`Error`].
pub async fn set_up(
    fleet: &Fleet,
    set: &str,
    say: &mut (dyn FnMut(&str) + Send),
) -> Result<Vec<Daemon>, Error> {
    set_up_as(fleet, &Composition::of_all(fleet, set), say).await
}

/// Makes clusters of the fleet a ClusterSet. Safe to run again. The daemons are built, but not started; a cluster has one
/// leader, however many sets it leads.
///
/// # Errors
/// See [`Error`].
pub async fn set_up_as(
    fleet: &Fleet,
    composition: &Composition,
    say: &mut (dyn FnMut(&str) + Send),
) -> Result<Vec<Daemon>, Error> {
    let (leader_program, member_program) = build_daemons().await?;
    // In the cluster's own directory, which `down` removes. They run on this machine, which reaches all clusters.
    let outside = |cluster: &Cluster| Run {
        daemons: Daemons::Outside(cluster.dir().join("daemons")),
        wait: false,
        ..deployed()
    };
    let mut daemons = Vec::new();
    for (name, installed) in install(fleet, composition, &BTreeMap::new(), outside, say).await? {
        for (kubeconfig, program, kind) in [
            (installed.leader, &leader_program, label::LEADER),
            (installed.member, &member_program, label::MEMBER),
        ] {
            let Some(kubeconfig) = kubeconfig else { continue };
            let mut daemon = Daemon::plan(fleet, kind, &name, program, &kubeconfig).await?;
            if installed.offloads && daemon.is_member {
                daemon.spec = daemon.spec.env(OFFLOAD, "true");
            }
            daemons.push(daemon);
        }
    }
    Ok(daemons)
}

/// Builds both daemons. [`set_up`] and [`deploy`] do so themselves; call this first to build them while something else is under way.
///
/// # Errors
/// [`Error::Program`].
pub async fn build_daemons() -> Result<(PathBuf, PathBuf), Error> {
    let leader = program::path("leader", label::LEADER).await?;
    let member = program::path("member", label::MEMBER).await?;
    Ok((leader, member))
}

/// Makes all clusters of the fleet, which have nodes, a ClusterSet, as [`set_up`] does, with the daemons in their nodes: builds
/// their image, loads it, waits until they are ready, and gives imports names. Safe to run again.
///
/// # Errors
/// See [`Error`].
pub async fn deploy(fleet: &Fleet, set: &str, say: &mut (dyn FnMut(&str) + Send)) -> Result<(), Error> {
    deploy_as(fleet, &Composition::of_all(fleet, set), say).await
}

/// [`deploy`] of clusters of the fleet. With offloading, their webhooks run in their nodes, too.
///
/// # Errors
/// See [`Error`].
pub async fn deploy_as(
    fleet: &Fleet,
    composition: &Composition,
    say: &mut (dyn FnMut(&str) + Send),
) -> Result<(), Error> {
    let servers = leader_servers(fleet, composition)?;
    let image = load_daemons(fleet, DaemonImage::OfContent).await?;
    let inside = |_: &Cluster| Run {
        daemons: Daemons::Inside { image: Some(image.clone()), replicas: None },
        ..deployed()
    };
    install(fleet, composition, &servers, inside, say).await?;
    name_imports(fleet, say).await
}

/// Runs `freeport dns --apply` for all clusters concurrently, because each run waits for Pods.
async fn name_imports(fleet: &Fleet, say: &mut (dyn FnMut(&str) + Send)) -> Result<(), Error> {
    let say = Mutex::new(say);
    let all = fleet.clusters().iter().map(async |cluster| {
        let options = DnsOptions {
            cluster: context(fleet, cluster.name()),
            config_map: Namespaced::coredns(),
            remove: false,
            apply: true,
            timeout: LIMIT,
        };
        cli::dns(&options, &mut |line: &str| say.lock().unwrap_or_else(PoisonError::into_inner)(line)).await
    });
    try_join_all(all).await?;
    Ok(())
}

fn context(fleet: &Fleet, cluster: &str) -> KubeContext {
    KubeContext { file: Some(fleet.kubeconfig()), name: Some(cluster.to_owned()), ..KubeContext::default() }
}

fn deployed() -> Run {
    Run {
        daemons: Daemons::Inside { image: None, replicas: None },
        only: vec![],
        wait: true,
        timeout: LIMIT,
        dry_run: false,
        // That the clusters are on this machine is what a fleet is.
        aside: |_| {},
    }
}

/// Runs `freeport init` for the leader, then `freeport join` for the other members. `servers` are URLs of the leader's API server for
/// those who need another than its kubeconfig has.
async fn install(
    fleet: &Fleet,
    composition: &Composition,
    servers: &BTreeMap<String, String>,
    run: impl Fn(&Cluster) -> Run,
    say: &mut (dyn FnMut(&str) + Send),
) -> Result<Vec<(String, Installed)>, Error> {
    let Composition { set, leader, members, offload } = composition;
    let offload = offload.then(Offloading::default);
    let joining = members.iter().filter(|member| *member != leader);
    let mut all = Vec::new();
    for name in std::iter::once(leader).chain(joining) {
        let run = run(fleet.cluster(name).ok_or_else(|| Error::NoCluster(name.clone()))?);
        let leader_server = servers.get(name).cloned();
        let installed = if name == leader {
            let options = InitOptions {
                cluster_set: set.clone(),
                cluster_id: name.clone(),
                dedicated: !members.contains(leader),
                cluster: context(fleet, name),
                leader_server,
                offload: offload.clone(),
                probe: None,
                ranges: None,
                run,
            };
            cli::init(&options, say).await?
        } else {
            let options = JoinOptions {
                cluster_set: set.clone(),
                cluster_id: name.clone(),
                cluster: context(fleet, name),
                leader: context(fleet, leader),
                leader_server,
                offload: offload.clone(),
                probe: None,
                ranges: None,
                run,
            };
            cli::join(&options, say).await?
        };
        all.push((name.clone(), installed));
    }
    Ok(all)
}

/// The URL of the leader's API server for members whose Pods do not reach the one in the leader's kubeconfig.
fn leader_servers(fleet: &Fleet, composition: &Composition) -> Result<BTreeMap<String, String>, Error> {
    let named = |name: &String| fleet.cluster(name).ok_or_else(|| Error::NoCluster(name.clone()));
    let leader = named(&composition.leader)?;
    let mut servers = BTreeMap::new();
    for name in &composition.members {
        let member = named(name)?;
        let server = leader.server_for(member).ok_or_else(|| Error::NoCommonFamily {
            member: name.clone(),
            of_member: member.families(),
            leader: composition.leader.clone(),
            of_leader: leader.families(),
        })?;
        if server != leader.server() {
            servers.insert(name.clone(), server);
        }
    }
    Ok(servers)
}
