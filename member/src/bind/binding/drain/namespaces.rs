//! Which APIServiceNamespaces go with a binding: those in which no other binding of the contract has objects. Where copies are to stay
//! those that have some are marked, so that neither another binding nor the end of our Namespace takes them later.

use std::collections::BTreeSet;

use api::{
    bind::{binding::APIServiceBinding, export::APIServiceNamespace, label},
    view::Meta,
};
use kit::write::Error;
use kube::{
    Api, Client, ResourceExt,
    api::{ApiResource, ListParams},
};
use serde_json::json;

use super::Bindings;
use crate::bind::{contract::Contract, crd::is_of, local::Crd, policy::leaves_copies, sync::Here};

impl Bindings {
    /// Deletes those that the binding `ending` is the last to need.
    pub(super) async fn delete_namespaces(&self, ending: &str, contract: &Contract) -> Result<(), Error> {
        let Some(others) = self.apis_of_others(ending, contract) else { return Ok(()) };
        for namespace in ours(contract) {
            if !is_used(&self.env.client, &namespace.name_any(), &others).await? {
                contract.writer.delete(&namespace, false).await?;
            }
        }
        Ok(())
    }

    /// Marks those that have copies of these APIs, which are to stay.
    pub(super) async fn leave_namespaces(&self, crds: &[Crd], contract: &Contract) -> Result<(), Error> {
        let served = crds.iter().filter_map(Crd::served).filter(|api| api.is_namespaced);
        let apis: Vec<_> = served.map(|api| api.resource).collect();
        for namespace in ours(contract) {
            let Some(there) = contract.assigned(&namespace.name_any()) else { continue };
            let is_used = match is_used(&contract.client(), &there, &apis).await {
                // Who may not read them, or finds the API not served, does not know that there are none.
                Err(kube::Error::Api(status)) if [403, 404].contains(&status.code) => true,
                answer => answer?,
            };
            if is_used {
                let patch = json!({"metadata": {"annotations": {label::DELETION_POLICY: label::ORPHAN}}});
                contract.writer.merge(&namespace, None, patch).await?;
            }
        }
        Ok(())
    }

    /// What other bindings of the contract installed, whatever credential they use. Nothing where that is not known of one of them.
    fn apis_of_others(&self, ending: &str, contract: &Contract) -> Option<Vec<ApiResource>> {
        let exports = contract.known.with(|known| known.exports.iter().map(ResourceExt::name_any).collect());
        let mut others: BTreeSet<_> =
            self.local.bindings_of(&self.secret).into_iter().chain(self.local.bound(exports)).collect();
        others.remove(ending);
        self.local.known.with(|known| {
            let bindings: Vec<&APIServiceBinding> =
                others.iter().filter_map(|other| known.bindings.get(other)).collect();
            let crds = known.crds.iter().filter(|crd| bindings.iter().any(|binding| is_of(crd, binding)));
            let served: Option<Vec<_>> = crds.map(|crd| crd.served()).collect();
            Some(served?.into_iter().filter(|api| api.is_namespaced).map(|api| api.resource).collect())
        })
    }
}

/// Those that were made for this cluster, and neither go nor are to stay.
fn ours(contract: &Contract) -> Vec<APIServiceNamespace> {
    let is_ours = |namespace: &&APIServiceNamespace| {
        let is_going = namespace.metadata.deletion_timestamp.is_some();
        !is_going && !Contract::is_providers(namespace) && !leaves_copies(*namespace)
    };
    contract.known.with(|known| known.namespaces.iter().filter(is_ours).cloned().collect())
}

/// Whether one of these APIs has objects in the Namespace.
async fn is_used(client: &Client, namespace: &str, apis: &[ApiResource]) -> kube::Result<bool> {
    for api in apis {
        let objects = Api::<Meta<Here>>::namespaced_with(client.clone(), namespace, api);
        if !objects.list(&ListParams::default().limit(1)).await?.items.is_empty() {
            return Ok(true);
        }
    }
    Ok(false)
}
