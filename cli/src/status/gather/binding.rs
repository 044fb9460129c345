//! What there is of API binding. Whether Freeport set it up, and not somebody's kube-bind, say its rights.

use api::{
    bind::{
        binding::{APIServiceBinding, ClusterBinding},
        export::APIServiceExport,
        label::BIND,
        offer::APIServiceExportTemplate,
        resource::Resource,
    },
    view::Tolerant,
};
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;

use super::{everywhere, gap, list, policy};
use crate::{
    Error,
    cluster::Cluster,
    objects::bind,
    status::found::{Binding, Consumer, Contract, Entry, Going, Offered, Part, Provider},
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
    let (offers, going) = (offers(cluster).await?, going(cluster).await?);
    Ok(Some(Provider { policy: own, requests, offers, contracts, going }))
}

/// Exports, cluster namespaces and Namespaces that stand for those of consumers, as far as somebody deletes them.
async fn going(cluster: &Cluster) -> Result<Vec<Going>, Error> {
    let exports = everywhere::<Tolerant<APIServiceExport>>(cluster).await?;
    let namespaces: Api<Namespace> = Api::all(cluster.client.clone());
    let namespaces = list(cluster, &namespaces, "namespaces".into(), BIND, Entry::from).await?;
    let going = |kind, objects: Part<Vec<Entry>>| {
        let objects = objects.map(|all| all.into_iter().filter(|entry| entry.deletion.is_some()).collect());
        Going { kind, objects }
    };
    Ok(vec![going("APIServiceExport", exports), going("Namespace", namespaces)])
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
