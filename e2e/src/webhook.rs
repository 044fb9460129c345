//! A cluster without nodes whose member keeps the certificate of a webhook that runs beside it as a process. No kubelet mounts the
//! certificate: this does.

use std::{
    collections::BTreeMap,
    fs, io,
    net::SocketAddr,
    path::{Path, PathBuf},
};

use api::offload::{
    label::SCHEDULING_ENABLED,
    namespace::{NAME, NamespaceOffloading, PLACEMENT_ENFORCED},
};
use cli::objects::offload::webhook;
use fleet::{ProcessSpec, cluster_set::Composition, ports, program};
use k8s_openapi::{
    ByteString,
    api::{
        admissionregistration::v1::MutatingWebhookConfiguration,
        core::v1::{Namespace, Pod, Secret, ServiceAccount},
    },
};
use kube::Api;
use serde_json::json;

use crate::{
    account, cluster::Cluster, fixture::SYSTEM, metrics::Metrics, shared::Fixture, waiting::eventually,
    world::World,
};

/// The process, its ServiceAccount and its configuration.
pub const WEBHOOK: &str = "freeport-webhook";
/// What the member keeps.
pub const SECRET: &str = "freeport-webhook-tls";
/// How often it lists all NamespaceOffloadings, in seconds.
const RELIST: &str = "10";
/// Its member's process.
const MEMBER: &str = "freeport-member-leader";
/// The cluster with its webhook.
pub struct Webhook {
    pub world: World,
    process: ProcessSpec,
    listen: SocketAddr,
    tls: PathBuf,
}

impl Fixture for Webhook {
    fn dir(&self) -> &Path {
        self.world.real().fleet.dir()
    }
}

impl Webhook {
    /// Brings both up. `env` is the member's besides what it has anyway.
    pub async fn up(env: &[(&str, &str)]) -> Self {
        static MADE: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
        let number = MADE.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let mut world = World::bring_up(&format!("webhook-{number}"), &["leader"]).await;
        let composition = Composition { offload: true, ..Composition::of_all(&world.real().fleet, "demo") };
        world.real_mut().daemons = world.set_up(&composition).await;
        // It goes with the fleet.
        let tls = world.real().fleet.clusters()[0].dir().join("webhook-tls");
        fs::create_dir_all(&tls).unwrap();
        let (listen, serve) = (ports::free_address().unwrap(), ports::free_address().unwrap());
        let program = program::path("webhook", WEBHOOK).await.unwrap();
        let mut webhook = Self { process: ProcessSpec::new(WEBHOOK, program), world, listen, tls };
        webhook.configure(serve).await;
        let kubeconfig = webhook.kubeconfig().await;
        webhook.process = webhook
            .process
            .args(["--kubeconfig".to_owned(), kubeconfig.display().to_string()])
            .args(["--listen".to_owned(), listen.to_string()])
            .args(["--webhook-listen".to_owned(), serve.to_string()])
            .args(["--tls-dir".to_owned(), webhook.tls.display().to_string()])
            .args(["--relist-seconds", RELIST].map(str::to_owned));
        webhook.start_member(env).await;
        webhook.start().await;
        webhook
    }

    pub fn cluster(&self) -> &Cluster {
        self.world.leader()
    }

    /// What makes API servers ask the webhook.
    async fn configure(&self, serve: SocketAddr) {
        let url = format!("https://{serve}/mutate/pod");
        let configuration = webhook::configuration(Some(&url)).body;
        self.cluster().create_cluster_wide::<MutatingWebhookConfiguration>(configuration).await;
    }

