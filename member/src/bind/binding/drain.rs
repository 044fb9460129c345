//! The end of a binding: its objects go, then APIServiceNamespaces that nobody else needs, then its CRDs, then the binding.
//!
//! Nobody waits for what cannot come: a BoundSchema is not needed for it, and of what the provider does not export any more copies are not
//! ours to delete ([`freed`]). Whether copies stay is asked of the binding as it is now. `--cascade=orphan` leaves all there is, in both
//! clusters.

mod alone;
mod freed;
mod namespaces;

pub(super) use self::namespaces::Unclear;

use std::time::Duration;

use api::{
    bind::{binding::APIServiceBinding, condition::Verdict},
    view::Meta,
};
use jiff::Timestamp;
use kit::{queue::Outcome, write::Error};
use kube::{
    Api, Resource, ResourceExt,
    api::{ApiResource, ListParams},
};

use super::{
    Bindings, report,
    verdict::{not_yet, synced},
};
use crate::bind::{
    contract::Contract,
    crd::{is_left_behind, is_of},
    holder,
    local::{Crd, FINALIZER},
    policy::leaves_copies,
    sync::Here,
};

/// Finalizer of the garbage collector, which takes the binding off the owners of its CRDs before it goes.
const ORPHANING: &str = "orphan";

/// Reason: the binding goes.
const DELETING: &str = "Deleting";

/// How soon it is looked again what is left.
const AGAIN: Duration = Duration::from_secs(1);

impl Bindings {
    /// A pass of a binding that goes. What it cannot do is said on the binding.
    pub(super) async fn end(
        &self,
        binding: &APIServiceBinding,
        contract: &Contract,
    ) -> Result<Outcome, Error> {
        let ended = self.drain(binding, contract).await;
        // What is overtaken by another write is done again at once.
        if let Err(error) = &ended
            && !matches!(error, Error::Stale)
        {
            self.waits(binding, contract, Some(error)).await?;
        }
        ended
    }

    async fn drain(&self, binding: &APIServiceBinding, contract: &Contract) -> Result<Outcome, Error> {
        let name = binding.name_any();
        let bindings = Api::<Meta<APIServiceBinding>>::all(self.env.client.clone());
        let now = bindings.get_opt(&name).await?.filter(|now| now.uid() == binding.uid());
        let Some(now) = now.filter(|now| now.finalizers().iter().any(|held| held == FINALIZER)) else {
            return Ok(Outcome::Done);
        };
        if now.finalizers().iter().any(|held| held == ORPHANING) {
            self.keep_in_step(&name, Default::default());
            return Ok(Outcome::Requeue(AGAIN));
        }
        // Before anything that may be refused, or take long.
        if !is_said(binding) && self.waits(binding, contract, None).await? {
            // The watch tells.
            return Ok(Outcome::Done);
        }
        let crds = self.crds(|crd| is_of(crd, binding));
        self.are_still_of(binding, &crds).await?;
        let left_behind = self.crds(|crd| is_left_behind(crd, binding));
        // The garbage collector takes the binding off all of them: where it is on one, somebody else took it off the others.
        let orphan = leaves_copies(&now) || crds.is_empty() && !left_behind.is_empty();
        let unexported = self.unexported(binding, contract);
        let left = self.delete_in_step(binding, contract, orphan).await?
            + self.let_go(binding, contract, &unexported).await?;
        if left > 0 {
            self.waits(binding, contract, None).await?;
            return Ok(Outcome::Requeue(AGAIN));
        }
        self.keep_in_step(&name, Default::default());
        // What still works on an object, and does not know yet that it is gone, would ask for its APIServiceNamespace again.
        if self.active.borrow().values().any(|binding| *binding == name) {
            return Ok(Outcome::Requeue(AGAIN));
        }
        if orphan {
            self.leave_namespaces(&[&*crds, &left_behind].concat(), contract).await?;
        } else if !self.are_namespaces_back(binding, contract).await? {
            self.waits(binding, contract, None).await?;
            return Ok(Outcome::Requeue(AGAIN));
        }
        self.free(&left_behind).await?;
        if !crds.is_empty() {
            let mut done = Ok(());
            for crd in crds.iter().filter(|crd| !crd.metadata_is_going()) {
                done = done.and(self.writer.delete::<Crd>(crd, false).await);
            }
            done?;
            self.waits(binding, contract, None).await?;
            return Ok(Outcome::Requeue(AGAIN));
        }
        // Nobody may use the credential any more after that.
        let untold = untold(&name, report::on_export(contract, &name, None).await)?;
        // Before the finalizer goes, since the Secret may go with the binding. What ends otherwise `provider` releases.
        let kept = match self.others(&name, contract).is_empty() {
            true => unreleased(holder::release(contract, Timestamp::now()).await)?,
            false => None,
        };
        for message in [untold, kept].into_iter().flatten() {
            self.env.events.warn(binding.object_ref(&()), "Bind", "ProviderNotTold", &message);
        }
        self.writer.release(&now, &[FINALIZER]).await?;
        self.unclear.forget(&name);
        Ok(Outcome::Done)
    }

