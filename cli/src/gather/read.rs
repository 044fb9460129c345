//! Asks one cluster for everything, all at once.

use std::collections::BTreeMap;

use api::{label, view::Meta};
use futures::future::join_all;
use http::Request;
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{Namespace, Pod, Secret},
};
use kube::{Api, ResourceExt, api::ListParams};
use picture::dns;
use serde::Deserialize;
use serde_json::Value;

use super::kinds;
use crate::{
    Error,
    bundle::{self, Away, Seen},
    check::clock,
    cluster::Cluster,
    error::Failure,
    objects::SYSTEM,
};

/// Objects of a page.
const PAGE: u32 = 500;

/// Code of an answer that stands for none.
const SILENT: u16 = 504;

/// Answers of one cluster.
#[derive(Debug, Default)]
pub(super) struct Asked {
    /// The cluster.
    pub(super) seen: Seen,
    /// Answers by path; refusals, too.
    pub(super) answers: BTreeMap<String, Value>,
    /// Logs and metrics by path in the cluster's folder.
    pub(super) texts: BTreeMap<String, String>,
    /// Parts that are missing, and why.
    pub(super) missing: Vec<String>,
}

impl Asked {
    /// Returns a line of progress.
    pub(super) fn said(&self) -> String {
        let name = &self.seen.context;
        match &self.seen.away {
            Some(_) => format!("{name}: no answer"),
            None => format!("{name}: {} objects", self.objects()),
        }
    }

    /// Number of objects that were read.
    pub(super) fn objects(&self) -> usize {
        self.answers.values().map(|answer| items(answer).len()).sum()
    }

    /// The Pods in the Namespace of the daemons.
    pub(super) fn pods(&self) -> &[Value] {
        self.answers.get(&kinds::within::<Pod>(SYSTEM)).map(items).unwrap_or_default()
    }
}

