//! Asks the webhook as an API server does: where the configuration says, by TLS, trusting whom it says.

use std::time::Duration;

use http::{Request, Uri};
use kit::{
    certificate::certificates,
    client,
    failure::{Failure, classify},
};
use serde_json::{Value, json};

use super::{object::Configuration, placement::Answer};

/// For the answer: as long as an API server waits.
const PATIENCE: Duration = Duration::from_secs(3);
/// Of the question.
const UID: &str = "freeport-member";

/// What the webhook answers.
pub(super) async fn ask(configuration: Option<&Configuration>) -> Answer {
    let Some((configuration, config)) = configuration.and_then(|c| Some((c, c.client_config()?))) else {
        return Answer::Missing;
    };
    let authorities = match certificates(&configuration.bundle()) {
        Ok(authorities) => authorities,
        Err(error) => return Answer::Untrusted(format!("caBundle of the configuration: {error}")),
    };
    let Some((server, path)) = place(config) else {
        return Answer::Silent("the configuration does not say where it is".into());
    };
    let client = match client::anonymous(server.clone(), &authorities, PATIENCE) {
        Ok(client) => client,
        Err(error) => return Answer::Untrusted(error.to_string()),
    };
    let request = match Request::post(path).header("content-type", "application/json").body(question()) {
        Ok(request) => request,
        Err(error) => return Answer::Silent(error.to_string()),
    };
    match tokio::time::timeout(PATIENCE, client.request::<Value>(request)).await {
        Ok(Ok(answer)) if is_answer(&answer) => {
            Answer::Answers { ignores_failures: configuration.ignores_failures() }
        }
        Ok(Ok(_)) => Answer::Silent(format!("{server} answers, but is no webhook")),
        Ok(Err(error)) => match classify(&error) {
            failure @ (Failure::Untrusted(_) | Failure::Expired(_)) => Answer::Untrusted(failure.to_string()),
            failure => Answer::Silent(format!("{server}: {failure}")),
        },
        Err(_) => Answer::Silent(format!("{server}: no answer within {PATIENCE:?}")),
    }
}

/// Server and path.
fn place(config: &Value) -> Option<(Uri, String)> {
    if let Some(url) = config.get("url").and_then(Value::as_str) {
        let url: Uri = url.parse().ok()?;
        let server = format!("https://{}", url.authority()?).parse().ok()?;
        return Some((server, url.path().to_owned()));
    }
    let service = config.get("service")?;
    let text = |field: &str| service.get(field).and_then(Value::as_str);
    let port = service.get("port").and_then(Value::as_u64).unwrap_or(443);
    let server = format!("https://{}.{}.svc:{port}", text("name")?, text("namespace")?).parse().ok()?;
    Some((server, text("path").unwrap_or("/").to_owned()))
}

/// One that the webhook answers without asking anybody: nothing is to be created.
fn question() -> Vec<u8> {
    let pods = json!({"group": "", "version": "v1", "resource": "pods"});
    let request = json!({"uid": UID, "operation": "UPDATE", "resource": pods, "dryRun": true});
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request})
        .to_string()
        .into_bytes()
}

fn is_answer(answer: &Value) -> bool {
    let response = answer.get("response");
    let field = |field| response.and_then(|response| response.get(field));
    field("uid") == Some(&json!(UID)) && field("allowed") == Some(&json!(true))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_asked_where_an_api_server_asks() {
        let of = |config: Value| place(&config).map(|(server, path)| format!("{server} {path}"));
        let service = json!({"service": {"name": "freeport-webhook", "namespace": "freeport-system", "path": "/mutate/pod"}});
        assert_eq!(of(service).unwrap(), "https://freeport-webhook.freeport-system.svc:443/ /mutate/pod");
        let url = json!({"url": "https://127.0.0.1:8443/mutate/pod"});
        assert_eq!(of(url).unwrap(), "https://127.0.0.1:8443/ /mutate/pod");
        assert_eq!(of(json!({"url": "/x"})), None);
        assert_eq!(of(json!({})), None);
    }
}
