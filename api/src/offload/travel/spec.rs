//! The spec of a Pod: what is taken out, what is refused, and what the host puts in.

use serde_json::{Map, Value, json};

use super::label;
use crate::name::ROOT_CA;

/// A field that means something of the home which the host has not.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} does not travel to another cluster: {why}")]
pub struct DoesNotTravel {
    /// Its path, with names of the list's items, for example `spec.volumes[web].configMap`.
    pub field: String,
    /// Why not, and what would.
    pub why: &'static str,
}

/// Fields that are about the home's own Nodes, scheduler, accounts and controllers: who would set the condition of a
/// readiness gate is at home.
const OF_THE_HOME: [&str; 18] = [
    "affinity",
    "automountServiceAccountToken",
    "ephemeralContainers",
    "hostIPC",
    "hostNetwork",
    "hostPID",
    "nodeName",
    "nodeSelector",
    "overhead",
    "preemptionPolicy",
    "priority",
    "priorityClassName",
    "readinessGates",
    "schedulerName",
    "schedulingGates",
    "schedulingGroup",
    "serviceAccount",
    "serviceAccountName",
];

/// Taints that Nodes of every cluster get by themselves.
const TAINTS: [&str; 2] = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];

/// Where the value of a variable may come from: the Pod itself.
const SOURCES: [&str; 3] = ["fieldRef", "fileKeyRef", "resourceFieldRef"];

/// Kinds of volumes that mean the same in every cluster.
const VOLUMES: [&str; 2] = ["emptyDir", "downwardAPI"];

/// How the name of a volume begins that Kubernetes adds by itself: it holds the token of the Pod's ServiceAccount.
const TOKEN_VOLUME: &str = "kube-api-access-";
/// What that is made of.
const TOKEN_SOURCES: [&str; 3] = ["serviceAccountToken", "configMap", "downwardAPI"];

/// Lists of containers of a spec.
const CONTAINERS: [&str; 2] = ["containers", "initContainers"];

/// What travels of a spec.
pub(super) fn travelling(spec: &Value) -> Result<Value, DoesNotTravel> {
    let Some(spec) = spec.as_object() else { return Err(refused("spec", "it is no object")) };
    let mut spec = spec.clone();
    spec.retain(|field, _| !OF_THE_HOME.contains(&field.as_str()));
    if spec.get("runtimeClassName") == Some(&json!(label::RUNTIME_CLASS)) {
        spec.remove("runtimeClassName");
    }
    // Of the host it would choose Nodes and tolerations, too.
    if spec.get("runtimeClassName").is_some_and(|name| !name.is_null()) {
        return Err(refused(
            "spec.runtimeClassName",
            "RuntimeClasses of the one cluster are not those of the other",
        ));
    }
    if spec.get("resourceClaims").is_some_and(|claims| !is_empty(claims)) {
        return Err(refused("spec.resourceClaims", "devices of the one cluster are not those of the other"));
    }
    tolerations(&mut spec);
    let tokens = volumes(&mut spec)?;
    for list in CONTAINERS {
        for container in items(&mut spec, list) {
            self::container(container, list, &tokens)?;
        }
    }
    Ok(Value::Object(spec))
}

/// The spec at the host, whatever the home sent: without a token of that cluster's API, and never on a Node that is itself another
/// cluster.
pub(super) fn at_the_host(spec: &Value) -> Result<Value, DoesNotTravel> {
    let mut spec = travelling(spec)?;
    let real = json!({"key": label::TYPE, "operator": "NotIn", "values": [label::VIRTUAL_NODE]});
    spec["affinity"] = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [{"matchExpressions": [real]}],
    }}});
    spec["automountServiceAccountToken"] = json!(false);
    Ok(spec)
}

fn refused(field: impl Into<String>, why: &'static str) -> DoesNotTravel {
    DoesNotTravel { field: field.into(), why }
}

fn is_empty(list: &Value) -> bool {
    list.as_array().map_or(list.is_null(), Vec::is_empty)
}

/// Items of a list that are objects.
fn items<'a>(of: &'a mut Map<String, Value>, list: &str) -> impl Iterator<Item = &'a mut Map<String, Value>> {
    let list = of.get_mut(list).and_then(Value::as_array_mut);
    list.into_iter().flatten().filter_map(Value::as_object_mut)
}

