//! Reads from one cluster what is judged. Without an answer it ends with an error; a refusal or an unknown kind is a [`Gap`].

mod binding;
mod offloading;

use api::{
    label,
    lease::LeaseView,
    name,
    view::{Meta, Named},
};
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{Secret, ServiceAccount},
};
use kube::{Api, Resource, ResourceExt};
use serde::de::DeserializeOwned;

use super::found::{Area, Entry, Found, Gap, Part, Record, Why, is_merged_service};
use crate::{
    Error,
    cluster::Cluster,
    objects::{Object, SYSTEM, access, leader, member},
    part::{common_areas, each_within, gap, get, list, within},
    view::{ClusterSetView, Note, RecordView, ResourceImportView, ServiceExportView, ServiceImportView},
};

/// Asks for everything, or for what concerns ClusterSet `asked`.
pub(super) async fn gather(cluster: &Cluster, asked: Option<&str>) -> Result<Found, Error> {
    let areas = areas(cluster, asked).await?;
    let sets = match within::<ClusterSetView>(cluster, SYSTEM).await? {
        // Without the CRD nothing was ever joined.
        Err(Gap { why: Why::NoCrd, .. }) => Ok(Vec::new()),
        Ok(sets) => Ok(sets
            .into_iter()
            .filter(|set| asked.is_none_or(|asked| set.name_any() == asked))
            .collect::<Vec<_>>()),
        gap => gap,
    };
    let noted = noted(cluster).await?.map(|noted| {
        noted.filter(|noted| asked.is_none_or(|asked| noted.cluster_set.as_deref() == Some(asked)))
    });
    let belongs = match (&sets, &noted) {
        (Ok(sets), noted) if sets.is_empty() => Some(matches!(noted, Ok(Some(_)))),
        (sets, _) => sets.as_ref().ok().map(|_| true),
    };
    let leads = areas.as_ref().is_ok_and(|areas| !areas.is_empty());
    let records_policy = policy(cluster, leads, &leader::policy()).await?;
    let imports_policy = policy(cluster, belongs == Some(true), &member::policy()).await?;
    let own_policy = policy(cluster, belongs == Some(true), &member::own_policy()).await?;
    let checks = checks(cluster, belongs == Some(true), &member::checks()).await?;
    let binding = Box::pin(binding::binding(cluster)).await?;
    let provides = binding.as_ref().is_some_and(|binding| binding.provider.is_some());
    let leader = deployment(cluster, leads || provides, label::LEADER).await?;
    let member = deployment(cluster, belongs == Some(true), label::MEMBER).await?;
    let life = lease(cluster, belongs == Some(true), label::MEMBER).await?;
    let active = [
        (label::LEADER, lease(cluster, leads || provides, &name::active_lease(label::LEADER)).await?),
        (label::MEMBER, lease(cluster, belongs == Some(true), &name::active_lease(label::MEMBER)).await?),
    ];
    let exports = services(cluster, "", belongs, |_: &ServiceExportView| true).await?;
    let ours = format!("{}={}", label::MANAGED_BY, label::FREEPORT);
    let imports = services(cluster, &ours, belongs, ServiceImportView::is_members).await?;
    let us = sets.iter().flatten().find_map(ClusterSetView::cluster_id);
    let offloading = offloading::offloading(cluster, us).await?;
    let lost_records = offloading::lost_records(cluster, leads, offloading.is_some()).await?;
    Ok(Found {
        cluster: cluster.name.clone(),
        version: env!("CARGO_PKG_VERSION").into(),
        asked: asked.map(Into::into),
        areas,
        sets,
        noted,
        records_policy,
        imports_policy,
        own_policy,
        checks,
        leader,
        member,
        life,
        active,
        exports,
        imports,
        offloading,
        lost_records,
        binding,
    })
}

async fn areas(cluster: &Cluster, asked: Option<&str>) -> Result<Part<Vec<Area>>, Error> {
    let names = match common_areas(cluster).await? {
        Ok(names) => names,
        Err(gap) => return Ok(Err(gap)),
    };
    let mut areas = Vec::new();
    for name in names {
        let sets: Part<Vec<ClusterSetView>> = within(cluster, &name).await?;
        if asked.is_none_or(|asked| holds(&name, &sets, asked)) {
            areas.push(area(cluster, name, sets).await?);
        }
    }
    Ok(Ok(areas))
}

/// Whether a Common Area is that of ClusterSet `asked`: by what is in it, or by its name if that is not known.
fn holds(namespace: &str, sets: &Part<Vec<ClusterSetView>>, asked: &str) -> bool {
    match sets.as_deref() {
        Ok([]) | Err(_) => namespace == crate::objects::area::name(asked),
        Ok(sets) => sets.iter().any(|set| set.name_any() == asked),
    }
}

