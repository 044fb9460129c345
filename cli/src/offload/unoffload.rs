//! `freeport unoffload namespace`: says what goes where, and with `--yes` deletes the NamespaceOffloading and waits until the twins have
//! gone.

use std::time::{Duration, Instant};

use api::{
    label::TRUE,
    name::is_dns_label,
    offload::{
        label::{ENABLED, FINALIZER, REMOTE_CLUSTER_ID, SCHEDULING_ENABLED},
        map::TERMINATING,
        namespace::{NAME, NamespaceOffloading, NamespaceOffloadingStatus, READY},
        phase::HOST_SILENT,
        view::NamespaceOffloadingView,
    },
    view::{Lenient, Meta},
};
use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions},
};
use serde_json::json;

use super::{
    away::explained,
    can_offload, condition,
    namespace::{offloading, read},
    refused, replacement,
    twins::{clusters, goes, perhaps_with_twin, with_twin},
    vanished::Vanished,
};
use crate::{
    Error, KubeContext,
    cluster::{Cluster, known},
    eraser::Say,
    install::MANAGER,
    printable::printable,
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
    /// End Pods in twins at once, also where nothing serves in their place.
    pub now: bool,
    /// Limit of the wait for each Namespace, and for each Pod that is replaced.
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
        can_come_home(&find(&cluster, namespace).await?)?;
    }
    let vanished = Vanished::read(&cluster).await?;
    let mut goes = Vec::new();
    for namespace in &options.namespaces {
        let there = read(&cluster, namespace).await?;
        let is_placed = is_on(&find(&cluster, namespace).await?, SCHEDULING_ENABLED);
        let what = what_goes(namespace, there.as_ref(), is_placed, &vanished);
        say(&format!("{}: {}", cluster.name, printable(&what)));
        let has_something = there.is_some() || is_placed || vanished.in_words(namespace).is_some();
        if has_something {
            goes.push(namespace);
        }
        if options.yes && has_something {
            let there = match there {
                Some(there) => {
                    if !options.now && there.metadata.deletion_timestamp.is_none() {
                        replacement::replace(&cluster, &there, options.timeout, say).await?;
                    }
                    there
                }
                None => create(&cluster, namespace).await?,
            };
            delete(&cluster, namespace, &there).await?;
        }
    }
    if !goes.is_empty() && !options.yes {
        return Err(cluster.unconfirmed("nothing was deleted; run it again with --yes".into()));
    }
    for namespace in goes {
        wait(&cluster, namespace, options.timeout, say).await?;
        if is_on(&find(&cluster, namespace).await?, SCHEDULING_ENABLED) {
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

async fn find(cluster: &Cluster, namespace: &str) -> Result<Meta<Namespace>, Error> {
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
            "Namespace {name} is offloaded by its label {ENABLED}={TRUE}; to delete its twins, remove the label: kubectl label namespace \
             {name} {ENABLED}-"
        ))),
        false => Ok(()),
    }
}

/// What goes where when the Namespace is offloaded no more.
fn what_goes(
    namespace: &str,
    offloading: Option<&NamespaceOffloadingView>,
    is_placed: bool,
    vanished: &Vanished,
) -> String {
    let Some(offloading) = offloading else { return what_is_lost(namespace, is_placed, vanished) };
    let Ok(status) = &offloading.status.0 else {
        return format!("Namespace {namespace}: all its twins go, with all that is in them");
    };
    let there = with_twin(status);
    let mut all: Vec<_> = (!there.is_empty()).then(|| goes(status, &there)).into_iter().collect();
    all.extend(perhaps_with_twin(status).into_iter().map(|(cluster, words)| {
        format!("what {cluster} has of it goes, with all that is in it, also where it says: {words}")
    }));
    // The member may not have looked since.
    all.extend(vanished.in_words(namespace).map(|twins| format!("{twins} goes, with all that is in it")));
    let is_seen = status.observed_generation == offloading.metadata.generation;
    match (all.is_empty(), is_seen) {
        (true, true) => format!("Namespace {namespace} has no twin: only its NamespaceOffloading goes"),
        (true, false) => format!(
            "Namespace {namespace}: freeport-member has said nothing of its NamespaceOffloading yet; twins that it has go, with all that is \
             in them"
        ),
        (false, _) => {
            format!("{}; Namespace {namespace} here stays, and its Pods that run there end", all.join("; "))
        }
    }
}

