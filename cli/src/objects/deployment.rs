//! How a daemon runs inside a cluster: its Deployment, and who may reach its Pod.
//!
//! All daemons look the same from outside: one image holds all programs, and only the command, the labels and the
//! ServiceAccount tell them apart.

use std::collections::BTreeMap;

use api::offload::label::HOSTNAME;
use k8s_openapi::{
    api::{
        apps::v1::{Deployment, DeploymentSpec, DeploymentStrategy, RollingUpdateDeployment},
        core::v1::{
            Capabilities, Container, ContainerPort, EnvVar, EnvVarSource, HTTPGetAction, ObjectFieldSelector,
            PodSecurityContext, PodSpec, PodTemplateSpec, Probe, ResourceRequirements, SeccompProfile,
            SecurityContext, TopologySpreadConstraint,
        },
        networking::v1::{NetworkPolicy, NetworkPolicyIngressRule, NetworkPolicyPort, NetworkPolicySpec},
        policy::v1::{PodDisruptionBudget, PodDisruptionBudgetSpec},
    },
    apimachinery::pkg::{
        api::resource::Quantity,
        apis::meta::v1::{LabelSelector, ObjectMeta},
        util::intstr::IntOrString,
    },
};
use serde_json::json;

use super::{Object, SYSTEM, ours, within};

/// Image of this version, which holds all daemons. No registry has it yet: load it into the nodes, or name another.
pub const DEFAULT_IMAGE: &str = concat!("freeport:", env!("CARGO_PKG_VERSION"));

/// Where a daemon serves `/healthz`, `/readyz` and `/metrics`.
pub(super) const PORT: i32 = 8080;
const PORT_NAME: &str = "metrics";
/// Label by which Deployment and NetworkPolicy find the Pod. It stays as it is: a selector cannot be changed.
const POD_NAME: &str = "app.kubernetes.io/name";
/// A user ID that images and nodes do not use.
const NOBODY: i64 = 65532;
/// What tells a daemon that it is one of several, and which.
const REPLICA: &str = "FREEPORT_REPLICA";
/// Old Pods end before new ones start.
const RECREATE: &str = "Recreate";

/// The Deployment of `daemon`, whose name is also that of its program and its ServiceAccount.
///
/// One Pod, and the old one ends before the new one starts: two would change the same objects until the newer one has
/// the Lease. Of several one is active, on nodes of their own if there are as many. `env` is what it is told besides where it runs.
pub(super) fn deployment(daemon: &str, image: &str, replicas: i32, env: &[EnvVar]) -> Object {
    let mut pod = pod(daemon, image);
    let replica = (replicas > 1).then(|| told_by_pod(REPLICA, "metadata.name"));
    for container in &mut pod.containers {
        container.env.get_or_insert_default().extend(replica.iter().chain(env).cloned());
    }
    pod.topology_spread_constraints = replica.map(|_| vec![spread(daemon)]);
    Object::new(&Deployment {
        metadata: within(SYSTEM, daemon),
        spec: DeploymentSpec {
            replicas: Some(replicas),
            strategy: Some(match replicas {
                ..=1 => DeploymentStrategy { type_: Some(RECREATE.into()), rolling_update: None },
                _ => one_by_one(),
            }),
            selector: pods_of(daemon),
            template: template(daemon, pod),
            ..DeploymentSpec::default()
        },
        status: None,
    })
}

/// Whether its Pods are told that they are replicas, and none that was not can be left beside them.
pub(crate) fn is_of_replicas(deployment: &Deployment) -> bool {
    let Some(spec) = &deployment.spec.template.spec else { return false };
    let all = spec.containers.iter().flat_map(|container| container.env.iter().flatten());
    let strategy = deployment.spec.strategy.as_ref().and_then(|strategy| strategy.type_.as_deref());
    strategy != Some(RECREATE) && all.into_iter().any(|told| told.name == REPLICA)
}

/// The same Deployment, whose old Pods end before new ones start.
pub(crate) fn anew(deployment: &Object) -> Object {
    let mut anew = deployment.clone();
    anew.body["spec"]["strategy"] = json!({"type": RECREATE});
    anew
}

/// A new Pod starts before an old one ends.
pub(super) fn one_by_one() -> DeploymentStrategy {
    DeploymentStrategy {
        type_: Some("RollingUpdate".into()),
        rolling_update: Some(RollingUpdateDeployment {
            max_surge: Some(IntOrString::Int(1)),
            max_unavailable: Some(IntOrString::Int(0)),
        }),
    }
}

/// Pods on nodes of their own; where there are too few, they share one.
pub(super) fn spread(daemon: &str) -> TopologySpreadConstraint {
    TopologySpreadConstraint {
        max_skew: 1,
        topology_key: HOSTNAME.into(),
        when_unsatisfiable: "ScheduleAnyway".into(),
        label_selector: Some(pods_of(daemon)),
        ..TopologySpreadConstraint::default()
    }
}

/// Of several Pods, one may be away when nodes are drained.
pub(crate) fn disruption_budget(daemon: &str) -> Object {
    Object::new(&PodDisruptionBudget {
        metadata: within(SYSTEM, daemon),
        spec: Some(PodDisruptionBudgetSpec {
            max_unavailable: Some(IntOrString::Int(1)),
            selector: Some(pods_of(daemon)),
            ..PodDisruptionBudgetSpec::default()
        }),
        status: None,
    })
}

