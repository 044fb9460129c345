//! Starting the clusters of a fleet, concurrently.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::Arc,
};

use futures::future::try_join_all;

use crate::{
    Cluster, Component, Error, ProcessState,
    cluster::Ports,
    control_plane,
    keeper::Client,
    layout::Layout,
    ports, ready,
    record::{self, ClusterRecord, Record},
    tools::Tool,
};

/// Other programs may take a port between picking and listening.
const PORT_ATTEMPTS: usize = 4;

/// Starts the record's clusters, waits until they are usable, and notes in the record that they are.
pub(crate) async fn all(
    layout: &Layout,
    keeper: &Client,
    record: &mut Record,
    tools: &Arc<BTreeMap<Tool, PathBuf>>,
    progress: &impl Fn(&str),
) -> Result<Vec<Cluster>, Error> {
    let starts = record.clusters.iter().map(|record| {
        let cluster = Cluster {
            record: record.clone(),
            layout: layout.clone(),
            tools: Arc::clone(tools),
            keeper: keeper.clone(),
        };
        one(cluster, progress)
    });
    let clusters = try_join_all(starts).await?;
    let all: Vec<&Cluster> = clusters.iter().collect();
    let path = layout.kubeconfig();
    control_plane::kubeconfig_of(&all, "admin")
        .and_then(|text| layout.write_private(&path, text.as_bytes()))
        .map_err(Error::file(path))?;
    record.clusters = clusters.iter().map(|cluster| cluster.record.clone()).collect();
    record.ready = true;
    record::write(layout, record).map_err(Error::file(layout.record()))?;
    Ok(clusters)
}

/// Starts one cluster, on other ports if somebody was faster.
async fn one(mut cluster: Cluster, progress: &impl Fn(&str)) -> Result<Cluster, Error> {
    for attempt in 1.. {
        control_plane::prepare(&cluster).map_err(Error::file(cluster.dir()))?;
        match ready::bring_up(&cluster, progress).await {
            Err(error @ Error::PortTaken { .. }) if attempt < PORT_ATTEMPTS => {
                progress(&format!("{error}; trying others"));
                for component in Component::ALL {
                    let _not_running = cluster.stop(component).await;
                }
                cluster.record.ports = pick(&mut BTreeSet::new())?;
            }
            done => return done.map(|()| cluster),
        }
    }
    Err(Error::NoPorts)
}

pub(crate) fn pick_ports(names: &[String]) -> Result<Vec<ClusterRecord>, Error> {
    let mut taken = BTreeSet::new();
    let records = (0..)
        .zip(names)
        .map(|(index, name)| Ok(ClusterRecord { name: name.clone(), index, ports: pick(&mut taken)? }));
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
        .flat_map(|cluster| Component::ALL.map(|component| cluster.process_name(component)))
        .filter(|name| !runs(name))
        .collect::<Vec<_>>();
    (!names.is_empty()).then(|| format!("{} ended", names.join(", ")))
}
