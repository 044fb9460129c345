//! The end of a binding: its objects go, then APIServiceNamespaces that nobody else needs, then its CRDs, then the binding.
//!
//! Nobody waits for what cannot come: a BoundSchema is not needed for it, and where the provider has no export any more its copies are not
//! ours to delete. Whether copies stay is asked of the binding as it is now.

mod namespaces;

use std::time::Duration;

use api::{
    bind::{binding::APIServiceBinding, condition::Verdict, export::APIServiceExport, label},
    view::Meta,
};
use kit::{queue::Outcome, write::Error};
use kube::{Api, Resource, ResourceExt, api::ApiResource};

use super::{Bindings, FINALIZER, report, verdict::synced};
use crate::bind::{
    absence::is_gone, contract::Contract, crd::is_of, local::Crd, policy::leaves_copies, sync::Here,
};

/// How soon it is looked again what is left.
const AGAIN: Duration = Duration::from_secs(1);

impl Bindings {
    /// A pass of a binding that goes.
    pub(super) async fn end(
        &self,
        binding: &APIServiceBinding,
        contract: &Contract,
    ) -> Result<Outcome, Error> {
        let name = binding.name_any();
        let bindings = Api::<Meta<APIServiceBinding>>::all(self.env.client.clone());
        let now = bindings.get_opt(&name).await?.filter(|now| now.uid() == binding.uid());
        let Some(now) = now.filter(|now| now.finalizers().iter().any(|held| held == FINALIZER)) else {
            return Ok(Outcome::Done);
        };
        let orphan = leaves_copies(&now);
        let crds: Vec<_> = self
            .local
            .known
            .with(|known| known.crds.iter().filter(|crd| is_of(crd, binding)).cloned().collect());
        let left = match contract.known.with(|known| known.exports.get(&name).is_some()) {
            true => self.delete_in_step(binding, contract, orphan).await?,
            false if !crds.is_empty() => self.let_go(binding, contract, &crds).await?,
            false => 0,
        };
        if left > 0 {
            // Also what keeps them is said.
            let verdicts = vec![Verdict::new("Synced", synced(&self.unsynced, &name))];
            report::on_binding(self, binding, Some(contract), verdicts).await?;
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
        self.writer.release(&now, &[FINALIZER]).await?;
        Ok(Outcome::Done)
    }

    /// Deletes the objects, whose copies go with them unless they are to stay; how many are left.
    async fn delete_in_step(
        &self,
        binding: &APIServiceBinding,
        contract: &Contract,
        orphan: bool,
    ) -> Result<usize, Error> {
        let bound = self.installed(binding, contract, orphan);
        let mut left = 0;
        for bound in bound.values() {
            let writer = self.writer.clone().of(bound.resource.clone());
            let objects = self.objects(&bound.resource).await?;
            for object in objects.iter().filter(|object| !is_going(*object)) {
                writer.delete(object, false).await?;
            }
            left += objects.len();
        }
        // Objects are in step until the last one is gone; to begin again after that would never end.
        if left > 0 {
            self.keep_in_step(&binding.name_any(), bound);
        }
        Ok(left)
    }

    /// The provider has no export of that name any more, and with it went where the copies are, and our rights on them: the objects do not
    /// wait for them. How many are left.
    async fn let_go(
        &self,
        binding: &APIServiceBinding,
        contract: &Contract,
        crds: &[Crd],
    ) -> Result<usize, Error> {
        let exports =
            Api::<Meta<APIServiceExport>>::namespaced(contract.client(), &contract.cluster_namespace.name);
        if !is_gone(&exports, &binding.name_any()).await? {
            return Err(Error::Stale);
        }
        self.keep_in_step(&binding.name_any(), Default::default());
        let mut left = 0;
        for resource in crds.iter().filter_map(|crd| Some(crd.served()?.resource)) {
            let writer = self.writer.clone().of(resource.clone());
            let objects = self.objects(&resource).await?;
            for object in &objects {
                let is_held = object.finalizers().iter().any(|held| held == label::FINALIZER);
                match is_going(object) {
                    false => writer.delete(object, false).await?,
                    true if is_held => writer.release(object, &[label::FINALIZER]).await?,
                    true => {}
                }
            }
            left += objects.len();
        }
        if left > 0 {
            let message = "the provider has no APIServiceExport of this name any more: objects do not wait for their copies, which may stay there";
            tracing::warn!(binding = binding.name_any(), "{message}");
            self.env.events.warn(binding.object_ref(&()), "Bind", "CopiesMayStay", message);
        }
        Ok(left)
    }

    /// The objects of an API.
    async fn objects(&self, resource: &ApiResource) -> Result<Vec<Meta<Here>>, Error> {
        let api = Api::<Meta<Here>>::all_with(self.env.client.clone(), resource);
        Ok(kit::list::metadata(&api, |object| object).await?)
    }
}

fn is_going<P: Resource>(object: &P) -> bool {
    object.meta().deletion_timestamp.is_some()
}
