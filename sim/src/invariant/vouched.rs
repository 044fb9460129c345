//! No part of an import ends on an absence that nobody confirmed: where a record vanished that was not withdrawn, its cluster stays among the
//! exporters, and its slices stay imported, until the cluster has renewed its Lease twice. A cluster without a Lease, or with one that says that it
//! left, has left.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use api::{ServiceName, label, name};
use cli::objects::SYSTEM;
use serde_json::Value;

use super::{Invariant, LATE, Write};

/// Renewals that confirm an absence.
const RENEWALS: u64 = 2;

/// See the module.
#[derive(Default)]
pub(super) struct Vouched {
    /// By name.
    records: BTreeMap<String, Record>,
    /// Renewals of the Leases of members; none while there is no Lease.
    renewals: BTreeMap<String, u64>,
    /// Names of records by the slices that are imported of them.
    slices: BTreeMap<String, String>,
    /// Names of imports, and exporters that the leader took out of them.
    left_out: BTreeSet<(String, String)>,
}

/// A record of a member.
#[derive(Default)]
struct Record {
    cluster: String,
    /// When it was withdrawn last, and whether it is.
    withdrawn: (Option<Duration>, bool),
    /// How many renewals there were when it vanished; none while it is present.
    vanished: Option<u64>,
}

impl Vouched {
    fn note_record(&mut self, write: &Write<'_>) {
        let spec = &write.object()["spec"];
        let (Some(cluster), Some(service)) = (spec["clusterID"].as_str(), spec["name"].as_str()) else {
            return;
        };
        if spec["kind"] == "EndpointSlice" {
            self.slices.insert(name::imported_slice(service, write.name), write.name.to_owned());
        }
        let renewals = self.renewals.get(cluster).copied().unwrap_or_default();
        let record = self.records.entry(write.name.to_owned()).or_default();
        cluster.clone_into(&mut record.cluster);
        record.vanished = write.after.is_none().then_some(renewals);
        let is_withdrawn = is_withdrawn(spec);
        if is_withdrawn || record.withdrawn.1 {
            record.withdrawn.0 = Some(write.at);
        }
        record.withdrawn.1 = is_withdrawn;
    }

    fn note_lease(&mut self, write: &Write<'_>) {
        let has_left = write.object()["metadata"]["annotations"][label::LEFT] == label::TRUE;
        let Some(cluster) = name::member_of_lease(write.name) else { return };
        if write.after.is_none() || has_left {
            self.renewals.remove(cluster);
        } else {
            *self.renewals.entry(cluster.to_owned()).or_default() += 1;
        }
    }

    /// Whether a record is withdrawn, or was lately.
    fn is_decided(&self, record: &str, write: &Write<'_>) -> bool {
        let found = self.records.get(record).map(|record| record.withdrawn);
        found.is_some_and(|(when, is)| is || when.is_some_and(|when| write.at - when < LATE))
    }

    /// Why nobody confirmed that a record is gone, if nobody did.
    fn is_unconfirmed(&self, record: &str, write: &Write<'_>) -> Option<String> {
        let found = self.records.get(record)?;
        let (vanished, renewals) = (found.vanished?, *self.renewals.get(&found.cluster)?);
        let heard = renewals.saturating_sub(vanished);
        let why = || {
            format!(
                "{record} vanished and was not withdrawn; its cluster has renewed its Lease {heard} times since"
            )
        };
        (!self.is_decided(record, write) && heard < RENEWALS).then(why)
    }

    fn check_exporters(&mut self, write: &Write<'_>) -> Result<(), String> {
        let (before, after) = (exporters(write.before), exporters(write.after));
        let Some(service) = name::of_service_import(write.name) else { return Ok(()) };
        for cluster in &after {
            self.left_out.remove(&(write.name.to_owned(), cluster.clone()));
        }
        for cluster in before.difference(&after) {
            let record = name::service_export(cluster, &service);
            let unconfirmed = self.is_unconfirmed(&record, write).filter(|_| write.daemon().is_some());
            if let Some(why) = unconfirmed {
                return Err(format!("{cluster} is no exporter any more, but {why}"));
            }
            self.left_out.insert((write.name.to_owned(), cluster.clone()));
        }
        Ok(())
    }

    fn check_slice(&self, write: &Write<'_>) -> Result<(), String> {
        let Some((service, from)) = write.imported().filter(|_| write.is_by(label::MEMBER, write.cluster))
        else {
            return Ok(());
        };
        let is_emptied = has_endpoints(write.before) && !has_endpoints(write.after);
        let Some((record, (namespace, name))) = self
            .slices
            .get(write.name)
            .filter(|_| is_emptied && from != write.cluster)
            .zip(service.split_once('/'))
        else {
            return Ok(());
        };
        let import = name::service_import(&ServiceName::new(namespace, name));
        let export = name::service_export(from, &ServiceName::new(namespace, name));
        let is_left_out = self.left_out.contains(&(import, from.to_owned()));
        if is_left_out || self.is_decided(&export, write) || self.is_decided(record, write) {
            return Ok(());
        }
        let records = [record, &export];
        records.iter().find_map(|record| self.is_unconfirmed(record, write)).map_or(Ok(()), Err)
    }
}

impl Invariant for Vouched {
    fn name(&self) -> &'static str {
        "vouched"
    }

    fn check(&mut self, write: &Write<'_>) -> Result<(), String> {
        match write.kind {
            "resourceexports" => self.note_record(write),
            // Those of members in the Common Area.
            "leases" if write.namespace != SYSTEM => self.note_lease(write),
            "resourceimports" => return self.check_exporters(write),
            "endpointslices" => return self.check_slice(write),
            _ => {}
        }
        Ok(())
    }
}

