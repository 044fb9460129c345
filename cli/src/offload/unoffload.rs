//! `freeport unoffload namespace`: says what goes where, and with `--yes` deletes the NamespaceOffloading and waits until the twins have
//! gone.

use std::time::Duration;

use api::{
    label::TRUE,
    name::is_dns_label,
    offload::{
        label::{ENABLED, SCHEDULING_ENABLED},
        namespace::{NAME, NamespaceOffloading},
        view::NamespaceOffloadingView,
    },
    view::Meta,
};
use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, Preconditions},
};
use serde_json::json;

use super::{
    away::explained,
    can_offload,
    namespace::read,
    twins::{clusters, goes, with_twin},
};
use crate::{
    Error, KubeContext,
    cluster::{Cluster, known},
    eraser::Say,
    install::MANAGER,
    rollout,
};

/// Which Namespaces come home.
#[derive(Clone, Debug)]
pub struct UnoffloadOptions {
    /// The cluster with the Namespaces.
    pub cluster: KubeContext,
    /// Their names.
    pub namespaces: Vec<String>,
    /// Do it; otherwise only say what goes.
    pub yes: bool,
    /// Limit of the wait for each Namespace.
    pub timeout: Duration,
}

/// Ends the offloading of Namespaces: their twins go, with all that is in them. Safe to run again: it waits again.
///
/// # Errors
/// Those of [`Error`]. [`Error::Refused`] where something would go and nobody said so; [`Error::Timeout`] says which clusters still have
/// something of it.
pub async fn unoffload_namespaces(
    options: &UnoffloadOptions,
    say: &mut (dyn FnMut(&str) + Send),
) -> Result<(), Error> {
    if let Some(bad) = options.namespaces.iter().find(|name| !is_dns_label(name)) {
        return Err(Error::Argument(format!("{bad:?} is not the name of a Namespace")));
    }
    let cluster = Cluster::connect(&options.cluster).await?;
    can_offload(&cluster).await?;
    for namespace in &options.namespaces {
        can_come_home(&home(&cluster, namespace).await?)?;
    }
    let mut goes = false;
    for namespace in &options.namespaces {
        let there = read(&cluster, namespace).await?;
        let is_placed = is_on(&home(&cluster, namespace).await?, SCHEDULING_ENABLED);
        say(&format!("{}: {}", cluster.name, what_goes(namespace, there.as_ref(), is_placed)));
        goes |= there.is_some() || is_placed;
        if let Some(there) = there.filter(|_| options.yes) {
            delete(&cluster, namespace, &there).await?;
        }
    }
    if goes && !options.yes {
        return Err(cluster.refuse("nothing was deleted; run it again with --yes".into()));
    }
    for namespace in &options.namespaces {
        wait(&cluster, namespace, options.timeout, say).await?;
        if is_on(&home(&cluster, namespace).await?, SCHEDULING_ENABLED) {
            unplace(&cluster, namespace).await?;
        }
    }
    Ok(())
}

fn is_on(namespace: &Meta<Namespace>, label: &str) -> bool {
    namespace.labels().get(label).is_some_and(|on| on == TRUE)
}

/// Takes off the label by which the webhook is asked of its Pods. The member does, where it saw a NamespaceOffloading.
async fn unplace(cluster: &Cluster, namespace: &str) -> Result<(), Error> {
    let namespaces: Api<Namespace> = Api::all(cluster.client.clone());
    let params = PatchParams { field_manager: Some(MANAGER.into()), ..PatchParams::default() };
    let patch = Patch::Merge(json!({"metadata": {"labels": {SCHEDULING_ENABLED: null}}}));
    let doing = format!("take label {SCHEDULING_ENABLED} off Namespace {namespace}");
    cluster.request(doing, namespaces.patch_metadata(namespace, &params, &patch)).await.map(drop)
}

async fn home(cluster: &Cluster, namespace: &str) -> Result<Meta<Namespace>, Error> {
    let namespaces: Api<Meta<Namespace>> = Api::all(cluster.client.clone());
    let read = known(namespaces.get(namespace));
    let there = cluster.request(format!("read Namespace {namespace}"), read).await?;
    there.ok_or_else(|| cluster.refuse(format!("there is no Namespace {namespace}")))
}

/// It is without the label that would have the NamespaceOffloading made again.
fn can_come_home(namespace: &Meta<Namespace>) -> Result<(), Error> {
    let name = namespace.name_any();
    match is_on(namespace, ENABLED) {
        true => Err(Error::Argument(format!(
            "label {ENABLED}={TRUE} of Namespace {name} has it offloaded; take that off, and the twins go: kubectl label namespace \
             {name} {ENABLED}-"
        ))),
        false => Ok(()),
    }
}

