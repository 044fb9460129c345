//! Imports that nobody takes back, watched all along: they are never without endpoints that are ready, never deleted, and keep their address. A watch
//! that breaks off goes on where it was, so nothing that happened meanwhile is missed.

use std::{
    collections::BTreeMap,
    fmt::Debug,
    pin::pin,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use api::{label, mcs::ServiceImport};
use futures::StreamExt;
use k8s_openapi::{
    NamespaceResourceScope,
    api::{core::v1::Service, discovery::v1::EndpointSlice},
};
use kube::{
    Api, Resource, ResourceExt,
    runtime::watcher::{Config, Event, watcher},
};
use serde::de::DeserializeOwned;
use tokio::task::JoinSet;

use super::places::ANCHORS;
use crate::{
    cluster::Cluster,
    seen::{Imported, imported, is_ready, right},
    waiting::{VOUCHED, within},
};

/// Before a watch that failed goes on.
const AGAIN: Duration = Duration::from_millis(300);

/// Objects of a kind, by name.
type Objects<K> = BTreeMap<String, K>;

/// What was wrong at any time, by what is wrong: when it was seen first.
type Wrong = Arc<Mutex<Vec<String>>>;

/// A vigil from its start until it is dropped.
pub struct Vigil {
    wrong: Wrong,
    _watches: JoinSet<()>,
}

impl Vigil {
    /// Waits until all anchors are complete in all clusters, and watches them from then on.
    pub async fn over(clusters: &[Cluster], namespace: &str) -> Self {
        let (wrong, mut watches) = (Wrong::default(), JoinSet::new());
        for cluster in clusters {
            let mut before = BTreeMap::new();
            for anchor in ANCHORS {
                let what = format!("{} is complete in {}", anchor.service, cluster.name);
                let seen = within(VOUCHED, &what, || async {
                    let is_complete =
                        |seen: &Imported| anchor.always.iter().all(|from| seen.endpoints.contains_key(*from));
                    right(imported(cluster, namespace, anchor.service).await, is_complete)
                })
                .await;
                before.insert(anchor.service, seen);
            }
            let (imports, services) = (before.clone(), before);
            let judge = move |objects: &Objects<ServiceImport>| wrong_imports(&imports, objects);
            watch(&mut watches, cluster, namespace, &wrong, judge);
            let judge = move |objects: &Objects<Service>| wrong_services(&services, objects);
            watch(&mut watches, cluster, namespace, &wrong, judge);
            watch(&mut watches, cluster, namespace, &wrong, without_endpoints);
        }
        Self { wrong, _watches: watches }
    }

    /// What was wrong so far.
    pub fn wrong(&self) -> Vec<String> {
        self.wrong.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn watch<K>(
    watches: &mut JoinSet<()>,
    cluster: &Cluster,
    namespace: &str,
    wrong: &Wrong,
    judge: impl Fn(&Objects<K>) -> Vec<String> + Send + Sync + 'static,
) where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
        + Clone
        + DeserializeOwned
        + Debug
        + Send
        + Sync
        + 'static,
{
    let (api, wrong, cluster) = (cluster.api::<K>(namespace), wrong.clone(), cluster.name.clone());
    let say = move |what: String| {
        let line = format!("in {cluster}: {what}");
        let mut wrong = wrong.lock().unwrap_or_else(PoisonError::into_inner);
        if !wrong.contains(&line) {
            wrong.push(line);
        }
    };
    let watched = async move { follow(api, |objects| judge(objects).into_iter().for_each(&say)).await };
    watches.spawn(watched);
}

/// Shows each state of the objects that there is, for ever.
async fn follow<K>(api: Api<K>, mut show: impl FnMut(&Objects<K>))
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let (mut objects, mut listed) = (Objects::new(), Objects::new());
    let mut events = pin!(watcher(api, Config::default()));
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::Apply(object)) => drop(objects.insert(object.name_any(), object)),
            Ok(Event::Delete(object)) => drop(objects.remove(&object.name_any())),
            Ok(Event::Init) => listed = Objects::new(),
            Ok(Event::InitApply(object)) => drop(listed.insert(object.name_any(), object)),
            Ok(Event::InitDone) => objects = std::mem::take(&mut listed),
            Err(_) => tokio::time::sleep(AGAIN).await,
        }
        // Before the first list there is nothing to see.
        if !objects.is_empty() {
            show(&objects);
        }
    }
}

