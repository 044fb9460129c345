//! What there is of API binding. Whether Freeport set it up, and not somebody's kube-bind, say its rights.

use std::collections::BTreeSet;

use api::{
    bind::{
        binding::{APIServiceBinding, ClusterBinding},
        export::{APIServiceExport, APIServiceExportRequest, APIServiceNamespace},
        label::{self, BIND},
        offer::{APIServiceExportTemplate, BindableResourcesRequest},
        resource::Resource,
    },
    view::{Named, Tolerant},
};
use k8s_openapi::{
    api::core::v1::Namespace, apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{Api, ResourceExt};

use super::{everywhere, gap, list, policy};
use crate::{
    Error,
    cluster::Cluster,
    objects::{SYSTEM, bind},
    status::found::{
        Asked, Binding, Consumer, Contract, Entry, Exported, Left, Offered, Part, Provider, refused_ask,
        refused_namespace, refused_request, unanswered_ask, unanswered_request,
    },
};

/// Both sides, as far as they are set up here.
pub(super) async fn binding(cluster: &Cluster) -> Result<Option<Binding>, Error> {
    let (provider, consumer) = (provider(cluster).await?, consumer(cluster).await?);
    Ok((provider.is_some() || consumer.is_some()).then_some(Binding { provider, consumer }))
}

async fn provider(cluster: &Cluster) -> Result<Option<Provider>, Error> {
    if !is_set_up(cluster, bind::PROVIDER).await? {
        return Ok(None);
    }
    let Some(own) = policy(cluster, true, &bind::provider_policy()).await? else { return Ok(None) };
    let Some(requests) = policy(cluster, true, &bind::requests_policy()).await? else { return Ok(None) };
    let contracts: Api<Tolerant<ClusterBinding>> = Api::all(cluster.client.clone());
    let contracts = list(cluster, &contracts, "clusterbindings".into(), "", Contract::from).await?;
    let exports: Api<Tolerant<APIServiceExport>> = Api::all(cluster.client.clone());
    let exports = list(cluster, &exports, "apiserviceexports".into(), "", Exported::from).await?;
    let marked = format!("{}={}", label::EXPORTED, api::label::TRUE);
    Ok(Some(Provider {
        policy: own,
        requests,
        offers: offers(cluster).await?,
        contracts,
        exports,
        crds: crds(cluster, "").await?,
        marked: crds(cluster, &marked).await?,
        asked: asked(cluster).await?,
        refused: refused(cluster).await?,
        going: going(cluster).await?,
        left: left(cluster).await?,
    }))
}

/// Names of the CRDs that this selects.
async fn crds(cluster: &Cluster, selector: &str) -> Result<Part<BTreeSet<String>>, Error> {
    let crds: Api<Named<CustomResourceDefinition>> = Api::all(cluster.client.clone());
    let named = |crd: Named<CustomResourceDefinition>| crd.name_any();
    let names = list(cluster, &crds, "customresourcedefinitions".into(), selector, named).await?;
    Ok(names.map(|names| names.into_iter().collect()))
}

/// Who asks for a contract, or for APIs.
async fn asked(cluster: &Cluster) -> Result<Vec<Asked>, Error> {
    let asks: Api<Tolerant<BindableResourcesRequest>> = Api::namespaced(cluster.client.clone(), SYSTEM);
    let asks = list(cluster, &asks, "bindableresourcesrequests".into(), "", unanswered_ask).await?;
    let requests: Api<Tolerant<APIServiceExportRequest>> = Api::all(cluster.client.clone());
    let requests =
        list(cluster, &requests, "apiserviceexportrequests".into(), "", unanswered_request).await?;
    let of = |kind, found: Part<Vec<_>>| Asked {
        kind,
        unanswered: found.map(|found| found.into_iter().flatten().collect()),
    };
    Ok(vec![of("BindableResourcesRequest", asks), of("APIServiceExportRequest", requests)])
}

/// What this API server refuses to the leader, by what it is written for.
async fn refused(cluster: &Cluster) -> Result<Vec<(&'static str, Part<Vec<Entry>>)>, Error> {
    let asks: Api<Tolerant<BindableResourcesRequest>> = Api::namespaced(cluster.client.clone(), SYSTEM);
    let asks = list(cluster, &asks, "bindableresourcesrequests".into(), "", refused_ask).await?;
    let requests: Api<Tolerant<APIServiceExportRequest>> = Api::all(cluster.client.clone());
    let requests = list(cluster, &requests, "apiserviceexportrequests".into(), "", refused_request).await?;
    let namespaces: Api<Tolerant<APIServiceNamespace>> = Api::all(cluster.client.clone());
    let namespaces = list(cluster, &namespaces, "apiservicenamespaces".into(), "", refused_namespace).await?;
    let of = |kind, found: Part<Vec<Option<Entry>>>| {
        (kind, found.map(|found| found.into_iter().flatten().collect()))
    };
    Ok(vec![
        of("BindableResourcesRequest", asks),
        of("APIServiceExportRequest", requests),
        of("APIServiceNamespace", namespaces),
    ])
}

/// Cluster namespaces and Namespaces that stand for those of consumers, as far as somebody deletes them.
async fn going(cluster: &Cluster) -> Result<Part<Vec<Entry>>, Error> {
    let namespaces: Api<Namespace> = Api::all(cluster.client.clone());
    let namespaces = list(cluster, &namespaces, "namespaces".into(), BIND, Entry::from).await?;
    Ok(namespaces.map(|all| all.into_iter().filter(|entry| entry.deletion.is_some()).collect()))
}

/// Namespaces of which there is no APIServiceNamespace any more.
async fn left(cluster: &Cluster) -> Result<Part<Vec<Left>>, Error> {
    let asked: Api<Named<APIServiceNamespace>> = Api::all(cluster.client.clone());
    let called = |asked: Named<APIServiceNamespace>| {
        format!("{}/{}", asked.namespace().unwrap_or_default(), asked.name_any())
    };
    let asked = match list(cluster, &asked, "apiservicenamespaces".into(), "", called).await? {
        Ok(asked) => asked.into_iter().collect::<BTreeSet<_>>(),
        Err(gap) => return Ok(Err(gap)),
    };
    let namespaces: Api<Namespace> = Api::all(cluster.client.clone());
    let made = format!("{BIND}={}", label::OBJECTS);
    let left = |namespace: Namespace| Left::of(&namespace.metadata);
    let left = list(cluster, &namespaces, "namespaces".into(), &made, left).await?;
    Ok(left.map(|all| all.into_iter().flatten().filter(|left| !asked.contains(&left.made_for)).collect()))
}

/// The APIs of all templates; none where these cannot be read.
async fn offers(cluster: &Cluster) -> Result<Vec<Offered>, Error> {
    let templates: Api<Tolerant<APIServiceExportTemplate>> = Api::all(cluster.client.clone());
    let offered = |template: Tolerant<APIServiceExportTemplate>| {
        template.object.map(|template| template.spec.resources).unwrap_or_default()
    };
    let templates = list(cluster, &templates, "apiserviceexporttemplates".into(), "", offered).await?;
    let mut apis: Vec<Resource> = templates.unwrap_or_default().into_iter().flatten().collect();
    apis.sort_by_key(Resource::name);
    apis.dedup_by_key(|api| api.name());
    let mut offers = Vec::new();
    for api in apis {
        let wanted = bind::objects_policy(&api, true);
        if let Some(policy) = policy(cluster, true, &wanted).await? {
            offers.push(Offered { api, policy });
        }
    }
    Ok(offers)
}

async fn consumer(cluster: &Cluster) -> Result<Option<Consumer>, Error> {
    if !is_set_up(cluster, bind::CONSUMER).await? {
        return Ok(None);
    }
    let Some(policy) = policy(cluster, true, &bind::consumer_policy()).await? else { return Ok(None) };
    let bindings = everywhere::<Tolerant<APIServiceBinding>>(cluster).await?;
    Ok(Some(Consumer { policy, bindings }))
}

/// Whether the rights of this name are here. Who may not read them is told nothing of binding.
async fn is_set_up(cluster: &Cluster, name: &str) -> Result<bool, Error> {
    let role = bind::role(name);
    match cluster.read(&role).await {
        Ok(there) => Ok(there.is_some()),
        Err(error) => gap(role.to_string(), error).map(|_| false),
    }
}
