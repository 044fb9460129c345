//! What API servers refuse to write for a binding, in either cluster, in one condition of it.

use std::collections::BTreeSet;

use api::{
    bind::{
        binding::APIServiceBinding,
        condition::{Answer, Condition, Severity, Verdict},
    },
    cluster_set::WRITES_ACCEPTED,
};
use kit::metrics::Request;
use kube::ResourceExt;

use super::Bindings;
use crate::bind::{PART, contract::Contract, crd::is_of, local::NAMESPACE};

/// What is written for a binding.
#[derive(Default)]
struct Written {
    binding: String,
    secret: String,
    /// The cluster namespace, where it is known.
    cluster_namespace: Option<String>,
    /// Names of its APIs, as CRDs are named.
    apis: BTreeSet<String>,
    /// Their groups and kinds.
    kinds: BTreeSet<(String, String)>,
    /// Namespaces that the provider wants here.
    wanted: BTreeSet<String>,
}

impl Written {
    fn has(&self, request: &Request) -> bool {
        // The ClusterSet reports what other parts write, of the same kinds as well.
        if request.part != PART {
            return false;
        }
        let name = &request.name;
        let is_in_contract = request.namespace.is_some() && request.namespace == self.cluster_namespace;
        self.kinds.contains(&(request.group.clone(), request.kind.clone()))
            || match (request.cluster, request.kind.as_str()) {
                ("provider", "APIServiceExport") => is_in_contract && *name == self.binding,
                ("provider", "BoundSchema") => is_in_contract && self.apis.contains(name),
                ("provider", _) => is_in_contract,
                (_, "APIServiceBinding") => *name == self.binding,
                (_, "CustomResourceDefinition") => self.apis.contains(name),
                (_, "Secret") => request.namespace.as_deref() == Some(NAMESPACE) && *name == self.secret,
                (_, "Namespace") => self.wanted.contains(name),
                _ => false,
            }
    }
}

/// Returns what is refused of it, with the first names and the API server's words.
pub(super) fn message(
    bindings: &Bindings,
    binding: &APIServiceBinding,
    contract: Option<&Contract>,
) -> Option<String> {
    let mut written =
        Written { binding: binding.name_any(), secret: bindings.secret.clone(), ..Written::default() };
    for crd in bindings.crds(|crd| is_of(crd, binding)) {
        written.apis.insert(crd.name_any());
        let kinds = crd.served().map(|served| (served.resource.group, served.resource.kind));
        written.kinds.extend(kinds);
    }
    if let Some(contract) = contract {
        written.cluster_namespace = Some(contract.cluster_namespace.name.clone());
        contract.known.with(|known| {
            let export = known.exports.get(&written.binding);
            written
                .apis
                .extend(export.iter().flat_map(|export| &export.spec.resources).map(|api| api.name()));
            let wanted = known.namespaces.iter().filter(|namespace| Contract::is_providers(namespace));
            written.wanted.extend(wanted.map(ResourceExt::name_any));
        });
    }
    bindings.env.metrics.refusals().message_of(|request| written.has(request))
}

/// Returns the condition; none where nothing is refused, and nothing was.
pub(super) fn verdict(refused: Option<&String>, said: &[Condition]) -> Option<Verdict> {
    let answer = match refused {
        Some(message) => Answer::No(Severity::Warning, "Refused", message.clone()),
        None if said.iter().any(|said| said.type_ == WRITES_ACCEPTED) => Answer::Yes,
        None => return None,
    };
    Some(Verdict::new(WRITES_ACCEPTED, answer))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GROUP: &str = "example.com";

    fn request(cluster: &'static str, kind: &str, namespace: Option<&str>, name: &str) -> Request {
        let (group, kind, namespace) = (GROUP.into(), kind.to_owned(), namespace.map(str::to_owned));
        let (area, verb, name) = ("".into(), "patch".into(), name.to_owned());
        Request { area, part: PART, cluster, verb, group, kind, namespace, name }
    }

    #[test]
    fn a_binding_says_what_is_refused_of_its_own() {
        let one = |name: &str| [name.to_owned()].into();
        let written = Written {
            binding: "mango".into(),
            secret: "kubeconfig-x".into(),
            cluster_namespace: Some("cns".into()),
            apis: one("mangos.example.com"),
            kinds: [(GROUP.to_owned(), "Mango".to_owned())].into(),
            wanted: one("wanted"),
        };
        let has = |cluster, kind: &str, namespace, name: &str| {
            written.has(&request(cluster, kind, namespace, name))
        };
        for (cluster, kind, namespace, name) in [
            ("local", "Mango", Some("shop"), "orders"),
            ("provider", "Mango", Some("cns-shop"), "orders"),
            ("local", "CustomResourceDefinition", None, "mangos.example.com"),
            ("local", "APIServiceBinding", None, "mango"),
            ("local", "Secret", Some("kube-bind"), "kubeconfig-x"),
            ("local", "Namespace", None, "wanted"),
            ("provider", "APIServiceExport", Some("cns"), "mango"),
            ("provider", "BoundSchema", Some("cns"), "mangos.example.com"),
            ("provider", "ClusterBinding", Some("cns"), "cluster"),
            ("provider", "APIServiceNamespace", Some("cns"), "shop"),
        ] {
            assert!(has(cluster, kind, namespace, name), "{kind} {name}");
        }
        for (cluster, kind, namespace, name) in [
            ("local", "Service", Some("shop"), "orders"),
            ("local", "APIServiceBinding", None, "cactus"),
            ("local", "Secret", Some("kube-bind"), "kubeconfig-y"),
            ("provider", "APIServiceExport", Some("cns"), "cactus"),
            ("provider", "ClusterBinding", Some("another"), "cluster"),
        ] {
            assert!(!has(cluster, kind, namespace, name), "{kind} {name}");
        }
        let mango = || request("local", "Mango", None, "m");
        assert!(!written.has(&Request { part: "", ..mango() }), "another part writes it");
        let of_another_group = Request { group: "b.io".into(), ..mango() };
        assert!(!written.has(&of_another_group), "another binding has that API");
    }

    #[test]
    fn a_condition_is_there_from_the_first_refusal_on() {
        let said = Condition { type_: WRITES_ACCEPTED.into(), ..Condition::default() };
        assert_eq!(verdict(None, &[]), None);
        assert_eq!(verdict(None, &[said]).map(|verdict| verdict.answer), Some(Answer::Yes));
        assert!(matches!(
            verdict(Some(&"no".to_owned()), &[]).map(|verdict| verdict.answer),
            Some(Answer::No(_, "Refused", why)) if why == "no"
        ));
    }
}
