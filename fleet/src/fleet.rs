//! The clusters of one directory.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use futures::future::try_join_all;

use crate::{
    Cluster, ClusterSpec, Error, Process, ProcessSpec, ProcessState,
    assembly::Equipment,
    cgroup, claim,
    cluster_layout::ClusterLayout,
    disk, images, inotify,
    keeper::{self, Client, ClientError, Leftovers, Refusal},
    layout::Layout,
    packages,
    record::{self, ClusterRecord, Record},
    spec, start,
    tools::{self, Tool},
};

/// A cluster writes 150 MiB at first (etcd's log is allocated in advance), and grows.
const NEEDED_MIB: u64 = 1024;

/// What to bring up.
#[derive(Clone, Debug)]
pub struct Options {
    /// The fleet's directory, which holds all its files. Made if absent; must be empty or a fleet's.
    pub dir: PathBuf,
    /// The clusters.
    pub clusters: Vec<ClusterSpec>,
    /// Whether each cluster has a node, on which Pods run; needs root, and what [`packages`](crate::packages) checks.
    pub nodes: bool,
    /// What ends the fleet.
    pub lifetime: Lifetime,
}

/// What ends a fleet besides [`Fleet::down`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lifetime {
    /// The end of this process, whatever causes it, or the drop of the [`Fleet`].
    Attached {
        /// Whether the directory's content is removed then, too.
        remove: bool,
    },
    /// Nothing: it runs until it is taken down.
    Detached,
}

/// The clusters of one directory.
#[derive(Debug)]
pub struct Fleet {
    layout: Layout,
    clusters: Vec<Cluster>,
    equipment: Arc<Equipment>,
    keeper: Client,
    /// The end of an attached fleet when it is dropped.
    _pipe: Option<keeper::Pipe>,
}

