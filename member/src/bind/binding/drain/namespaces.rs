//! Which APIServiceNamespaces go with a binding: those in which no other binding of the contract has objects.

use std::collections::BTreeSet;

use api::{
    bind::{binding::APIServiceBinding, export::APIServiceNamespace},
    view::Meta,
};
use kit::write::Error;
use kube::{
    Api, ResourceExt,
    api::{ApiResource, ListParams},
};

use super::Bindings;
use crate::bind::{contract::Contract, crd::is_of, sync::Here};

impl Bindings {
    /// Deletes those that the binding `ending` is the last to need.
    pub(super) async fn delete_namespaces(&self, ending: &str, contract: &Contract) -> Result<(), Error> {
        let Some(others) = self.apis_of_others(ending, contract) else { return Ok(()) };
        let all: Vec<APIServiceNamespace> =
            contract.known.with(|known| known.namespaces.iter().cloned().collect());
        let ours = all.iter().filter(|namespace| !Contract::is_providers(namespace));
        for namespace in ours.filter(|namespace| namespace.metadata.deletion_timestamp.is_none()) {
            if !self.is_needed(&namespace.name_any(), &others).await? {
                contract.writer.delete(namespace, false).await?;
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

    /// Whether one of these APIs has objects in the Namespace.
    async fn is_needed(&self, namespace: &str, apis: &[ApiResource]) -> Result<bool, Error> {
        for api in apis {
            let objects = Api::<Meta<Here>>::namespaced_with(self.env.client.clone(), namespace, api);
            if !objects.list(&ListParams::default().limit(1)).await?.items.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
