//! Clients: one for the cluster a daemon runs in, one for the leader's; and those of kubeconfigs that others write.

mod credential;
pub mod kubeconfig;
mod way;

use std::{env, path::Path, sync::Arc, time::Duration};

use api::{cluster_set::server_uri, membership::Via, proxy};
use futures::future::BoxFuture;
use http::Uri;
use hyper_rustls::FixedServerNameResolver;
use hyper_util::{
    client::legacy::connect::HttpConnector,
    rt::{TokioExecutor, TokioTimer},
};
use kube::{
    Client, Config,
    client::{ClientBuilder, ConfigExt, retry::RetryPolicy},
    config::{KubeConfigOptions, Kubeconfig},
};
use rustls::pki_types::{CertificateDer, ServerName};
use tower::{BoxError, ServiceBuilder, retry::RetryLayer};

pub use self::credential::Credential;
use self::{kubeconfig::Target, way::Way};

/// Key of a Secret: CA that signed the leader's serving certificate, PEM.
pub const CA: &str = "ca.crt";
/// Key of a Secret: the authorities in [`CA`] that the leader's cluster has published, PEM. They are removed when it does not publish them any
/// more; others stay.
pub const NAMED_CA: &str = "named-ca.crt";
/// Key of a Secret: bearer token for the leader.
pub const TOKEN: &str = "token";

const CONNECT: Duration = Duration::from_secs(5);
/// Until when a connection to a server that may be far away has to stand, TLS included: one that is frozen accepts it, and says nothing.
const STANDS: Duration = Duration::from_secs(10);
/// A link that is dead without saying so is found after two of these. One on which something comes is not asked, so that a slow one is not
/// taken for dead while it brings a long list.
const PING: Duration = Duration::from_secs(6);
/// A connection without pings on which nothing came for so long is dead: every watch is ended and begun anew once a minute, and no other
/// request takes as long.
const SILENT: Duration = Duration::from_secs(90);

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The kubeconfig, or the Pod's ServiceAccount, cannot be used.
    #[error("cannot connect to the API server of this cluster: {0}")]
    Local(String),
    /// `spec.leaders[0].server` is not what it has to be.
    #[error("server {0:?} must have the form https://HOST[:PORT][/PATH]")]
    Server(String),
    /// A proxy is not what it has to be. It may have a password, so it is not repeated.
    #[error("the proxy must have the form http://[USER:PASSWORD@]HOST[:PORT]")]
    Proxy,
    /// No certificate can be for that.
    #[error("{0:?} is neither a DNS name nor an address")]
    ServerName(String),
    /// The Secret lacks a key.
    #[error("the Secret has no key {0:?}")]
    Missing(&'static str),
    /// The Secret's key is not what it has to be.
    #[error("the Secret's key {0:?} is not {1}")]
    Malformed(&'static str, &'static str),
    /// The HTTP stack would not have it.
    #[error("cannot set up the connection: {0}")]
    Setup(String),
}

/// A client for the cluster this daemon serves: the kubeconfig given, else `KUBECONFIG`, else the Pod's ServiceAccount. Only a kubeconfig names a
/// proxy for it: that of the environment is for the leader.
pub async fn local(kubeconfig: Option<&Path>) -> Result<Client, Error> {
    let of_file = |path: &Path, error| Error::Local(format!("{}: {error}", path.display()));
    let file = match kubeconfig {
        Some(path) => Some(Kubeconfig::read_from(path).map_err(|e| of_file(path, e))?),
        None => Kubeconfig::read().ok(),
    };
    let proxy = file.as_ref().and_then(proxy_of);
    let mut config = match (kubeconfig, file) {
        (Some(path), Some(file)) => {
            let config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await;
            config.map_err(|e| of_file(path, e))?
        }
        _ => Config::infer().await.map_err(|e| Error::Local(e.to_string()))?,
    };
    config.proxy_url = proxy;
    // kube's own client supports proxies that are not HTTP.
    let is_direct = config.proxy_url.as_ref().is_none_or(|proxy| proxy.scheme_str() == Some("http"));
    match config.cluster_url.scheme_str() {
        // Without retries: the queue retries a failed reconcile, and counts it.
        Some("https") if is_direct => {
            within(config, None, STANDS, None).map_err(|e| Error::Local(e.to_string()))
        }
        _ => patient(config, SILENT),
    }
}

/// The proxy that a kubeconfig names for the cluster of its current context.
fn proxy_of(file: &Kubeconfig) -> Option<Uri> {
    let current = file.current_context.as_ref()?;
    let context = file.contexts.iter().find(|context| context.name == *current)?.context.as_ref()?;
    let cluster = file.clusters.iter().find(|cluster| cluster.name == context.cluster)?.cluster.as_ref()?;
    cluster.proxy_url.as_ref().filter(|proxy| !proxy.is_empty())?.parse().ok()
}

