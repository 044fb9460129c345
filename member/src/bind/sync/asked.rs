//! What API servers are asked before a copy is deleted, or left: what watches told may be late, and a copy does not come back.

use api::{
    bind::{
        binding::APIServiceBinding,
        label::FINALIZER,
        mapping::{Place, Strategy},
    },
    view::Meta,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::APIResource;
use kit::write::Error;
use kube::{Api, Resource};

use super::{Bound, Sync, entry::Here};
use crate::bind::policy::leaves_copies;

impl Sync {
    /// Whether the copy of the object at `place` may go, which is `here`, or not here any more.
    ///
    /// # Errors
    /// [`Error::Stale`] where what is known is late: it is to be decided again.
    pub(super) async fn may_go(&self, place: &Place, here: Option<&Here>) -> Result<(), Error> {
        let client = self.contract.env.client.clone();
        if here.is_none() {
            let objects = match &place.namespace {
                Some(namespace) => {
                    Api::<Meta<Here>>::namespaced_with(client.clone(), namespace, &self.bound.resource)
                }
                None => Api::all_with(client.clone(), &self.bound.resource),
            };
            if !self.absence.is_certain(&objects, &place.name).await? {
                return Err(Error::Stale);
            }
        }
        let binding = Api::<Meta<APIServiceBinding>>::all(client).get_opt(&self.bound.binding).await?;
        match binding {
            Some(binding) if !leaves_copies(&binding) => Ok(()),
            // That they are to stay was said a moment ago; without a binding nobody says anything.
            _ => Err(Error::Stale),
        }
    }

    /// Takes the finalizer off an object of an API that the provider does not serve any more: nobody can say what became of its copy.
    ///
    /// # Errors
    /// [`Error::Stale`] where it serves the API.
    pub(super) async fn let_go(&self, here: &Here) -> Result<(), Error> {
        let client = self.contract.client();
        let served = match client.list_api_group_resources(&self.bound.resource.api_version).await {
            Ok(served) => served.resources,
            Err(kube::Error::Api(status)) if status.code == 404 => Vec::new(),
            Err(error) => return Err(error.into()),
        };
        if is_served(&served, &self.bound) {
            return Err(Error::Stale);
        }
        self.here.release(here, &[FINALIZER]).await?;
        let bindings = Api::<Meta<APIServiceBinding>>::all(self.contract.env.client.clone());
        if let Some(binding) = bindings.get_opt(&self.bound.binding).await? {
            let message = format!(
                "the provider does not serve {} any more: objects do not wait for their copies, which may stay there",
                self.api
            );
            self.contract.env.events.warn(binding.object_ref(&()), "Bind", "CopiesMayStay", &message);
        }
        Ok(())
    }
}

/// Whether the provider serves the API among these, where copies are looked for: made anew, it may have another scope.
fn is_served(served: &[APIResource], bound: &Bound) -> bool {
    let in_namespaces = matches!(bound.strategy, Strategy::Namespaced | Strategy::Converted);
    served.iter().any(|api| api.name == bound.resource.plural && api.namespaced == in_namespaces)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bind::fixture;

    #[test]
    fn x8_an_api_is_served_where_its_copies_would_be() {
        let api =
            |name: &str, namespaced| APIResource { name: name.into(), namespaced, ..APIResource::default() };
        let bound = |strategy| Bound { strategy, ..fixture::bound() };
        let is_served = |served: &[APIResource], strategy| is_served(served, &bound(strategy));
        assert!(!is_served(&[], Strategy::Namespaced));
        assert!(!is_served(&[api("mangodbs/status", true)], Strategy::Namespaced));
        assert!(is_served(&[api("mangodbs", true)], Strategy::Namespaced));
        assert!(is_served(&[api("mangodbs", true)], Strategy::Converted));
        assert!(!is_served(&[api("mangodbs", true)], Strategy::Prefixed), "of another scope now");
        assert!(is_served(&[api("mangodbs", false)], Strategy::Shared));
    }
}
