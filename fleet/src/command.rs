//! The command line: `fleet up|install|build|load|down|status`.

use std::{
    env,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::{Args, Parser, Subcommand};

use crate::{
    ClusterSpec, Error, Fleet, Lifetime, Options,
    cluster_set::{DaemonImage, load_daemons},
    packages, status,
    tools::{self, Tool},
};

/// Real Kubernetes clusters on this machine, side by side, with or without nodes.
#[derive(Debug, Parser)]
#[command(name = "fleet", version, propagate_version = true)]
pub struct Command {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Starts the clusters and waits until they are ready. They go on after this command has ended.
    ///
    /// Each cluster is an etcd, a kube-apiserver and a kube-controller-manager with its own ports on 127.0.0.1,
    /// its own CA and its own data. The programs are built from source the first time, for which Go is needed,
    /// unless KUBEBUILDER_ASSETS names a directory that has them. On a running fleet with the same clusters this
    /// does nothing.
    Up {
        /// The clusters, separated by commas: NAME, or NAME=ipv6 or NAME=dual for one whose Pods and Services have IPv6
        /// addresses, or both.
        #[arg(
            long,
            value_delimiter = ',',
            default_value = "leader,east,west",
            value_name = "NAME[=ipv4|ipv6|dual]"
        )]
        clusters: Vec<ClusterSpec>,
        /// Gives each cluster a node, on which Pods run: network namespaces, containerd, kubelet, kube-proxy and
        /// CoreDNS. Needs root; what else is missing is listed.
        #[arg(long)]
        nodes: bool,
        /// Installs what --nodes needs, with apt-get.
        #[arg(long, requires = "nodes")]
        install: bool,
        #[command(flatten)]
        place: Place,
    },
    /// Installs what nodes need, with apt-get.
    Install,
    /// Builds the Kubernetes programs that `up` would build, unless they are there.
    Build {
        /// Those of nodes, too.
        #[arg(long)]
        nodes: bool,
    },
    /// Imports container images into the nodes of all clusters.
    Load {
        /// Archives, as `docker save` writes them.
        #[arg(required_unless_present = "daemons")]
        archives: Vec<PathBuf>,
        /// Builds the image of freeport-leader and freeport-member that `manifests/` names, and imports it as well.
        #[arg(long)]
        daemons: bool,
        #[command(flatten)]
        place: Place,
    },
    /// Stops everything that runs in the directory and removes the fleet's files from it.
    Down {
        #[command(flatten)]
        place: Place,
    },
    /// Shows what runs. The exit status is 0 only if everything does.
    Status {
        #[command(flatten)]
        place: Place,
    },
}

#[derive(Debug, Args)]
struct Place {
    /// Directory that holds the fleet's files: new, empty or a fleet's. Fleets in different directories do not
    /// disturb each other. [default: $XDG_STATE_HOME/freeport/fleet or ~/.local/state/freeport/fleet]
    #[arg(long)]
    dir: Option<PathBuf>,
}

impl Place {
    fn dir(self) -> Result<PathBuf, Error> {
        self.dir.map_or_else(default_dir, Ok)
    }
}

/// The default directory of a fleet.
///
/// # Errors
/// [`Error::NotRunning`] if there is no home directory.
pub fn default_dir() -> Result<PathBuf, Error> {
    let set = |key| env::var_os(key).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("XDG_STATE_HOME")
        .or_else(|| Some(set("HOME")?.join(".local/state")))
        .map(|state| state.join("freeport/fleet"))
        .ok_or_else(|| Error::NotRunning("(HOME is not set: use --dir)".into()))
}

impl Command {
    /// Runs the command.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn run(self) -> Result<ExitCode, Error> {
        match self.action {
            Action::Up { clusters, nodes, install, place } => {
                let dir = place.dir()?;
                if install {
                    packages::install(&say).await?;
                }
                let options = Options { dir, clusters, nodes, lifetime: Lifetime::Detached };
                let fleet = Fleet::up(options, say).await?;
                print!("{}", usage(&fleet));
            }
            Action::Install => packages::install(&say).await?,
            Action::Build { nodes } => {
                tools::provide(&Tool::of_a_fleet(nodes), &say).await?;
            }
            Action::Load { archives, daemons, place } => {
                let fleet = Fleet::open(&place.dir()?).await?;
                fleet.load(&archives).await?;
                for archive in archives {
                    say(&format!("loaded {} into every node", archive.display()));
                }
                if daemons {
                    say("building freeport-leader and freeport-member, unless they are up to date");
                    let image = load_daemons(&fleet, DaemonImage::OfManifests).await?;
                    say(&format!("loaded {image} into every node"));
                }
            }
            Action::Down { place } => Fleet::down(&place.dir()?, say).await?,
            Action::Status { place } => {
                let report = status::report(&place.dir()?).await?;
                print!("{}", report.text);
                return Ok(if report.all_well { ExitCode::SUCCESS } else { ExitCode::FAILURE });
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn say(line: &str) {
    eprintln!("{line}");
}

fn usage(fleet: &Fleet) -> String {
    let names: Vec<_> = fleet.clusters().iter().map(crate::Cluster::name).collect();
    let kubectl = fleet.kubectl();
    let nodes = match fleet.clusters().iter().any(crate::Cluster::has_node) {
        true => {
            format!("Pods run. Images there are: {}; others come by `fleet load`.", crate::images::agnhost())
        }
        false => "They have no nodes: Deployments and Pods can be written, but Pods stay Pending.".into(),
    };
    format!(
        "
Clusters {names}. Use them:
  export KUBECONFIG={kubeconfig}
  export PATH={bin}:$PATH    # the kubectl that fits
  kubectl --context {last} get namespaces
{nodes}
Take them down:
  cargo run -p fleet -- down --dir {dir}
",
        names = names.join(", "),
        kubeconfig = fleet.kubeconfig().display(),
        bin = kubectl.parent().unwrap_or(Path::new(".")).display(),
        last = names.last().copied().unwrap_or_default(),
        dir = fleet.dir().display(),
    )
}