/// A client for any server that speaks HTTPS. It trusts these authorities alone and says nothing of who asks.
pub fn anonymous(
    server: Uri,
    authorities: &[CertificateDer<'_>],
    patience: Duration,
) -> Result<Client, Error> {
    let mut config = Config::new(server);
    config.root_cert = Some(authorities.iter().map(|authority| authority.to_vec()).collect());
    patient(config, patience)
}

/// A client that gives a connection up on which nothing comes for `silent`.
fn patient(mut config: Config, silent: Duration) -> Result<Client, Error> {
    config.connect_timeout = Some(CONNECT);
    config.read_timeout = Some(silent);
    // A reconcile that fails is tried again by its queue, where it can be seen.
    config.default_retry = false;
    Client::try_from(config).map_err(|e| Error::Local(e.to_string()))
}

/// How a client for another cluster's API server is made: with connections, or by a simulated network. Cloning shares it.
#[derive(Clone, Default)]
pub struct Dial(Option<Arc<MakeClient>>);

type MakeClient = dyn Fn(&str, Option<&str>) -> Result<Client, Error> + Send + Sync;

impl Dial {
    /// A simulated network: `make` makes a client for the API server at an address, for a user if a kubeconfig names one.
    pub fn new(make: impl Fn(&str, Option<&str>) -> Result<Client, Error> + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(make)))
    }

    /// A client for the API server at `server`.
    ///
    /// # Errors
    /// As for [`remote`].
    pub fn client(&self, server: &str, credential: &Credential, via: &Via) -> Result<Client, Error> {
        match &self.0 {
            Some(make) => make(server, None),
            None => remote(server, credential, via),
        }
    }

    /// A client with a connection of its own, for where a kubeconfig leads.
    ///
    /// # Errors
    /// As for [`Target::connect`].
    pub fn connect(&self, target: &Target) -> Result<Client, kubeconfig::Error> {
        match &self.0 {
            Some(make) => {
                let made = make(&target.server(), target.user.as_deref());
                made.map_err(|_| kubeconfig::Error::Malformed("server"))
            }
            None => target.connect(),
        }
    }
}

/// A client for the leader, from the ClusterSet's `server`, with whatever the credential is at the time of each request.
///
/// Many watches share one HTTP/2 connection, which is pinged, so that a link that died unseen is noticed.
pub fn remote(server: &str, credential: &Credential, via: &Via) -> Result<Client, Error> {
    let mut config = Config::new(server_uri(server).ok_or_else(|| Error::Server(server.to_owned()))?);
    // Those of the credential are asked instead. Without any, the system's would be looked for.
    config.root_cert = Some(Vec::new());
    if let Some(proxy) = &via.proxy {
        let uri = proxy.parse::<Uri>().ok();
        let uri = uri.filter(|uri| uri.scheme_str() == Some("http") && uri.host().is_some());
        config.proxy_url = Some(uri.ok_or(Error::Proxy)?);
    }
    if let Some(name) = via.server_name.as_ref().filter(|name| !is_server_name(name)) {
        return Err(Error::ServerName(name.clone()));
    }
    config.tls_server_name.clone_from(&via.server_name);
    tuned(config, Some(credential))
}

/// For a server that may be far away: a dead link is noticed, and small requests do not wait for each other. Without a `credential`, that
/// in the configuration is used.
fn tuned(mut config: Config, credential: Option<&Credential>) -> Result<Client, Error> {
    let proxy = config.proxy_url.as_ref().map(Uri::to_string);
    let proxy = proxy::of(&config.cluster_url, proxy.as_deref(), |name| env::var(name).ok());
    config.proxy_url = proxy.and_then(|proxy| proxy.parse().ok());
    let retry = RetryPolicy::new(Duration::from_millis(50), Duration::from_secs(2), 3, true);
    within(config, credential, STANDS, Some(retry.map_err(|e| Error::Setup(e.to_string()))?))
}

