//! Reaching a cluster with the kubeconfig of whoever runs the command, or the bundle that it is in ([`bundled`]).

mod bundled;

use std::{
    fmt::{Debug, Display},
    future::Future,
    path::PathBuf,
    time::Duration,
};

use api::view::{Meta, Named};
use k8s_openapi::{ByteString, api::core::v1::Namespace, jiff::Timestamp};
use kit::list::Pages;
use kube::{
    Api, Client, Config, Resource, ResourceExt,
    api::ListParams,
    config::{Context, KubeConfigOptions, Kubeconfig},
    core::discovery::ApiResource,
};
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::{
    Error,
    bundle::Bundle,
    dynamic::Dynamic,
    error::{Failure, classify},
    objects::Object,
    proxy,
};

pub(crate) use self::bundled::now;

/// How long one request may take, unless a flag says it. After that the server is taken not to answer.
const REQUEST_LIMIT: Duration = Duration::from_secs(30);

/// Where a cluster's address and credential are found, as `kubectl --kubeconfig --context` takes them.
#[derive(Clone, Debug, Default)]
pub struct KubeContext {
    /// The kubeconfig; without one, the files in `KUBECONFIG`, else `~/.kube/config`.
    pub file: Option<PathBuf>,
    /// The context in it; without one, its current context.
    pub name: Option<String>,
    /// As whom, and for how long.
    pub login: Login,
    /// What answers in the place of the cluster.
    pub bundle: Option<Bundle>,
}

/// How the API server is asked, beside the kubeconfig.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Login {
    /// User to impersonate, as `kubectl --as`.
    pub user: Option<String>,
    /// Groups to impersonate, as `kubectl --as-group`.
    pub groups: Vec<String>,
    /// How long one request may take; without it, as long as the command says.
    pub limit: Option<Duration>,
}

/// `context NAME of FILE`, as far as given.
impl Display for KubeContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.name {
            Some(name) => write!(f, "context {name:?} of ")?,
            None => f.write_str("current context of ")?,
        }
        match (&self.bundle, &self.file) {
            (Some(bundle), _) => f.write_str(bundle.path()),
            (None, Some(file)) => write!(f, "{}", file.display()),
            (None, None) => f.write_str("the default kubeconfig"),
        }
    }
}

/// Why a kubeconfig cannot be used.
type Unusable = Box<dyn std::error::Error + Send + Sync>;

impl KubeContext {
    /// All contexts of the kubeconfig, the current one first.
    pub(crate) fn all(&self) -> Result<Vec<Self>, Error> {
        if let Some(bundle) = &self.bundle {
            return Ok(self.bundled(bundle));
        }
        let config = self.read()?;
        let mut names: Vec<_> = config.contexts.into_iter().map(|entry| entry.name).collect();
        names.sort_by_key(|name| config.current_context.as_ref() != Some(name));
        Ok(names.into_iter().map(|name| Self { name: Some(name), ..self.clone() }).collect())
    }

    /// Namespace that the context names, else `default`, as for kubectl.
    pub(crate) fn namespace(&self) -> Result<String, Error> {
        if let Some(bundle) = &self.bundle {
            return Ok(self.seen(bundle)?.namespace.clone());
        }
        let config = self.read()?;
        let context = self.context(&config)?.1;
        Ok(context.and_then(|context| context.namespace.clone()).unwrap_or_else(|| "default".into()))
    }

    /// The context in this kubeconfig: its name, and what it says.
    fn context<'a>(&self, file: &'a Kubeconfig) -> Result<(String, Option<&'a Context>), Error> {
        let name = self.name.clone().or(file.current_context.clone()).unwrap_or_default();
        match file.contexts.iter().find(|entry| entry.name == name) {
            Some(entry) => Ok((name, entry.context.as_ref())),
            None => {
                let names: Vec<&str> = file.contexts.iter().map(|entry| entry.name.as_str()).collect();
                Err(self
                    .unusable(format!("there is no context {name:?} (contexts: {})", list(&names)).into()))
            }
        }
    }

    /// The same cluster, asked with this limit of each request unless a flag gave another one.
    pub(crate) fn within(mut self, limit: Duration) -> Self {
        self.login.limit.get_or_insert(limit);
        self
    }

    fn read(&self) -> Result<Kubeconfig, Error> {
        let read = match &self.file {
            Some(path) => Kubeconfig::read_from(path),
            None => Kubeconfig::read(),
        };
        read.map_err(|error| self.unusable(error.into()))
    }

    fn unusable(&self, source: Unusable) -> Error {
        Error::Kubeconfig { place: self.to_string(), source }
    }
}

