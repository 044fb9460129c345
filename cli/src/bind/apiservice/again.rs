//! A binding that is there already: whether it is the one that is asked for, and whether something of it is missing.

use api::bind::{binding::APIServiceBinding, resource::Resource};
use k8s_openapi::api::core::v1::Secret;
use kit::client::kubeconfig::Target;
use kube::Api;

use super::{Consumer, request::Contract};
use crate::{
    Error,
    bind::{consent::more, parties::not_with},
    cluster::{Cluster, known, list},
    objects::bind::{CREDENTIALS, KUBECONFIG},
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
    /// Where it is bound to another provider.
    pub(super) async fn is_whole(
        &self,
        binding: &APIServiceBinding,
        provider: &Cluster,
    ) -> Result<bool, Error> {
        let name = &binding.spec.kubeconfig_secret_ref.name;
        let secrets: Api<Secret> = Api::namespaced(self.cluster.client.clone(), CREDENTIALS);
        let doing = format!("read Secret {CREDENTIALS}/{name}");
        let secret = self.cluster.request(doing, known(secrets.get(name))).await?;
        let target = secret.and_then(|secret| Target::read(&secret.data?.get(KUBECONFIG)?.0).ok());
        let Some(target) = target else { return Ok(false) };
        if let Some(why) = not_with(provider, &self.cluster.name, &target).await? {
            return Err(provider.refuse(why));
        }
        let Ok(contract) = Contract::connect(self.cluster, &target) else { return Ok(false) };
        Ok(matches!(contract.exported(self.name).await, Ok(Some(_))))
    }
}
