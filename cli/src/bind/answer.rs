//! What the provider's half of binding an API hands to the consumer's: kube-bind's BindingResourceResponse, also as a file.

use api::bind::export::APIServiceExportRequestSpec;
use k8s_openapi::ByteString;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::Error;

/// A credential, and what to ask for with it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Answer {
    /// For the cluster namespace. It is secret.
    pub(super) kubeconfig: ByteString,
    /// What the template offers; none where the provider does not say.
    pub(super) request: Option<APIServiceExportRequestSpec>,
}

#[derive(Deserialize)]
struct Document {
    kind: String,
    kubeconfig: ByteString,
    #[serde(default)]
    requests: Option<Vec<Request>>,
}

#[derive(Serialize, Deserialize)]
struct Request {
    spec: APIServiceExportRequestSpec,
}

const KIND: &str = "BindingResourceResponse";

impl Answer {
    /// Reads YAML or JSON.
    ///
    /// # Errors
    /// A sentence, without anything of the document, which has a credential in it.
    pub(super) fn read(text: &[u8]) -> Result<Self, String> {
        let document: Document =
            serde_yaml::from_slice(text).map_err(|_| format!("it cannot be read as a {KIND}"))?;
        if document.kind != KIND {
            return Err(format!("it is a {:?}, not a {KIND}", document.kind));
        }
        let request = document.requests.into_iter().flatten().next().map(|request| request.spec);
        Ok(Self { kubeconfig: document.kubeconfig, request })
    }

    /// The document as YAML.
    pub(super) fn yaml(&self, name: &str) -> Result<String, Error> {
        let request = self.request.as_ref().map(|spec| {
            json!({"apiVersion": "kube-bind.io/v1alpha2", "kind": "APIServiceExportRequest", "metadata": {"name": name}, "spec": spec})
        });
        let document = json!({
            "apiVersion": "kube-bind.io/v1alpha2", "kind": KIND, "authentication": {},
            "kubeconfig": self.kubeconfig, "requests": request.map(|request| vec![request]),
        });
        serde_yaml::to_string(&document).map_err(|source| Error::Yaml { object: KIND.into(), source })
    }
}

#[cfg(test)]
mod tests {
    use api::bind::resource::Resource;

    use super::*;

    #[test]
    fn what_is_handed_over_arrives() {
        let resources = vec![Resource {
            group: "example.com".into(),
            resource: "mangodbs".into(),
            versions: vec!["v1".into()],
        }];
        let request = APIServiceExportRequestSpec { resources, ..Default::default() };
        let answer = Answer { kubeconfig: ByteString(b"secret".to_vec()), request: Some(request) };
        assert_eq!(Answer::read(answer.yaml("mango").unwrap().as_bytes()), Ok(answer.clone()));
        let plain = Answer { request: None, ..answer };
        assert_eq!(Answer::read(plain.yaml("mango").unwrap().as_bytes()), Ok(plain), "as a backend answers");
        let other = Answer::read(b"{\"kind\": \"Secret\", \"kubeconfig\": \"c2VjcmV0\"}").unwrap_err();
        assert!(other.contains("\"Secret\""), "{other}");
        let broken = Answer::read(b"kubeconfig: c2VjcmV0").unwrap_err();
        assert!(!broken.contains("c2Vj"), "{broken}");
    }
}