    /// Says that the binding goes, and why it is still there: it is not ready any more. Also what keeps its objects is said. Whether our API
    /// server takes that: a status that it refuses keeps no binding.
    async fn waits(
        &self,
        binding: &APIServiceBinding,
        contract: &Contract,
        error: Option<&Error>,
    ) -> Result<bool, Error> {
        let deleting = not_yet(DELETING, deleting(error));
        let synced = synced(&self.unsynced, &binding.name_any());
        let verdicts = vec![Verdict::new("SchemaInSync", deleting), Verdict::new("Synced", synced)];
        match report::on_binding(self, binding, Some(contract), verdicts).await {
            Err(error) if error.refusal().is_some() => Ok(false),
            said => said.map(|()| true),
        }
    }

    /// Deletes the objects, whose copies go with them unless they are to stay; how many are left.
    async fn delete_in_step(
        &self,
        binding: &APIServiceBinding,
        contract: &Contract,
        orphan: bool,
    ) -> Result<usize, Error> {
        let bound = self.installed(binding, contract, orphan);
        // One that is refused keeps no other.
        let (mut left, mut done) = (0, Ok(()));
        for bound in bound.values() {
            let writer = self.writer.clone().of(bound.resource.clone());
            let objects = self.objects(&bound.resource).await?;
            for object in objects.iter().filter(|object| !is_going(*object)) {
                done = done.and(writer.delete(object, false).await);
            }
            left += objects.len();
        }
        // Objects are in step until the last one is gone; to begin again after that would never end.
        if left > 0 || bound.is_empty() {
            self.keep_in_step(&binding.name_any(), bound);
        }
        done.map(|()| left)
    }

    /// What the garbage collector has just taken off the binding does not go with it.
    ///
    /// # Errors
    /// [`Error::Stale`] where what is known of a CRD is late.
    async fn are_still_of(&self, binding: &APIServiceBinding, crds: &[Crd]) -> Result<(), Error> {
        let there = Api::<Crd>::all(self.env.client.clone());
        for crd in crds {
            match there.get_opt(&crd.name_any()).await? {
                Some(now) if !is_of(&now, binding) => return Err(Error::Stale),
                _ => {}
            }
        }
        Ok(())
    }

    pub(super) fn crds(&self, which: impl Fn(&Crd) -> bool) -> Vec<Crd> {
        self.local.known.with(|known| known.crds.iter().filter(|crd| which(crd)).cloned().collect())
    }

    /// The objects of an API.
    async fn objects(&self, resource: &ApiResource) -> Result<Vec<Meta<Here>>, Error> {
        let api = Api::<Meta<Here>>::all_with(self.env.client.clone(), resource);
        Ok(kit::list::all(&api, ListParams::default(), |object| object).await?)
    }
}