impl Fleet {
    /// Starts the clusters and waits until they are usable. A running fleet with the same clusters is used as
    /// it is and keeps its owner; what a dead one left is removed. If this fails, nothing runs; the
    /// logs stay until the next `up` or `down`, unless an attached fleet asks to remove them.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn up(options: Options, progress: impl Fn(&str)) -> Result<Self, Error> {
        spec::check_all(&options.clusters, options.nodes)?;
        if options.nodes {
            packages::check_for(&options.clusters)?;
        }
        let dir = absolute(&options.dir)?;
        let layout = Layout::new(&dir);
        let _lock = claim::lock(&dir, &progress).await?;
        if let Some(running) = Self::standing(&layout, &options).await? {
            progress(&format!("already running in {}", dir.display()));
            return Ok(running);
        }
        let mut record = Self::plan(&layout, &options, &progress).await?;
        record::write(&layout, &record).map_err(Error::file(layout.record()))?;
        let equipment = Arc::new(Equipment::of(&record));
        let images = if options.nodes {
            Some(images::build(&layout, |tool| equipment.tool(tool), &progress).await?)
        } else {
            None
        };
        let remove = options.lifetime == Lifetime::Attached { remove: true };
        let files = remove.then(|| record.files(&layout));
        // Attached until all is well, so that a Ctrl-C on the way leaves nothing running.
        let pipe = keeper::launch(&layout, &Leftovers { cgroups: record.cgroups.clone(), files }).await?;
        let keeper = Client::new(layout.clone());
        match start::all(&layout, &keeper, &mut record, &equipment, images, &progress).await {
            Ok(clusters) => {
                let pipe = match options.lifetime {
                    Lifetime::Attached { .. } => Some(pipe),
                    Lifetime::Detached => keeper.detach().await.map(|()| None)?,
                };
                Ok(Self { layout, clusters, equipment, keeper, _pipe: pipe })
            }
            Err(error) => {
                keeper.shut_down().await;
                Err(error)
            }
        }
    }

    /// Makes the record of a new fleet, and provides the programs it needs.
    async fn plan(layout: &Layout, options: &Options, progress: &impl Fn(&str)) -> Result<Record, Error> {
        if options.nodes {
            inotify::raise_limit(progress);
        }
        let tools = tools::provide(&Tool::of_a_fleet(options.nodes), progress).await?;
        let dir = layout.dir();
        let free_mib = disk::free_mib(dir).map_err(Error::file(dir))?;
        if free_mib < NEEDED_MIB {
            return Err(Error::DiskFull { dir: dir.to_owned(), free_mib, needed_mib: NEEDED_MIB });
        }
        let mut record = Record::new(tools, start::pick_ports(&options.clusters, options.nodes)?);
        if options.nodes {
            record.cgroups = cgroup::plan(dir).map_err(Error::file("/proc/self"))?;
        }
        Ok(record)
    }

    /// The running fleet of a directory. Its lifetime does not change.
    ///
    /// # Errors
    /// [`Error::NotRunning`]; [`Error::Degraded`] if a part of a control plane does not run.
    pub async fn open(dir: &Path) -> Result<Self, Error> {
        let layout = Layout::new(&absolute(dir)?);
        let record = record::read(&layout).filter(|record| record.ready);
        let record = record.ok_or_else(|| Error::NotRunning(layout.dir().to_owned()))?;
        let keeper = Client::new(layout.clone());
        let processes = match keeper.list().await {
            Err(ClientError::Gone | ClientError::Refused(Refusal::Stopping)) => {
                return Err(Error::NotRunning(layout.dir().to_owned()));
            }
            listed => listed?,
        };
        let equipment = Arc::new(Equipment::of(&record));
        let make = |record: &ClusterRecord| Cluster {
            layout: ClusterLayout { record: record.clone(), layout: layout.clone() },
            equipment: Arc::clone(&equipment),
            keeper: keeper.clone(),
        };
        let clusters: Vec<_> = record.clusters.iter().map(make).collect();
        if let Some(what) = start::missing(&clusters, &processes) {
            return Err(Error::Degraded { dir: layout.dir().to_owned(), what });
        }
        Ok(Self { clusters, equipment, keeper, layout, _pipe: None })
    }

    /// Stops everything in the directory, further processes first, and removes what the fleet put there.
    /// Without a fleet it does nothing.
    ///
    /// # Errors
    /// [`Error::NotOurs`] if the directory holds something else, [`Error::File`].
    pub async fn down(dir: &Path, progress: impl Fn(&str)) -> Result<(), Error> {
        let dir = absolute(dir)?;
        if !dir.exists() {
            progress(&format!("nothing to do: there is no {}", dir.display()));
            return Ok(());
        }
        let layout = Layout::new(&dir);
        let _lock = claim::lock(&dir, &progress).await?;
        if record::read(&layout).is_none() {
            if claim::is_empty(&dir)? {
                progress(&format!("nothing to do: {} is empty", dir.display()));
                return Ok(());
            }
            return Err(Error::NotOurs(dir));
        }
        progress(&format!("stopping the fleet in {}", dir.display()));
        let stopped = Client::new(layout.clone()).shut_down().await;
        let names: Vec<_> = stopped.iter().map(|process| process.name.as_str()).collect();
        match names.as_slice() {
            [] => progress("nothing was running"),
            names => progress(&format!("stopped {}", names.join(", "))),
        }
        clear(&layout).await?;
        progress(&format!("removed the fleet's files from {}", dir.display()));
        Ok(())
    }

    /// Ends all processes of the fleet in a directory; its files stay. Nothing happens where none runs.
    ///
    /// # Errors
    /// [`Error::File`] if the directory cannot be named.
    pub async fn stop(dir: &Path) -> Result<(), Error> {
        Client::new(Layout::new(&absolute(dir)?)).shut_down().await;
        Ok(())
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        self.layout.dir()
    }

    /// Imports images into the node of every cluster, see [`Cluster::load`].
    ///
    /// # Errors
    /// [`Error::NoNode`], [`Error::Image`], [`Error::Keeper`].
    pub async fn load(&self, archives: &[PathBuf]) -> Result<(), Error> {
        try_join_all(self.clusters.iter().map(|cluster| cluster.load(archives))).await.map(drop)
    }

    /// All clusters, in the order they were named.
    pub fn clusters(&self) -> &[Cluster] {
        &self.clusters
    }

    /// The cluster of this name.
    pub fn cluster(&self, name: &str) -> Option<&Cluster> {
        self.clusters.iter().find(|cluster| cluster.name() == name)
    }

    /// This machine's interface to the fleet's machines, if it has nodes.
    pub fn interface(&self) -> Option<String> {
        Some(self.clusters.first()?.layout.record.network?.interface())
    }

    /// A kubeconfig with a context per cluster, named as the cluster, as administrator.
    pub fn kubeconfig(&self) -> PathBuf {
        self.layout.kubeconfig()
    }

    /// Where archives of images are.
    pub(crate) fn images(&self) -> PathBuf {
        self.layout.images()
    }

    /// The kubectl that fits the clusters.
    pub fn kubectl(&self) -> PathBuf {
        self.equipment.tool(Tool::Kubectl)
    }

    /// Runs a further process as long as the fleet. When this returns, the process has been started, but may not be ready. A name that
    /// ended may be used again.
    ///
    /// # Errors
    /// [`Error::Keeper`] if it cannot be started or one of that name runs.
    pub async fn run(&self, spec: ProcessSpec) -> Result<Process, Error> {
        let name = spec.name.clone();
        self.keeper.start(spec).await?;
        let started = self.process(&name).await?;
        Ok(started.ok_or_else(|| ClientError::from(Refusal::NotRunning(name)))?)
    }

    /// A process that was started earlier by any program, running or ended.
    ///
    /// # Errors
    /// [`Error::Keeper`] if the fleet is gone.
    pub async fn process(&self, name: &str) -> Result<Option<Process>, Error> {
        Ok(self.keeper.find(name).await?.map(|state| Process::new(state, self.keeper.clone())))
    }

    /// All processes, parts of the control planes included.
    ///
    /// # Errors
    /// [`Error::Keeper`] if the fleet is gone.
    pub async fn processes(&self) -> Result<Vec<ProcessState>, Error> {
        Ok(self.keeper.list().await?)
    }

    /// The fleet that runs in the directory, if it has these clusters. Otherwise clears leftovers.
    async fn standing(layout: &Layout, wanted: &Options) -> Result<Option<Self>, Error> {
        let dir = layout.dir();
        let Some(record) = record::read(layout) else {
            return if claim::is_empty(dir)? { Ok(None) } else { Err(Error::NotOurs(dir.to_owned())) };
        };
        match Self::open(dir).await {
            Ok(fleet) if record.specs() == wanted.clusters && record.has_nodes() == wanted.nodes => {
                Ok(Some(fleet))
            }
            Ok(_) => {
                let nodes = if record.has_nodes() { "with nodes" } else { "without nodes" };
                let clusters: Vec<_> = record.specs().iter().map(ToString::to_string).collect();
                let clusters = format!("{} {nodes}", clusters.join(","));
                Err(Error::OtherClusters { dir: dir.to_owned(), clusters })
            }
            Err(Error::NotRunning(_) | Error::Keeper(ClientError::EndedMeanwhile)) => {
                Client::new(layout.clone()).shut_down().await;
                clear(layout).await?;
                Layout::make_private_dir(dir).map_err(Error::file(dir))?;
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

/// Removes what is left of a fleet that has ended. Without a record there is none.
async fn clear(layout: &Layout) -> Result<(), Error> {
    let Some(record) = record::read(layout) else { return Ok(()) };
    cgroup::remove(&record.cgroups).await.map_err(Error::file("control groups"))?;
    layout.remove(&record.files(layout)).map_err(Error::file(layout.dir()))
}

fn absolute(dir: &Path) -> Result<PathBuf, Error> {
    std::path::absolute(dir).map_err(Error::file(dir))
}