fn name(of: &Map<String, Value>) -> &str {
    of.get("name").and_then(Value::as_str).unwrap_or_default()
}

/// Takes out tolerations of all but [`TAINTS`]: at the host they would take the Pod to Nodes that are set apart, or
/// to the next cluster.
fn tolerations(spec: &mut Map<String, Value>) {
    if let Some(tolerations) = spec.get_mut("tolerations").and_then(Value::as_array_mut) {
        tolerations.retain(|toleration| {
            toleration.get("key").and_then(Value::as_str).is_some_and(|key| TAINTS.contains(&key))
        });
    }
}

/// Takes out volumes with the API token, and returns their names.
fn volumes(spec: &mut Map<String, Value>) -> Result<Vec<String>, DoesNotTravel> {
    let mut tokens = Vec::new();
    for volume in items(spec, "volumes") {
        // An API server takes no volume with several; whoever seals one may put any into it.
        for kind in kinds(volume) {
            match kind {
                "projected" if is_token(volume) => tokens.push(name(volume).to_owned()),
                "projected" => projected(volume)?,
                kind if VOLUMES.contains(&kind) => {}
                kind => {
                    let field = format!("spec.volumes[{}].{kind}", name(volume));
                    return Err(refused(field, "use emptyDir or downwardAPI, or let the Pod run at home"));
                }
            }
        }
    }
    if let Some(volumes) = spec.get_mut("volumes").and_then(Value::as_array_mut) {
        volumes.retain(|volume| {
            !volume.as_object().is_some_and(|volume| tokens.iter().any(|token| token == name(volume)))
        });
    }
    Ok(tokens)
}

/// What a volume is made of.
fn kinds(volume: &Map<String, Value>) -> impl Iterator<Item = &str> {
    volume.iter().filter(|(key, value)| *key != "name" && !value.is_null()).map(|(kind, _)| kind.as_str())
}

/// Whether Kubernetes added it, by all that it is: somebody may have given a volume of his own such a name.
fn is_token(volume: &Map<String, Value>) -> bool {
    let sources = volume.get("projected").and_then(|projected| projected.get("sources"));
    let sources = sources.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let of = |kind: &str| sources.iter().filter_map(move |source| source.get(kind)).collect::<Vec<_>>();
    name(volume).starts_with(TOKEN_VOLUME)
        && sources.len() == TOKEN_SOURCES.len()
        && TOKEN_SOURCES.iter().all(|kind| of(kind).len() == 1)
        && of("configMap").iter().all(|config| config.get("name").is_some_and(|name| name == ROOT_CA))
}

fn projected(volume: &Map<String, Value>) -> Result<(), DoesNotTravel> {
    let sources = volume.get("projected").and_then(|projected| projected.get("sources"));
    for source in sources.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_object) {
        if let Some((kind, _)) = source.iter().find(|(kind, _)| *kind != "downwardAPI") {
            let field = format!("spec.volumes[{}].projected.sources[].{kind}", name(volume));
            return Err(refused(field, "only downwardAPI does"));
        }
    }
    Ok(())
}

/// A container: nothing of it comes from an object of the home, and it takes no port of a Node.
fn container(container: &mut Map<String, Value>, list: &str, tokens: &[String]) -> Result<(), DoesNotTravel> {
    let path = format!("spec.{list}[{}]", name(container));
    if container.get("envFrom").is_some_and(|from| !is_empty(from)) {
        return Err(refused(format!("{path}.envFrom"), "write the variables into env"));
    }
    for variable in items(container, "env") {
        let from = variable.get("valueFrom").and_then(Value::as_object);
        let kind = from.and_then(|from| from.keys().find(|kind| !SOURCES.contains(&kind.as_str())));
        if let Some(kind) = kind {
            let field = format!("{path}.env[{}].valueFrom.{kind}", name(variable));
            return Err(refused(field, "write its value"));
        }
    }
    if let Some(mounts) = container.get_mut("volumeMounts").and_then(Value::as_array_mut) {
        let is_token = |mount: &Value| {
            mount.as_object().is_some_and(|mount| tokens.iter().any(|token| token == name(mount)))
        };
        mounts.retain(|mount| !is_token(mount));
    }
    for port in items(container, "ports") {
        port.retain(|field, _| !["hostPort", "hostIP"].contains(&field.as_str()));
    }
    Ok(())
}
