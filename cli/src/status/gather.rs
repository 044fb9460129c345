//! Asking one cluster for what is judged. A server that is away ends it; a refusal or a kind it does not know is a [`Gap`].

use api::{
    cluster_set::ClusterSet,
    label,
    mcs::{ServiceExport, ServiceImport},
    membership,
    resource_export::ResourceExport,
    resource_import::ResourceImport,
};
use k8s_openapi::api::{
    apps::v1::Deployment,
    coordination::v1::Lease,
    core::v1::{ConfigMap, Namespace, ServiceAccount},
};
use kube::{
    Api, Resource, ResourceExt,
    api::{DynamicObject, ListParams},
    core::discovery::ApiResource,
};
use serde::de::DeserializeOwned;

use super::found::{Area, Entry, Found, Gap, Noted, Part, Record, Renewal, Set, Why, is_merged_service};
use crate::{
    Error,
    cluster::Cluster,
    objects::{Object, SYSTEM, leader, member},
};

/// Objects in one answer: large lists come in pages.
const PAGE: u32 = 500;

/// Asks for everything, or for what concerns ClusterSet `asked`.
pub(super) async fn gather(cluster: &Cluster, asked: Option<&str>) -> Result<Found, Error> {
    let areas = areas(cluster, asked).await?;
    let sets = match sets(cluster, SYSTEM).await? {
        // Without the CRD nothing was ever joined.
        Err(Gap { why: Why::NoCrd, .. }) => Ok(Vec::new()),
        Ok(sets) => {
            Ok(sets.into_iter().filter(|set| asked.is_none_or(|asked| set.name == asked)).collect::<Vec<_>>())
        }
        gap => gap,
    };
    let noted = noted(cluster)
        .await?
        .map(|noted| noted.filter(|noted| asked.is_none_or(|asked| noted.cluster_set == asked)));
    let belongs = match (&sets, &noted) {
        (Ok(sets), noted) if sets.is_empty() => Some(matches!(noted, Ok(Some(_)))),
        (sets, _) => sets.as_ref().ok().map(|_| true),
    };
    let leads = areas.as_ref().is_ok_and(|areas| !areas.is_empty());
    let records_policy = policy(cluster, leads, &leader::policy()).await?;
    let imports_policy = policy(cluster, belongs == Some(true), &member::policy()).await?;
    let mut checks = Vec::new();
    for wanted in member::checks() {
        checks.push(policy(cluster, belongs == Some(true), &wanted).await?);
    }
    let leader = deployment(cluster, leads, label::LEADER).await?;
    let member = deployment(cluster, belongs == Some(true), label::MEMBER).await?;
    let life = life(cluster, belongs == Some(true)).await?;
    let exports = services::<ServiceExport>(cluster, "", belongs).await?;
    let ours = format!("{}={}", label::MANAGED_BY, label::FREEPORT);
    let imports = services::<ServiceImport>(cluster, &ours, belongs).await?;
    Ok(Found {
        cluster: cluster.name.clone(),
        version: env!("CARGO_PKG_VERSION").into(),
        asked: asked.map(Into::into),
        areas,
        sets,
        noted,
        records_policy,
        imports_policy,
        checks,
        leader,
        member,
        life,
        exports,
        imports,
    })
}

async fn areas(cluster: &Cluster, asked: Option<&str>) -> Result<Part<Vec<Area>>, Error> {
    let wanted = format!("{}={}", label::COMMON_AREA, label::TRUE);
    let namespaces: Api<Namespace> = Api::all(cluster.client.clone());
    let namespaces = match list(cluster, &namespaces, "namespaces".into(), &wanted).await? {
        Ok(namespaces) => namespaces,
        Err(gap) => return Ok(Err(gap)),
    };
    let mut areas = Vec::new();
    for namespace in namespaces {
        let name = namespace.name_any();
        let sets = sets(cluster, &name).await?;
        if asked.is_none_or(|asked| holds(&name, &sets, asked)) {
            areas.push(area(cluster, name, sets).await?);
        }
    }
    Ok(Ok(areas))
}

/// Whether a Common Area is that of ClusterSet `asked`: by what is in it, or by its name if that is not known.
fn holds(namespace: &str, sets: &Part<Vec<Set>>, asked: &str) -> bool {
    match sets.as_deref() {
        Ok([]) | Err(_) => namespace == crate::objects::area::name(asked),
        Ok(sets) => sets.iter().any(|set| set.name == asked),
    }
}

async fn area(cluster: &Cluster, namespace: String, sets: Part<Vec<Set>>) -> Result<Area, Error> {
    let within = |plural: &str| format!("{plural} in {namespace}");
    let leases: Api<Lease> = Api::namespaced(cluster.client.clone(), &namespace);
    let accounts: Api<ServiceAccount> = Api::namespaced(cluster.client.clone(), &namespace);
    let leases = list(cluster, &leases, within("leases"), "").await?;
    let accounts = list(cluster, &accounts, within("serviceaccounts"), "").await?;
    let records = loose::<ResourceExport>(cluster, Some(&namespace), "").await?;
    let imports = loose::<ResourceImport>(cluster, Some(&namespace), "").await?;
    let joined = |account: &ServiceAccount| account.annotations().get(label::CLUSTER_ID).cloned();
    Ok(Area {
        sets,
        leases: leases
            .map(|leases| leases.iter().map(|lease| (lease.name_any(), Renewal::read(lease))).collect()),
        joined: accounts.map(|accounts| accounts.iter().filter_map(joined).collect()),
        records: records.map(|records| records.iter().map(Record::read).collect()),
        imports: imports.map(|imports| imports.iter().filter(|import| is_merged_service(import)).count()),
        namespace,
    })
}