/// What goes where when the Namespace is offloaded no more.
fn what_goes(namespace: &str, offloading: Option<&NamespaceOffloadingView>, is_placed: bool) -> String {
    let Some(offloading) = offloading else {
        return match is_placed {
            false => format!("Namespace {namespace} is not offloaded"),
            true => format!(
                "Namespace {namespace} has no NamespaceOffloading any more, but label {SCHEDULING_ENABLED}, by which its new Pods are \
                 refused: that goes. Twins of it may be left: to have them go, run `freeport offload namespace {namespace}` before this"
            ),
        };
    };
    let Ok(status) = &offloading.status.0 else {
        return format!("Namespace {namespace}: all its twins go, with all that is in them");
    };
    match with_twin(status).as_slice() {
        [] => format!("Namespace {namespace} has no twin: only its NamespaceOffloading goes"),
        clusters => format!(
            "{}; Namespace {namespace} here stays, and its Pods that run there end",
            goes(status, clusters)
        ),
    }
}

/// Deletes what was read, never a newer one.
async fn delete(cluster: &Cluster, namespace: &str, there: &NamespaceOffloadingView) -> Result<(), Error> {
    let offloadings: Api<NamespaceOffloading> = Api::namespaced(cluster.client.clone(), namespace);
    let only = Preconditions { uid: there.metadata.uid.clone(), resource_version: None };
    let params = DeleteParams::default().preconditions(only);
    let delete = known(async { offloadings.delete(NAME, &params).await.map(drop) });
    cluster.request(format!("delete NamespaceOffloading {namespace}/{NAME}"), delete).await.map(drop)
}

async fn wait(cluster: &Cluster, namespace: &str, limit: Duration, say: Say<'_>) -> Result<(), Error> {
    let probe = async || {
        Ok(match read(cluster, namespace).await? {
            None => Ok(()),
            Some(there) => Err(explained(cluster, what_is_left(&there)).await),
        })
    };
    let waiting = |message: &str| say(&format!("{}: waiting for {namespace}: {message}", cluster.name));
    match rollout::wait(limit, probe, waiting).await? {
        Ok(()) => {
            say(&format!("{}: Namespace {namespace} is not offloaded any more", cluster.name));
            Ok(())
        }
        Err(message) => Err(Error::Timeout {
            cluster: cluster.name.clone(),
            missing: format!("NamespaceOffloading {namespace}/{NAME} is still there: {message}"),
            limit,
        }),
    }
}

fn what_is_left(there: &NamespaceOffloadingView) -> String {
    let clusters = there.status.0.as_ref().map(clusters).unwrap_or_default();
    match clusters.as_slice() {
        [] => "freeport-member has to let it go".into(),
        clusters => format!("twins that are going, or silent clusters: {}", clusters.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn offloading(status: &Value) -> NamespaceOffloadingView {
        serde_json::from_value(json!({"metadata": {"name": "offloading"}, "spec": {}, "status": status}))
            .unwrap()
    }

    #[test]
    fn a_namespace_whose_offloading_vanished_comes_home_with_a_word_on_twins() {
        let namespace = |labels: Value| -> Meta<Namespace> {
            serde_json::from_value(json!({"metadata": {"name": "shop", "labels": labels}})).unwrap()
        };
        let said =
            what_goes("shop", None, is_on(&namespace(json!({SCHEDULING_ENABLED: TRUE})), SCHEDULING_ENABLED));
        assert!(said.contains("freeport offload namespace shop"), "{said}");
        let why = can_come_home(&namespace(json!({ENABLED: TRUE}))).unwrap_err().to_string();
        assert!(why.contains("kubectl label namespace shop"), "{why}");
    }

    #[test]
    fn it_says_what_goes_where() {
        let said = |type_: &str| {
            json!({
                "type": type_, "status": "True", "reason": "R", "message": "m", "lastTransitionTime": "2026-01-01T00:00:00Z",
            })
        };
        let mut refused = said("Ready");
        refused["reason"] = json!("CreationLoopBackOff");
        let status = json!({
            "remoteNamespaceName": "shop-west",
            "remoteNamespacesConditions": {
                "east": [said("OffloadingRequired"), said("Ready")], "north": [said("OffloadingRequired")], "south": [refused],
            },
        });
        let goes = what_goes("shop", Some(&offloading(&status)), false);
        assert!(
            goes.contains("Namespace shop-west goes in east, with all")
                && !goes.contains("south")
                && !goes.contains("north"),
            "{goes}"
        );
        assert!(what_is_left(&offloading(&status)).ends_with("clusters: east, south"));
        assert!(what_goes("shop", Some(&offloading(&json!({}))), false).contains("no twin"));
        assert_eq!(what_goes("shop", None, false), "Namespace shop is not offloaded");
    }
}
