//! Objects that do not wait for their copies: nobody can say any more where those are, or they are to stay.

use std::time::Duration;

use api::{
    bind::{binding::APIServiceBinding, export::APIServiceExport, label},
    view::{Meta, Tolerant},
};
use kit::{queue::Outcome, write::Error};
use kube::{Api, Resource, ResourceExt, api::ApiResource};

use super::{Bindings, is_going};
use crate::bind::{absence::is_gone, contract::Contract, crd::is_of, local::Crd, sync::Here};

/// How soon it is looked again what somebody deleted of an API that is not exported: nobody watches its objects.
const AGAIN: Duration = Duration::from_secs(5);

impl Bindings {
    /// The CRDs of the binding whose APIs its export does not have, as far as that is known; all of them where there is no export.
    pub(in crate::bind::binding) fn unexported(
        &self,
        binding: &APIServiceBinding,
        contract: &Contract,
    ) -> Vec<Crd> {
        let exports = |api: &str| {
            contract
                .known
                .with(|known| known.exports.get(&binding.name_any()).is_some_and(|export| has(export, api)))
        };
        self.crds(|crd| is_of(crd, binding) && !exports(&crd.name_any()))
    }

    /// The provider does not export these APIs any more, and with that went where the copies are, and our rights on them: the objects are
    /// deleted, and do not wait for their copies. How many are left.
    pub(super) async fn let_go(
        &self,
        binding: &APIServiceBinding,
        contract: &Contract,
        crds: &[Crd],
    ) -> Result<usize, Error> {
        if crds.is_empty() {
            return Ok(0);
        }
        self.are_unexported(binding, contract, crds).await?;
        let left = self.drop_objects(crds).await?;
        if left > 0 {
            self.say_copies_may_stay(binding);
        }
        Ok(left)
    }

    /// Deletes the objects of these CRDs, which do not wait for their copies. How many are left.
    pub(super) async fn drop_objects(&self, crds: &[Crd]) -> Result<usize, Error> {
        // One that is refused keeps no other.
        let (mut left, mut done) = (0, Ok(()));
        for resource in served(crds) {
            let writer = self.writer.clone().of(resource.clone());
            let objects = self.objects(&resource).await?;
            for object in &objects {
                let ended = match is_going(object) {
                    false => writer.delete(object, false).await,
                    true if is_held(object) => writer.release(object, &[label::FINALIZER]).await,
                    true => Ok(()),
                };
                done = done.and(ended);
            }
            left += objects.len();
        }
        done.map(|()| left)
    }

    /// The same of a binding that stays, for the objects that somebody deletes meanwhile.
    pub(in crate::bind::binding) async fn let_deleted_go(
        &self,
        binding: &APIServiceBinding,
        contract: &Contract,
    ) -> Result<Outcome, Error> {
        let mut crds = self.unexported(binding, contract);
        if crds.is_empty() {
            return Ok(Outcome::Done);
        }
        crds.retain(|crd| !self.active.borrow().contains_key(&crd.name_any()));
        if !crds.is_empty() {
            self.are_unexported(binding, contract, &crds).await?;
            let mut released = false;
            for resource in served(&crds) {
                let objects = self.objects(&resource).await?;
                let deleted = objects.iter().filter(|object| is_going(*object));
                released |= self.release_all(&resource, deleted).await?;
            }
            if released {
                self.say_copies_may_stay(binding);
            }
        }
        Ok(Outcome::Requeue(AGAIN))
    }

    /// The objects of these CRDs stay, and belong to no binding any more.
    pub(super) async fn free(&self, crds: &[Crd]) -> Result<(), Error> {
        for resource in served(crds) {
            let objects = self.objects(&resource).await?;
            self.release_all(&resource, objects.iter()).await?;
        }
        Ok(())
    }

    /// Whether any of them was held.
    async fn release_all(
        &self,
        resource: &ApiResource,
        objects: impl Iterator<Item = &Meta<Here>>,
    ) -> Result<bool, Error> {
        let writer = self.writer.clone().of(resource.clone());
        let (mut any, mut done) = (false, Ok(()));
        for object in objects.filter(|object| is_held(*object)) {
            done = done.and(writer.release(object, &[label::FINALIZER]).await);
            any = true;
        }
        done.map(|()| any)
    }

    /// # Errors
    /// [`Error::Stale`] where the provider exports one of them.
    async fn are_unexported(
        &self,
        binding: &APIServiceBinding,
        contract: &Contract,
        crds: &[Crd],
    ) -> Result<(), Error> {
        let (cns, name) = (&contract.cluster_namespace.name, binding.name_any());
        if is_gone(&Api::<Meta<APIServiceExport>>::namespaced(contract.client(), cns), &name).await? {
            return Ok(());
        }
        let there = Api::<Tolerant<APIServiceExport>>::namespaced(contract.client(), cns).get(&name).await?;
        match there.object {
            Ok(export) if !crds.iter().any(|crd| has(&export, &crd.name_any())) => Ok(()),
            _ => Err(Error::Stale),
        }
    }

    fn say_copies_may_stay(&self, binding: &APIServiceBinding) {
        let message = "the provider does not export the API any more: objects do not wait for their copies, which may stay there";
        tracing::warn!(binding = binding.name_any(), "{message}");
        self.env.events.warn(binding.object_ref(&()), "Bind", "CopiesMayStay", message);
    }
}

fn has(export: &APIServiceExport, api: &str) -> bool {
    export.spec.resources.iter().any(|resource| resource.name() == api)
}

fn served(crds: &[Crd]) -> impl Iterator<Item = ApiResource> {
    crds.iter().filter_map(|crd| Some(crd.served()?.resource))
}

fn is_held<P: Resource>(object: &P) -> bool {
    object.finalizers().iter().any(|held| held == label::FINALIZER)
}
