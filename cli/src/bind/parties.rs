//! Which cluster a contract is with. Its cluster namespace is named after the consumer alone: it has the same name at each of its providers.

use std::collections::BTreeMap;

use api::{bind::label, view::Meta};
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kit::client::kubeconfig::Target;
use kube::{Api, ResourceExt, core::ObjectMeta};

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
    // Consumers may reach it by another address than administrators, or have done so.
    let secrets: Api<Secret> = Api::namespaced(provider.client.clone(), &target.namespace);
    let doing = format!("read Secret {}/{KUBECONFIG}", target.namespace);
    let given = provider.request(doing, known(secrets.get(KUBECONFIG))).await?;
    let given = given.and_then(|secret| Target::read(&secret.data?.get(KUBECONFIG)?.0).ok());
    if given.is_some_and(|given| are_of_one_contract(&given, target)) {
        return Ok(None);
    }
    Ok(Some(format!(
        "the contract of {consumer} is with the cluster at {there}, in its Namespace {}, and this one, at {}, gives no such credential: nothing \
         was changed; name the context of that cluster by --provider-context",
        target.namespace, provider.server
    )))
}

/// Whether two credentials are of one contract: they lead to one place, or are of one account, by whatever address. What their tokens say of that
/// counts: who asked a cluster about the token of another one would show it that token.
pub(super) fn are_of_one_contract(one: &Target, other: &Target) -> bool {
    let is_one_account = one.account.is_some() && one.account == other.account;
    one.namespace == other.namespace && (is_one_account || is_one(&one.server(), &other.server()))
}

/// The cluster namespace of the consumer with this uid.
pub(super) async fn by_identity(provider: &Cluster, consumer: &str) -> Result<Option<String>, Error> {
    let namespaces: Api<Meta<Namespace>> = Api::all(provider.client.clone());
    let contracts = provider.all(&namespaces, &format!("{}={}", label::BIND, label::CONTRACT)).await?;
    let found = contracts.iter().find(|namespace| not_of(&namespace.metadata, consumer).is_none());
    Ok(found.map(ResourceExt::name_any))
}

/// Why a Namespace of a provider is not the cluster namespace of a consumer.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum NotOf {
    /// Freeport did not make it for a consumer. kube-bind's backend may have.
    #[error("has no label {}={}", label::BIND, label::CONTRACT)]
    NoContract,
    #[error("belongs to the consumer with identity {0:?}, and this consumer has identity {1:?}")]
    Another(String, String),
    #[error("has no annotation {}", label::IDENTITY)]
    NoIdentity,
}

/// Returns why this is not the cluster namespace of the consumer with this uid.
pub(super) fn not_of(namespace: &ObjectMeta, consumer: &str) -> Option<NotOf> {
    let says = |of: &Option<BTreeMap<String, String>>, key: &str| of.as_ref()?.get(key).cloned();
    if says(&namespace.labels, label::BIND).as_deref() != Some(label::CONTRACT) {
        return Some(NotOf::NoContract);
    }
    match says(&namespace.annotations, label::IDENTITY) {
        Some(identity) if !consumer.is_empty() && identity == consumer => None,
        Some(identity) => Some(NotOf::Another(identity, consumer.to_owned())),
        None => Some(NotOf::NoIdentity),
    }
}

/// Whether two addresses are one.
fn is_one(one: &str, other: &str) -> bool {
    let uri = |text: &str| api::cluster_set::server_uri(text);
    uri(one).is_some_and(|one| uri(other).is_some_and(|other| one == other))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_address_is_one_however_it_is_written() {
        assert!(is_one("https://leader:6443", "https://leader:6443/"));
        assert!(is_one("https://LEADER:6443/", "https://leader:6443"));
        assert!(!is_one("https://leader:6443", "https://other:6443"));
        assert!(!is_one("http://leader", "http://leader"), "no address of an API server");
    }

    #[test]
    fn a_namespace_that_is_not_of_the_consumer_is_not_touched() {
        let why = |label: &str, identity: Option<&str>| {
            let annotations = identity.map(|identity| json!({label::IDENTITY: identity}));
            let metadata = json!({"labels": {label::BIND: label}, "annotations": annotations});
            not_of(&serde_json::from_value(metadata).unwrap(), "u1")
        };
        assert_eq!(why(label::CONTRACT, Some("u1")), None);
        assert_eq!(why(label::CONTRACT, Some("u2")), Some(NotOf::Another("u2".into(), "u1".into())));
        assert_eq!(why(label::CONTRACT, None), Some(NotOf::NoIdentity));
        assert_eq!(why(label::OBJECTS, Some("u1")), Some(NotOf::NoContract));
        assert!(not_of(&ObjectMeta::default(), "u1").is_some(), "kube-system, for example");
    }

    #[test]
    fn a_contract_is_known_by_its_account_where_the_address_is_another_one() {
        let of = |server: &str, namespace: &str, account: Option<&str>| {
            let all = json!({
                "apiVersion": "v1", "kind": "Config", "current-context": "c",
                "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u", "namespace": namespace}}],
                "clusters": [{"name": "c", "cluster": {"server": server}}], "users": [{"name": "u", "user": {}}],
            });
            let mut target = Target::read(all.to_string().as_bytes()).unwrap();
            target.account = account.map(str::to_owned);
            target
        };
        let had = of("https://old:6443", "cns", Some("a"));
        assert!(
            are_of_one_contract(&had, &of("https://old:6443/", "cns", Some("b"))),
            "the account was made anew"
        );
        assert!(are_of_one_contract(&had, &of("https://new:6443", "cns", Some("a"))));
        assert!(!are_of_one_contract(&had, &of("https://new:6443", "cns", Some("b"))));
        assert!(!are_of_one_contract(&had, &of("https://old:6443", "other", Some("a"))));
        let unsaid = |server: &str| of(server, "cns", None);
        assert!(!are_of_one_contract(&unsaid("https://old:6443"), &unsaid("https://new:6443")));
    }
}
