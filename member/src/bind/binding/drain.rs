//! The end of a binding: its objects go, then APIServiceNamespaces that nobody else needs, then its CRDs, then the binding.

use std::{collections::BTreeSet, time::Duration};

use api::bind::{binding::APIServiceBinding, export::APIServiceNamespace};
use kit::{queue::Outcome, write::Error};
use kube::{Api, ResourceExt, api::ListParams};

use super::{Bindings, FINALIZER, report};
use crate::bind::{
    contract::Contract,
    crd::is_of,
    local::Crd,
    sync::{Bound, Here},
};

/// How soon it is looked again what is left.
const AGAIN: Duration = Duration::from_secs(1);
/// Objects that are read at once.
const PAGE: u32 = 500;

impl Bindings {
    /// A pass of a binding that goes.
    pub(super) async fn end(
        &self,
        binding: &APIServiceBinding,
        contract: &Contract,
    ) -> Result<Outcome, Error> {
        if !binding.finalizers().iter().any(|held| held == FINALIZER) {
            return Ok(Outcome::Done);
        }
        let name = binding.name_any();
        let crds: Vec<_> = self
            .local
            .known
            .with(|known| known.crds.iter().filter(|crd| is_of(crd, binding)).cloned().collect());
        let bound = self.installed(binding, contract);
        let orphan = bound.values().any(|bound| bound.orphan);
        let mut left = 0;
        for bound in bound.values() {
            left += self.delete_objects(bound).await?;
        }
        if left > 0 {
            // Objects are in step until the last one is gone.
            self.keep_in_step(&name, bound);
            return Ok(Outcome::Requeue(AGAIN));
        }
        self.keep_in_step(&name, Default::default());
        // What still works on an object, and does not know yet that it is gone, would ask for its APIServiceNamespace again.
        if self.active.borrow().contains(&name) {
            return Ok(Outcome::Requeue(AGAIN));
        }
        if !orphan {
            self.delete_namespaces(&name, contract).await?;
        }
        if !crds.is_empty() {
            for crd in crds.iter().filter(|crd| !crd.metadata_is_going()) {
                self.writer.delete::<Crd>(crd, false).await?;
            }
            return Ok(Outcome::Requeue(AGAIN));
        }
        // Nobody may use the credential any more after that.
        report::on_export(contract, &name, None).await?;
        self.writer.release(binding, &[FINALIZER]).await?;
        Ok(Outcome::Done)
    }

    /// Deletes the objects of an API; how many are left.
    async fn delete_objects(&self, bound: &Bound) -> Result<usize, Error> {
        let api = Api::<Here>::all_with(self.env.client.clone(), &bound.resource);
        let writer = self.writer.clone().of(bound.resource.clone());
        let objects = api.list(&ListParams::default().limit(PAGE)).await?.items;
        for object in objects.iter().filter(|object| object.metadata.deletion_timestamp.is_none()) {
            writer.delete(object, false).await?;
        }
        Ok(objects.len())
    }

    /// Those in which no other binding of the contract can have objects, whatever credential that one uses.
    async fn delete_namespaces(&self, ending: &str, contract: &Contract) -> Result<(), Error> {
        let exports = contract.known.with(|known| known.exports.iter().map(ResourceExt::name_any).collect());
        let others: BTreeSet<_> =
            self.local.bindings_of(&self.secret).into_iter().chain(self.local.bound(exports)).collect();
        if others.iter().any(|other| other != ending) {
            return Ok(());
        }
        let all: Vec<APIServiceNamespace> =
            contract.known.with(|known| known.namespaces.iter().cloned().collect());
        let ours = all.iter().filter(|namespace| !Contract::is_providers(namespace));
        for namespace in ours.filter(|namespace| namespace.metadata.deletion_timestamp.is_none()) {
            contract.writer.delete(namespace, false).await?;
        }
        Ok(())
    }
}