    /// Of the webhook's own ServiceAccount.
    async fn kubeconfig(&self) -> PathBuf {
        let server = self.world.real().fleet.cluster("leader").unwrap().server();
        let (ca, token) = account::credential(&self.world, "leader", SYSTEM, WEBHOOK).await;
        let kubeconfig = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": {"server": server, "certificate-authority-data": ca}}],
            "users": [{"name": "u", "user": {"token": token}}],
        });
        let path = self.world.real().fleet.clusters()[0].dir().join("webhook.kubeconfig");
        fs::write(&path, kubeconfig.to_string()).unwrap();
        path
    }

    async fn start_member(&mut self, env: &[(&str, &str)]) {
        for daemon in &mut self.world.real_mut().daemons {
            if daemon.is_member {
                daemon.spec.env.extend(env.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())));
            }
        }
        for daemon in &self.world.real().daemons {
            daemon.start(&self.world.real().fleet).await.unwrap();
        }
    }

    /// Starts it and waits until it says that it is ready.
    pub async fn start(&self) {
        if let Some(process) = self.world.real().fleet.process(WEBHOOK).await.unwrap() {
            process.stop().await.unwrap();
        }
        self.world.real().fleet.run(self.process.clone()).await.unwrap();
        eventually("the webhook has a certificate", || async {
            self.mount().await?;
            let metrics = Metrics::read(self.listen).await.map_err(|error| error.to_string())?;
            let expiry = metrics.sum("freeport_webhook_certificate_expiry_timestamp_seconds");
            if expiry > 0.0 { Ok(()) } else { Err(self.world.log_tail(WEBHOOK)) }
        })
        .await;
    }

    /// A Namespace, offloaded or not, in which Pods can be created.
    pub async fn namespace(&self, name: &str, is_offloaded: bool) {
        let cluster = self.cluster();
        let labels = if is_offloaded { json!({SCHEDULING_ENABLED: "true"}) } else { json!({}) };
        cluster.create_cluster_wide::<Namespace>(json!({"metadata": {"name": name, "labels": labels}})).await;
        let accounts = cluster.api::<ServiceAccount>(name);
        eventually("there is a ServiceAccount for Pods", || async {
            accounts.get("default").await.map(drop).map_err(|error| error.to_string())
        })
        .await;
    }

    /// What a kubelet does: both files change at once.
    pub async fn mount(&self) -> Result<BTreeMap<String, String>, String> {
        let secret =
            self.cluster().api::<Secret>(SYSTEM).get(SECRET).await.map_err(|error| error.to_string())?;
        let version = secret.metadata.resource_version.unwrap_or_default();
        let data: BTreeMap<_, _> = secret
            .data
            .unwrap_or_default()
            .into_iter()
            .map(|(key, value)| (key, String::from_utf8(value.0).unwrap()))
            .collect();
        if !data.contains_key("tls.crt") {
            return Err(format!("{:?}; {}", data.keys(), self.world.log_tail(MEMBER)));
        }
        self.place(&version, &data).map_err(|error| error.to_string())?;
        Ok(data)
    }

    fn place(&self, version: &str, data: &BTreeMap<String, String>) -> io::Result<()> {
        let generation = self.tls.join(format!("..{version}"));
        if generation.exists() {
            return Ok(());
        }
        fs::create_dir(&generation)?;
        for key in ["tls.crt", "tls.key"] {
            fs::write(generation.join(key), &data[key])?;
        }
        let next = self.tls.join("..next");
        std::os::unix::fs::symlink(&generation, &next)?;
        fs::rename(next, self.tls.join("..data"))
    }

    /// Whom API servers trust at the webhook.
    pub async fn bundle(&self) -> ByteString {
        let configurations = Api::<MutatingWebhookConfiguration>::all(self.cluster().client.clone());
        let webhooks = configurations.get(WEBHOOK).await.unwrap().webhooks.unwrap();
        webhooks[0].client_config.ca_bundle.clone().unwrap_or_default()
    }

    /// What it measures of itself.
    pub async fn metrics(&self) -> Metrics {
        Metrics::read(self.listen).await.unwrap()
    }

    /// A new Pod of the Namespace, or why there is none.
    pub async fn pod(&self, namespace: &str) -> Result<Pod, String> {
        self.cluster().new_pod(namespace).await
    }

    /// The same without creating it.
    pub async fn try_pod(&self, namespace: &str) -> Result<Pod, String> {
        self.cluster().try_pod(namespace).await
    }

    /// Waits until the NamespaceOffloading says this of the placement of Pods.
    pub async fn says(&self, namespace: &str, reason: &str) {
        let offloadings = self.cluster().api::<NamespaceOffloading>(namespace);
        eventually(&format!("{namespace} says {reason}"), || async {
            let offloading = offloadings.get(NAME).await.map_err(|error| error.to_string())?;
            let conditions = offloading.status.unwrap_or_default().conditions;
            let placed = conditions.iter().find(|condition| condition.type_ == PLACEMENT_ENFORCED);
            match placed.is_some_and(|condition| condition.reason == reason) {
                true => Ok(()),
                false => Err(format!("{conditions:?}; {}", self.world.log_tail(MEMBER))),
            }
        })
        .await;
    }
}