/// A client that pings its connections, and gives up a connection that is not established after `limit`.
fn within(
    config: Config,
    credential: Option<&Credential>,
    limit: Duration,
    retry: Option<RetryPolicy>,
) -> Result<Client, Error> {
    let setup = |error: &dyn std::fmt::Display| Error::Setup(error.to_string());

    let mut tls = config.rustls_client_config().map_err(|e| setup(&e))?;
    if let Some(credential) = credential {
        tls.dangerous().set_certificate_verifier(Arc::new(credential.clone()));
    }
    let mut http = HttpConnector::new();
    http.enforce_http(false);
    http.set_nodelay(true);
    http.set_keepalive(Some(PING));
    http.set_connect_timeout(Some(CONNECT));
    let mut https = hyper_rustls::HttpsConnectorBuilder::new().with_tls_config(tls).https_only();
    if let Some(name) = &config.tls_server_name {
        let name = ServerName::try_from(name.clone()).map_err(|e| setup(&e))?;
        https = https.with_server_name_resolver(FixedServerNameResolver::new(name));
    }
    let way = Way::to(&config.cluster_url, http, config.proxy_url.as_ref());
    let https = https.enable_all_versions().wrap_connector(way);
    let https = ServiceBuilder::new().map_future(move |connected| stands(connected, limit)).service(https);
    let hyper = hyper_util::client::legacy::Client::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .http2_keep_alive_interval(PING)
        .http2_keep_alive_timeout(PING)
        .http2_keep_alive_while_idle(true)
        .http2_adaptive_window(true)
        .build::<_, kube::client::Body>(https);
    let credential = credential.cloned();
    let signed = move |request: http::Request<kube::client::Body>| match &credential {
        Some(credential) => credential.sign(request),
        None => request,
    };
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .layer(config.extra_headers_layer().map_err(|e| setup(&e))?)
        .option_layer(retry.map(RetryLayer::new))
        .option_layer(config.auth_layer().map_err(|e| setup(&e))?)
        .map_request(signed)
        .map_err(BoxError::from)
        .service(hyper);
    Ok(ClientBuilder::new(service, config.default_namespace).build())
}

/// The connection, or an error after `limit`.
fn stands<T, F>(connected: F, limit: Duration) -> BoxFuture<'static, Result<T, BoxError>>
where
    F: Future<Output = Result<T, BoxError>> + Send + 'static,
{
    let limited = tokio::time::timeout(limit, connected);
    Box::pin(async move { limited.await.map_err(std::io::Error::from)? })
}

/// Whether a server's certificate can have it: a DNS name or an address.
pub fn is_server_name(name: &str) -> bool {
    ServerName::try_from(name).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_for_the_own_cluster_is_that_of_the_current_context() {
        let cluster = |name: &str, proxy: &str| serde_json::json!({"name": name, "cluster": {"server": "https://10.0.0.1", "proxy-url": proxy}});
        let context =
            |name: &str| serde_json::json!({"name": name, "context": {"cluster": name, "user": "u"}});
        let mut file: Kubeconfig = serde_json::from_value(serde_json::json!({
            "clusters": [cluster("one", ""), cluster("two", "http://proxy:3128")],
            "contexts": [context("one"), context("two")],
            "current-context": "one",
        }))
        .unwrap();
        assert_eq!(proxy_of(&file), None);
        file.current_context = Some("two".into());
        assert_eq!(proxy_of(&file).map(|proxy| proxy.to_string()).as_deref(), Some("http://proxy:3128/"));
        file.current_context = Some("three".into());
        assert_eq!(proxy_of(&file), None);
    }

    #[tokio::test]
    async fn a9_a_watch_of_our_own_cluster_that_hears_nothing_ends() {
        use futures::StreamExt;
        use k8s_openapi::api::core::v1::Secret;
        use kube::{Api, api::WatchParams};
        use tokio::io::{AsyncReadExt, AsyncWriteExt};

        let server = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", server.local_addr().unwrap());
        // It begins to answer, and then nothing more comes, not even an end.
        let mut silent = tokio::task::JoinSet::new();
        silent.spawn(async move {
            let (mut connection, _) = server.accept().await.unwrap();
            assert!(connection.read(&mut [0; 4096]).await.unwrap() > 0);
            let head =
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n";
            connection.write_all(head.as_bytes()).await.unwrap();
            std::future::pending::<()>().await;
        });
        let client = patient(Config::new(url.parse().unwrap()), Duration::from_millis(200)).unwrap();
        let secrets = Api::<Secret>::namespaced(client, "x");
        let mut watch = Box::pin(secrets.watch(&WatchParams::default(), "1").await.unwrap());
        let ended = tokio::time::timeout(Duration::from_secs(20), watch.next()).await.unwrap();
        assert!(!matches!(ended, Some(Ok(_))), "{ended:?}");
    }

    #[tokio::test]
    async fn a_server_that_accepts_connections_and_says_nothing_is_given_up() {
        use k8s_openapi::api::core::v1::Secret;
        use kube::Api;

        let frozen = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://{}", frozen.local_addr().unwrap());
        drop(rustls::crypto::ring::default_provider().install_default());
        let client =
            within(Config::new(url.parse().unwrap()), None, Duration::from_millis(50), None).unwrap();
        let read = Api::<Secret>::namespaced(client, "x");
        let answer = tokio::time::timeout(Duration::from_secs(20), read.get("x")).await.unwrap();
        let failure = crate::failure::classify(&answer.unwrap_err());
        assert_eq!(failure, crate::failure::Failure::Unreachable("no answer in time"));
    }
}
