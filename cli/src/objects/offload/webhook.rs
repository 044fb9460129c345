//! The webhook that places the Pods of offloaded Namespaces: who it is, how it runs, and when the API server asks it.

use std::collections::BTreeMap;

use api::offload::{label as offload, webhook as asked};
use k8s_openapi::{
    api::{
        admissionregistration::v1::{
            MutatingWebhook, MutatingWebhookConfiguration, ServiceReference, WebhookClientConfig,
        },
        apps::v1::{Deployment, DeploymentSpec},
        core::v1::{
            ContainerPort, KeyToPath, PodSpec, SecretVolumeSource, Service, ServicePort, ServiceSpec,
            Toleration, Volume, VolumeMount,
        },
        node::v1::{RuntimeClass, Scheduling},
    },
    apimachinery::pkg::util::intstr::IntOrString,
};

use super::super::{
    Object, SYSTEM, daemon_account, deployment, named,
    rights::{Account, OFFLOADING, READ, everywhere, rule},
    within,
};

/// Name of everything that is the webhook's: program, ServiceAccount, Deployment, Service, configuration.
pub const NAME: &str = asked::NAME;

/// The Secret with its certificate, which the member issues.
pub const SECRET: &str = "freeport-webhook-tls";

/// Where it is asked about a Pod.
pub const PATH: &str = "/mutate/pod";

const ACCOUNT: Account<'static> = Account { namespace: SYSTEM, name: NAME };

/// Port that it listens on for the API server.
pub(crate) const PORT: u16 = 8443;
const PORT_NAME: &str = "webhook";
/// Port of its Service.
const SERVICE_PORT: i32 = 443;
/// Folder with the files of [`SECRET`], where the program looks for them.
const CERTIFICATES: &str = "/etc/freeport-webhook/tls";
/// Seconds that the API server waits for it.
const TIMEOUT: i32 = 3;

/// ServiceAccount with the only right it needs, and the RuntimeClass whose Pods are for virtual nodes whatever it says.
pub(super) fn rights() -> Vec<Object> {
    let reads = vec![rule(OFFLOADING, "namespaceoffloadings", READ)];
    let mut objects = vec![daemon_account(NAME)];
    objects.extend(everywhere(&ACCOUNT, reads));
    objects.push(runtime_class());
    objects
}

/// All that runs the webhook inside its cluster, and who may reach its Pods.
pub fn workload(image: &str) -> Vec<Object> {
    vec![
        deployment::network_policy(NAME, &[PORT.into()]),
        service(),
        Object::new(&deployment(image)),
        deployment::disruption_budget(NAME),
    ]
}

/// When the API server asks it: about each new Pod of an offloaded Namespace. `url` is where it runs outside of the cluster, as the
/// API server reaches it.
///
/// The member writes the authorities that sign its certificates, and makes it again if somebody deletes it. A Pod that slips through stays in the wrong place for life, so none
/// is created while it does not answer; other Namespaces never depend on it.
pub fn configuration(url: Option<&str>) -> Object {
    let service = ServiceReference {
        namespace: SYSTEM.into(),
        name: NAME.into(),
        path: Some(PATH.into()),
        port: Some(SERVICE_PORT),
    };
    let webhook = MutatingWebhook {
        name: asked::WEBHOOK.into(),
        admission_review_versions: vec!["v1".into()],
        client_config: WebhookClientConfig {
            service: url.is_none().then_some(service),
            url: url.map(str::to_owned),
            ca_bundle: None,
        },
        rules: Some(asked::rules()),
        namespace_selector: Some(asked::namespaces()),
        side_effects: "None".into(),
        timeout_seconds: Some(TIMEOUT),
        failure_policy: Some("Fail".into()),
        ..MutatingWebhook::default()
    };
    Object::new(&MutatingWebhookConfiguration { metadata: named(NAME), webhooks: Some(vec![webhook]) })
}

/// Its Pods are for virtual nodes, and run there whatever the strategy of their Namespace is. No node here runs such a handler.
fn runtime_class() -> Object {
    let toleration = Toleration {
        key: Some(offload::NOT_ALLOWED.into()),
        operator: Some("Exists".into()),
        effect: Some(offload::NO_EXECUTE.into()),
        ..Toleration::default()
    };
    Object::new(&RuntimeClass {
        metadata: named(offload::RUNTIME_CLASS),
        handler: offload::RUNTIME_CLASS.into(),
        overhead: None,
        scheduling: Some(Scheduling {
            node_selector: Some(one(offload::TYPE, offload::VIRTUAL_NODE)),
            tolerations: Some(vec![toleration]),
        }),
    })
}

fn service() -> Object {
    Object::new(&Service {
        metadata: within(SYSTEM, NAME),
        spec: Some(ServiceSpec {
            selector: deployment::pods_of(NAME).match_labels,
            ports: Some(vec![ServicePort {
                name: Some(PORT_NAME.into()),
                port: SERVICE_PORT,
                target_port: Some(IntOrString::String(PORT_NAME.into())),
                protocol: Some("TCP".into()),
                ..ServicePort::default()
            }]),
            ..ServiceSpec::default()
        }),
        status: None,
    })
}

/// Two Pods on two nodes, if there are two. An update starts a new Pod before it ends an old one.
fn deployment(image: &str) -> Deployment {
    Deployment {
        metadata: within(SYSTEM, NAME),
        spec: DeploymentSpec {
            replicas: Some(2),
            strategy: Some(deployment::one_by_one()),
            selector: deployment::pods_of(NAME),
            template: deployment::template(NAME, pod(image)),
            ..DeploymentSpec::default()
        },
        status: None,
    }
}

fn pod(image: &str) -> PodSpec {
    let mut pod = deployment::pod(NAME, image);
    for container in &mut pod.containers {
        let args = container.args.get_or_insert_default();
        args.push(format!("--webhook-listen=[::]:{PORT}"));
        container.ports.get_or_insert_default().push(ContainerPort {
            name: Some(PORT_NAME.into()),
            container_port: PORT.into(),
            protocol: Some("TCP".into()),
            ..ContainerPort::default()
        });
        container.volume_mounts = Some(vec![VolumeMount {
            name: SECRET.into(),
            mount_path: CERTIFICATES.into(),
            read_only: Some(true),
            ..VolumeMount::default()
        }]);
    }
    PodSpec {
        volumes: Some(vec![Volume {
            name: SECRET.into(),
            secret: Some(SecretVolumeSource {
                secret_name: Some(SECRET.into()),
                // Not the key of the authority.
                items: Some(["tls.crt", "tls.key"].map(item).into()),
                ..SecretVolumeSource::default()
            }),
            ..Volume::default()
        }]),
        topology_spread_constraints: Some(vec![deployment::spread(NAME)]),
        ..pod
    }
}

fn item(key: &str) -> KeyToPath {
    KeyToPath { key: key.into(), path: key.into(), ..KeyToPath::default() }
}

fn one(key: &str, value: &str) -> BTreeMap<String, String> {
    BTreeMap::from([(key.to_owned(), value.to_owned())])
}
