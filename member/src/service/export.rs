//! Exporting: watches ServiceExports, Services, EndpointSlices, and our own records in the Common Area; writes our records
//! there; deletes records of endpoints it has emptied before (Service records are withdrawn, and the leader deletes them). Safe
//! to run twice: the records are a function of the local objects, and only differences are sent.

mod offer;
mod slices;
mod vanished;

use std::time::Duration;

use api::{
    ServiceName,
    antrea::Members,
    family, label, name,
    resource_export::{
        ENDPOINT_SLICE, ENDPOINTS, EndpointsPayload, ResourceExportSpec, SERVICE, ServicePayload,
    },
    slice::SlicePayload,
    view::Lenient,
};
use kit::{
    events::Events,
    queue::Outcome,
    write::{Error, Writer},
};
use kube::{Client, Resource, api::ObjectMeta};

use self::vanished::still_exported;
pub use self::{
    offer::{Invalid, Offer, offer},
    slices::EndpointIp,
};
use super::{
    antrea,
    entry::{EXPORT, ServiceEntry, Unexported},
    knowledge::Knowledge,
    view::OwnRecord,
};
use crate::identity::Identity;

/// One step towards the records this cluster has to have.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Write it.
    Put {
        /// As the leader has it.
        have: Option<OwnRecord>,
        /// As it has to be.
        want: OwnRecord,
    },
    /// Empty it, then delete it: removal is said before it is done.
    Remove {
        /// As the leader has it.
        have: OwnRecord,
        /// What says that it is going.
        emptied: OwnRecord,
    },
    /// Delete it, which says it all: a finalizer keeps it until the leader has seen that.
    Delete {
        /// As the leader has it.
        have: OwnRecord,
    },
}

/// `for_antrea`: somebody reads all endpoints in one record.
fn desired(us: &Identity, service: &ServiceName, entry: &ServiceEntry, for_antrea: bool) -> Vec<Step> {
    let offer = offer(&us.cluster, service, entry).unwrap_or_default();
    let mut steps = Vec::new();
    // One with another name is of a time when Antrea's controllers ran here, and is not ours to mend.
    let named = |name: String| move |record: &OwnRecord| record.metadata.name.as_ref() == Some(&name);
    let have = entry.own_service.clone().filter(named(name::service_export(&us.cluster, service)));
    let payload = match (&offer, &have) {
        (Some(offer), _) => Some(offer.service.clone()),
        (None, Some(have)) => Some(withdrawn(have)),
        (None, None) => None,
    };
    if let Some(payload) = payload {
        let want = record(us, service, SERVICE, name::service_export(&us.cluster, service), |spec| {
            spec.service = Some(payload);
        });
        steps.push(Step::Put { have, want });
    }
    let all = offer.as_ref().filter(|_| for_antrea).map(|offer| antrea::all_endpoints(&offer.slices));
    let all_endpoints = |payload: EndpointsPayload| {
        record(us, service, ENDPOINTS, name::endpoints_export(&us.cluster, service), |spec| {
            spec.endpoints = Some(payload);
        })
    };
    let have = entry.own_endpoints.clone().filter(named(name::endpoints_export(&us.cluster, service)));
    match (all, have) {
        (Some(payload), have) => steps.push(Step::Put { have, want: all_endpoints(payload) }),
        (None, Some(have)) => {
            steps.push(Step::Remove { have, emptied: all_endpoints(EndpointsPayload::default()) });
        }
        (None, None) => {}
    }
    let slices = offer.map(|offer| offer.slices).unwrap_or_default();
    let slice = |name: &str, payload: SlicePayload| {
        record(us, service, ENDPOINT_SLICE, name.to_owned(), |spec| spec.endpoint_slice = Some(payload))
    };
    // First what is new: what goes may be what it stands for.
    for (name, payload) in &slices {
        let want = slice(name, payload.clone());
        steps.push(Step::Put { have: entry.own_slices.get(name).cloned(), want });
    }
    for (name, have) in entry.own_slices.iter().filter(|(name, _)| !slices.contains_key(*name)) {
        let had = have.spec.0.as_ref().ok().and_then(|spec| spec.endpoint_slice.as_ref());
        let address_type = had.map_or_else(|| family::IPV4.into(), |payload| payload.address_type.clone());
        let emptied = slice(name, SlicePayload { address_type, ..SlicePayload::default() });
        steps.push(Step::Remove { have: have.clone(), emptied });
    }
    steps
}

/// What we said last, taken back.
fn withdrawn(have: &OwnRecord) -> ServicePayload {
    let said = have.spec.0.as_ref().ok().and_then(|spec| spec.service.clone());
    ServicePayload { withdrawn: true, ..said.unwrap_or_default() }
}

