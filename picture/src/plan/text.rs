//! The plan for people.

use api::{
    mcs::{ServiceImportSpec, ServicePort},
    words::first_names,
};

use super::{
    condition::words,
    importer::{Address, Endpoints, Imported},
    report::{Exported, Importing, Plan, Planned},
};

impl Plan {
    /// Lines: each Service as it will be, then what is a problem. Some words are those of other clusters.
    pub fn text(&self) -> Vec<String> {
        let mut lines: Vec<_> = self.services.iter().flat_map(Planned::text).collect();
        if self.services.is_empty() && self.refused.is_empty() {
            lines.push("nothing of this is exported, so nothing changes in the ClusterSet".to_owned());
        }
        lines.extend(self.problems.iter().map(|problem| format!("problem: {problem}")));
        if self.problems.is_empty() {
            let all = "no conflict, no refusal, and no import loses its last endpoint";
            let part = "no problem in what was looked at";
            lines.push(if self.not_looked_at.is_empty() { all } else { part }.to_owned());
        }
        lines
    }
}

impl Planned {
    /// Lines: the members that lack the Namespace, and how to create it in those that were looked at.
    pub fn lacking_text(&self) -> Vec<String> {
        let namespace = &self.namespace;
        let line = |id: &String| {
            let create = self
                .contexts
                .get(id)
                .map(|context| format!(". try: kubectl --context {context} create namespace {namespace}"));
            format!("not in {id}: no Namespace {namespace}{}", create.unwrap_or_default())
        };
        self.lacking.iter().map(line).collect()
    }

    fn text(&self) -> Vec<String> {
        let mut lines = vec![self.service().to_string()];
        let names: Vec<_> = self.merged.iter().flat_map(|merged| merged.exporters.iter().flatten()).collect();
        let names: Vec<_> = names.iter().map(|exporter| exporter.cluster_id.as_str()).collect();
        lines.push(match &self.import {
            Some(merged) => format!("  import   {}, exported by {}", kind(&merged.spec), first_names(&names)),
            None if self.hides_exports => "  import   is not known".to_owned(),
            None => "  import   none: no cluster exports the Service".to_owned(),
        });
        lines.extend(self.exporters.iter().flat_map(Exported::text));
        lines.extend(self.importers.iter().map(Importing::text));
        if !self.lacking.is_empty() {
            let (lacking, namespace) = (first_names(&self.lacking), &self.namespace);
            lines.push(format!("  not in   {lacking}: no Namespace {namespace}"));
        }
        let mut places: Vec<_> = Vec::new();
        if self.writes.common_area > 0 {
            places.push(format!("{} in the Common Area", self.writes.common_area));
        }
        places.extend(self.writes.clusters.iter().map(|(cluster, count)| format!("{count} in {cluster}")));
        let writes = if places.is_empty() { "none".to_owned() } else { places.join(", ") };
        lines.push(format!("  writes   {writes}"));
        lines
    }
}

impl Exported {
    fn text(&self) -> Vec<String> {
        let line = |said| format!("  export   {}: {}", self.cluster, words(said));
        self.conditions.iter().map(line).collect()
    }
}

impl Importing {
    fn text(&self) -> String {
        let before = known(self.before_known.then_some(self.before));
        let after = known(self.after_known.then_some(self.after));
        let Some(import) = &self.import else {
            if !self.after_known {
                return format!("  in {}: not known; endpoints {before} before", self.cluster);
            }
            return format!("  in {}: the import is removed; endpoints {before} before", self.cluster);
        };
        let not_ready = import.trouble().map(|said| format!("; {}", words(said))).unwrap_or_default();
        format!("  in {}: {}; endpoints {before} -> {after}{not_ready}", self.cluster, address(import))
    }
}

fn address(import: &Imported) -> String {
    match import.address {
        Address::Kept => format!("address {} is kept", import.spec.ips.join(", ")),
        Address::New => format!("new address ({})", import.spec.ip_families.join(", ")),
        Address::None => "no address".to_owned(),
    }
}

fn known(endpoints: Option<Endpoints>) -> String {
    endpoints.map_or_else(|| "not known".to_owned(), count)
}

fn count(Endpoints { total, ready }: Endpoints) -> String {
    if total == ready { total.to_string() } else { format!("{total} ({ready} ready)") }
}

fn kind(spec: &ServiceImportSpec) -> String {
    let port = |port: &ServicePort| {
        let name = port.name.as_deref().filter(|name| !name.is_empty());
        let name = name.map(|name| format!("{name}:")).unwrap_or_default();
        format!("{name}{}/{}", port.port, port.protocol.as_deref().unwrap_or("TCP"))
    };
    let ports: Vec<_> = spec.ports.iter().map(port).collect();
    let ports = if ports.is_empty() { "no ports".to_owned() } else { ports.join(", ") };
    format!("{:?}, {ports}, {}", spec.type_, spec.ip_families.join(", "))
}
