//! What is exported without interruption stays imported: where a cluster has exported a Service with ready endpoints for [`LATE`], no daemon takes the
//! cluster out of the import or withdraws its record, and no member deletes its import, gives it another address, or leaves it without ready endpoints
//! of that cluster. A member is not held to it where somebody else wrote the import's objects or its Namespace within that time.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use api::{ServiceName, label, name};
use serde_json::Value;

use super::{
    Invariant, LATE, Write,
    exports::{Exports, Place, ready},
};

/// See the module.
#[derive(Default)]
pub(super) struct Kept {
    exports: Exports,
    /// Slices with ready endpoints that a cluster imported of a Service from a cluster.
    slices: BTreeMap<(Place, String), BTreeSet<String>>,
    /// When somebody else than the member wrote an import, or the Namespace in its cluster.
    disturbed: BTreeMap<Place, Duration>,
}

impl Kept {
    /// Takes note of an imported slice; whether the last ready endpoint that a cluster has of `from` ends.
    fn ends(&mut self, write: &Write<'_>, service: &str, from: &str) -> bool {
        let slices =
            self.slices.entry(((write.cluster.to_owned(), service.to_owned()), from.to_owned())).or_default();
        let had = !slices.is_empty();
        if ready(write.after).is_empty() {
            slices.remove(write.name);
        } else {
            slices.insert(write.name.to_owned());
        }
        had && slices.is_empty()
    }

    fn note_disturbance(&mut self, write: &Write<'_>, of: &str) {
        if !write.is_by(label::MEMBER, write.cluster) {
            self.disturbed.insert((write.cluster.to_owned(), of.to_owned()), write.at);
        }
    }

    fn is_disturbed(&self, write: &Write<'_>, service: &str) -> bool {
        let namespace = service.split_once('/').map_or("", |(namespace, _)| namespace);
        let lately = |of: &str| {
            let at = self.disturbed.get(&(write.cluster.to_owned(), of.to_owned()));
            at.is_some_and(|at| write.at - *at < LATE)
        };
        !write.is_by(label::MEMBER, write.cluster) || lately(service) || lately(namespace)
    }

    fn exporter(&self, service: &str, write: &Write<'_>) -> Option<String> {
        self.exports.whole(service, write.at, LATE).next().map(str::to_owned)
    }

    fn is_whole(&self, cluster: &str, service: &str, write: &Write<'_>) -> bool {
        self.exports.get(cluster, service).is_some_and(|offer| offer.is_whole(write.at, LATE))
    }

    /// An object of an import, which all clusters' exports keep.
    fn check_import(&mut self, write: &Write<'_>, service: &str, loses: bool) -> Result<(), String> {
        self.note_disturbance(write, service);
        match self.exporter(service, write).filter(|_| loses && !self.is_disturbed(write, service)) {
            Some(cluster) => Err(format!("{cluster} exports {service}")),
            None => Ok(()),
        }
    }

    fn check_exporters(&self, write: &Write<'_>) -> Result<(), String> {
        let Some(service) = name::of_service_import(write.name).filter(|_| write.daemon().is_some()) else {
            return Ok(());
        };
        let service = said(&service);
        let names = |import: Option<&Value>, cluster: &str| {
            let all = import.and_then(|import| import["spec"]["exporters"].as_array());
            all.into_iter().flatten().any(|exporter| exporter["clusterID"] == cluster)
        };
        let mut whole = self.exports.whole(&service, write.at, LATE);
        match whole.find(|cluster| names(write.before, cluster) && !names(write.after, cluster)) {
            Some(cluster) => Err(format!("{cluster} exports {service} and is no exporter any more")),
            None => Ok(()),
        }
    }

    fn check_record(&self, write: &Write<'_>) -> Result<(), String> {
        let Some((cluster, service)) =
            name::of_service_export(write.name).filter(|_| write.daemon().is_some())
        else {
            return Ok(());
        };
        let withdraws = write.after.is_none_or(|record| record["spec"]["service"]["withdrawn"] == true);
        match withdraws && self.is_whole(&cluster, &said(&service), write) {
            true => Err(format!("{cluster} exports {}", said(&service))),
            false => Ok(()),
        }
    }
}

