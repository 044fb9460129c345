//! The configuration of the webhook, reduced to what counts of it, and the names of what belongs to it.

use std::collections::BTreeMap;

use api::{
    label::{FREEPORT, MANAGED_BY, TRUE},
    offload::{label::SCHEDULING_ENABLED, webhook},
    view::annotated,
};
use k8s_openapi::{ByteString, api::admissionregistration::v1::MutatingWebhookConfiguration};
use kube::{Resource, ResourceExt, api::ObjectMeta};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::issue::Certificate;

/// Labels, or annotations.
pub(super) type Pairs = BTreeMap<String, String>;

/// Name of the configuration, and of the Service of the webhook.
pub(super) const NAME: &str = webhook::NAME;
/// Name of the Secret.
pub(super) const SECRET: &str = "freeport-webhook-tls";

/// The configuration: when the API server asks the webhook, where, and whom it trusts there.
#[derive(Resource, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[resource(inherit = MutatingWebhookConfiguration)]
pub(super) struct Configuration {
    #[serde(deserialize_with = "annotated")]
    pub(super) metadata: ObjectMeta,
    /// As they are: of others we write none.
    #[serde(default)]
    webhooks: Vec<Value>,
}

impl Configuration {
    /// How the webhook is asked; none if it is not.
    pub(super) fn client_config(&self) -> Option<&Value> {
        self.webhook()?.get("clientConfig")
    }

    /// Whether Pods are created also where the webhook does not answer.
    pub(super) fn ignores_failures(&self) -> bool {
        self.webhook().and_then(|webhook| webhook.get("failurePolicy")) == Some(&json!("Ignore"))
    }

    /// The field because of which the webhook is not asked about every new Pod of an offloaded Namespace, if there is one. Defaults of
    /// the API server are in what it answers, and count where they are not.
    pub(super) fn leaves_out(&self) -> Option<&'static str> {
        let field = |name: &str| self.webhook().and_then(|webhook| webhook.get(name));
        let is_set = |name: &str| field(name).is_some_and(|value| !is_empty(value));
        let rules = field("rules").and_then(Value::as_array);
        if !rules.is_some_and(|rules| rules.iter().any(asks_about_new_pods)) {
            return Some("rules");
        }
        if field("namespaceSelector").is_some_and(|selector| !selects_offloaded(selector)) {
            return Some("namespaceSelector");
        }
        ["objectSelector", "matchConditions"].into_iter().find(|name| is_set(name))
    }

    /// Where the webhook is asked, where that is outside of the cluster.
    pub(super) fn url(&self) -> Option<&str> {
        self.client_config()?.get("url")?.as_str()
    }

    /// Whom API servers trust there, PEM. Empty where there is nothing that could be read.
    pub(super) fn bundle(&self) -> Vec<u8> {
        let bundle = self.client_config().and_then(|config| config.get("caBundle")).cloned();
        let bundle = bundle.and_then(|bundle| serde_json::from_value::<ByteString>(bundle).ok());
        bundle.map(|bundle| bundle.0).unwrap_or_default()
    }

    /// The authorities in [`bundle`](Self::bundle), if all of them can be read.
    pub(super) fn authorities(&self) -> Vec<Certificate> {
        let bundle = self.bundle();
        let read = std::str::from_utf8(&bundle).ok().and_then(|pem| Certificate::read_all(pem).ok());
        read.unwrap_or_default()
    }

    /// The same that trusts these.
    pub(super) fn trusting(&self, bundle: &[u8]) -> Self {
        let mut trusting = self.clone();
        for webhook in trusting.webhooks.iter_mut().filter(|webhook| is_ours(webhook)) {
            if let Some(config) = webhook.get_mut("clientConfig").and_then(Value::as_object_mut) {
                config.insert("caBundle".into(), json!(ByteString(bundle.to_vec())));
            }
        }
        trusting
    }

    /// Whether `freeport join` or we made it: it has our label.
    pub(super) fn is_ours(&self) -> bool {
        let by = self.metadata.labels.as_ref().and_then(|labels| labels.get(MANAGED_BY));
        by.is_some_and(|by| by == FREEPORT)
    }

    /// One of ours with this webhook alone, and with labels and annotations of others.
    pub(super) fn of(webhook: &Value, mut labels: Pairs, annotations: Pairs) -> Self {
        labels.insert(MANAGED_BY.to_owned(), FREEPORT.to_owned());
        let metadata = ObjectMeta {
            name: Some(NAME.into()),
            labels: Some(labels),
            annotations: (!annotations.is_empty()).then_some(annotations),
            ..ObjectMeta::default()
        };
        Self { metadata, webhooks: vec![webhook.clone()] }
    }

    /// The same without labels and annotations of others.
    pub(super) fn bare(&self) -> Self {
        let metadata = ObjectMeta {
            name: self.metadata.name.clone(),
            labels: Some([(MANAGED_BY.to_owned(), FREEPORT.to_owned())].into()),
            ..ObjectMeta::default()
        };
        Self { metadata, webhooks: self.webhooks.clone() }
    }

    /// Labels and annotations that others set on it, but for the copy of it that `kubectl apply` keeps.
    pub(super) fn set_by_others(&self) -> (Pairs, Pairs) {
        let (mut labels, mut annotations) = (self.labels().clone(), self.annotations().clone());
        labels.remove(MANAGED_BY);
        annotations.remove("kubectl.kubernetes.io/last-applied-configuration");
        (labels, annotations)
    }

    /// The webhook without [`bundle`](Self::bundle), so that API servers ask it about every Pod: where and how it is asked is the
    /// administrator's choice, about which Pods is not. None where API servers do not ask it.
    pub(super) fn asking_about_all(&self) -> Option<Value> {
        self.client_config()?;
        let mut asking = self.webhook()?.as_object()?.clone();
        asking.remove("matchConditions");
        asking.insert("rules".into(), json!(webhook::rules()));
        asking.insert("namespaceSelector".into(), json!(webhook::namespaces()));
        asking.insert("objectSelector".into(), json!({}));
        if let Some(config) = asking.get_mut("clientConfig").and_then(Value::as_object_mut) {
            config.remove("caBundle");
        }
        Some(Value::Object(asking))
    }

    /// The same with this webhook in the place of ours.
    pub(super) fn with(&self, webhook: &Value) -> Self {
        let mut with = self.clone();
        match with.webhooks.iter_mut().find(|webhook| is_ours(webhook)) {
            Some(ours) => ours.clone_from(webhook),
            None => with.webhooks.push(webhook.clone()),
        }
        with.trusting(&self.bundle())
    }

    fn webhook(&self) -> Option<&Value> {
        self.webhooks.iter().find(|webhook| is_ours(webhook))
    }
}

