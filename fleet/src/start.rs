//! Starting the clusters of a fleet, concurrently.

use std::{collections::BTreeSet, path::PathBuf, sync::Arc};

use futures::future::try_join_all;

use crate::{
    ClusterSpec, Error, ProcessSpec, ProcessState, Stage,
    assembly::{self, Equipment},
    cluster::{self, Cluster, Nodes, SWITCH},
    cluster_layout::ClusterLayout,
    component::Ports,
    keeper::{Client, OWN_EXECUTABLE, machine},
    layout::Layout,
    network::Network,
    ports,
    record::{self, ClusterRecord, Record},
};

/// The usual ports: a machine is the cluster's own.
const MACHINE_PORTS: Ports = Ports { api: 6443, etcd: 2379, etcd_peer: 2380 };
/// Other programs may take a port between picking and listening.
const PORT_ATTEMPTS: usize = 4;

/// Starts the record's clusters, waits until they are usable, and notes in the record that they are.
pub(crate) async fn all(
    layout: &Layout,
    keeper: &Client,
    record: &mut Record,
    equipment: &Arc<Equipment>,
    images: Option<Vec<PathBuf>>,
    progress: &impl Fn(&str),
) -> Result<Vec<Cluster>, Error> {
    let nodes = match images {
        Some(images) => Some(connect(layout, keeper, record, images).await?),
        None => None,
    };
    let starts = record.clusters.iter().map(|record| {
        let cluster = Cluster {
            layout: ClusterLayout { record: record.clone(), layout: layout.clone() },
            equipment: Arc::clone(equipment),
            keeper: keeper.clone(),
        };
        one(cluster, nodes.as_ref(), progress)
    });
    let clusters = try_join_all(starts).await?;
    let layouts: Vec<_> = clusters.iter().map(|cluster| &cluster.layout).collect();
    let path = layout.kubeconfig();
    assembly::write_kubeconfig(&layouts, &path).map_err(Error::file(path))?;
    record.clusters = layouts.iter().map(|cluster| cluster.record.clone()).collect();
    record.ready = true;
    record::write(layout, record).map_err(Error::file(layout.record()))?;
    Ok(clusters)
}

/// Starts the switch, and claims networks for clusters with nodes.
async fn connect(
    layout: &Layout,
    keeper: &Client,
    record: &mut Record,
    images: Vec<PathBuf>,
) -> Result<Nodes, Error> {
    let spec = ProcessSpec { stage: Stage::Machine, ..ProcessSpec::new(SWITCH, OWN_EXECUTABLE) };
    keeper.start(spec.arg(machine::SWITCH)).await?;
    let switch = keeper.pid(SWITCH).await?;
    cluster::switch(keeper, SWITCH, switch).await?;
    let count = u8::try_from(record.clusters.len()).unwrap_or(u8::MAX);
    let network = Network::claim(switch, count, record.has_ipv6()).await?;
    for cluster in &mut record.clusters {
        cluster.network = Some(network);
    }
    record::write(layout, record).map_err(Error::file(layout.record()))?;
    Ok(Nodes { switch, count, images })
}

/// Starts one cluster, on other ports if another program took one meanwhile.
async fn one(
    mut cluster: Cluster,
    nodes: Option<&Nodes>,
    progress: &impl Fn(&str),
) -> Result<Cluster, Error> {
    for attempt in 1.. {
        assembly::prepare(&cluster.layout).map_err(Error::file(cluster.dir()))?;
        match cluster::bring_up(&cluster, nodes, progress).await {
            Err(error @ Error::PortTaken { .. }) if attempt < PORT_ATTEMPTS => {
                progress(&format!("{error}; trying others"));
                for component in cluster.components() {
                    let _not_running = cluster.stop(*component).await;
                }
                cluster.layout.record.ports = pick(&mut BTreeSet::new())?;
            }
            done => return done.map(|()| cluster),
        }
    }
    Err(Error::NoPorts)
}

pub(crate) fn pick_ports(clusters: &[ClusterSpec], nodes: bool) -> Result<Vec<ClusterRecord>, Error> {
    let mut taken = BTreeSet::new();
    let records = (0..).zip(clusters).map(|(index, ClusterSpec { name, families })| {
        let ports = if nodes { MACHINE_PORTS } else { pick(&mut taken)? };
        Ok(ClusterRecord { name: name.clone(), families: *families, index, ports, network: None })
    });
    records.collect()
}

fn pick(taken: &mut BTreeSet<u16>) -> Result<Ports, Error> {
    let [api, etcd, etcd_peer] = ports::pick(taken).ok_or(Error::NoPorts)?;
    Ok(Ports { api, etcd, etcd_peer })
}

/// Which parts of the control planes do not run.
pub(crate) fn missing(clusters: &[Cluster], processes: &[ProcessState]) -> Option<String> {
    let runs = |name: &String| processes.iter().any(|state| state.name == *name && state.exit.is_none());
    let names = clusters
        .iter()
        .flat_map(|cluster| cluster.components().iter().map(|component| cluster.process_name(*component)))
        .filter(|name| !runs(name))
        .collect::<Vec<_>>();
    (!names.is_empty()).then(|| format!("{} ended", names.join(", ")))
}
