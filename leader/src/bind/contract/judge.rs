//! What a request for a contract comes to: pure.

use api::{
    bind::{label, offer::BindableResourcesRequest, resource::SecretKey},
    label::{FREEPORT, MANAGED_BY},
};
use k8s_openapi::{
    ByteString,
    api::core::v1::{Namespace, Secret},
};
use kube::{Resource, ResourceExt};
use serde_json::{Value, json};

use crate::bind::{
    credential::KUBECONFIG,
    known::{Known, Place, granted_templates},
};

/// Why somebody does not become a consumer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refused {
    #[error("spec.clusterIdentity.identity is empty")]
    NoIdentity,
    #[error("there is no APIServiceExportTemplate {0}")]
    TemplateNotFound(String),
    #[error("Namespace {0} is there already, and is not the cluster namespace of this identity")]
    NotOurs(String),
    #[error("the answer cannot be written to Secret {0}: {1}")]
    Answer(String, String),
}

impl Refused {
    pub(super) fn reason(&self) -> &'static str {
        match self {
            Self::NoIdentity => "NoIdentity",
            Self::TemplateNotFound(_) => "TemplateNotFound",
            Self::NotOurs(_) => "NotOurs",
            Self::Answer(..) => "AnswerRefused",
        }
    }
}

/// What is to be written for a consumer.
#[derive(Clone, Debug)]
pub(super) enum Desired {
    Create(Namespace),
    /// One that an earlier contract had is still there.
    Waits,
    /// Another value of this annotation.
    Grant(Place, String),
    Stays,
}

/// What the cluster namespace of this name has to be.
pub(super) fn desired(ask: &BindableResourcesRequest, name: &str, known: &Known) -> Result<Desired, Refused> {
    let spec = &ask.spec;
    let identity = spec.cluster_identity.identity.as_deref().unwrap_or_default();
    if identity.is_empty() {
        return Err(Refused::NoIdentity);
    }
    let template = spec.template_ref.as_ref().map(|template| template.name.as_str());
    if let Some(template) = template.filter(|template| known.template(template).is_none()) {
        return Err(Refused::TemplateNotFound(template.to_owned()));
    }
    if known.is_ending(name) {
        return Ok(Desired::Waits);
    }
    let Some(have) = known.contract(name) else {
        let granted = template.map(|template| (label::GRANTED_TEMPLATES, template));
        let called = spec.cluster_identity.pretty_name.clone().filter(|name| !name.is_empty());
        let called = called.unwrap_or_else(|| ask.name_any());
        let annotations = [
            (label::IDENTITY, identity),
            (label::AUTHOR, spec.author.as_str()),
            (label::CLUSTER_PRETTY_NAME, called.as_str()),
        ];
        let mut namespace = Namespace::default();
        namespace.metadata.name = Some(name.to_owned());
        namespace.labels_mut().insert(label::BIND.to_owned(), label::CONTRACT.to_owned());
        namespace.annotations_mut().extend(
            annotations.into_iter().chain(granted).map(|(key, value)| (key.to_owned(), value.to_owned())),
        );
        return Ok(Desired::Create(namespace));
    };
    if have.annotations().get(label::IDENTITY).is_none_or(|had| had != identity) {
        return Err(Refused::NotOurs(name.to_owned()));
    }
    let mut granted = granted_templates(have);
    match template {
        Some(template) if !granted.iter().any(|had| had == template) => {
            granted.push(template.to_owned());
            Ok(Desired::Grant(have.clone(), granted.join(",")))
        }
        _ => Ok(Desired::Stays),
    }
}

/// Only of what was read: another request may have been granted something meanwhile.
pub(super) fn granting(have: &Place, granted: &str) -> Value {
    let annotations = json!({label::GRANTED_TEMPLATES: granted});
    json!({"metadata": {"resourceVersion": have.resource_version(), "annotations": annotations}})
}

/// Where the request wants its answer.
pub(super) fn answered_at(ask: &BindableResourcesRequest) -> SecretKey {
    match ask.spec.kubeconfig_secret_ref.clone() {
        Some(at) if at.key.is_empty() => SecretKey { key: KUBECONFIG.to_owned(), ..at },
        Some(at) => at,
        None => SecretKey {
            name: format!("{}-binding-response", ask.name_any()),
            key: "binding-response".to_owned(),
        },
    }
}

/// Whether the Secret is one that policy `freeport-bind-leader` never lets become an answer: Freeport's own, or of another type.
pub(super) fn is_no_answer(there: &Secret) -> bool {
    let is_freeports = there.labels().get(MANAGED_BY).is_some_and(|by| by == FREEPORT);
    is_freeports || !matches!(there.type_.as_deref().unwrap_or_default(), "" | "Opaque")
}

/// One more key of a Secret that is there; as kube-bind has it, the request is one of its owners.
pub(super) fn answering(
    there: &Secret,
    ask: &BindableResourcesRequest,
    key: &str,
    answer: &ByteString,
) -> Value {
    let mut owners = there.owner_references().to_vec();
    owners.extend(ask.owner_ref(&()).filter(|ours| owners.iter().all(|owner| owner.uid != ours.uid)));
    let metadata = json!({"resourceVersion": there.resource_version(), "ownerReferences": owners});
    json!({"metadata": metadata, "data": {key: answer}})
}

/// The credential, as kube-bind answers.
pub(super) fn response(kubeconfig: &ByteString) -> Value {
    json!({
        "kind": "BindingResourceResponse", "apiVersion": "kube-bind.io/v1alpha2", "authentication": {},
        "kubeconfig": kubeconfig, "requests": null,
    })
}

