//! Placing the Service of an import: made, mended, or made anew where an API server does not change what is there.

use std::time::Duration;

use api::ServiceName;
use kit::write::Error;
use kube::ResourceExt;

use super::{Importing, object::derived, plan::DesiredImport};
use crate::service::index::{
    entry::ServiceEntry,
    known::Known,
    view::{Derived, Service, is_made},
};

/// Pauses between attempts to get the address of a lost Service back, in milliseconds.
const ADDRESS_RELEASE: [u64; 6] = [50, 100, 200, 400, 800, 1600];

impl Importing {
    /// Makes or mends the Service; one that somebody copied and that does not fit stays as it is. One that was lost gets the addresses noted in the import back, if they are still free.
    pub(super) async fn put_service(&self, known: &Known, desired: &DesiredImport) -> Result<Service, Error> {
        let (service, derived_there) = (&known.service, known.entry.derived.as_deref());
        let there = derived_there.filter(|there| desired.fits(there));
        if let (Some(unfit), None) = (derived_there, there) {
            if !is_made(unfit) {
                return Err(Error::NotOurs { kind: "Service".into(), name: unfit.name_any() });
            }
            let (families, is_headless) = (&desired.families, desired.is_headless());
            tracing::info!(%service, ?families, is_headless, "deleting and creating the imported Service again");
            self.delete(&Derived::from(unfit.clone())).await?;
        }
        let want = derived(known, desired);
        let mut written = match there {
            None if want.spec.addresses().next().is_some() => {
                let is_held = desired.returning.as_ref().is_some_and(|returning| !returning.is_fresh);
                self.place_with_address(service, &want, is_held).await
            }
            there => self.place_service(there, &want).await,
        };
        if matches!(&written, Err(Error::Refused(why)) if why.contains("trafficDistribution")) {
            // An older API server does not know the value. The hints in the slices do its work, and the ServiceImport has it.
            let mut without = want.clone();
            without.spec.traffic_distribution = None;
            written = self.place_service(there, &without).await;
            if written.is_ok() {
                self.writer.suffices(&Derived::from(without));
            }
        }
        Ok(written?.or_else(|| there.cloned()).unwrap_or(want))
    }

    /// Creates the Service with the addresses it says, or with others if it cannot have them. If they were released long ago (`is_held`),
    /// a refusal means that somebody else has them.
    async fn place_with_address(
        &self,
        service: &ServiceName,
        want: &Service,
        is_held: bool,
    ) -> Result<Option<Service>, Error> {
        let mut written = self.place_service(None, want).await;
        // The API server releases the address of a deleted Service a moment after the Service is gone.
        for wait in ADDRESS_RELEASE.into_iter().filter(|_| !is_held) {
            let Err(Error::Refused(_)) = &written else { break };
            tokio::time::sleep(Duration::from_millis(wait)).await;
            written = self.place_service(None, want).await;
        }
        if let Err(Error::Refused(why)) = &written {
            tracing::warn!(%service, why, "the imported Service cannot get its old address again");
            let mut any = want.clone();
            (any.spec.cluster_ip, any.spec.cluster_ips) = (None, vec![]);
            written = self.place_service(None, &any).await;
        }
        written
    }

    /// Writes the Service. If somebody created an exact copy in its place, the member becomes an owner of the copy: otherwise the member
    /// could not delete it when the import ends.
    async fn place_service(&self, have: Option<&Service>, want: &Service) -> Result<Option<Service>, Error> {
        let have = have.cloned().map(Derived::from);
        let want = Derived::from(want.clone());
        let written = self.knowledge.put_imported(&self.writer, have.as_ref(), &want).await?;
        let copy = written.as_ref().or(have.as_ref()).filter(|there| !is_made(*there));
        let placed = match copy {
            Some(copy) => Some(self.knowledge.own_imported(&self.writer, copy).await?),
            None => written,
        };
        Ok(placed.map(|derived| derived.service))
    }

    /// Takes a Service of ours away.
    pub(super) async fn remove_service(&self, entry: &ServiceEntry) -> Result<(), Error> {
        match entry.own_derived() {
            Some(derived) => self.delete(&Derived::from(derived.clone())).await,
            None => Ok(()),
        }
    }
}
