//! Merging: watches records of kind `Service`, ResourceImports and Leases; writes ResourceImports; deletes records whose
//! withdrawal is merged, and a ResourceImport nobody exports to any more. Safe to run twice: what is written is a function
//! of the records, and every deletion names the version it decided on.

use std::collections::BTreeSet;

use api::{
    ServiceName,
    mcs::{ServiceImportSpec, ServicePort},
    name,
    resource_export::{ResourceExport, ServicePayload},
    resource_import::{Exporter, MergedService, ResourceImportSpec, SERVICE_IMPORT},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kit::{
    drive::Queue,
    index::{Index, Shared},
    queue::Outcome,
    view::Lenient,
    vouch::Vouching,
    write::{Error, Writer},
};
use kube::{
    Api, Client,
    api::{ObjectMeta, PartialObjectMeta},
};

use super::{
    entry::{Import, Offer, ServiceEntry},
    judge::{Judged, Judgement},
};

/// What a look at one Service name comes to.
#[derive(Clone, Debug, PartialEq)]
enum Plan {
    /// Records of these clusters vanished unsaid: the import stays as it is until their members vouch.
    Hold { missing: BTreeSet<String> },
    /// The import as it has to be (`None`: there is none and there must be none), then these records to delete.
    Write { import: Option<ResourceImportSpec>, withdrawn: Vec<ObjectMeta> },
}

fn desired(service: &ServiceName, entry: &ServiceEntry) -> Plan {
    let have = entry.import.as_ref().and_then(|import| import.spec.0.as_ref().ok());
    let named = have.and_then(|spec| spec.exporters.as_deref()).unwrap_or_default();
    let known = |cluster: &String| entry.offers.contains_key(cluster) || entry.unjudged.contains_key(cluster);
    let vanished = |cluster: &String| !known(cluster) && !entry.confirmed_gone.contains(cluster);
    let missing: BTreeSet<_> = named.iter().map(|e| e.cluster_id.clone()).filter(vanished).collect();
    if !missing.is_empty() {
        return Plan::Hold { missing };
    }
    let (gone, live): (Vec<_>, Vec<_>) = entry.offers.iter().partition(|(_, offer)| offer.payload.withdrawn);
    let withdrawn = gone.into_iter().map(|(_, offer)| offer.metadata.clone()).collect();
    // Whoever said something that cannot be judged keeps what it had, until it says something that can.
    let kept: Vec<_> = named.iter().filter(|e| entry.unjudged.contains_key(&e.cluster_id)).cloned().collect();
    if live.is_empty() && kept.is_empty() && have.is_none() {
        return Plan::Write { import: None, withdrawn };
    }
    if live.is_empty() && have.is_some_and(|spec| spec.exporters.is_none()) {
        // An import that never named its exporters is not known to have lost them all.
        return Plan::Hold { missing: BTreeSet::new() };
    }
    let (merged, mut exporters) =
        merge(live.into_iter().map(|(cluster, offer)| (cluster.as_str(), offer)).collect());
    let age = |e: &Exporter| (e.exported_at.as_ref().map(|time| time.0), e.cluster_id.clone());
    let oldest_live = exporters.first().map(age);
    let kept_is_oldest =
        kept.iter().map(age).min().is_some_and(|kept| oldest_live.is_none_or(|live| kept < live));
    exporters.extend(kept);
    exporters.sort_by_key(age);
    let had = || have.and_then(|spec| spec.service_import.clone());
    let merged = merged.map(|spec| MergedService { spec, ..MergedService::default() });
    let spec = ResourceImportSpec {
        name: Some(service.name.clone()),
        namespace: Some(service.namespace.clone()),
        kind: Some(SERVICE_IMPORT.into()),
        service_import: if kept_is_oldest { had().or(merged) } else { merged.or_else(had) },
        exporters: Some(exporters),
        ..ResourceImportSpec::default()
    };
    Plan::Write { import: Some(spec), withdrawn }
}

/// The merged Service and a verdict for each exporter, oldest first; the same input in any order gives the same output.
/// Precedence is the age of the export (rule R-34), then the cluster ID (R-35).
fn merge(mut offers: Vec<(&str, &Offer)>) -> (Option<ServiceImportSpec>, Vec<Exporter>) {
    offers.sort_by_key(|(cluster, offer)| (exported_at(offer).map(|time| time.0), *cluster));
    let merged = offers.first().map(|(_, oldest)| import_spec(&oldest.payload));
    let exporters = offers
        .iter()
        .map(|(cluster, offer)| Exporter {
            cluster_id: (*cluster).to_owned(),
            exported_at: exported_at(offer),
            observed: observed(&offer.metadata),
            ..Exporter::default()
        })
        .collect();
    (merged, exporters)
}

/// When the export was made; a record that does not say it (Antrea's do not) is as old as itself.
fn exported_at(offer: &Offer) -> Option<Time> {
    offer.payload.exported_at.clone().or_else(|| offer.metadata.creation_timestamp.clone())
}

/// What a verdict is about, so that an exporter can tell it from one about an older record.
fn observed(metadata: &ObjectMeta) -> String {
    format!("{}/{}", metadata.uid.as_deref().unwrap_or_default(), metadata.generation.unwrap_or_default())
}

fn import_spec(payload: &ServicePayload) -> ServiceImportSpec {
    let spec = &payload.service_spec;
    let mut ports: Vec<_> = spec.ports.iter().flatten().collect();
    ports.sort_by_key(|port| (port.port, port.protocol.clone()));
    ServiceImportSpec {
        ports: ports
            .into_iter()
            .map(|port| ServicePort {
                name: port.name.clone().filter(|name| !name.is_empty()),
                protocol: Some(port.protocol.clone().unwrap_or_else(|| "TCP".into())),
                app_protocol: port.app_protocol.clone(),
                port: port.port,
            })
            .collect(),
        ip_families: vec!["IPv4".into()],
        ..ServiceImportSpec::default()
    }
}

/// What this controller knows and whom it asks. Cloning shares it.
#[derive(Clone)]
pub struct Merging {
    /// Everything known about each Service name.
    pub index: Shared<Index<ServiceName, ServiceEntry>>,
    /// Service names to look at.
    pub queue: Queue<ServiceName>,
    /// What the members' Leases say.
    pub vouching: Shared<Vouching<ServiceName>>,
    /// Writes to the Common Area.
    pub writer: Writer,
    /// Reads from it.
    pub client: Client,
    /// Its name.
    pub common_area: String,
}

impl Merging {
    /// Brings the ResourceImport of one Service name up to date.
    pub async fn reconcile(self, service: ServiceName) -> Result<Outcome, Error> {
        let Some((plan, have)) = self
            .index
            .with(|index| index.get(&service).map(|entry| (desired(&service, entry), entry.import.clone())))
        else {
            self.vouching.with(|vouching| vouching.keep(&service, &BTreeSet::new()));
            return Ok(Outcome::Done);
        };
        match plan {
            Plan::Hold { missing } => self.hold(&service, missing).await,
            Plan::Write { import, withdrawn } => {
                self.vouching.with(|vouching| vouching.keep(&service, &BTreeSet::new()));
                self.write(&service, have, import, withdrawn).await
            }
        }
    }

    async fn hold(&self, service: &ServiceName, missing: BTreeSet<String>) -> Result<Outcome, Error> {
        let writers = missing.iter().map(|cluster| name::member_lease(cluster)).collect();
        self.vouching.with(|vouching| vouching.keep(service, &writers));
        for cluster in missing {
            let writer = name::member_lease(&cluster);
            let missing = [name::service_export(&cluster, service)].into();
            if !self.vouching.with(|vouching| vouching.doubt(service, &writer, &missing)) {
                tracing::info!(%service, cluster, "its record vanished unsaid: keeping its part in the import");
                continue;
            }
            let records =
                Api::<PartialObjectMeta<ResourceExport>>::namespaced(self.client.clone(), &self.common_area);
            let record = name::service_export(&cluster, service);
            // Without a resourceVersion the API server answers from what is true now, not from a cache.
            let there =
                records.get_opt(&record).await.map_err(|error| Error::Unreachable(Box::new(error)))?;
            if there.is_none() {
                tracing::info!(%service, cluster, "its record is gone, and its member vouches for that");
                self.index.with(|index| {
                    index.note(service, |entry| {
                        // Unless it came back while we asked.
                        if !entry.offers.contains_key(&cluster) && !entry.unjudged.contains_key(&cluster) {
                            entry.confirmed_gone.insert(cluster);
                        }
                    })
                });
                return Ok(Outcome::Again(std::time::Duration::ZERO));
            }
        }
        Ok(Outcome::Done)
    }

    async fn write(
        &self,
        service: &ServiceName,
        have: Option<Import>,
        want: Option<ResourceImportSpec>,
        withdrawn: Vec<ObjectMeta>,
    ) -> Result<Outcome, Error> {
        let Some(spec) = want else {
            return self.delete(withdrawn).await;
        };
        let nobody = spec.exporters.as_ref().is_some_and(Vec::is_empty);
        let metadata = ObjectMeta {
            name: Some(name::service_import(service)),
            namespace: Some(self.common_area.clone()),
            ..ObjectMeta::default()
        };
        let want = Import { metadata, spec: Lenient(Ok(spec)) };
        let written = self.writer.put(have.as_ref(), &want).await?;
        if let Some(import) = written.clone() {
            self.queue.mark(self.index.with(|index| index.echo(import)));
        }
        self.delete(withdrawn).await?;
        if let Some(import) = written.or(have).filter(|_| nobody) {
            self.writer.delete(&import, true).await?;
            self.queue.mark(self.index.with(|index| index.deleted(&import)));
        }
        Ok(Outcome::Done)
    }

    /// Deletes withdrawn records, each only as it was when its withdrawal was merged: it may be an offer again by now.
    async fn delete(&self, withdrawn: Vec<ObjectMeta>) -> Result<Outcome, Error> {
        for metadata in withdrawn {
            let record = Judged { metadata, judgement: Judgement::Passed, conditions: vec![] };
            self.writer.delete(&record, true).await?;
            self.queue.mark(self.index.with(|index| index.deleted(&record)));
        }
        Ok(Outcome::Done)
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ServicePort as CorePort;
    use proptest::prelude::*;

    use super::*;

    fn service() -> ServiceName {
        ServiceName::new("shop", "web")
    }

    fn offer(cluster: &str, exported_at: i64, ports: &[i32]) -> Offer {
        let exported_at = Some(Time(jiff::Timestamp::from_second(exported_at).unwrap()));
        let mut payload = ServicePayload { exported_at, ..ServicePayload::default() };
        let port = |port: &i32| CorePort { port: *port, protocol: Some("TCP".into()), ..CorePort::default() };
        payload.service_spec.ports = Some(ports.iter().map(port).collect());
        let metadata = ObjectMeta {
            name: Some(name::service_export(cluster, &service())),
            uid: Some(format!("uid-{cluster}")),
            generation: Some(1),
            ..ObjectMeta::default()
        };
        Offer { metadata, payload }
    }

    fn entry(offers: &[(&str, i64, &[i32])]) -> ServiceEntry {
        let offers = offers.iter().map(|(c, at, ports)| ((*c).to_owned(), offer(c, *at, ports))).collect();
        ServiceEntry { offers, ..ServiceEntry::default() }
    }

    /// The entry after its plan has been carried out.
    fn carried_out(mut entry: ServiceEntry) -> ServiceEntry {
        if let Plan::Write { import: Some(spec), withdrawn } = desired(&service(), &entry) {
            entry.offers.retain(|_, offer| !withdrawn.contains(&offer.metadata));
            let nobody = spec.exporters.as_ref().is_some_and(Vec::is_empty);
            let import = Import { metadata: ObjectMeta::default(), spec: Lenient(Ok(spec)) };
            entry.import = (!nobody).then_some(import);
        }
        entry
    }

    fn spec(entry: &ServiceEntry) -> ResourceImportSpec {
        entry.import.as_ref().unwrap().spec.0.clone().unwrap()
    }

    fn exporters(spec: &ResourceImportSpec) -> Vec<&str> {
        spec.exporters.iter().flatten().map(|e| e.cluster_id.as_str()).collect()
    }

    #[test]
    fn the_oldest_export_gives_the_ports() {
        let merged =
            spec(&carried_out(entry(&[("west", 1, &[80]), ("east", 2, &[81]), ("north", 1, &[82])])));
        assert_eq!(exporters(&merged), ["north", "west", "east"], "oldest first, then by ID");
        assert_eq!(merged.service_import.unwrap().spec.ports[0].port, 82);
        assert_eq!(merged.exporters.unwrap()[0].observed, "uid-north/1");
    }

    #[test]
    fn a_withdrawal_shrinks_the_import_and_the_last_one_empties_it_before_it_goes() {
        let mut both = carried_out(entry(&[("east", 1, &[80]), ("west", 2, &[80])]));
        both.offers.get_mut("east").unwrap().payload.withdrawn = true;
        let mut one = carried_out(both);
        assert_eq!(exporters(&spec(&one)), ["west"]);
        assert!(!one.offers.contains_key("east"));
        one.offers.get_mut("west").unwrap().payload.withdrawn = true;
        let Plan::Write { import: Some(none), withdrawn } = desired(&service(), &one) else { panic!() };
        assert_eq!(none.exporters, Some(vec![]));
        assert!(none.service_import.is_some(), "Antrea dereferences it");
        assert_eq!(withdrawn.len(), 1);
    }

    #[test]
    fn what_vanishes_unsaid_holds_the_import_until_it_is_confirmed_or_back() {
        let both = carried_out(entry(&[("east", 1, &[80]), ("west", 2, &[80])]));
        let mut vanished = carried_out(entry(&[("east", 1, &[80]), ("west", 2, &[80])]));
        vanished.offers.remove("east");
        assert_eq!(desired(&service(), &vanished), Plan::Hold { missing: ["east".to_owned()].into() });
        vanished.offers.clear();
        assert!(matches!(desired(&service(), &vanished), Plan::Hold { .. }), "however much vanished");

        vanished.offers = entry(&[("east", 1, &[80]), ("west", 2, &[80])]).offers;
        assert_eq!(spec(&carried_out(vanished)), spec(&both), "back");

        let mut confirmed = both;
        confirmed.offers.remove("east");
        confirmed.confirmed_gone.insert("east".into());
        assert_eq!(exporters(&spec(&carried_out(confirmed))), ["west"]);
    }

    #[test]
    fn a_record_that_cannot_be_judged_keeps_its_part_and_holds_nobody_up() {
        let mut both = carried_out(entry(&[("east", 1, &[80]), ("west", 2, &[80])]));
        both.offers.remove("east");
        both.unjudged.insert("east".into(), "r".into());
        both.offers.insert("north".into(), offer("north", 3, &[80]));
        let merged = spec(&carried_out(both));
        assert_eq!(exporters(&merged), ["east", "west", "north"]);
        assert_eq!(merged.exporters.unwrap()[0].observed, "uid-east/1", "the verdict on what it said before");

        let mut younger = carried_out(entry(&[("east", 1, &[80]), ("west", 2, &[80])]));
        younger.offers.remove("west");
        younger.unjudged.insert("west".into(), "r".into());
        younger.offers.insert("east".into(), offer("east", 1, &[81]));
        assert_eq!(spec(&carried_out(younger)).service_import.unwrap().spec.ports[0].port, 81);

        let mut alone = entry(&[]);
        alone.unjudged.insert("east".into(), "r".into());
        assert_eq!(
            desired(&service(), &alone),
            Plan::Write { import: None, withdrawn: vec![] },
            "never had a part"
        );
    }

    #[test]
    fn an_import_that_names_nobody_is_not_emptied_for_lack_of_records() {
        let mut foreign = carried_out(entry(&[("east", 1, &[80])]));
        let mut spec = spec(&foreign);
        spec.exporters = None;
        foreign.import = Some(Import { metadata: ObjectMeta::default(), spec: Lenient(Ok(spec)) });
        foreign.offers.clear();
        assert!(matches!(desired(&service(), &foreign), Plan::Hold { .. }));
    }

    /// Offers of different clusters, of a few ages so that ties come up.
    fn offers() -> impl Strategy<Value = Vec<(String, Offer)>> {
        let one = (0..3i64, prop::collection::btree_set(1..5i32, 1..4), any::<bool>());
        prop::collection::btree_map("[a-f]", one, 0..6).prop_map(|clusters| {
            let made = clusters.into_iter().map(|(cluster, (at, ports, withdrawn))| {
                let ports: Vec<_> = ports.into_iter().collect();
                let mut offer = offer(&cluster, at, &ports);
                offer.payload.withdrawn = withdrawn;
                (cluster, offer)
            });
            made.collect()
        })
    }

    proptest! {
        #[test]
        fn merging_does_not_depend_on_order(
            (sorted, shuffled) in offers().prop_flat_map(|sorted| (Just(sorted.clone()), Just(sorted).prop_shuffle()))
        ) {
            let merged = |offers: &[(String, Offer)]| merge(offers.iter().map(|(c, o)| (c.as_str(), o)).collect());
            prop_assert_eq!(merged(&sorted), merged(&shuffled));
        }

        #[test]
        fn a_second_pass_wants_what_is_there(offers in offers()) {
            let entry = ServiceEntry { offers: offers.into_iter().collect(), ..ServiceEntry::default() };
            let settled = carried_out(entry);
            if let Some(import) = &settled.import {
                let written = Plan::Write { import: Some(import.spec.0.clone().unwrap()), withdrawn: vec![] };
                prop_assert_eq!(desired(&service(), &settled), written);
            }
        }
    }
}