/// Whether it is said already that the binding goes.
fn is_said(binding: &APIServiceBinding) -> bool {
    let mut said = binding.status.iter().flat_map(|status| &status.conditions);
    said.any(|said| said.reason.as_deref() == Some(DELETING))
}

/// Why the provider was not told that nobody binds its export any more, if it refuses to be: what is only said to it keeps nobody.
fn untold(name: &str, told: Result<(), Error>) -> Result<Option<String>, Error> {
    match told {
        Err(Error::Refused(why)) => Ok(Some(format!(
            "the provider refuses to be told that APIServiceExport {name} is not bound any more, and keeps it: {why}"
        ))),
        told => told.map(|()| None),
    }
}

/// Why the provider still takes this cluster for the holder of the contract, if it refuses to be told otherwise: that keeps no binding either.
fn unreleased(released: Result<(), Error>) -> Result<Option<String>, Error> {
    match released.map_err(|error| (error.refusal(), error)) {
        Ok(()) => Ok(None),
        Err((Some(why), _)) => Ok(Some(format!(
            "the provider refuses to note that this cluster does not use the contract any more; another cluster needs --take-over: {why}"
        ))),
        Err((None, error)) => Err(error),
    }
}

/// Why a binding that goes is still there.
fn deleting(error: Option<&Error>) -> String {
    let mut message = "it is being deleted: its objects and CustomResourceDefinitions go first".to_owned();
    if let Some(error) = error {
        let rights = match error {
            Error::Refused(_) => "; where rights are missing, `freeport bind remove --force` does without",
            _ => "",
        };
        message.push_str(&format!("; that failed, and is tried again: {error}{rights}"));
    }
    message
}

fn is_going<P: Resource>(object: &P) -> bool {
    object.meta().deletion_timestamp.is_some()
}

#[cfg(test)]
mod tests {
    use api::label::MEMBER;
    use kit::write::Writer;
    use serde_json::json;
    use tokio::sync::watch;

    use super::*;
    use crate::{
        bind::{binding::Link, fixture, local::Local},
        feature::fixture::access,
    };

    #[tokio::test]
    async fn a_binding_whose_status_is_refused_goes_all_the_same() {
        let link = watch::Sender::new(Link::Connecting);
        let secret = json!({"namespace": "kube-bind", "name": "k", "key": "kubeconfig"});
        let binding =
            json!({"metadata": {"name": "mango", "uid": "b1"}, "spec": {"kubeconfigSecretRef": secret}});
        let binding = serde_json::from_value(binding).unwrap();
        for (code, is_told) in [(403, Some(false)), (503, None)] {
            let mut bindings = Bindings::new(&access().env, &Local::new(), "k", link.subscribe());
            let metrics = access().env.metrics;
            bindings.writer = Writer::new(fixture::refusing(code, "no"), MEMBER, "local", metrics);
            let waits = bindings.waits(&binding, &fixture::contract(), None).await;
            assert_eq!(waits.ok(), is_told, "{code}");
        }
    }

    #[test]
    fn what_keeps_a_binding_from_going_is_said() {
        assert!(!deleting(None).contains("failed"));
        let refused = deleting(Some(&Error::Refused("cannot list resource realms".into())));
        assert!(refused.contains("cannot list resource realms") && refused.contains("--force"), "{refused}");
    }

    #[test]
    fn a_provider_that_refuses_to_be_told_keeps_no_binding() {
        let refused = untold("mango", Err(Error::Refused("denied by policy".into()))).unwrap();
        assert!(refused.unwrap().contains("denied by policy"));
        assert_eq!(untold("mango", Ok(())).unwrap(), None);
        assert!(untold("mango", Err(Error::Stale)).is_err());
        let refused = unreleased(Err(Error::Refused("denied by policy".into()))).unwrap();
        assert!(refused.unwrap().contains("--take-over: denied by policy"));
        assert!(unreleased(Ok(())).unwrap().is_none() && unreleased(Err(Error::Stale)).is_err());
    }
}
