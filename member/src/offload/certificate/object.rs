//! The configuration of the webhook, reduced to what counts of it, and the names of what belongs to it.

use api::view::lean;
use k8s_openapi::{ByteString, api::admissionregistration::v1::MutatingWebhookConfiguration};
use kube::{Resource, api::ObjectMeta};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::issue::Certificate;

/// Name of the configuration, and of the Service of the webhook.
pub(super) const NAME: &str = "freeport-webhook";
/// Name of the Secret.
pub(super) const SECRET: &str = "freeport-webhook-tls";
/// The webhook in the configuration that is asked about Pods.
const WEBHOOK: &str = "pod.mutate.liqo.io";

/// The configuration: when the API server asks the webhook, where, and whom it trusts there.
#[derive(Resource, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[resource(inherit = MutatingWebhookConfiguration)]
pub(super) struct Configuration {
    #[serde(deserialize_with = "lean")]
    pub(super) metadata: ObjectMeta,
    /// As they are: of ours we write one field, of others none.
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

    fn webhook(&self) -> Option<&Value> {
        self.webhooks.iter().find(|webhook| is_ours(webhook))
    }
}

fn is_ours(webhook: &Value) -> bool {
    webhook.get("name") == Some(&json!(WEBHOOK))
}