/// What goes of a Namespace without NamespaceOffloading.
fn what_is_lost(namespace: &str, is_placed: bool, vanished: &Vanished) -> String {
    let twins = vanished.in_words(namespace);
    if !is_placed && twins.is_none() {
        return format!(
            "Namespace {namespace} is not offloaded: it has no NamespaceOffloading. Whether a cluster has a twin of it all the same, \
             `freeport offload status` in that cluster says"
        );
    }
    let label = if is_placed {
        format!(", but label {SCHEDULING_ENABLED}, by which its new Pods are refused: that goes")
    } else {
        String::new()
    };
    let twins = twins.map_or_else(
        || "twins that it has go, with all that is in them".to_owned(),
        |twins| format!("its {twins} goes, with all that is in it"),
    );
    format!("the NamespaceOffloading of Namespace {namespace} is missing{label}; {twins}")
}

/// Creates the NamespaceOffloading that is missing, to be deleted: its deletion is what ends twins. It selects no cluster, and has the
/// finalizer for which the deletion waits.
async fn create(cluster: &Cluster, namespace: &str) -> Result<NamespaceOffloadingView, Error> {
    let none = json!([{"matchExpressions": [{"key": REMOTE_CLUSTER_ID, "operator": "DoesNotExist"}]}]);
    let mut object = offloading(namespace, &json!({"clusterSelector": {"nodeSelectorTerms": none}}));
    object.body["metadata"]["finalizers"] = json!([FINALIZER]);
    let offloadings: Api<NamespaceOffloading> = Api::namespaced(cluster.client.clone(), namespace);
    let params = PostParams { field_manager: Some(MANAGER.into()), ..PostParams::default() };
    let create = async {
        let body = serde_json::from_value(object.body.clone()).map_err(kube::Error::SerdeError)?;
        offloadings.create(&params, &body).await
    };
    let created = cluster.request(format!("create {object}"), create).await?;
    let metadata = created.metadata;
    Ok(NamespaceOffloadingView { metadata, spec: Lenient::default(), status: Lenient::default() })
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
    let begun = Instant::now();
    let probe = async || {
        let Some(there) = read(cluster, namespace).await? else { return Ok(Ok(())) };
        let refused = there.status.0.as_ref().ok().and_then(refused::keeps_twins);
        refused::stop(cluster, refused, begun, limit)?;
        Ok(Err(explained(cluster, what_is_left(&there)).await))
    };
    let waiting = |message: &str| say(&format!("{}: waiting for {namespace}: {message}", cluster.name));
    match rollout::wait(limit, probe, waiting).await? {
        Ok(()) => {
            say(&format!("{}: Namespace {namespace} is not offloaded any more", cluster.name));
            Ok(())
        }
        Err(message) => Err(Error::Timeout {
            cluster: cluster.name.clone(),
            missing: format!("{message}; NamespaceOffloading {namespace}/{NAME} still exists"),
            limit,
        }),
    }
}

fn what_is_left(there: &NamespaceOffloadingView) -> String {
    let Ok(status) = &there.status.0 else { return "freeport-member cannot read its status".into() };
    let left: Vec<_> = clusters(status).into_iter().map(|cluster| what_it_does(status, cluster)).collect();
    let left = match left.as_slice() {
        [] => "freeport-member has not removed its finalizer yet".into(),
        left => left.join("; "),
    };
    match refused::keeps_twins(status) {
        Some(refused) => format!("{left}; {refused}"),
        None => left,
    }
}