/// Whether the writer of a record has taken it back: all of the export, or this slice.
fn is_withdrawn(spec: &Value) -> bool {
    spec["service"]["withdrawn"] == true
        || spec["endpointSlice"]["endpoints"].as_array().is_some_and(Vec::is_empty)
}

fn exporters(import: Option<&Value>) -> BTreeSet<String> {
    let all = import.and_then(|import| import["spec"]["exporters"].as_array());
    all.into_iter()
        .flatten()
        .filter_map(|exporter| exporter["clusterID"].as_str().map(str::to_owned))
        .collect()
}

fn has_endpoints(slice: Option<&Value>) -> bool {
    slice.is_some_and(|slice| slice["endpoints"].as_array().is_some_and(|all| !all.is_empty()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::invariant::{
        Author,
        testkit::{by, write},
    };

    /// What is written: at which second, what kind, under which name, before and after.
    type Step<'a> = (u64, &'a str, &'a str, Option<&'a Value>, Option<&'a Value>);

    fn check(vouched: &mut Vouched, author: &Author, (at, kind, name, before, after): Step<'_>) -> bool {
        let at = Duration::from_secs(at);
        vouched.check(&Write { at, name, before, after, ..write("leader", kind, author) }).is_ok()
    }

    fn record(is_withdrawn: bool) -> Value {
        let service = json!({"withdrawn": is_withdrawn});
        json!({"spec": {"clusterID": "east", "name": "web", "namespace": "shop", "kind": "Service", "service": service}})
    }

    #[test]
    fn an_exporter_goes_by_its_word_or_after_two_renewals() {
        let (leader, user) = (by(label::LEADER, "leader"), Author::Other);
        let (lease, record, withdrawn) = (json!({}), record(false), record(true));
        let import = |exporters: Value| json!({"spec": {"exporters": exporters}});
        let (both, nobody) = (import(json!([{"clusterID": "east"}])), import(json!([])));
        let ends = (9, "resourceimports", "shop-web-service", Some(&both), Some(&nobody));
        let name = "east-shop-web-service";
        let mut vouched = Vouched::default();
        let v = &mut vouched;
        assert!(check(v, &user, (1, "leases", "freeport-member-east", None, Some(&lease))));
        assert!(check(v, &user, (1, "resourceexports", name, None, Some(&record))));
        assert!(check(v, &user, (2, "resourceexports", name, Some(&record), None)));
        assert!(!check(v, &leader, ends) && check(v, &user, ends));
        for at in [3, 4] {
            assert!(!check(v, &leader, ends));
            assert!(check(v, &user, (at, "leases", "freeport-member-east", Some(&lease), Some(&lease))));
        }
        assert!(check(v, &leader, ends));

        assert!(check(v, &user, (5, "resourceexports", name, None, Some(&withdrawn))));
        assert!(check(v, &user, (6, "resourceexports", name, Some(&withdrawn), None)));
        assert!(check(v, &leader, ends));
    }

    #[test]
    fn a_cluster_without_a_lease_has_left() {
        let (leader, user) = (by(label::LEADER, "leader"), Author::Other);
        let (lease, record) = (json!({}), record(false));
        let import = json!({"spec": {"exporters": [{"clusterID": "east"}]}});
        let ends = (9, "resourceimports", "shop-web-service", Some(&import), None);
        let mut vouched = Vouched::default();
        let v = &mut vouched;
        assert!(check(v, &user, (1, "leases", "freeport-member-east", None, Some(&lease))));
        assert!(check(v, &user, (1, "resourceexports", "east-shop-web-service", Some(&record), None)));
        assert!(!check(v, &leader, ends));
        assert!(check(v, &user, (2, "leases", "freeport-member-east", Some(&lease), None)));
        assert!(check(v, &leader, ends));
    }

    #[test]
    fn an_imported_slice_stays_while_nobody_says_that_it_goes() {
        let (user, member) = (Author::Other, by(label::MEMBER, "leader"));
        let (lease, name) = (json!({}), "east.shop.web.slice.01eeccc3f8c6f346");
        let slice = |endpoints: Value| json!({"spec": {"clusterID": "east", "name": "web", "kind": "EndpointSlice", "endpointSlice": {"endpoints": endpoints}}});
        let (full, empty) = (slice(json!([{}])), slice(json!([])));
        let labels = json!({label::MCS_SERVICE_NAME: "web", label::MCS_SOURCE_CLUSTER: "east"});
        let imported = json!({"metadata": {"labels": labels}, "endpoints": [{"addresses": ["10.1.1.1"]}]});
        let copy = name::imported_slice("web", name);
        let ends = (9, "endpointslices", copy.as_str(), Some(&imported), None);
        let mut vouched = Vouched::default();
        let v = &mut vouched;
        assert!(check(v, &user, (1, "leases", "freeport-member-east", None, Some(&lease))));
        assert!(check(v, &user, (1, "resourceexports", "east-shop-web-service", None, Some(&record(false)))));
        assert!(check(v, &user, (1, "resourceexports", name, None, Some(&full))));
        assert!(check(v, &user, (2, "resourceexports", name, Some(&full), None)));
        assert!(!check(v, &member, ends) && check(v, &user, ends));
        assert!(check(v, &user, (3, "resourceexports", name, None, Some(&empty))));
        assert!(check(v, &user, (3, "resourceexports", name, Some(&empty), None)));
        assert!(check(v, &member, ends));
    }
}