/// The objects of a list.
pub(super) fn items(list: &Value) -> &[Value] {
    list.get("items").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// uid of Namespace kube-system, if it can be read.
pub(super) async fn uid(cluster: &Cluster) -> Option<String> {
    let namespaces = Api::<Meta<Namespace>>::all(cluster.client.clone());
    let system = cluster.request("ask which cluster this is", namespaces.get("kube-system")).await;
    system.ok()?.uid()
}

/// Reads what takes long, and is not about the moment. `namespace`: that of the context, for whoever may not read others.
pub(super) async fn read(cluster: &Cluster, namespace: &str) -> Asked {
    let mut asked = Asked {
        seen: Seen {
            context: cluster.name.clone(),
            namespace: namespace.to_owned(),
            server: cluster.server.clone(),
            ..Seen::default()
        },
        ..Asked::default()
    };
    let request = Request::get("/version").body(Vec::new());
    let version = match request {
        Ok(request) => cluster.request("ask for the version", cluster.client.request(request)).await,
        Err(error) => Err(Error::Argument(error.to_string())),
    };
    if let Err(error) = &version
        && let Some(away) = away(error)
    {
        asked.missing.push(error.to_string());
        asked.seen.away = Some(away);
        return asked;
    }
    asked.note("/version".into(), version);
    asked.seen.clock_ahead = Box::pin(clock::ahead(cluster))
        .await
        .map(|ahead| i64::try_from(ahead.as_millis()).unwrap_or_default());
    asked.lists(cluster, kinds::of_cluster()).await;
    let elsewhere = [SYSTEM, namespace].into_iter().map(str::to_owned).chain(asked.areas());
    asked.everywhere(cluster, &elsewhere.collect::<Vec<_>>()).await;
    asked
}

/// Reads Leases and all else in the Namespaces of Freeport: of all clusters at about the same time.
pub(super) async fn read_own(cluster: &Cluster, asked: &mut Asked) {
    if asked.seen.away.is_some() {
        return;
    }
    asked.objects_of(cluster, kinds::named().into()).await;
    let files = asked.dns_files();
    asked.objects_of(cluster, files).await;
    let areas = asked.areas();
    let of_areas = areas.iter().flat_map(|area| kinds::of_area(area));
    asked.lists(cluster, of_areas.chain(kinds::of_system()).collect()).await;
}

/// Why nothing can be known of the cluster, if that is so.
fn away(error: &Error) -> Option<Away> {
    let code = match error.failure() {
        Failure::NoAnswer => None,
        Failure::Unauthorized => Some(401),
        _ => return None,
    };
    Some(Away { code, message: error.cause() })
}

impl Asked {
    /// Notes an answer, or what is missing.
    fn note(&mut self, path: String, answer: Result<Value, Error>) {
        let answer = answer.unwrap_or_else(|error| {
            // Of a kind that is not known nothing is missing.
            if error.failure() != Failure::Missing {
                self.missing.push(error.to_string());
            }
            refusal(&error)
        });
        self.answers.insert(path, answer);
    }

    async fn lists(&mut self, cluster: &Cluster, paths: Vec<String>) {
        let all = join_all(paths.iter().map(|path| Box::pin(list(cluster, path)))).await;
        for (path, answer) in paths.into_iter().zip(all) {
            self.note(path, answer);
        }
    }

    async fn objects_of(&mut self, cluster: &Cluster, paths: Vec<String>) {
        let all = join_all(paths.iter().map(|path| Box::pin(object(cluster, path)))).await;
        for (path, answer) in paths.into_iter().zip(all) {
            self.note(path, answer);
        }
    }

    /// Kinds in all Namespaces; in `elsewhere` alone, where not all may be read.
    async fn everywhere(&mut self, cluster: &Cluster, elsewhere: &[String]) {
        let kinds = kinds::EVERYWHERE;
        let all = kinds.iter().map(|(all, _)| all()).collect::<Vec<_>>();
        let answers = join_all(all.iter().map(|path| Box::pin(list(cluster, path)))).await;
        let is_refused = |answer: &Result<Value, Error>| matches!(answer, Err(error) if matches!(error.failure(), Failure::Forbidden(_)));
        for ((path, answer), (_, within)) in all.into_iter().zip(answers).zip(kinds) {
            let narrow = if is_refused(&answer) { elsewhere } else { &[] };
            self.note(path, answer);
            for namespace in narrow {
                let path = within(namespace);
                if let Ok(found) = list(cluster, &path).await {
                    self.answers.insert(path, found);
                }
            }
        }
    }

    /// Common Areas of the sets that the cluster leads.
    fn areas(&self) -> Vec<String> {
        let all = self.answers.get(&kinds::all::<Namespace>()).map(items).unwrap_or_default();
        let is_area = |namespace: &&Value| {
            let labels = namespace.pointer("/metadata/labels");
            labels.and_then(|labels| labels.get(label::COMMON_AREA)?.as_str()) == Some(label::TRUE)
        };
        let name = |namespace: &Value| namespace.pointer("/metadata/name")?.as_str().map(str::to_owned);
        all.iter().filter(is_area).filter_map(name).collect()
    }

    /// Paths of the ConfigMaps that CoreDNS mounts besides its own.
    fn dns_files(&self) -> Vec<String> {
        let deployment = self.answers.get(&kinds::dns_deployment());
        let deployment = deployment.and_then(|deployment| Deployment::deserialize(deployment).ok());
        let pod = deployment.and_then(|deployment| deployment.spec.template.spec);
        let names = pod.iter().flat_map(|pod| dns::mounted(pod, dns::NAME));
        names.map(|name| kinds::config_map(dns::NAMESPACE, name)).collect()
    }

    /// Returns the values of its Secrets, by key.
    pub(super) fn secrets(&self) -> impl Iterator<Item = (String, k8s_openapi::ByteString)> {
        let suffix = format!("/{}", <Secret as kube::Resource>::plural(&()));
        let lists = self.answers.iter().filter(move |(path, _)| path.ends_with(&suffix));
        let data = |secret: &Value| Secret::deserialize(secret).ok().and_then(|secret| secret.data);
        lists.flat_map(|(_, list)| items(list)).filter_map(data).flatten()
    }
}

/// An answer that says why there is none: the API server's own, if it gave one.
fn refusal(error: &Error) -> Value {
    match error {
        Error::Request { source, .. } if let kube::Error::Api(said) = &**source => bundle::status(said),
        _ => bundle::refusal(SILENT, &error.cause()),
    }
}

/// All objects of a list, as the API server sends them.
async fn list(cluster: &Cluster, path: &str) -> Result<Value, Error> {
    let mut whole: Option<Value> = None;
    let mut params = ListParams::default().limit(PAGE);
    loop {
        let request = kube::core::Request::new(path).list(&params);
        let request = request.map_err(|error| Error::Argument(error.to_string()))?;
        let mut page: Value =
            cluster.request(format!("list {}", told(path)), cluster.client.request(request)).await?;
        let next = page.pointer("/metadata/continue").and_then(Value::as_str).map(str::to_owned);
        if let Some(metadata) = page.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("continue");
            metadata.remove("remainingItemCount");
        }
        match &mut whole {
            Some(whole) => append(whole, &mut page),
            None => whole = Some(page),
        }
        match next.filter(|next| !next.is_empty()) {
            Some(next) => params = params.continue_token(&next),
            None => return Ok(whole.unwrap_or_default()),
        }
    }
}

fn append(whole: &mut Value, page: &mut Value) {
    let more = page.get_mut("items").and_then(Value::as_array_mut);
    if let (Some(all), Some(more)) = (whole.get_mut("items").and_then(Value::as_array_mut), more) {
        all.append(more);
    }
}

async fn object(cluster: &Cluster, path: &str) -> Result<Value, Error> {
    let (parent, name) = path.rsplit_once('/').unwrap_or_default();
    let request = kube::core::Request::new(parent).get(name, &kube::api::GetParams::default());
    let request = request.map_err(|error| Error::Argument(error.to_string()))?;
    cluster.request(format!("read {}", told(path)), cluster.client.request(request)).await
}

/// A path as messages name it: `services`, `secrets in shop`, `coredns of configmaps in kube-system`.
fn told(path: &str) -> String {
    match path.split_once("/namespaces/").and_then(|(_, rest)| rest.split_once('/')) {
        Some((namespace, plural)) => match plural.split_once('/') {
            Some((plural, name)) => format!("{name} of {plural} in {namespace}"),
            None => format!("{plural} in {namespace}"),
        },
        None => path.rsplit('/').next().unwrap_or(path).to_owned(),
    }
}