#[cfg(test)]
mod tests {
    use kit::objects::Change;

    use super::*;

    fn ask(identity: &str, template: &str) -> BindableResourcesRequest {
        let of = json!({"clusterIdentity": {"identity": identity}, "author": "me", "templateRef": {"name": template}});
        serde_json::from_value(json!({"metadata": {"name": "east"}, "spec": of})).unwrap()
    }

    fn known(identity: &str, granted: &str) -> Known {
        let mut known = Known::default();
        for name in ["small", "large"] {
            let template =
                json!({"metadata": {"name": name}, "spec": {"scope": "Namespaced", "resources": []}});
            known.templates.change(Change::Apply(serde_json::from_value(template).unwrap()));
        }
        let annotations = json!({label::IDENTITY: identity, label::GRANTED_TEMPLATES: granted});
        let place = json!({"metadata": {"name": "cns", "resourceVersion": "7", "labels": {label::BIND: label::CONTRACT}, "annotations": annotations}});
        known.places.change(Change::Apply(serde_json::from_value(place).unwrap()));
        known
    }

    #[test]
    fn the_same_identity_has_one_cluster_namespace_with_all_that_it_was_granted() {
        let Ok(Desired::Create(namespace)) = desired(&ask("a", "small"), "other", &known("a", "")) else {
            panic!("not created")
        };
        assert_eq!(namespace.annotations()[label::IDENTITY], "a");
        assert_eq!(namespace.annotations()[label::CLUSTER_PRETTY_NAME], "east");
        assert_eq!(namespace.annotations()[label::GRANTED_TEMPLATES], "small");
        let again = desired(&ask("a", "large"), "cns", &known("a", "small"));
        let Ok(Desired::Grant(have, granted)) = again else { panic!("{again:?}") };
        assert_eq!(granted, "small,large");
        assert_eq!(granting(&have, &granted)["metadata"]["resourceVersion"], "7", "no other grant is lost");
        assert!(matches!(desired(&ask("a", "small"), "cns", &known("a", "small")), Ok(Desired::Stays)));
    }

    #[test]
    fn a_contract_waits_until_that_before_it_is_gone() {
        let mut known = known("a", "small");
        let mut place = known.places.iter().next().unwrap().clone();
        place.metadata.deletion_timestamp = serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap();
        known.places.change(Change::Apply(place));
        assert!(matches!(desired(&ask("a", "small"), "cns", &known), Ok(Desired::Waits)));
    }

    #[test]
    fn an_identity_keeps_its_cluster_namespace_under_another_prefix() {
        assert_eq!(known("a", "").contract_of("a").as_deref(), Some("cns"));
        assert_eq!(known("a", "").contract_of("b"), None);
        assert_eq!(known("", "").contract_of(""), None);
    }

    #[test]
    fn a_secret_that_is_there_keeps_what_it_has_and_goes_with_the_last_owner() {
        let mut asks = ask("a", "small");
        asks.metadata.uid = Some("r".into());
        let owner = |uid: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": uid});
        let secret =
            json!({"metadata": {"name": "s", "resourceVersion": "3", "ownerReferences": [owner("o")]}});
        let mut secret: Secret = serde_json::from_value(secret).unwrap();
        let patch = answering(&secret, &asks, "k", &ByteString(b"x".to_vec()));
        let uids = |patch: &Value| {
            let owners = patch["metadata"]["ownerReferences"].as_array().unwrap();
            owners.iter().map(|owner| owner["uid"].clone()).collect::<Vec<_>>()
        };
        assert_eq!(uids(&patch), ["o", "r"]);
        assert_eq!(patch["metadata"]["resourceVersion"], "3");
        assert_eq!(patch["data"], json!({"k": "eA=="}));
        secret.metadata.owner_references =
            serde_json::from_value(patch["metadata"]["ownerReferences"].clone()).unwrap();
        assert_eq!(uids(&answering(&secret, &asks, "k", &ByteString::default())), ["o", "r"], "not twice");
    }

    #[test]
    fn an_answer_without_a_key_is_a_kubeconfig() {
        let at = |secret: Value| {
            let mut ask = ask("a", "small");
            ask.spec.kubeconfig_secret_ref = serde_json::from_value(secret).unwrap();
            answered_at(&ask).key
        };
        assert_eq!(at(json!({"name": "s", "key": ""})), "kubeconfig");
        assert_eq!(at(json!({"name": "s", "key": "k"})), "k");
        assert_eq!(at(Value::Null), "binding-response");
    }

    #[test]
    fn what_freeport_installed_and_tokens_are_never_answers() {
        let is_no = |secret: Value| is_no_answer(&serde_json::from_value(secret).unwrap());
        assert!(is_no(json!({"metadata": {"labels": {"app.kubernetes.io/managed-by": "freeport"}}})));
        assert!(is_no(json!({"metadata": {}, "type": "kubernetes.io/service-account-token"})));
        assert!(!is_no(json!({"metadata": {}, "type": "Opaque"})) && !is_no(json!({"metadata": {}})));
    }

    #[test]
    fn anothers_cluster_namespace_is_not_given() {
        let refused = |ask, known| desired(&ask, "cns", &known).unwrap_err();
        assert_eq!(refused(ask("a", "small"), known("b", "")), Refused::NotOurs("cns".into()));
        assert_eq!(refused(ask("", "small"), known("", "")), Refused::NoIdentity);
        assert_eq!(refused(ask("a", "gone"), known("a", "")), Refused::TemplateNotFound("gone".into()));
    }
}
