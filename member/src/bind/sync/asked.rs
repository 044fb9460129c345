//! What API servers are asked before a copy is deleted, or left: what watches told may be late, and a copy does not come back.

use api::{
    bind::{
        binding::APIServiceBinding,
        label::FINALIZER,
        mapping::{Mapping, Place, Strategy},
    },
    view::Meta,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::APIResource;
use kit::write::Error;
use kube::{Api, Resource, api::ApiResource, core::ObjectMeta};

use super::{
    Bound, Sync,
    copy::{Whose, is_left, is_offered, whose},
    entry::{At, Here, There},
};
use crate::bind::{holder, policy::leaves_copies};

impl Sync {
    /// Whether the copy of the object at `place` may go, which is `here`, or not here any more.
    ///
    /// # Errors
    /// [`Error::Stale`] where what is known is late: it is to be decided again.
    pub(super) async fn may_go(&self, place: &Place, here: Option<&Here>) -> Result<(), Error> {
        holder::ensure(&self.contract).await?;
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

    /// Takes the finalizer off an object of an API that the provider does not serve any more: nobody can say what became of its copy. Where
    /// it serves another version, the copy goes by that one before.
    ///
    /// # Errors
    /// [`Error::Stale`] where it serves the API, or the copy is still there.
    pub(super) async fn let_go(&self, place: &Place, here: &Here) -> Result<(), Error> {
        let served = self.versions().await?;
        if served.contains(&self.bound.resource.version) {
            return Err(Error::Stale);
        }
        match served.first() {
            Some(version) if !self.bound.orphan => self.delete_by(version, place, here).await?,
            Some(_) => {}
            None => self.say_copies_may_stay().await?,
        }
        self.here.release(here, &[FINALIZER]).await
    }

    /// The versions in which the provider serves the API.
    async fn versions(&self) -> Result<Vec<String>, Error> {
        let client = self.contract.client();
        let groups = client.list_api_groups().await?.groups.into_iter();
        let mut served = Vec::new();
        let ours = std::iter::once(self.bound.resource.version.clone());
        let all = groups.filter(|group| group.name == self.bound.resource.group);
        for version in ours.chain(all.flat_map(|group| group.versions).map(|version| version.version)) {
            let named = in_version(&self.bound.resource, &version).api_version;
            match client.list_api_group_resources(&named).await {
                Ok(apis) if is_served(&apis.resources, &self.bound) => served.push(version),
                Ok(_) => {}
                Err(kube::Error::Api(status)) if status.code == 404 => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(served)
    }

    /// Deletes the copy by another version than the one that is kept in step, of which no watch tells.
    ///
    /// # Errors
    /// [`Error::Stale`] until it is gone.
    async fn delete_by(&self, version: &str, place: &Place, here: &Here) -> Result<(), Error> {
        let assigned = place.namespace.as_deref().and_then(|namespace| self.contract.assigned(namespace));
        let cluster_namespace = &self.contract.cluster_namespace.name;
        let mapping = Mapping { strategy: self.bound.strategy, cluster_namespace };
        let Ok(target) = mapping.there(place, |_| assigned.as_deref()) else { return Ok(()) };
        let metadata =
            ObjectMeta { name: Some(target.name), namespace: target.namespace, ..ObjectMeta::default() };
        let at = There { metadata, content: Default::default(), error: None, side: At::of(place) };
        let by = self.contract.writer_of_copies().of(in_version(&self.bound.resource, version));
        match by.read(&at).await {
            Err(Error::Gone) => Ok(()),
            Err(error) => Err(error),
            Ok(there) if !is_ours_to_delete(&there, here, cluster_namespace, &self.bound.binding_uid) => {
                Ok(())
            }
            Ok(there) => {
                if there.metadata.deletion_timestamp.is_none() {
                    self.may_go(place, Some(here)).await?;
                    by.delete(&there, false).await?;
                }
                Err(Error::Stale)
            }
        }
    }

    async fn say_copies_may_stay(&self) -> Result<(), Error> {
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

fn in_version(api: &ApiResource, version: &str) -> ApiResource {
    let api_version = format!("{}/{version}", api.group);
    ApiResource { version: version.to_owned(), api_version, ..api.clone() }
}

fn is_ours_to_delete(there: &There, here: &Here, cluster_namespace: &str, binding_uid: &str) -> bool {
    let is_ours = whose(there, Some(here), cluster_namespace) == Whose::Ours;
    is_ours && !is_offered(there) && !is_left(there, Some(here), binding_uid)
}

/// Whether the provider serves the API among these, where copies are looked for: made anew, it may have another scope.
fn is_served(served: &[APIResource], bound: &Bound) -> bool {
    let in_namespaces = matches!(bound.strategy, Strategy::Namespaced | Strategy::Converted);
    served.iter().any(|api| api.name == bound.resource.plural && api.namespaced == in_namespaces)
}

#[cfg(test)]
mod tests {
    use api::bind::label::{ADOPT, BINDING_UID, CLUSTER_NAMESPACE};
    use serde_json::json;

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

    #[test]
    fn by_another_version_only_our_own_copy_is_deleted() {
        let here: Here = serde_json::from_value(json!({"metadata": {"name": "foo", "uid": "u1"}})).unwrap();
        let of = |annotations: serde_json::Value| {
            let there = json!({"metadata": {"name": "foo", "annotations": annotations}});
            is_ours_to_delete(&serde_json::from_value(there).unwrap(), &here, "ours", "b1")
        };
        assert!(of(json!({CLUSTER_NAMESPACE: "ours"})));
        assert!(!of(json!({CLUSTER_NAMESPACE: "ours", ADOPT: "true"})), "it was there before");
        assert!(!of(json!({CLUSTER_NAMESPACE: "anothers"})));
        assert!(!of(json!({})));
        assert!(!of(json!({CLUSTER_NAMESPACE: "ours", BINDING_UID: "b0"})), "another binding left it");
        let v2 = in_version(&fixture::bound().resource, "v2");
        assert_eq!((v2.api_version.as_str(), v2.version.as_str()), ("provider.example.com/v2", "v2"));
    }
}