/// A cluster, and how it is reached.
pub(crate) struct Cluster {
    /// The context's name: how messages call the cluster.
    pub(crate) name: String,
    /// URL of the API server in the kubeconfig.
    pub(crate) server: String,
    /// Certificate authorities the kubeconfig trusts, PEM; none when it leaves that to the system.
    pub(crate) ca: Option<Vec<u8>>,
    /// Name that the server's certificate must carry, when it is not the URL's host.
    pub(crate) tls_server_name: Option<String>,
    /// uid of Namespace kube-system: equal for two contexts that lead to one cluster. Empty if it was not asked for.
    pub(crate) uid: String,
    /// Client with the credential of the kubeconfig.
    pub(crate) client: Client,
    /// How long one request may take.
    pub(crate) limit: Duration,
    /// When it was asked, if a bundle answers in its place.
    pub(crate) taken_at: Option<Timestamp>,
}

impl Cluster {
    /// Reads the kubeconfig and asks the API server who it is.
    pub(crate) async fn connect(context: &KubeContext) -> Result<Self, Error> {
        Self::open(context).await?.identified().await
    }

    /// The cluster behind a client.
    pub(crate) fn of(name: &str, client: Client) -> Self {
        Self {
            name: name.to_owned(),
            server: String::new(),
            ca: None,
            tls_server_name: None,
            uid: String::new(),
            client,
            limit: REQUEST_LIMIT,
            taken_at: None,
        }
    }

    /// Asks the API server who it is.
    pub(crate) async fn identified(mut self) -> Result<Self, Error> {
        let namespaces: Api<Meta<Namespace>> = Api::all(self.client.clone());
        let doing = format!("reach {}", self.server);
        let system = self.request(doing, namespaces.get("kube-system")).await.map_err(answered)?;
        self.uid = system.uid().unwrap_or_default();
        Ok(self)
    }

    /// The clusters behind these contexts; none of them is asked.
    pub(crate) async fn open_all(contexts: &[KubeContext]) -> Result<Vec<Self>, Error> {
        let mut clusters = Vec::new();
        for context in contexts {
            clusters.push(Self::open(context).await?);
        }
        Ok(clusters)
    }

    /// Reads the kubeconfig only: for whoever may have too few rights to ask who the API server is.
    pub(crate) async fn open(context: &KubeContext) -> Result<Self, Error> {
        if let Some(bundle) = &context.bundle {
            return Self::bundled(context, bundle);
        }
        let unusable = |source| context.unusable(source);
        let file = context.read()?;
        let (name, chosen) = context.context(&file)?;
        let options = KubeConfigOptions { context: context.name.clone(), ..KubeConfigOptions::default() };
        let mut config = Config::from_custom_kubeconfig(file.clone(), &options)
            .await
            .map_err(|error| unusable(error.into()))?;
        config.connect_timeout = Some(Duration::from_secs(10));
        if let Some(user) = &context.login.user {
            let groups = Some(context.login.groups.clone()).filter(|groups| !groups.is_empty());
            config.auth_info.impersonate = Some(user.clone());
            config.auth_info.impersonate_groups = groups;
        }

        let entry = chosen
            .and_then(|wanted| file.clusters.iter().find(|entry| entry.name == wanted.cluster))
            .and_then(|entry| entry.cluster.as_ref())
            .ok_or_else(|| unusable("has no cluster".into()))?;

        proxy::choose(&mut config, entry.proxy_url.as_deref());
        let client = Client::try_from(config).map_err(|error| unusable(error.into()))?;
        Ok(Self {
            name,
            server: entry.server.clone().unwrap_or_default(),
            ca: authorities(entry).map_err(unusable)?,
            tls_server_name: entry.tls_server_name.clone(),
            uid: String::new(),
            client,
            limit: context.login.limit.unwrap_or(REQUEST_LIMIT),
            taken_at: None,
        })
    }

