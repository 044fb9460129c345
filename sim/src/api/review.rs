//! Requests whose answer is not stored: the server's version, tokens of ServiceAccounts, reviews of the client.

use std::ops::RangeInclusive;

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::{
    State,
    refusal::{Cause, Refusal, Result},
    request::{Request, Target},
    response::Response,
    store::rfc3339,
};

/// Life of a token if the client does not limit it, in seconds.
const TOKEN_LIFE: i64 = 3600;
/// Lives that a client may ask for, in seconds.
const TOKEN_LIVES: RangeInclusive<i64> = 600..=1 << 32;

impl State {
    /// Answers a review; none for requests that are none.
    pub(super) fn review(&self, request: &Request) -> Result<Option<Response>> {
        let is_create = request.method == "POST";
        Ok(match request.path.as_str() {
            "/version" => {
                let version = json!({"major": "1", "minor": "36", "gitVersion": "v1.36.3-sim", "platform": "linux/amd64"});
                Some(Response::json(200, &version))
            }
            "/apis/authentication.k8s.io/v1/selfsubjectreviews" if is_create => {
                let mut review = answered("authentication.k8s.io/v1", "SelfSubjectReview");
                review["status"] = json!({"userInfo": user_info(&request.user)});
                Some(Response::json(201, &review))
            }
            "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews" if is_create => {
                let mut review = answered("authorization.k8s.io/v1", "SelfSubjectAccessReview");
                review["spec"] = request.json()?["spec"].clone();
                review["status"] = json!({"allowed": true});
                Some(Response::json(201, &review))
            }
            _ => None,
        })
    }

    /// Grants a token of a ServiceAccount. It has the claims of a real one; nobody checks its signature.
    pub(super) fn create_token(&mut self, target: &Target, request: &Request) -> Result<Response> {
        let asked = request.json()?;
        let account = self.find(target)?;
        let seconds = asked["spec"]["expirationSeconds"].as_i64().unwrap_or(TOKEN_LIFE);
        if !TOKEN_LIVES.contains(&seconds) {
            let why = "may not specify a duration less than 10 minutes or larger than 2^32 seconds";
            let cause = Cause::invalid("spec.expirationSeconds", &json!(seconds), why);
            return Err(Refusal::invalid(&target.kind, &target.name, &[cause]));
        }
        let (id, now) = (self.next_uid(), Timestamp::now());
        let claims = json!({
            "iss": "https://kubernetes.default.svc", "jti": id,
            "sub": format!("system:serviceaccount:{}:{}", target.namespace, target.name),
            "iat": now.as_second(), "nbf": now.as_second(), "exp": (now + SignedDuration::from_secs(seconds)).as_second(),
            "kubernetes.io": {
                "namespace": target.namespace,
                "serviceaccount": {"name": target.name, "uid": account.value["metadata"]["uid"]},
            },
        });
        let encode = |text: String| BASE64_URL_SAFE_NO_PAD.encode(text);
        let token =
            [encode(json!({"alg": "none"}).to_string()), encode(claims.to_string()), encode(id)].join(".");
        let mut granted = answered("authentication.k8s.io/v1", "TokenRequest");
        granted["metadata"]["name"] = json!(target.name);
        granted["metadata"]["namespace"] = json!(target.namespace);
        granted["spec"] = json!({"audiences": asked["spec"]["audiences"], "expirationSeconds": seconds});
        if granted["spec"]["audiences"].is_null() {
            granted["spec"]["audiences"] = json!(["https://kubernetes.default.svc"]);
        }
        granted["status"] = json!({"token": token, "expirationTimestamp": rfc3339(seconds)});
        Ok(Response::json(201, &granted))
    }
}

/// What a server knows of a user: the groups of a ServiceAccount.
fn user_info(user: &str) -> Value {
    let account = user.strip_prefix("system:serviceaccount:").and_then(|account| account.split_once(':'));
    let groups = match account {
        Some((namespace, _)) => {
            json!([
                "system:serviceaccounts",
                format!("system:serviceaccounts:{namespace}"),
                "system:authenticated"
            ])
        }
        None => json!(["system:authenticated"]),
    };
    json!({"username": user, "groups": groups})
}

fn answered(api_version: &str, kind: &str) -> Value {
    json!({"kind": kind, "apiVersion": api_version, "metadata": {"creationTimestamp": rfc3339(0)}})
}

#[cfg(test)]
mod tests {
    use api::token::Claims;

    use super::*;
    use crate::api::testkit::{send, server};

    fn account(server: &crate::api::Server, namespace: &str, name: &str) {
        let of =
            |kind: &str, metadata: Value| json!({"apiVersion": "v1", "kind": kind, "metadata": metadata});
        server.ensure(&of("Namespace", json!({"name": namespace})));
        server.install(&of("ServiceAccount", json!({"name": name, "namespace": namespace})));
    }

    #[test]
    fn a_client_gets_to_know_who_it_is() {
        let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
        let user = send(&server(), "POST", path, &json!({})).1["status"]["userInfo"].clone();
        assert_eq!(user["username"], "system:serviceaccount:shop:web");
        assert_eq!(user["groups"][1], "system:serviceaccounts:shop");
    }

    #[test]
    fn a_token_tells_its_account_and_its_life() {
        let server = server();
        account(&server, "shop", "web");
        let path = "/api/v1/namespaces/shop/serviceaccounts/web/token";
        let asked = json!({"spec": {"expirationSeconds": 7200}});
        let [one, other] = [(); 2].map(|()| send(&server, "POST", path, &asked).1["status"]["token"].clone());
        assert_ne!(one, other);
        let claims = Claims::of(one.as_str().unwrap()).unwrap();
        assert_eq!(claims.account.unwrap().user(), "system:serviceaccount:shop:web");
        let life = claims.life.unwrap();
        assert_eq!((life.expires - life.issued).get_seconds(), 7200);
        assert_eq!(send(&server, "POST", path, &json!({"spec": {"expirationSeconds": 60}})).0, 422);
        assert_eq!(send(&server, "POST", &path.replace("web", "api"), &asked).0, 404);
    }

    #[test]
    fn every_access_is_allowed() {
        let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
        assert_eq!(send(&server(), "POST", path, &json!({"spec": {}})).1["status"]["allowed"], true);
        assert_eq!(send(&server(), "GET", "/version", &Value::Null).1["minor"], "36");
    }
}