fn wrong_imports(before: &BTreeMap<&str, Imported>, objects: &Objects<ServiceImport>) -> Vec<String> {
    let wrong = before.iter().filter_map(|(service, before)| {
        let Some(import) = objects.get(*service) else { return Some(format!("no ServiceImport {service}")) };
        let is_same =
            import.uid().as_ref() == Some(&before.import_uid) && import.spec.ips.first() == Some(&before.vip);
        (!is_same).then(|| {
            format!("ServiceImport {service} is another one: {:?} {:?}", import.uid(), import.spec.ips)
        })
    });
    wrong.collect()
}

fn wrong_services(before: &BTreeMap<&str, Imported>, objects: &Objects<Service>) -> Vec<String> {
    let wrong = before.iter().filter_map(|(service, before)| {
        let name = format!("{}{service}", label::IMPORTED_PREFIX);
        let Some(derived) = objects.get(&name) else { return Some(format!("no Service {name}")) };
        let address = derived.spec.as_ref().and_then(|spec| spec.cluster_ip.as_ref());
        (address != Some(&before.vip)).then(|| format!("Service {name} has another address: {address:?}"))
    });
    wrong.collect()
}

fn without_endpoints(objects: &Objects<EndpointSlice>) -> Vec<String> {
    let has_endpoints = |service: &str, from: &str| {
        objects.values().any(|slice| {
            let labels = slice.labels();
            let is = |key: &str, value: &str| labels.get(key).is_some_and(|is| is == value);
            let is_of_it = is(label::MCS_SERVICE_NAME, service) && is(label::MCS_SOURCE_CLUSTER, from);
            is_of_it
                && slice
                    .endpoints
                    .iter()
                    .flatten()
                    .any(|endpoint| is_ready(endpoint) && !endpoint.addresses.is_empty())
        })
    };
    let parts = ANCHORS.iter().flat_map(|anchor| anchor.always.iter().map(|from| (anchor.service, *from)));
    parts
        .filter(|(service, from)| !has_endpoints(service, from))
        .map(|(service, from)| format!("{service} has no endpoints of {from}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::discovery::v1::EndpointConditions;
    use serde_json::json;

    use super::*;

    fn slices(of: &[(&str, &str)]) -> Objects<EndpointSlice> {
        let slice = |(service, from): &(&str, &str)| {
            let slice = json!({
                "metadata": {"labels": {label::MCS_SERVICE_NAME: service, label::MCS_SOURCE_CLUSTER: from}},
                "addressType": "IPv4", "endpoints": [{"addresses": ["10.1.1.1"]}],
            });
            (format!("{service}-{from}"), serde_json::from_value(slice).unwrap())
        };
        of.iter().map(slice).collect()
    }

    #[test]
    fn each_cluster_that_exports_an_anchor_has_endpoints_in_it() {
        let all = [("lonely", "east"), ("both", "east"), ("both", "west"), ("joined", "east")];
        assert_eq!(without_endpoints(&slices(&all)), Vec::<String>::new());
        assert_eq!(without_endpoints(&slices(&all[..3])), ["joined has no endpoints of east"]);
        let mut emptied = slices(&all);
        emptied.get_mut("both-west").unwrap().endpoints = Some(vec![]);
        assert_eq!(without_endpoints(&emptied), ["both has no endpoints of west"]);
        let mut demoted = slices(&all);
        let conditions = EndpointConditions { ready: Some(false), ..EndpointConditions::default() };
        let slice = demoted.get_mut("joined-east").unwrap();
        slice
            .endpoints
            .iter_mut()
            .flatten()
            .for_each(|endpoint| endpoint.conditions = Some(conditions.clone()));
        assert_eq!(without_endpoints(&demoted), ["joined has no endpoints of east"]);
    }
}
