//! A binding that is there already: whether it is the one that is asked for, and whether something of it is missing.

use api::{
    bind::{binding::APIServiceBinding, export::APIServiceExport, resource::Resource},
    view::Meta,
};
use kube::Api;

use super::{Consumer, request::Contract};
use crate::{
    Error,
    bind::{
        consent::more,
        parties::{by_identity, not_with},
    },
    cluster::{Cluster, known, list},
};

impl Consumer<'_> {
    /// An error if more is asked for than there is, where there is anything: an export stays as it was granted.
    pub(super) fn has_all(&self, there: &[Resource], asked: &[Resource]) -> Result<(), Error> {
        let more = more(asked, there);
        if there.is_empty() || more.is_empty() {
            return Ok(());
        }
        let names: Vec<_> = there.iter().map(Resource::name).collect();
        Err(self.cluster.refuse(format!(
            "{} is bound already, with {}, and not with {}: bind that under another name, or end this binding first (freeport bind remove {})",
            self.name,
            list(&names),
            list(&more),
            self.name
        )))
    }

    /// Whether the binding has a credential that the provider takes, and an export. What it lacks is asked for again.
    ///
    /// # Errors
    /// Where it is bound to another provider, or nothing says that it is with this one.
    pub(super) async fn is_whole(
        &self,
        binding: &APIServiceBinding,
        provider: &Cluster,
    ) -> Result<bool, Error> {
        let Some(target) = self.had(binding).await? else {
            return self.is_exported_by(provider).await.map(|()| false);
        };
        if let Some(why) = not_with(provider, &self.cluster.name, &target).await? {
            return Err(provider.refuse(why));
        }
        let Ok(contract) = Contract::connect(self.cluster, &target) else { return Ok(false) };
        Ok(matches!(contract.exported(self.name).await, Ok(Some(_))))
    }

    /// An error if a provider has no export of this name for this cluster: a binding without a credential says of no other one that it is with it.
    async fn is_exported_by(&self, provider: &Cluster) -> Result<(), Error> {
        if let Some(namespace) = by_identity(provider, &self.cluster.uid).await? {
            let exports: Api<Meta<APIServiceExport>> = Api::namespaced(provider.client.clone(), &namespace);
            let doing = format!("read APIServiceExport {namespace}/{}", self.name);
            if provider.request(doing, known(exports.get(self.name))).await?.is_some() {
                return Ok(());
            }
        }
        Err(provider.refuse(format!(
            "{} is bound in {}, by a Secret that is gone or cannot be used, and nothing of that name is exported to it here: nothing was changed; \
             name the context of its provider by --provider-context, or end the binding first (freeport bind remove {} --force)",
            self.name, self.cluster.name, self.name
        )))
    }
}