/// Whether this rule is about every new Pod.
fn asks_about_new_pods(rule: &Value) -> bool {
    let has = |field: &str, any: &[&str]| {
        let values = rule.get(field).and_then(Value::as_array);
        values.is_some_and(|values| values.iter().filter_map(Value::as_str).any(|value| any.contains(&value)))
    };
    has("operations", &["CREATE", "*"])
        && has("apiGroups", &["", "*"])
        && has("apiVersions", &["v1", "*"])
        && has("resources", &["pods", "*", "*/*"])
        && rule.get("scope").is_none_or(|scope| ["*", "Namespaced"].iter().any(|is| scope == is))
}

/// Whether a selector matches whatever has the label of an offloaded Namespace.
fn selects_offloaded(selector: &Value) -> bool {
    let labels = selector.get("matchLabels").and_then(Value::as_object);
    let mut labels = labels.into_iter().flatten();
    labels.all(|(key, value)| key == SCHEDULING_ENABLED && value == TRUE)
        && selector.get("matchExpressions").is_none_or(is_empty)
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Object(fields) => fields.values().all(is_empty),
        Value::Array(items) => items.is_empty(),
        value => value.is_null(),
    }
}

fn is_ours(webhook: &Value) -> bool {
    webhook.get("name") == Some(&json!(webhook::WEBHOOK))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_leaves_pods_out_is_named() {
        let rule = json!({"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "scope": "Namespaced"});
        let selector = json!({"matchLabels": {"liqo.io/scheduling-enabled": "true"}});
        let installed = json!({
            "name": webhook::WEBHOOK, "rules": [rule], "namespaceSelector": selector, "objectSelector": {}, "matchConditions": null,
        });
        let left_out = |field: &str, value: Value| {
            let mut webhook = installed.clone();
            webhook[field] = value;
            let read = json!({"metadata": {"name": NAME}, "webhooks": [webhook]});
            serde_json::from_value::<Configuration>(read).unwrap().leaves_out()
        };
        let with = |field: &str, value: Value| {
            let mut rule = rule.clone();
            rule[field] = value;
            json!([{"operations": ["UPDATE"]}, rule])
        };
        let wide = [("operations", "*"), ("apiGroups", "*"), ("resources", "*/*"), ("scope", "*")];
        assert_eq!(left_out("objectSelector", json!({"matchLabels": null})), None);
        assert_eq!(left_out("namespaceSelector", Value::Null), None, "it is asked about all");
        for (field, value) in wide {
            let value = if field == "scope" { json!(value) } else { json!([value]) };
            assert_eq!(left_out("rules", with(field, value)), None, "{field}");
        }
        for (field, value) in [
            ("rules", json!([])),
            ("rules", with("operations", json!(["DELETE"]))),
            ("rules", with("resources", json!(["pods/status"]))),
            ("rules", with("scope", json!("Cluster"))),
            ("namespaceSelector", json!({"matchLabels": {"team": "a"}})),
            ("namespaceSelector", json!({"matchExpressions": [{"key": "team", "operator": "Exists"}]})),
            ("objectSelector", json!({"matchLabels": {"app": "web"}})),
            ("matchConditions", json!([{"name": "none", "expression": "false"}])),
        ] {
            assert_eq!(left_out(field, value.clone()), Some(field), "{value}");
        }
    }
}
