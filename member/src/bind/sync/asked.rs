//! What our API server is asked before a copy is deleted: what watches told may be late, and a copy does not come back.

use api::{
    bind::{binding::APIServiceBinding, mapping::Place},
    view::Meta,
};
use kit::write::Error;
use kube::Api;

use super::{Sync, entry::Here};
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
}