async fn area(cluster: &Cluster, namespace: String, sets: Part<Vec<ClusterSetView>>) -> Result<Area, Error> {
    let leases: Part<Vec<LeaseView>> = within(cluster, &namespace).await?;
    let accounts: Part<Vec<Meta<ServiceAccount>>> = within(cluster, &namespace).await?;
    let long_lived = long_lived(cluster, &namespace, accounts.as_deref().unwrap_or_default()).await?;
    let records = each_within(cluster, &namespace, |record: RecordView| Record::from(record)).await?;
    let is_merged = |import: ResourceImportView| is_merged_service(&import);
    let imports = each_within(cluster, &namespace, is_merged).await?;
    let joined = |account: &Meta<ServiceAccount>| account.annotations().get(label::CLUSTER_ID).cloned();
    Ok(Area {
        sets,
        leases: leases.map(|leases| leases.into_iter().map(|lease| (lease.name_any(), lease)).collect()),
        joined: accounts.map(|accounts| accounts.iter().filter_map(joined).collect()),
        long_lived,
        records,
        imports: imports.map(|imports| imports.into_iter().filter(|is_merged| *is_merged).count()),
        namespace,
    })
}

/// IDs of members whose ServiceAccount has a token in a Secret, which they do not need: those that run Antrea's controllers do.
async fn long_lived(
    cluster: &Cluster,
    area: &str,
    accounts: &[Meta<ServiceAccount>],
) -> Result<Vec<String>, Error> {
    let secrets: Api<Named<Secret>> = Api::namespaced(cluster.client.clone(), area);
    let ours = format!("{}={}", label::MANAGED_BY, label::FREEPORT);
    let names =
        list(cluster, &secrets, format!("secrets in {area}"), &ours, |secret| secret.name_any()).await?;
    let names = names.unwrap_or_default();
    let ours = accounts.iter().filter(|account| !account.annotations().contains_key(label::SPEAKS));
    let ids = ours.filter_map(|account| account.annotations().get(label::CLUSTER_ID).cloned());
    Ok(ids.filter(|id| names.contains(&access::token_secret(id))).collect())
}

async fn noted(cluster: &Cluster) -> Result<Part<Option<Note>>, Error> {
    match Note::of(cluster).await {
        Ok(note) => Ok(Ok(note)),
        Err(error) => gap(format!("configmaps in {SYSTEM}"), error).map(Err),
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

/// Policies that refuse mistakes, each with its binding.
async fn checks(
    cluster: &Cluster,
    needed: bool,
    wanted: &[[Object; 2]],
) -> Result<Vec<Option<Part<[Option<Object>; 2]>>>, Error> {
    let mut checks = Vec::new();
    for wanted in wanted {
        checks.push(policy(cluster, needed, wanted).await?);
    }
    Ok(checks)
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
    get(cluster, &deployments, part, daemon).await.map(Some)
}

/// The Lease of that name in the Namespace of the daemons, if it is `needed` here.
async fn lease(
    cluster: &Cluster,
    needed: bool,
    name: &str,
) -> Result<Option<Part<Option<LeaseView>>>, Error> {
    if !needed {
        return Ok(None);
    }
    let leases: Api<LeaseView> = Api::namespaced(cluster.client.clone(), SYSTEM);
    let part = format!("Lease {SYSTEM}/{name}");
    get(cluster, &leases, part, name).await.map(Some)
}

/// All objects of a kind, as far as they are judged.
async fn everywhere<V>(cluster: &Cluster) -> Result<Part<Vec<Entry>>, Error>
where
    V: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug + Into<Entry>,
{
    let objects: Api<V> = Api::all(cluster.client.clone());
    list(cluster, &objects, V::plural(&()).into(), "", V::into).await
}

/// Exports or imports of all Namespaces that count. If it is not known whether the cluster belongs to a set, only objects that exist show
/// that it does.
async fn services<V>(
    cluster: &Cluster,
    labels: &str,
    belongs: Option<bool>,
    counts: impl Fn(&V) -> bool,
) -> Result<Option<Part<Vec<Entry>>>, Error>
where
    V: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug + Into<Entry>,
{
    if belongs == Some(false) {
        return Ok(None);
    }
    let objects: Api<V> = Api::all(cluster.client.clone());
    let entry = |object: V| counts(&object).then(|| object.into());
    let entries = list(cluster, &objects, V::plural(&()).into(), labels, entry).await?;
    let entries: Part<Vec<Entry>> = entries.map(|entries| entries.into_iter().flatten().collect());
    let tells = match &entries {
        Ok(entries) => !entries.is_empty(),
        Err(Gap { why, .. }) => !matches!(why, Why::NoCrd),
    };
    Ok((belongs.is_some() || tells).then_some(entries))
}
