//! AdmissionReview (`admission.k8s.io/v1`): what an API server asks, and what it is answered. Pure.

mod pod;

use api::{name::is_dns_label, offload::review::Denial};
use k8s_openapi::ByteString;
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};

pub(crate) use self::pod::NewPod;
use self::pod::{TooLarge, read_pod};

const API_VERSION: &str = "admission.k8s.io/v1";
const KIND: &str = "AdmissionReview";

/// Why a request has no answer, in a sentence for who configured it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Malformed {
    /// Not JSON, or other than JSON says.
    #[error("the body is no AdmissionReview: {0}")]
    Undecodable(#[from] serde_json::Error),
    /// JSON about something else, or in another version.
    #[error(
        "the body is a {kind:?} of {version:?}, and has to be an AdmissionReview of {API_VERSION}: admissionReviewVersions has to have v1"
    )]
    Other {
        /// Of the body.
        kind: String,
        /// Of the body.
        version: String,
    },
    /// An answer, or nothing.
    #[error("the AdmissionReview has no request")]
    NoRequest,
    /// Nobody could tell what an answer is about.
    #[error("the request has no uid")]
    NoUid,
    /// It would fill our memory, and whoever reaches us may send it.
    #[error(transparent)]
    TooLarge(#[from] TooLarge),
    /// A Pod is in a Namespace.
    #[error("{0:?} is no name of a Namespace")]
    Namespace(String),
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Review<'a> {
    api_version: String,
    kind: String,
    #[serde(borrow)]
    request: Option<Asked<'a>>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Asked<'a> {
    uid: String,
    namespace: String,
    operation: String,
    resource: Resource,
    sub_resource: String,
    #[serde(borrow)]
    object: Option<&'a RawValue>,
}

/// What an API server asks.
#[derive(Debug)]
pub(crate) struct Request {
    /// Tells requests apart.
    pub(crate) uid: String,
    /// Where the object is to be. What the object says of it does not count.
    pub(crate) namespace: String,
    /// The Pod that is to be created; nothing where none is.
    pub(crate) pod: Option<NewPod>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Resource {
    group: String,
    resource: String,
}

impl Request {
    /// Reads the body of a request.
    pub(crate) fn read(body: &[u8]) -> Result<Self, Malformed> {
        let review: Review<'_> = serde_json::from_slice(body)?;
        if review.api_version != API_VERSION || review.kind != KIND {
            return Err(Malformed::Other { kind: review.kind, version: review.api_version });
        }
        let asked = review.request.ok_or(Malformed::NoRequest)?;
        if asked.uid.is_empty() {
            return Err(Malformed::NoUid);
        }
        let pod = match asked.creates_a_pod() {
            true if !is_dns_label(&asked.namespace) => return Err(Malformed::Namespace(asked.namespace)),
            true => Some(read_pod(asked.object)?),
            false => None,
        };
        Ok(Self { uid: asked.uid, namespace: asked.namespace, pod })
    }
}

impl Asked<'_> {
    /// Whether a Pod is to be created. Nothing else can change where a Pod runs, so all else passes.
    fn creates_a_pod(&self) -> bool {
        self.operation == "CREATE"
            && self.resource.group.is_empty()
            && self.resource.resource == "pods"
            && self.sub_resource.is_empty()
    }
}

/// What becomes of the Pod.
#[derive(Debug, PartialEq)]
pub(crate) enum Verdict {
    /// It is created with these changes (RFC 6902), if any, and whoever creates it reads this warning.
    Allowed(Vec<Value>, Option<String>),
    /// It is not created.
    Denied(Denial),
}

impl Verdict {
    /// One word for it.
    pub(crate) fn result(&self) -> &'static str {
        match self {
            Self::Allowed(patch, _) if patch.is_empty() => "unchanged",
            Self::Allowed(..) => "patched",
            Self::Denied(_) => "denied",
        }
    }

    /// The body of the answer to the request of this uid.
    pub(crate) fn answer(&self, uid: &str) -> Value {
        let response = match self {
            Self::Allowed(patch, warning) => {
                let mut response = json!({"uid": uid, "allowed": true});
                if !patch.is_empty() {
                    response["patchType"] = json!("JSONPatch");
                    response["patch"] = json!(ByteString(json!(patch).to_string().into_bytes()));
                }
                if let Some(warning) = warning {
                    response["warnings"] = json!([warning]);
                }
                response
            }
            Self::Denied(denial) => {
                let status = json!({"code": 403, "reason": "Forbidden", "message": denial.to_string()});
                json!({"uid": uid, "allowed": false, "status": status})
            }
        };
        json!({"apiVersion": API_VERSION, "kind": KIND, "response": response})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &Value) -> Result<Request, String> {
        Request::read(body.to_string().as_bytes()).map_err(|error| error.to_string())
    }

    fn review(request: &Value) -> Value {
        json!({"apiVersion": API_VERSION, "kind": KIND, "request": request})
    }

    #[test]
    fn what_is_no_request_about_an_object_is_said() {
        let version = "admission.k8s.io/v1beta1";
        for (body, says) in [
            (json!([]), "has to be an AdmissionReview"),
            (json!(7), "no AdmissionReview"),
            (json!({}), "has to be an AdmissionReview"),
            (json!({"apiVersion": version, "kind": KIND, "request": {"uid": "1"}}), version),
            (json!({"apiVersion": API_VERSION, "kind": KIND, "response": {}}), "no request"),
            (review(&json!({})), "no uid"),
            (review(&json!({"uid": 7})), "no AdmissionReview"),
        ] {
            assert!(read(&body).unwrap_err().contains(says), "{body}");
        }
        assert!(Request::read(b"{\"apiVersion").is_err());
        assert!(Request::read(&[0xff; 64]).is_err());
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(Request::read(deep.as_bytes()).is_err());
    }

    #[test]
    fn only_the_creation_of_pods_is_looked_at() {
        let pods = json!({"group": "", "version": "v1", "resource": "pods"});
        let request = |operation: &str, resource: &Value, sub: &str, namespace: &str| {
            let request = json!({
                "uid": "1", "operation": operation, "resource": resource, "subResource": sub, "namespace": namespace,
            });
            read(&review(&request))
        };
        assert!(request("CREATE", &pods, "", "shop").unwrap().pod.is_some());
        for (operation, resource, sub) in [
            ("UPDATE", &pods, ""),
            ("CREATE", &pods, "binding"),
            ("CREATE", &json!({"group": "apps", "resource": "pods"}), ""),
            ("CREATE", &json!({"resource": "configmaps"}), ""),
        ] {
            assert!(request(operation, resource, sub, "").unwrap().pod.is_none(), "{operation} {resource}");
        }
        for namespace in ["", "..", "a/b", "a?b"] {
            assert!(request("CREATE", &pods, "", namespace).is_err(), "{namespace}");
        }
    }

    #[test]
    fn answers_are_what_api_servers_read() {
        let patch = json!({"op": "add", "path": "/spec/tolerations", "value": []});
        let answer = Verdict::Allowed(vec![patch], None).answer("1");
        let base64 = "W3sib3AiOiJhZGQiLCJwYXRoIjoiL3NwZWMvdG9sZXJhdGlvbnMiLCJ2YWx1ZSI6W119XQ==";
        let response = json!({"uid": "1", "allowed": true, "patchType": "JSONPatch", "patch": base64});
        assert_eq!(answer, json!({"apiVersion": API_VERSION, "kind": KIND, "response": response}));
        assert_eq!(
            Verdict::Allowed(vec![], None).answer("2")["response"],
            json!({"uid": "2", "allowed": true})
        );
        let warned = Verdict::Allowed(vec![], Some("it stays".into())).answer("2");
        assert_eq!(warned["response"], json!({"uid": "2", "allowed": true, "warnings": ["it stays"]}));
        let denied = Verdict::Denied(Denial::NotOffloaded { namespace: "shop".into() }).answer("3");
        assert_eq!(denied["response"]["allowed"], false);
        let message = denied["response"]["status"]["message"].as_str().unwrap();
        assert!(message.contains("freeport offload namespace shop"), "{message}");
    }
}