    /// Awaits one request. An error says what failed, and in which cluster.
    pub(crate) async fn request<T>(
        &self,
        doing: impl Display,
        request: impl Future<Output = kube::Result<T>>,
    ) -> Result<T, Error> {
        match tokio::time::timeout(self.limit, request).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(source)) => Err(Error::Request {
                cluster: self.name.clone(),
                doing: doing.to_string(),
                source: Box::new(source),
            }),
            Err(_) => Err(Error::NoAnswer {
                cluster: self.name.clone(),
                doing: doing.to_string(),
                server: self.server.clone(),
                limit: self.limit,
            }),
        }
    }

    /// Where objects of a kind are, in one Namespace or in all.
    pub(crate) fn api(&self, resource: &ApiResource, namespace: Option<&str>) -> Api<Dynamic> {
        let client = self.client.clone();
        match namespace {
            Some(namespace) => Api::namespaced_with(client, namespace, resource),
            None => Api::all_with(client, resource),
        }
    }

    /// [`api`](Self::api), for metadata alone.
    pub(crate) fn metadata(&self, resource: &ApiResource, namespace: Option<&str>) -> Api<Meta<Dynamic>> {
        let client = self.client.clone();
        match namespace {
            Some(namespace) => Api::namespaced_with(client, namespace, resource),
            None => Api::all_with(client, resource),
        }
    }

    /// Names of all Namespaces.
    pub(crate) async fn namespaces(&self) -> Result<Vec<String>, Error> {
        let all: Api<Named<Namespace>> = Api::all(self.client.clone());
        self.each("namespaces", &all, "", |namespace| namespace.name_any()).await
    }

    /// The object in the cluster; none if there is no such object or kind.
    pub(crate) async fn read(&self, object: &Object) -> Result<Option<Object>, Error> {
        let api = self.api(&object.resource, object.namespace.as_deref());
        let found = self.request(format!("read {object}"), known(api.get(&object.name))).await?;
        Ok(found.map(|found| Object { body: json!(found), ..object.clone() }))
    }

    /// All objects of a kind with these labels; none if there is no such kind.
    pub(crate) async fn all<K>(&self, api: &Api<K>, labels: &str) -> Result<Vec<K>, Error>
    where
        K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned,
    {
        self.pages(&K::plural(&()), api, labels).await
    }

    /// [`all`](Self::all) of a kind that is known only at run time, by its plural.
    pub(crate) async fn pages<K>(&self, plural: &str, api: &Api<K>, labels: &str) -> Result<Vec<K>, Error>
    where
        K: Clone + Debug + DeserializeOwned,
    {
        match self.each(plural, api, labels, |object| object).await {
            Err(error) if matches!(error.failure(), Failure::Missing) => Ok(vec![]),
            all => all,
        }
    }

    /// What `keep` makes of each object with these labels, page by page. `part` is what a message calls them.
    pub(crate) async fn each<K, T>(
        &self,
        part: &str,
        api: &Api<K>,
        labels: &str,
        keep: impl Fn(K) -> T,
    ) -> Result<Vec<T>, Error>
    where
        K: Clone + Debug + DeserializeOwned,
    {
        let mut pages = Pages::of(api.clone(), ListParams::default().labels(labels));
        let mut found = Vec::new();
        while let Some(page) = self.request(format!("list {part}"), pages.next()).await? {
            found.extend(page.into_iter().map(&keep));
        }
        Ok(found)
    }

    /// An error: something would be taken away, and `--yes` is missing.
    pub(crate) fn unconfirmed(&self, reason: String) -> Error {
        Error::Unconfirmed { cluster: self.name.clone(), reason }
    }

    /// An error: the state of the cluster does not allow what was asked for.
    pub(crate) fn refuse(&self, reason: String) -> Error {
        Error::Refused { cluster: self.name.clone(), reason }
    }
}

/// Who refuses was reached.
fn answered(error: Error) -> Error {
    match error {
        Error::Request { cluster, source, .. } if matches!(classify(&source), Failure::Forbidden(_)) => {
            Error::Request { cluster, doing: "ask which cluster this is".to_owned(), source }
        }
        other => other,
    }
}

/// None if there is no such object or kind.
pub(crate) async fn known<T>(request: impl Future<Output = kube::Result<T>>) -> kube::Result<Option<T>> {
    match request.await {
        Err(error) if classify(&error) == Failure::Missing => Ok(None),
        other => other.map(Some),
    }
}

/// Names for a message.
pub(crate) fn list(names: &[impl AsRef<str>]) -> String {
    if names.is_empty() {
        return "none".into();
    }
    let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    names.join(", ")
}

/// The authorities a kubeconfig's cluster names, inline or in a file.
fn authorities(
    cluster: &kube::config::Cluster,
) -> Result<Option<Vec<u8>>, Box<dyn std::error::Error + Send + Sync>> {
    if let Some(data) = &cluster.certificate_authority_data {
        let ByteString(pem) = serde_json::from_value(data.trim().into())
            .map_err(|error| format!("certificate-authority-data: {error}"))?;
        return Ok(Some(pem));
    }
    match &cluster.certificate_authority {
        Some(path) => Ok(Some(std::fs::read(path).map_err(|error| format!("{path}: {error}"))?)),
        None => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;

    #[test]
    fn a_cluster_that_refuses_was_reached() {
        let said = |code: u16| {
            let source = kube::Error::Api(Status::failure("no", "Reason").with_code(code).boxed());
            let (cluster, doing) = ("east".into(), "reach https://east:6443".into());
            answered(Error::Request { cluster, doing, source: Box::new(source) }).to_string()
        };
        assert!(!said(403).contains("reach"), "{}", said(403));
        assert!(said(503).contains("cannot reach https://east:6443"), "{}", said(503));
    }
}
