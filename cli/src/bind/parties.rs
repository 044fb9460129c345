//! Which cluster a contract is with. Its cluster namespace is named after the consumer alone: it has the same name at each of its providers.

use k8s_openapi::api::core::v1::Secret;
use kit::client::kubeconfig::Target;
use kube::Api;

use crate::{
    Error,
    cluster::{Cluster, known},
    objects::bind::KUBECONFIG,
};

/// In words, why a provider is not the cluster that a credential leads to; nothing where it is.
pub(super) async fn not_with(
    provider: &Cluster,
    consumer: &str,
    target: &Target,
) -> Result<Option<String>, Error> {
    let there = target.server();
    if is_one(&there, &provider.server) {
        return Ok(None);
    }
    // Consumers may reach it by another address than administrators.
    let secrets: Api<Secret> = Api::namespaced(provider.client.clone(), &target.namespace);
    let doing = format!("read Secret {}/{KUBECONFIG}", target.namespace);
    let given = provider.request(doing, known(secrets.get(KUBECONFIG))).await?;
    let given = given.and_then(|secret| Target::read(&secret.data?.get(KUBECONFIG)?.0).ok());
    if given.is_some_and(|given| is_one(&given.server(), &there)) {
        return Ok(None);
    }
    Ok(Some(format!(
        "the contract of {consumer} is with the cluster at {there}, in its Namespace {}, and this one, at {}, gives no such credential: nothing \
         was changed; name the context of that cluster by --provider-context",
        target.namespace, provider.server
    )))
}

/// Whether two addresses are one.
fn is_one(one: &str, other: &str) -> bool {
    let uri = |text: &str| api::cluster_set::server_uri(text);
    uri(one).is_some_and(|one| uri(other).is_some_and(|other| one == other))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_one_however_it_is_written() {
        assert!(is_one("https://leader:6443", "https://leader:6443/"));
        assert!(is_one("https://LEADER:6443/", "https://leader:6443"));
        assert!(!is_one("https://leader:6443", "https://other:6443"));
        assert!(!is_one("http://leader", "http://leader"), "no address of an API server");
    }
}