impl Invariant for Kept {
    fn name(&self) -> &'static str {
        "kept"
    }

    fn check(&mut self, write: &Write<'_>) -> Result<(), String> {
        self.exports.note(write);
        let within = |name: &str| format!("{}/{name}", write.namespace);
        match write.kind {
            "namespaces" => self.note_disturbance(write, write.name),
            "serviceimports" => return self.check_import(write, &within(write.name), write.ends()),
            "services" => {
                let Some(of) = write.name.strip_prefix(label::IMPORTED_PREFIX) else { return Ok(()) };
                let address =
                    |service: Option<&Value>| service.map(|service| service["spec"]["clusterIP"].clone());
                let loses =
                    write.before.is_some() && (write.ends() || address(write.before) != address(write.after));
                return self.check_import(write, &within(of), loses);
            }
            "endpointslices" => {
                let Some((service, from)) = write.imported() else { return Ok(()) };
                let ends = self.ends(write, &service, from);
                self.note_disturbance(write, &service);
                if ends && self.is_whole(from, &service, write) && !self.is_disturbed(write, &service) {
                    return Err(format!("{from} exports {service} with ready endpoints, and none is left"));
                }
            }
            "resourceimports" => return self.check_exporters(write),
            "resourceexports" => return self.check_record(write),
            _ => {}
        }
        Ok(())
    }
}

fn said(service: &ServiceName) -> String {
    format!("{}/{}", service.namespace, service.name)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::invariant::{
        Author,
        testkit::{by, write},
    };

    /// East exports `shop/web` from the first second on.
    fn exported() -> Kept {
        let (mut kept, user) = (Kept::default(), Author::Other);
        let slice = json!({"metadata": {"labels": {label::SERVICE_NAME: "web"}}, "endpoints": [{"addresses": ["10.1.1.1"]}]});
        for (kind, after) in
            [("services", &json!({})), ("serviceexports", &json!({})), ("endpointslices", &slice)]
        {
            assert!(kept.check(&Write { after: Some(after), ..write("east", kind, &user) }).is_ok());
        }
        kept
    }

    #[test]
    fn an_import_stays_while_it_is_exported() {
        let (mut kept, member) = (exported(), by(label::MEMBER, "west"));
        let service = |address: &str| json!({"spec": {"clusterIP": address}});
        let (one, other) = (service("10.96.1.1"), service("10.96.1.2"));
        let of = |at: u64, kind: &'static str, name: &'static str, after| {
            let at = Duration::from_secs(at);
            Write { at, name, before: Some(&one), after, ..write("west", kind, &member) }
        };
        assert!(kept.check(&of(59, "services", "antrea-mc-web", None)).is_ok());
        assert!(kept.check(&of(60, "services", "antrea-mc-web", None)).is_err());
        assert!(kept.check(&of(60, "services", "antrea-mc-web", Some(&other))).is_err());
        assert!(kept.check(&of(60, "services", "antrea-mc-web", Some(&one))).is_ok());
        assert!(kept.check(&of(60, "serviceimports", "web", None)).is_err());
        assert!(kept.check(&of(60, "serviceimports", "api", None)).is_ok());
        let user = Author::Other;
        assert!(kept.check(&Write { author: &user, ..of(61, "serviceimports", "web", None) }).is_ok());
        assert!(
            kept.check(&of(62, "services", "antrea-mc-web", None)).is_ok(),
            "somebody has changed the import"
        );
    }

    #[test]
    fn the_last_ready_endpoint_stays_while_its_cluster_has_one() {
        let (mut kept, member) = (exported(), by(label::MEMBER, "west"));
        let labels = json!({label::MCS_SERVICE_NAME: "web", label::MCS_SOURCE_CLUSTER: "east"});
        let slice = json!({"metadata": {"labels": labels}, "endpoints": [{"addresses": ["10.1.1.1"]}]});
        let mut at = |second: u64, name: &str, before, after| {
            let at = Duration::from_secs(second);
            kept.check(&Write { at, name, before, after, ..write("west", "endpointslices", &member) }).is_ok()
        };
        assert!(at(1, "one", None, Some(&slice)) && at(1, "two", None, Some(&slice)));
        assert!(at(60, "one", Some(&slice), None) && !at(60, "two", Some(&slice), None));
    }

    #[test]
    fn an_exporter_stays_one() {
        let (mut kept, leader) = (exported(), by(label::LEADER, "leader"));
        let import = |exporters: Value| json!({"spec": {"exporters": exporters}});
        let (both, west) = (
            import(json!([{"clusterID": "east"}, {"clusterID": "west"}])),
            import(json!([{"clusterID": "west"}])),
        );
        let mut at = |second: u64, kind: &str, name: &str, after: Option<&Value>| {
            let at = Duration::from_secs(second);
            kept.check(&Write { at, name, before: Some(&both), after, ..write("leader", kind, &leader) })
                .is_ok()
        };
        let import = "shop-web-service";
        assert!(
            at(59, "resourceimports", import, Some(&west)) && !at(60, "resourceimports", import, Some(&west))
        );
        assert!(at(60, "resourceimports", import, Some(&both)) && !at(60, "resourceimports", import, None));
        assert!(!at(60, "resourceexports", "east-shop-web-service", None));
        assert!(at(60, "resourceexports", "west-shop-web-service", None));
    }
}