async fn sets(cluster: &Cluster, namespace: &str) -> Result<Part<Vec<Set>>, Error> {
    let sets = loose::<ClusterSet>(cluster, Some(namespace), "").await?;
    Ok(sets.map(|sets| sets.iter().map(Set::read).collect()))
}

async fn noted(cluster: &Cluster) -> Result<Part<Option<Noted>>, Error> {
    let notes: Api<ConfigMap> = Api::namespaced(cluster.client.clone(), SYSTEM);
    let part = format!("configmaps in {SYSTEM}");
    match cluster
        .request(format!("read ConfigMap {SYSTEM}/{}", membership::NAME), notes.get_opt(membership::NAME))
        .await
    {
        Ok(note) => Ok(Ok(note.as_ref().map(Noted::read))),
        Err(error) => gap(part, error).map(Err),
    }
}

/// A policy and its binding, if they are `needed` here.
async fn policy(
    cluster: &Cluster,
    needed: bool,
    wanted: &[Object; 2],
) -> Result<Option<Part<[Option<Object>; 2]>>, Error> {
    if !needed {
        return Ok(None);
    }
    let [policy, binding] = wanted;
    let read = async { Ok([cluster.read(policy).await?, cluster.read(binding).await?]) };
    match read.await {
        Ok(there) => Ok(Some(Ok(there))),
        Err(error) => gap(policy.to_string(), error).map(|gap| Some(Err(gap))),
    }
}

/// The Deployment of a daemon that is `needed` here, if it has one.
async fn deployment(
    cluster: &Cluster,
    needed: bool,
    daemon: &str,
) -> Result<Option<Part<Option<Deployment>>>, Error> {
    if !needed {
        return Ok(None);
    }
    let deployments: Api<Deployment> = Api::namespaced(cluster.client.clone(), SYSTEM);
    let part = format!("Deployment {SYSTEM}/{daemon}");
    match cluster.request(format!("read {part}"), deployments.get_opt(daemon)).await {
        Ok(deployment) => Ok(Some(Ok(deployment))),
        Err(error) => gap(part, error).map(|gap| Some(Err(gap))),
    }
}

/// The member's own sign of life, if it is `needed` here.
async fn life(cluster: &Cluster, needed: bool) -> Result<Option<Part<Option<Renewal>>>, Error> {
    if !needed {
        return Ok(None);
    }
    let leases: Api<Lease> = Api::namespaced(cluster.client.clone(), SYSTEM);
    let part = format!("Lease {SYSTEM}/{}", label::MEMBER);
    match cluster.request(format!("read {part}"), leases.get_opt(label::MEMBER)).await {
        Ok(lease) => Ok(Some(Ok(lease.as_ref().map(Renewal::read)))),
        Err(error) => gap(part, error).map(|gap| Some(Err(gap))),
    }
}

/// Exports or imports of all Namespaces. Who may not read whether the cluster belongs to a set may still read these, and
/// then nothing speaks for the set being there but the objects themselves.
async fn services<K: Resource<DynamicType = ()>>(
    cluster: &Cluster,
    labels: &str,
    belongs: Option<bool>,
) -> Result<Option<Part<Vec<Entry>>>, Error> {
    if belongs == Some(false) {
        return Ok(None);
    }
    let entries: Part<Vec<Entry>> =
        loose::<K>(cluster, None, labels).await?.map(|objects| objects.iter().map(Entry::read).collect());
    let tells = match &entries {
        Ok(entries) => !entries.is_empty(),
        Err(Gap { why, .. }) => !matches!(why, Why::NoCrd),
    };
    Ok((belongs.is_some() || tells).then_some(entries))
}

/// All objects of a kind, in one Namespace or in all, whatever their spec looks like.
async fn loose<K: Resource<DynamicType = ()>>(
    cluster: &Cluster,
    namespace: Option<&str>,
    labels: &str,
) -> Result<Part<Vec<DynamicObject>>, Error> {
    let (resource, client) = (ApiResource::erase::<K>(&()), cluster.client.clone());
    let (api, part) = match namespace {
        Some(namespace) => (
            Api::namespaced_with(client, namespace, &resource),
            format!("{} in {namespace}", resource.plural),
        ),
        None => (Api::all_with(client, &resource), resource.plural.clone()),
    };
    list(cluster, &api, part, labels).await
}

/// All objects behind `api`, page by page. `part` is how the report calls them.
async fn list<K: Clone + DeserializeOwned + std::fmt::Debug>(
    cluster: &Cluster,
    api: &Api<K>,
    part: String,
    labels: &str,
) -> Result<Part<Vec<K>>, Error> {
    let mut params = ListParams::default().labels(labels).limit(PAGE);
    let mut all = Vec::new();
    loop {
        let page = match cluster.request(format!("list {part}"), api.list(&params)).await {
            Ok(page) => page,
            Err(error) => return gap(part, error).map(Err),
        };
        all.extend(page.items);
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => return Ok(Ok(all)),
        }
    }
}

/// Whether the rest can be asked for all the same: the server lives and knows who we are.
fn gap(part: String, error: Error) -> Result<Gap, Error> {
    let Error::Request { source, .. } = &error else {
        return Err(error);
    };
    let kube::Error::Api(status) = source.as_ref() else {
        return Err(error);
    };
    let why = match status.code {
        401 => return Err(error),
        403 => Why::Forbidden(status.message.clone()),
        404 => Why::NoCrd,
        _ => Why::Failed(status.message.clone()),
    };
    Ok(Gap { part, why })
}
