//! `freeport offload namespace`: writes the NamespaceOffloading of each Namespace and waits until its twins are there and its new Pods
//! are placed as it says. Only what a flag says is changed.

mod going;
mod names;
mod printed;
#[cfg(test)]
mod tests;
mod wait;

use std::time::Duration;

use api::{
    label,
    name::is_dns_label,
    offload::{
        label::{TYPE, VIRTUAL_NODE},
        namespace::{NAME, NamespaceMappingStrategy, NamespaceOffloadingSpec, PodOffloadingStrategy},
        twin::check_offloaded,
        view::NamespaceOffloadingView,
    },
    view::Meta,
};
use k8s_openapi::api::core::v1::{Namespace, Node, NodeSelectorTerm};
use kube::{
    Api, Resource, ResourceExt,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

pub(super) use self::printed::offloading;
use self::{printed::print, wait::wait};
use super::{
    can_offload, selector,
    status::older_pods,
    twins::{clusters, goes, unselected},
    vanished::Vanished,
};
use crate::{Error, KubeContext, cluster::Cluster, eraser::Say, install::MANAGER};

/// Which Namespaces to offload, and how.
#[derive(Clone, Debug)]
pub struct OffloadOptions {
    /// The cluster with the Namespaces.
    pub cluster: KubeContext,
    /// Their names.
    pub namespaces: Vec<String>,
    /// Or the labels that they have, as kubectl writes them.
    pub ns_selector: Option<String>,
    /// Where new Pods may run; none: as before, or the default.
    pub strategy: Option<PodOffloadingStrategy>,
    /// What twins are called; none: as before, or the default.
    pub mapping: Option<NamespaceMappingStrategy>,
    /// Name of the twin, for SelectedName.
    pub remote_name: Option<String>,
    /// Terms, one of which has to match: see [`term`](selector::term). None: as before, or all clusters; an empty text: all clusters.
    pub selectors: Vec<String>,
    /// Change the selector also where twins go; otherwise refuse, and say which.
    pub yes: bool,
    /// Print objects instead of applying them.
    pub dry_run: bool,
    /// Print them as one List in JSON instead of documents in YAML.
    pub as_json: bool,
    /// Wait until twins are there and Pods are placed.
    pub wait: bool,
    /// Limit of that wait, for all of them.
    pub timeout: Duration,
}

/// Offloads Namespaces. Safe to run again.
///
/// # Errors
/// Those of [`Error`]. [`Error::Refused`] with the words of hosts that make no twin; [`Error::Timeout`] says what is missing. Each Namespace is
/// waited for, whatever came of the others.
pub async fn offload_namespaces(
    options: &OffloadOptions,
    say: &mut (dyn FnMut(&str) + Send),
) -> Result<(), Error> {
    let spec = spec(options)?;
    let cluster = match (options.dry_run, &options.ns_selector) {
        // Nothing is asked of a cluster.
        (true, None) => return print(&options.namespaces, &spec, options.as_json, say),
        _ => Cluster::connect(&options.cluster).await?,
    };
    let namespaces = named(&cluster, options).await?;
    if options.dry_run {
        return print(&namespaces, &spec, options.as_json, say);
    }
    can_offload(&cluster).await?;
    let vanished = Vanished::read(&cluster).await?;
    going::check(&cluster, &namespaces).await?;
    names::check(&cluster, &namespaces, &spec, &vanished).await?;
    if !options.yes {
        keeps_twins(&cluster, &namespaces, &spec, &vanished).await?;
    }
    for namespace in &namespaces {
        write(&cluster, namespace, &spec, say).await?;
    }
    if options.wait {
        wait(&cluster, &namespaces, options.timeout, say).await?;
    }
    Ok(())
}

/// The Namespaces that are asked for, all of which are there and can be offloaded.
async fn named(cluster: &Cluster, options: &OffloadOptions) -> Result<Vec<String>, Error> {
    let api = Api::<Meta<Namespace>>::all(cluster.client.clone());
    let mut there = Vec::new();
    match &options.ns_selector {
        Some(labels) => {
            there = cluster.all(&api, labels).await?;
            if there.is_empty() {
                return Err(cluster.refuse(format!("no Namespace matches --ns-selector {labels}")));
            }
        }
        None => {
            for namespace in &options.namespaces {
                let found =
                    cluster.request(format!("read Namespace {namespace}"), api.get_opt(namespace)).await?;
                let missing =
                    || cluster.refuse(format!("there is no Namespace {namespace}: create it first"));
                there.push(found.ok_or_else(missing)?);
            }
        }
    }
    let why: Vec<_> = there.iter().filter_map(cannot).collect();
    match why.is_empty() {
        true => Ok(there.iter().map(ResourceExt::name_any).collect()),
        false => Err(cluster.refuse(format!("{}; nothing was changed", why.join("; ")))),
    }
}

/// Why a Namespace cannot be offloaded, if it cannot.
fn cannot(namespace: &Meta<Namespace>) -> Option<String> {
    let name = namespace.name_any();
    if namespace.meta().deletion_timestamp.is_some() {
        return Some(format!("Namespace {name} is being deleted"));
    }
    let is_area = namespace.labels().get(label::COMMON_AREA).is_some_and(|area| area == label::TRUE);
    let system = is_area.then(|| name.clone()).into_iter().collect();
    check_offloaded(&name, &system).err().map(|error| error.to_string())
}

/// What the flags say of the spec.
fn spec(options: &OffloadOptions) -> Result<Value, Error> {
    let OffloadOptions { namespaces, mapping, remote_name, .. } = options;
    if let Some(bad) = namespaces.iter().find(|name| !is_dns_label(name)) {
        return Err(Error::Argument(format!("{bad:?} is not the name of a Namespace")));
    }
    let selected = *mapping == Some(NamespaceMappingStrategy::SelectedName);
    match remote_name {
        Some(_) if !selected => {
            return Err(Error::Argument(
                "--remote-namespace-name goes with --namespace-mapping-strategy SelectedName".into(),
            ));
        }
        Some(_) if namespaces.len() > 1 || options.ns_selector.is_some() => {
            return Err(Error::Argument(
                "--remote-namespace-name: two Namespaces cannot have one twin; name one".into(),
            ));
        }
        Some(name) if !is_dns_label(name) => {
            return Err(Error::Argument(format!("--remote-namespace-name {name:?} must be a DNS label")));
        }
        None if selected => {
            return Err(Error::Argument("SelectedName needs --remote-namespace-name".into()));
        }
        _ => {}
    }
    let mut spec = json!({});
    let mut set = |field: &str, value: Option<Value>| {
        if let Some(value) = value {
            spec[field] = value;
        }
    };
    set("podOffloadingStrategy", options.strategy.map(|strategy| json!(strategy)));
    set("namespaceMappingStrategy", mapping.map(|mapping| json!(mapping)));
    set("remoteNamespaceName", remote_name.as_ref().map(|name| json!(name)));
    let terms = options.selectors.iter().map(|text| selector::term(text));
    let terms: Vec<Option<NodeSelectorTerm>> = terms.collect::<Result<_, _>>().map_err(Error::Argument)?;
    // One that is empty selects everything, whatever the others do.
    let all = terms.iter().any(Option::is_none);
    let terms: Vec<NodeSelectorTerm> = terms.into_iter().flatten().collect();
    let selector = if all { Value::Null } else { json!({"nodeSelectorTerms": terms}) };
    set("clusterSelector", (!options.selectors.is_empty()).then_some(selector));
    Ok(spec)
}

/// Refuses a selector that would take twins away.
async fn keeps_twins(
    cluster: &Cluster,
    namespaces: &[String],
    spec: &Value,
    vanished: &Vanished,
) -> Result<(), Error> {
    let Some(selector) = spec.get("clusterSelector") else { return Ok(()) };
    let selects = json!({"clusterSelector": selector});
    let selects: NamespaceOffloadingSpec =
        serde_json::from_value(selects).map_err(|error| Error::Argument(format!("--selector: {error}")))?;
    let labels = format!("{TYPE}={VIRTUAL_NODE}");
    let nodes = cluster.all(&Api::<Meta<Node>>::all(cluster.client.clone()), &labels).await?;
    for namespace in namespaces {
        let there = read(cluster, namespace).await?;
        if let Some(goes) = taken(namespace, there.as_ref(), vanished, &selects, &nodes) {
            return Err(cluster.unconfirmed(format!(
                "{goes}: the selector does not match these clusters; nothing was changed; run it again with --yes"
            )));
        }
    }
    Ok(())
}

/// What goes of a Namespace, in words, if anything does, when its NamespaceOffloading gets the selector of this spec.
fn taken(
    namespace: &str,
    there: Option<&NamespaceOffloadingView>,
    vanished: &Vanished,
    selects: &NamespaceOffloadingSpec,
    nodes: &[Meta<Node>],
) -> Option<String> {
    let told = there.and_then(|there| match &there.status.0 {
        Ok(status) => {
            // One that refuses may have a twin all the same: what it refuses may be a part of it.
            let unselected = unselected(clusters(status), selects, nodes);
            (!unselected.is_empty()).then(|| goes(status, &unselected))
        }
        // What cannot be read may have twins anywhere.
        Err(_) => Some(format!("twins of {namespace} may go")),
    });
    // The member may not have looked since it was made anew.
    let untold = || vanished.goes(namespace, &unselected(vanished.clusters(namespace), selects, nodes));
    told.or_else(untold)
}

async fn write(cluster: &Cluster, namespace: &str, spec: &Value, say: Say<'_>) -> Result<(), Error> {
    let there = read(cluster, namespace).await?;
    let object = offloading(namespace, spec);
    let api = cluster.api(&object.resource, Some(namespace));
    let (done, after) = match &there {
        None => {
            let params = PostParams { field_manager: Some(MANAGER.into()), ..PostParams::default() };
            let create = async {
                let body = serde_json::from_value(object.body.clone()).map_err(kube::Error::SerdeError)?;
                api.create(&params, &body).await
            };
            ("created", cluster.request(format!("create {object}"), create).await?)
        }
        Some(there) => {
            let params = PatchParams { field_manager: Some(MANAGER.into()), ..PatchParams::default() };
            let change = Patch::Merge(json!({"spec": spec}));
            let patch = api.patch(NAME, &params, &change);
            let after = cluster.request(format!("change {object}"), patch).await?;
            let is_same = after.0.metadata.generation == there.metadata.generation;
            (if is_same { "unchanged" } else { "changed" }, after)
        }
    };
    say(&format!("{}: {done} {object}", cluster.name));
    // What an API server of another version has made of it is for the member to say.
    let spec = serde_json::from_value(after.0.data["spec"].clone());
    if done != "unchanged"
        && let Ok(spec) = spec
        && let Some(older) = older(namespace, &older_pods(cluster, namespace, &spec).await?)
    {
        say(&format!("{}: {older}", cluster.name));
    }
    Ok(())
}

/// What there is to say of Pods that are older than what their Namespace asks for now.
fn older(namespace: &str, pods: &[String]) -> Option<String> {
    let pods = match pods {
        [] => return None,
        [one] => {
            format!("Pod {one} of {namespace} is older than this: it stays where it is until it is deleted")
        }
        [first, ..] => format!(
            "{} Pods of {namespace} are older than this, {first} among them: they stay where they are until they are deleted \
             (freeport offload status -n {namespace})",
            pods.len()
        ),
    };
    Some(pods)
}

/// The NamespaceOffloading of a Namespace, if it has one.
pub(super) async fn read(
    cluster: &Cluster,
    namespace: &str,
) -> Result<Option<NamespaceOffloadingView>, Error> {
    let offloadings: Api<NamespaceOffloadingView> = Api::namespaced(cluster.client.clone(), namespace);
    let doing = format!("read NamespaceOffloading {namespace}/{NAME}");
    cluster.request(doing, offloadings.get_opt(NAME)).await
}
