//! Which names of APIs become rights. An API that is bound is named by its provider, and a rule of RBAC takes every text, `*` and the empty
//! group of Kubernetes' own kinds among them.

use api::{bind::resource::Resource, name};

/// Why nobody gets rights on an API of this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unfit {
    /// No CustomResourceDefinition is named so.
    #[error(
        "resource {0:?} of group {1:?} is not the API of a CustomResourceDefinition: both names are lower case letters, digits and '-', \
         and a group has dots"
    )]
    NotOfACrd(String, String),
    /// The wire contract has no such group.
    #[error(
        "resource {0:?} of group {1:?} cannot be offered: kube-bind knows no group whose first label has one character"
    )]
    Unsayable(String, String),
    /// Its kinds are part of Kubernetes, or approved by it.
    #[error("resource {0:?} of group {1:?} is not bound: the group is Kubernetes' own")]
    OfKubernetes(String, String),
    /// Its kinds are what binding itself is made of.
    #[error("resource {0:?} of group {1:?} is not bound: contracts themselves consist of it")]
    OfContracts(String, String),
}

/// The wire contract's own group.
const CONTRACTS: &str = "kube-bind.io";

/// Whether a CustomResourceDefinition can be of this API.
fn is_of_a_crd(api: &Resource) -> Result<(), Unfit> {
    let (plural, group) = (api.resource.as_str(), api.group.as_str());
    let is_plural =
        name::is_dns_label(plural) && plural.len() > 1 && !plural.starts_with(|c: char| c.is_ascii_digit());
    let is_group = group.len() <= 253 && group.contains('.') && group.split('.').all(name::is_dns_label);
    if !is_plural || !is_group {
        return Err(Unfit::NotOfACrd(plural.to_owned(), group.to_owned()));
    }
    match group.find('.') {
        Some(1) => Err(Unfit::Unsayable(plural.to_owned(), group.to_owned())),
        _ => Ok(()),
    }
}

/// Whether it may be offered, and a member may get rights on it, if somebody agrees. An API server takes CRDs of Kubernetes' groups only with
/// an annotation that no BoundSchema carries: rights on them would be on what is there without the provider. The rules for objects of an
/// offered API would keep konnectors from the status of their contracts.
pub(crate) fn is_bindable(api: &Resource) -> Result<(), Unfit> {
    is_of_a_crd(api)?;
    let is_within = |parent: &str| {
        api.group.strip_suffix(parent).is_some_and(|before| before.is_empty() || before.ends_with('.'))
    };
    if is_within(CONTRACTS) {
        return Err(Unfit::OfContracts(api.resource.clone(), api.group.clone()));
    }
    match ["k8s.io", "kubernetes.io"].into_iter().any(is_within) {
        true => Err(Unfit::OfKubernetes(api.resource.clone(), api.group.clone())),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn api(resource: &str, group: &str) -> Resource {
        Resource { group: group.into(), resource: resource.into(), versions: Vec::new() }
    }

    #[test]
    fn what_no_crd_is_named_gets_nobody_rights() {
        for (resource, group) in [
            ("secrets", ""),
            ("*", "*"),
            ("*", "example.com"),
            ("mangodbs", "*"),
            ("mangodbs", "*.example.com"),
            ("deployments", "apps"),
            ("mangodbs/status", "example.com"),
            ("MangoDBs", "example.com"),
            ("m", "example.com"),
            ("2s", "example.com"),
            ("", "example.com"),
            ("mangodbs", "example..com"),
            ("mangodbs", "example.com\n"),
        ] {
            let api = api(resource, group);
            assert!(matches!(is_of_a_crd(&api), Err(Unfit::NotOfACrd(..))), "{api:?}");
            assert!(is_bindable(&api).is_err(), "{api:?}");
        }
        assert_eq!(is_bindable(&api("mangodbs", "provider.example.com")), Ok(()));
        assert_eq!(is_bindable(&api("gateways", "apis.x-k8s.io")), Ok(()));
    }

    #[test]
    fn a_group_that_templates_cannot_name_is_not_offered() {
        let unsayable = is_of_a_crd(&api("mangodbs", "g.example.com"));
        assert!(matches!(unsayable, Err(Unfit::Unsayable(..))), "{unsayable:?}");
        assert_eq!(is_of_a_crd(&api("mangodbs", "gg.e.com")), Ok(()));
    }

    #[test]
    fn what_is_kubernetes_own_is_not_bound() {
        for group in ["k8s.io", "rbac.authorization.k8s.io", "node.kubernetes.io"] {
            let api = api("clusterroles", group);
            assert_eq!(is_of_a_crd(&api), Ok(()), "there may be such a CRD");
            assert!(matches!(is_bindable(&api), Err(Unfit::OfKubernetes(..))), "{group}");
        }
        assert!(matches!(is_bindable(&api("apiserviceexports", CONTRACTS)), Err(Unfit::OfContracts(..))));
        assert_eq!(is_bindable(&api("mangodbs", "examples.notkube-bind.io")), Ok(()));
    }
}