/// A record of ours, with what `payload` puts into it.
pub fn record(
    us: &Identity,
    service: &ServiceName,
    kind: &str,
    name: String,
    payload: impl FnOnce(&mut ResourceExportSpec),
) -> OwnRecord {
    let mut spec = ResourceExportSpec {
        cluster_id: Some(us.cluster.clone()),
        namespace: Some(service.namespace.clone()),
        name: Some(service.name.clone()),
        kind: Some(kind.into()),
        ..ResourceExportSpec::default()
    };
    payload(&mut spec);
    let labels = [
        (label::SOURCE_CLUSTER_ID, us.cluster.as_str()),
        (label::SOURCE_NAMESPACE, &service.namespace),
        (label::SOURCE_NAME, &service.name),
        (label::SOURCE_KIND, kind),
    ];
    let metadata = ObjectMeta {
        name: Some(name),
        namespace: Some(us.common_area.clone()),
        labels: Some(labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into()),
        ..ObjectMeta::default()
    };
    OwnRecord { metadata, spec: Lenient(Ok(spec)), status: Lenient::default() }
}

/// Whether the record is about another Service: Antrea's names may be the same for two, and one has to go first.
fn is_anothers(there: &OwnRecord, want: &OwnRecord) -> bool {
    let of = |record: &OwnRecord| {
        record.spec.0.as_ref().ok().map(|spec| (spec.namespace.clone(), spec.name.clone()))
    };
    of(there).is_some_and(|there| Some(there) != of(want))
}

/// What this controller knows and whom it asks. Cloning shares it.
#[derive(Clone)]
pub struct Exporting {
    /// Who we are.
    pub us: Identity,
    /// Everything this member knows.
    pub knowledge: Knowledge,
    /// Members that run Antrea's controllers.
    pub antrea: Members,
    /// Reads from this cluster.
    pub local: Client,
    /// Writes to the Common Area.
    pub writer: Writer,
    /// Where to leave Events.
    pub events: Events,
}

impl Exporting {
    /// Brings our records of one Service name up to date.
    pub async fn reconcile(self, service: ServiceName) -> Result<Outcome, Error> {
        let Some(entry) = self.knowledge.entry(&service) else {
            return Ok(Outcome::Done);
        };
        if entry.unexported.is_none() && self.look_into(&service, &entry).await? {
            return Ok(Outcome::Requeue(Duration::ZERO));
        }
        let steps = match entry.antrea_leads {
            true => antrea::leader::desired(&self.us, &service, &entry),
            false => desired(&self.us, &service, &entry, !self.antrea.is_empty()),
        };
        // One record that is not taken, or not whole, must not keep the others out.
        let mut failed = None;
        for step in steps {
            if let Err(error) = self.carry_out(step).await {
                failed.get_or_insert(error);
            }
        }
        failed.map_or(Ok(Outcome::Done), Err)
    }

    async fn carry_out(&self, step: Step) -> Result<(), Error> {
        match step {
            Step::Put { have, want } => drop(self.put(have.as_ref(), &want).await?),
            Step::Remove { have, emptied } => {
                let emptied = self.put(Some(&have), &emptied).await?;
                let emptied = emptied.unwrap_or(have);
                self.knowledge.services.delete(&self.writer, EXPORT, &emptied, true).await?;
            }
            Step::Delete { have } => self.writer.delete(&have, false).await?,
        }
        Ok(())
    }

    /// Finds out why a ServiceExport is gone, if one is.
    async fn look_into(&self, service: &ServiceName, entry: &ServiceEntry) -> Result<bool, Error> {
        let Some(said) = still_exported(&self.us.cluster, entry) else { return Ok(false) };
        let why = vanished::why(&self.local, said.exported_at.as_ref()).await?;
        if let (Unexported::Vanished, Some(local)) = (why, &entry.service) {
            let message = "its ServiceExport vanished along with the CRD of ServiceExports, which nobody may have meant: it stays \
                           exported; create the ServiceExport again, and delete it if it shall end";
            tracing::warn!(%service, message);
            self.events.warn(local.object_ref(&()), "Export", "ServiceExportVanished", message);
        }
        self.knowledge
            .services
            .note(service, |entry| entry.unexported = entry.export.is_none().then_some(why));
        Ok(true)
    }

    async fn put(&self, have: Option<&OwnRecord>, want: &OwnRecord) -> Result<Option<OwnRecord>, Error> {
        // A patch cannot take out what we cannot read: such a record of ours is made anew.
        let have = match have.filter(|have| have.spec.0.is_err()) {
            Some(broken) => {
                self.knowledge.services.delete(&self.writer, EXPORT, broken, false).await?;
                None
            }
            None => have,
        };
        match (have, self.knowledge.put_record(&self.writer, have, want).await) {
            // It is there, but not labelled as ours, by which we would know of it: somebody has relabelled it.
            (None, Err(Error::Stale)) => {
                let relabelled = self.writer.read(want).await?;
                if is_anothers(&relabelled, want) {
                    return Err(Error::Stale);
                }
                self.knowledge.put_record(&self.writer, Some(&relabelled), want).await
            }
            (_, written) => written,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
