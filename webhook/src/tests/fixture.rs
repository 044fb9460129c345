//! A webhook on a port of its own, its authorities, and who asks it.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use axum::http::{Request, StatusCode};
use jiff::Timestamp;
use k8s_openapi::ByteString;
use kit::metrics::Metrics as Registry;
use kube::{Client, Config, client::Body};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, ServerName},
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};
use tokio_rustls::{TlsConnector, client::TlsStream};
use tokio_util::sync::CancellationToken;

use super::json_of;
use crate::{handler::Handler, metrics::Metrics, offloadings::Offloadings, server::Server, tls::Tls};

pub(super) struct Ca {
    certificate: rcgen::Certificate,
    issuer: Issuer<'static, KeyPair>,
}

impl Ca {
    pub(super) fn new() -> Self {
        let mut params = CertificateParams::new(vec![]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        Self { certificate, issuer: Issuer::new(params, key) }
    }

    pub(super) fn der(&self) -> CertificateDer<'static> {
        self.certificate.der().clone()
    }

    /// A certificate of this machine and its key, PEM.
    pub(super) fn leaf(&self) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        (params.signed_by(&key, &self.issuer).unwrap().pem(), key.serialize_pem())
    }
}

pub(super) struct Webhook {
    pub(super) address: SocketAddr,
    pub(super) offloadings: Offloadings,
    pub(super) tls: Arc<Tls>,
    pub(super) stop: CancellationToken,
    trusted: CertificateDer<'static>,
    dir: TempDir,
    registry: Registry,
    server: JoinSet<()>,
}

impl Webhook {
    /// Its API server does not answer.
    pub(super) fn start(drain: Duration) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let registry = Registry::new().unwrap();
        let client = Client::try_from(Config::new("http://127.0.0.1:1".parse().unwrap())).unwrap();
        let (offloadings, _) = Offloadings::watch(client, registry.clone(), super::RELIST);
        let (tls, stop) = (Arc::new(Tls::default()), CancellationToken::new());
        let metrics = Metrics::new(&registry).unwrap();
        let router = Handler::new(offloadings.clone(), metrics).router();
        let server = Server { tls: tls.clone().server_config().unwrap(), router, drain };
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let mut serving = JoinSet::new();
        serving.spawn(server.serve(TcpListener::from_std(listener).unwrap(), stop.clone()));
        let (ca, dir) = (Ca::new(), tempfile::tempdir().unwrap());
        let mut webhook =
            Self { address, offloadings, tls, stop, trusted: ca.der(), dir, registry, server: serving };
        webhook.serve(&ca);
        webhook
    }

    /// From now on with a certificate of this authority.
    pub(super) fn serve(&mut self, ca: &Ca) {
        let (certificate, key) = ca.leaf();
        std::fs::write(self.dir.path().join("tls.crt"), certificate).unwrap();
        std::fs::write(self.dir.path().join("tls.key"), key).unwrap();
        self.tls.read(self.dir.path(), Timestamp::now());
        assert_eq!(self.tls.problem(), None);
        self.trusted = ca.der();
    }

    /// Who trusts its authority alone.
    pub(super) fn client(&self) -> Client {
        client(self.address, std::slice::from_ref(&self.trusted))
    }

    pub(super) async fn connect(&self) -> Stream {
        let mut roots = RootCertStore::empty();
        roots.add(self.trusted.clone()).unwrap();
        let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
        let name = ServerName::from(self.address.ip());
        let stream = TcpStream::connect(self.address).await.unwrap();
        Stream(TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap())
    }

    pub(super) async fn ended(&mut self) {
        self.server.join_next().await.unwrap().unwrap();
    }

    pub(super) fn metrics(&self) -> String {
        String::from_utf8(self.registry.render().unwrap().1).unwrap()
    }
}

/// A connection, byte by byte.
pub(super) struct Stream(TlsStream<TcpStream>);

impl Stream {
    pub(super) async fn write(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).await.unwrap();
        self.0.flush().await.unwrap();
    }

    pub(super) async fn rest(&mut self) -> String {
        let mut answer = Vec::new();
        // The server may close the connection without a farewell.
        let _ = self.0.read_to_end(&mut answer).await;
        String::from_utf8(answer).unwrap()
    }
}

pub(super) fn client(address: SocketAddr, trusted: &[CertificateDer<'static>]) -> Client {
    let server = format!("https://{address}").parse().unwrap();
    kit::client::anonymous(server, trusted, Duration::from_secs(30)).unwrap()
}

pub(super) fn post(path: &str, body: Vec<u8>) -> Request<Body> {
    Request::post(path).header("content-type", "application/json").body(Body::from(body)).unwrap()
}

/// What the webhook says to a review.
pub(super) async fn asked(client: &Client, review: &Value) -> (StatusCode, Value) {
    let request = Request::post("/mutate/pod").body(review.to_string().into_bytes()).unwrap();
    match client.request_text(request).await {
        Ok(text) => (StatusCode::OK, json_of(&text)),
        Err(kube::Error::Api(status)) => (StatusCode::from_u16(status.code).unwrap(), json!(status.message)),
        Err(error) => panic!("{error}"),
    }
}

pub(super) fn offloading(namespace: &str, spec: &Value) -> Value {
    json!({"metadata": {"name": "offloading", "namespace": namespace, "uid": namespace, "resourceVersion": "1"}, "spec": spec})
}

pub(super) fn review(uid: &str, namespace: &str) -> Value {
    let pod = json!({"metadata": {"name": "web"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let pods = json!({"group": "", "version": "v1", "resource": "pods"});
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": uid, "operation": "CREATE", "resource": pods, "namespace": namespace, "object": pod,
    }})
}

pub(super) fn patch_of(answer: &Value) -> Value {
    let patch: ByteString = serde_json::from_value(answer["response"]["patch"].clone()).unwrap();
    serde_json::from_slice(&patch.0).unwrap()
}