/// What a cluster does about the twin that it is to delete.
fn what_it_does(status: &NamespaceOffloadingStatus, cluster: &str) -> String {
    let twin = status.remote_namespace_name.as_deref().unwrap_or("its twin");
    let conditions = status.remote_namespaces_conditions.get(cluster);
    let ready = conditions.and_then(|conditions| condition(conditions, READY));
    match ready.map(|ready| ready.reason.as_str()) {
        Some(TERMINATING) => format!("cluster {cluster} is deleting Namespace {twin}"),
        Some(HOST_SILENT) => {
            format!(
                "cluster {cluster} does not renew its Lease, and has not confirmed that Namespace {twin} is deleted"
            )
        }
        _ => format!("cluster {cluster} has not confirmed that Namespace {twin} is deleted"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::offload::vanished::tests::example;

    fn offloading(status: &Value) -> NamespaceOffloadingView {
        serde_json::from_value(json!({"metadata": {"name": "offloading"}, "spec": {}, "status": status}))
            .unwrap()
    }

    #[test]
    fn a_namespace_whose_offloading_is_missing_comes_home_with_its_twins() {
        let namespace = |labels: Value| -> Meta<Namespace> {
            serde_json::from_value(json!({"metadata": {"name": "shop", "labels": labels}})).unwrap()
        };
        let is_placed = is_on(&namespace(json!({SCHEDULING_ENABLED: TRUE})), SCHEDULING_ENABLED);
        let said = what_goes("other", None, is_placed, &example());
        assert!(said.contains("that goes; twins that it has go"), "{said}");
        let said = what_goes("web", None, is_placed, &example());
        assert!(
            said.contains("that goes; its twin web in east, north goes, with all that is in it"),
            "{said}"
        );
        let said = what_goes("shop", None, false, &example());
        assert!(said.contains("is missing; its twin shop-west in east goes"), "{said}");
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
        let refused = |message: &str| {
            let mut refused = said("Ready");
            (refused["reason"], refused["message"]) = (json!("CreationLoopBackOff"), json!(message));
            refused
        };
        let status = json!({
            "remoteNamespaceName": "shop-west",
            "remoteNamespacesConditions": {
                "east": [said("OffloadingRequired"), said("Ready")], "north": [said("OffloadingRequired")], "south": [refused("shop-west: NotAccepted: no")],
            },
        });
        let (none, vanished) = (Vanished::default(), example());
        let goes = what_goes("shop", Some(&offloading(&status)), false, &none);
        assert!(
            goes.contains("Namespace shop-west goes in east, with all")
                && !goes.contains("south")
                && !goes.contains("north"),
            "{goes}"
        );
        assert_eq!(
            what_is_left(&offloading(&status)),
            "cluster east has not confirmed that Namespace shop-west is deleted; cluster south has not confirmed that Namespace shop-west \
             is deleted"
        );
        let mut left = status.clone();
        left["remoteNamespacesConditions"]["east"][1]["reason"] = json!("Terminating");
        left["remoteNamespacesConditions"]["south"][0]["reason"] = json!("HostSilent");
        let left = what_is_left(&offloading(&left));
        assert!(
            left.starts_with("cluster east is deleting Namespace shop-west; cluster south does not renew"),
            "{left}"
        );
        assert!(what_is_left(&offloading(&json!({}))).contains("finalizer"));
        let said_of = |status: &Value, vanished| what_goes("web", Some(&offloading(status)), false, vanished);
        assert!(said_of(&json!({}), &none).contains("no twin"));
        let unseen = said_of(&json!({"observedGeneration": 1}), &none);
        assert!(unseen.contains("twins that it has go"), "{unseen}");
        let anew = said_of(&json!({}), &vanished);
        assert!(anew.starts_with("twin web in east, north goes, with all that is in it"), "{anew}");
        let changed = refused("web-west: NameChanged: web has twin web here");
        let changed = said_of(&json!({"remoteNamespacesConditions": {"east": [changed]}}), &none);
        assert!(
            changed.contains("what east has of it goes") && changed.contains("has twin web here"),
            "{changed}"
        );
        let said = what_goes("shop", None, false, &none);
        assert!(said.starts_with("Namespace shop is not offloaded: it has no NamespaceOffloading"), "{said}");
    }
}
