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
    if let Some(field) = configuration.leaves_out() {
        return Answer::Altered(field);
    }
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
    use std::{net::Ipv4Addr, sync::Arc};

    use rcgen::KeyPair;
    use rustls::pki_types::pem::PemObject;
    use rustls::{ServerConfig, pki_types::PrivateKeyDer};
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpListener,
        task::JoinSet,
    };
    use tokio_rustls::TlsAcceptor;

    use super::*;
    use crate::offload::certificate::issue;

    fn rule() -> Value {
        json!({"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "scope": "*"})
    }

    fn configuration(url: &str, bundle: &str) -> Configuration {
        let config = json!({"url": url});
        let webhook = json!({"name": "pod.mutate.liqo.io", "clientConfig": config, "failurePolicy": "Fail", "rules": [rule()]});
        let object = json!({"metadata": {"name": "freeport-webhook"}, "webhooks": [webhook]});
        serde_json::from_value::<Configuration>(object).unwrap().trusting(bundle.as_bytes())
    }

    /// A server that says this to everybody, by a certificate of this authority.
    async fn server(says: Value, authority: &issue::Certificate, key: &KeyPair) -> (String, JoinSet<()>) {
        let (of, name) = (KeyPair::generate().unwrap(), "127.0.0.1".to_owned());
        let now = jiff::Timestamp::now();
        let leaf = issue::leaf((authority, key), &of, &[name], now, Duration::from_secs(3600)).unwrap();
        let key = PrivateKeyDer::from_pem_slice(of.serialize_pem().as_bytes()).unwrap();
        let config =
            ServerConfig::builder().with_no_client_auth().with_single_cert(vec![leaf.der], key).unwrap();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let url = format!("https://{}/mutate/pod", listener.local_addr().unwrap());
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            let (acceptor, body) = (TlsAcceptor::from(Arc::new(config)), says.to_string());
            let answer = format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                body.len()
            );
            while let Ok((stream, _)) = listener.accept().await {
                let Ok(mut stream) = acceptor.accept(stream).await else { continue };
                assert!(stream.read(&mut [0; 4096]).await.unwrap() > 0);
                stream.write_all(answer.as_bytes()).await.unwrap();
                let _ = stream.shutdown().await;
            }
        });
        (url, serving)
    }

    #[tokio::test]
    async fn an_answer_counts_if_api_servers_accept_the_certificate() {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let (key, other) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
        let [ours, others] = [&key, &other]
            .map(|key| issue::authority(key, jiff::Timestamp::now(), Duration::from_secs(3600)).unwrap());
        let answer = json!({"response": {"uid": UID, "allowed": true}});
        let (url, _webhook) = server(answer, &ours, &key).await;
        let asked = async |url: &str, bundle: &str| ask(Some(&configuration(url, bundle))).await;
        let both = format!("{}{}", others.pem, ours.pem);
        assert_eq!(asked(&url, &both).await, Answer::Answers { ignores_failures: false });
        for (bundle, says) in
            [(others.pem.as_str(), "another authority"), ("", "no certificate"), ("odd", "no certificate")]
        {
            let answer = asked(&url, bundle).await;
            assert!(matches!(&answer, Answer::Untrusted(why) if why.contains(says)), "{answer:?}");
        }
        let (url, _other) = server(json!({"kind": "Pong"}), &ours, &key).await;
        assert!(matches!(asked(&url, &both).await, Answer::Silent(why) if why.contains("no webhook")));
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap().local_addr().unwrap();
        let answer = asked(&format!("https://{free}/"), &both).await;
        assert!(matches!(&answer, Answer::Silent(why) if why.contains("refused")), "{answer:?}");
        assert_eq!(ask(None).await, Answer::Missing);
    }

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
