//! The state of a fleet's processes, as text.

use std::path::Path;

use crate::{
    ClusterSpec, Component, Error, Families, ProcessState,
    keeper::{Client, ClientError, is_alive},
    layout::Layout,
    record::{self, ClusterRecord},
    tools::Tool,
};

/// What `fleet status` prints.
pub(crate) struct Report {
    pub(crate) text: String,
    /// Whether everything that should run does.
    pub(crate) all_well: bool,
}

struct Row {
    cluster: String,
    component: String,
    pid: String,
    state: String,
    address: String,
}

/// Reports on the fleet of a directory.
pub(crate) async fn report(dir: &Path) -> Result<Report, Error> {
    let dir = std::path::absolute(dir).map_err(Error::file(dir))?;
    let layout = Layout::new(&dir);
    let Some(record) = record::read(&layout) else {
        return Ok(Report { text: format!("no fleet in {}\n", dir.display()), all_well: false });
    };
    let (processes, keeper) = match Client::new(layout.clone()).list().await {
        Ok(processes) => (processes, is_alive(&layout)),
        Err(ClientError::Gone | ClientError::EndedMeanwhile) => (Vec::new(), None),
        Err(error) => return Err(error.into()),
    };
    let rows = rows(&record.clusters, &processes);
    let all_well = record.ready && rows.iter().all(|row| row.state == RUNNING);
    let mut text = render(&rows) + &families(&record.specs());
    match keeper {
        Some(pid) => text += &format!("\nkept by process {pid}; files and logs in {}\n", dir.display()),
        None => text += &format!("\nnothing runs; files and logs in {}\n", dir.display()),
    }
    if all_well && let Some(cluster) = record.clusters.first() {
        let kubectl =
            record.tools.get(&Tool::Kubectl).map_or("kubectl".into(), |path| path.display().to_string());
        text += &format!(
            "look into it: {kubectl} --kubeconfig {} --context {} get namespaces\n",
            layout.kubeconfig().display(),
            cluster.name
        );
    } else if !record.ready && keeper.is_some() {
        text += "it is being started, or its start was interrupted\n";
    }
    Ok(Report { text, all_well })
}

/// Which clusters have other families than IPv4, if any.
fn families(clusters: &[ClusterSpec]) -> String {
    let others = clusters.iter().filter(|cluster| cluster.families != Families::Ipv4);
    match others.map(ToString::to_string).collect::<Vec<_>>().join(", ") {
        none if none.is_empty() => none,
        others => format!("\nIP families: {others}; ipv4 otherwise\n"),
    }
}

const RUNNING: &str = "running";

fn rows(clusters: &[ClusterRecord], processes: &[ProcessState]) -> Vec<Row> {
    let find = |name: &str| processes.iter().find(|process| process.name == name);
    let mut rows = Vec::new();
    let mut parts = Vec::new();
    for cluster in clusters {
        for component in cluster.components() {
            let name = format!("{}/{component}", cluster.name);
            let port = match component {
                Component::Etcd => Some(cluster.ports.etcd),
                Component::ApiServer => Some(cluster.ports.api),
                _ => None,
            };
            let address = port.map_or("-".into(), |port| cluster.url(port));
            rows.push(row(&cluster.name, component.name(), find(&name), address));
            parts.push(name);
        }
    }
    let others = processes.iter().filter(|process| !parts.contains(&process.name));
    rows.extend(others.map(|process| row("-", &process.name, Some(process), "-".into())));
    rows
}

fn row(cluster: &str, component: &str, process: Option<&ProcessState>, address: String) -> Row {
    let running = process.filter(|process| process.exit.is_none());
    Row {
        cluster: cluster.to_owned(),
        component: component.to_owned(),
        pid: running.and_then(|process| process.pid).map_or("-".into(), |pid| pid.to_string()),
        state: match process {
            None => "not running".into(),
            Some(ProcessState { exit: Some(exit), .. }) => format!("ended ({exit})"),
            Some(_) => RUNNING.into(),
        },
        address,
    }
}

fn render(rows: &[Row]) -> String {
    let head = ["CLUSTER", "COMPONENT", "PID", "STATE", "ADDRESS"];
    let cells = |row: &Row| {
        [&row.cluster, &row.component, &row.pid, &row.state, &row.address]
            .map(std::string::ToString::to_string)
    };
    let table: Vec<[String; 5]> =
        [head.map(String::from)].into_iter().chain(rows.iter().map(cells)).collect();
    let width = |column: usize| table.iter().map(|row| row[column].len()).max().unwrap_or_default();
    let widths = [0, 1, 2, 3, 4].map(width);
    let line = |row: &[String; 5]| {
        let padded = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
        padded.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
    };
    table.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Exit, Stage, component::Ports};

    fn process(name: &str, exit: Option<Exit>) -> ProcessState {
        ProcessState { name: name.into(), pid: Some(7), log: "log".into(), stage: Stage::Daemon, exit }
    }

    #[test]
    fn every_part_has_a_row() {
        let ports = Ports { api: 1, etcd: 2, etcd_peer: 3 };
        let clusters =
            [ClusterRecord { name: "east".into(), families: Families::Ipv4, index: 0, ports, network: None }];
        let processes = [
            process("east/etcd", None),
            process("east/kube-apiserver", Some(Exit::Status(1))),
            process("freeport-leader", None),
        ];
        let text = render(&rows(&clusters, &processes));
        assert_eq!(
            text,
            "\
CLUSTER  COMPONENT                PID  STATE                  ADDRESS
east     etcd                     7    running                https://127.0.0.1:2
east     kube-apiserver           -    ended (exit status 1)  https://127.0.0.1:1
east     kube-controller-manager  -    not running            -
-        freeport-leader          7    running                -
"
        );
    }

    #[test]
    fn families_are_named_where_they_are_not_plain() {
        let specs = |names: &[&str]| names.iter().map(|name| name.parse().unwrap()).collect::<Vec<_>>();
        assert_eq!(families(&specs(&["a", "b=ipv4"])), "");
        assert_eq!(
            families(&specs(&["a=dual", "b", "c=ipv6"])),
            "\nIP families: a=dual, c=ipv6; ipv4 otherwise\n"
        );
    }
}
