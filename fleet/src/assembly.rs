//! What a cluster is assembled from: its files, and how each component is run.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use crate::{
    Component, Family, ProcessSpec, Stage,
    cgroup::Hierarchy,
    cluster_layout::ClusterLayout,
    control_plane, installed,
    keeper::{
        OWN_EXECUTABLE,
        machine::{MACHINE, MachineSpec},
    },
    kubeconfig,
    layout::Layout,
    node,
    record::Record,
    tools::Tool,
};

/// How much the Go programs of a control plane without a node allocate before they collect garbage, in percent of what is in use,
/// and how much memory one may have before it collects more often. Two cores are what tests on such clusters lack: with Go's default of
/// 100 % they need a fifth more processor time, and an API server 240 MB less. Clusters with nodes keep the default: three of them fit
/// into the memory that the README asks for.
const GARBAGE: [(&str, &str); 2] = [("GOGC", "400"), ("GOMEMLIMIT", "4GiB")];

/// What all clusters of a fleet are run with.
#[derive(Clone, Debug)]
pub(crate) struct Equipment {
    tools: BTreeMap<Tool, PathBuf>,
    cgroups: Vec<Hierarchy>,
}

impl Equipment {
    pub(crate) fn of(fleet: &Record) -> Self {
        Self { tools: fleet.tools.clone(), cgroups: fleet.cgroups.clone() }
    }

    /// The path of a program.
    pub(crate) fn tool(&self, tool: Tool) -> PathBuf {
        self.tools.get(&tool).map_or_else(|| tool.name().into(), Clone::clone)
    }
}

/// Makes the directory of a cluster anew: certificates, configuration, empty data.
pub(crate) fn prepare(cluster: &ClusterLayout) -> io::Result<()> {
    match fs::remove_dir_all(cluster.dir()) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    for dir in [cluster.dir(), cluster.logs()] {
        Layout::make_private_dir(&dir)?;
    }
    control_plane::prepare(cluster)?;
    if cluster.has_node() {
        node::prepare(cluster)?;
    }
    write_kubeconfig(&[cluster], &cluster.kubeconfig())
}

/// Writes the administrator's kubeconfig for these clusters.
pub(crate) fn write_kubeconfig(clusters: &[&ClusterLayout], path: &Path) -> io::Result<()> {
    let Some(first) = clusters.first() else { return Ok(()) };
    first.layout.write_private(path, kubeconfig::of(clusters, "admin")?.as_bytes())
}

/// How a component is run.
pub(crate) fn spec(
    cluster: &ClusterLayout,
    equipment: &Equipment,
    component: Component,
) -> io::Result<ProcessSpec> {
    let tool = |tool| equipment.tool(tool);
    let (program, stage, args) = match component {
        Component::Etcd => (tool(Tool::Etcd), Stage::Store, control_plane::etcd(cluster)),
        Component::ApiServer => {
            (tool(Tool::KubeApiserver), Stage::ControlPlane, control_plane::api_server(cluster))
        }
        Component::ControllerManager => {
            let args = control_plane::controller_manager(cluster);
            (tool(Tool::KubeControllerManager), Stage::ControlPlane, args)
        }
        Component::Scheduler => {
            (tool(Tool::KubeScheduler), Stage::ControlPlane, control_plane::scheduler(cluster))
        }
        Component::Machine => (OWN_EXECUTABLE.into(), Stage::Machine, machine(cluster, equipment)?),
        Component::Containerd => {
            (installed::program("containerd")?, Stage::Node, node::containerd_args(cluster))
        }
        Component::Kubelet => (tool(Tool::Kubelet), Stage::Node, node::kubelet(cluster)),
        Component::KubeProxy => (tool(Tool::KubeProxy), Stage::Node, node::kube_proxy(cluster)),
    };
    let is_inside = cluster.has_node() && component != Component::Machine;
    let spec = ProcessSpec {
        args,
        log: Some(cluster.log(component)),
        stage,
        inside: is_inside.then(|| cluster.process_name(Component::Machine)),
        ..ProcessSpec::new(cluster.process_name(component), program)
    };
    Ok(match stage {
        Stage::Node => spec.env("PATH", installed::path()),
        _ if !cluster.has_node() => GARBAGE.iter().fold(spec, |spec, (name, value)| spec.env(*name, *value)),
        _ => spec,
    })
}

fn machine(cluster: &ClusterLayout, equipment: &Equipment) -> io::Result<Vec<String>> {
    let families = cluster.record.network.map(|network| network.families()).unwrap_or_default();
    let spec = MachineSpec {
        group: cluster.name().to_owned(),
        cgroups: equipment.cgroups.clone(),
        shared_dir: cluster.layout.dir().to_owned(),
        own_dir: cluster.dir(),
        has_ipv6: families.contains(&Family::Ipv6),
    };
    Ok(vec![MACHINE.to_owned(), serde_json::to_string(&spec)?])
}