/// All that runs a daemon inside its cluster: its [`deployment`], who may reach its Pods, and how many may be away.
pub(super) fn workload(daemon: &str, image: &str, replicas: i32, env: &[EnvVar]) -> Vec<Object> {
    let budget = (replicas > 1).then(|| disruption_budget(daemon));
    let objects = [network_policy(daemon, &[]), deployment(daemon, image, replicas, env)];
    objects.into_iter().chain(budget).collect()
}

/// What a daemon is told in its environment.
pub(crate) fn tells(name: &str, value: &str) -> EnvVar {
    EnvVar { name: name.into(), value: Some(value.into()), value_from: None }
}

/// Allows traffic only to the port of metrics and probes, and to these others. Nothing else listens in the Pod.
pub(super) fn network_policy(daemon: &str, others: &[i32]) -> Object {
    let port = |&port: &i32| NetworkPolicyPort {
        port: Some(IntOrString::Int(port)),
        protocol: Some("TCP".into()),
        end_port: None,
    };
    Object::new(&NetworkPolicy {
        metadata: within(SYSTEM, daemon),
        spec: Some(NetworkPolicySpec {
            pod_selector: Some(pods_of(daemon)),
            policy_types: Some(vec!["Ingress".into()]),
            ingress: Some(vec![NetworkPolicyIngressRule {
                ports: Some([PORT].iter().chain(others).map(port).collect()),
                from: None,
            }]),
            egress: None,
        }),
    })
}

/// The Pods of a daemon.
pub(super) fn pods_of(daemon: &str) -> LabelSelector {
    LabelSelector {
        match_labels: Some(BTreeMap::from([(POD_NAME.into(), daemon.into())])),
        match_expressions: None,
    }
}

fn pod_labels(daemon: &str) -> BTreeMap<String, String> {
    let mut labels = ours();
    labels.insert(POD_NAME.into(), daemon.into());
    labels
}

/// Pods of a daemon, with the labels by which they are found.
pub(super) fn template(daemon: &str, pod: PodSpec) -> PodTemplateSpec {
    PodTemplateSpec {
        metadata: Some(ObjectMeta { labels: Some(pod_labels(daemon)), ..ObjectMeta::default() }),
        spec: Some(pod),
    }
}

/// A Pod that asks its node for nothing.
pub(super) fn pod(daemon: &str, image: &str) -> PodSpec {
    PodSpec {
        service_account_name: Some(daemon.into()),
        security_context: Some(PodSecurityContext {
            run_as_non_root: Some(true),
            run_as_user: Some(NOBODY),
            run_as_group: Some(NOBODY),
            seccomp_profile: Some(SeccompProfile {
                type_: "RuntimeDefault".into(),
                ..SeccompProfile::default()
            }),
            ..PodSecurityContext::default()
        }),
        containers: vec![container(daemon, image)],
        ..PodSpec::default()
    }
}

fn container(daemon: &str, image: &str) -> Container {
    let quantities = |all: &[(&str, &str)]| {
        Some(all.iter().map(|&(name, size)| (name.into(), Quantity(size.into()))).collect())
    };
    Container {
        name: daemon.into(),
        image: Some(image.into()),
        command: Some(vec![format!("/{daemon}")]),
        args: Some(vec![format!("--listen=[::]:{PORT}")]),
        // Where daemons look for their ClusterSet and Secrets.
        env: Some(vec![told_by_pod("POD_NAMESPACE", "metadata.namespace")]),
        ports: Some(vec![ContainerPort {
            name: Some(PORT_NAME.into()),
            container_port: PORT,
            protocol: Some("TCP".into()),
            ..ContainerPort::default()
        }]),
        liveness_probe: Some(probe("/healthz", 10)),
        // Short: commands wait for it.
        readiness_probe: Some(probe("/readyz", 2)),
        resources: Some(ResourceRequirements {
            requests: quantities(&[("cpu", "10m"), ("memory", "32Mi")]),
            limits: quantities(&[("memory", "512Mi")]),
            ..ResourceRequirements::default()
        }),
        security_context: Some(SecurityContext {
            allow_privilege_escalation: Some(false),
            read_only_root_filesystem: Some(true),
            capabilities: Some(Capabilities { drop: Some(vec!["ALL".into()]), add: None }),
            ..SecurityContext::default()
        }),
        ..Container::default()
    }
}

/// What a field of its Pod tells a daemon in its environment.
fn told_by_pod(name: &str, field: &str) -> EnvVar {
    EnvVar {
        name: name.into(),
        value_from: Some(EnvVarSource {
            field_ref: Some(ObjectFieldSelector { api_version: Some("v1".into()), field_path: field.into() }),
            ..EnvVarSource::default()
        }),
        ..EnvVar::default()
    }
}

fn probe(path: &str, period_seconds: i32) -> Probe {
    Probe {
        http_get: Some(HTTPGetAction {
            path: Some(path.into()),
            port: IntOrString::String(PORT_NAME.into()),
            ..HTTPGetAction::default()
        }),
        period_seconds: Some(period_seconds),
        timeout_seconds: Some(3),
        failure_threshold: Some(3),
        ..Probe::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_pod_that_becomes_several_ends_first() {
        let of = |object: &Object| serde_json::from_value::<Deployment>(object.body.clone()).unwrap();
        let (one, two) = (deployment("d", "i", 1, &[]), deployment("d", "i", 2, &[]));
        assert!(is_of_replicas(&of(&two)) && !is_of_replicas(&of(&one)));
        let between = of(&anew(&two));
        assert_eq!(between.spec.strategy.as_ref().unwrap().type_.as_deref(), Some(RECREATE));
        assert_eq!(between.spec.template, of(&two).spec.template);
        assert!(!is_of_replicas(&between), "who is interrupted goes on with it");
    }
}
