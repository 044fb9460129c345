//! A cluster without nodes whose member keeps the certificate of a webhook beside it.

use std::{
    collections::BTreeMap,
    fs, io,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    path::PathBuf,
};

use api::offload::{
    label::SCHEDULING_ENABLED,
    namespace::{NAME, NamespaceOffloading, PLACEMENT_ENFORCED},
};
use cli::objects::offload::webhook;
use e2e::{account, cluster::Cluster, metrics::Metrics, shared::RUNTIME, waiting::eventually, world::World};
use fleet::{ProcessSpec, cluster_set::Composition, program};
use k8s_openapi::{
    ByteString,
    api::{
        admissionregistration::v1::MutatingWebhookConfiguration,
        core::v1::{Namespace, Secret, ServiceAccount},
    },
};
use kube::Api;
use serde_json::json;

pub(super) use e2e::fixture::SYSTEM;

/// The process, its ServiceAccount and its configuration.
pub(super) const WEBHOOK: &str = "freeport-webhook";
/// What the member keeps.
pub(super) const SECRET: &str = "freeport-webhook-tls";
/// Its member's process.
const MEMBER: &str = "freeport-member-leader";
/// A leaf is replaced after 20 seconds and has 10 left, which is enough for a machine that does much else.
const LIFETIMES: [(&str, &str); 2] =
    [("FREEPORT_WEBHOOK_CA_SECONDS", "45"), ("FREEPORT_WEBHOOK_CERTIFICATE_SECONDS", "30")];

pub(super) struct Setting {
    pub(super) world: World,
    webhook: ProcessSpec,
    listen: SocketAddr,
    tls: PathBuf,
}

/// Runs a test with a webhook of its own.
pub(super) fn setting<F: Future<Output = ()>>(test: impl FnOnce(&'static Setting) -> F) {
    RUNTIME.block_on(async {
        let setting: &'static Setting = Box::leak(Box::new(Setting::up().await));
        test(setting).await;
        setting.world.discard().await;
    });
}

fn free() -> SocketAddr {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|listener| listener.local_addr()).unwrap()
}

impl Setting {
    async fn up() -> Self {
        static MADE: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
        let number = MADE.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let mut world = World::bring_up(&format!("webhook-{number}"), &["leader"]).await;
        let composition = Composition { offload: true, ..Composition::of_all(&world.fleet, "demo") };
        world.daemons = world.set_up(&composition).await;
        let tls = world.fleet.dir().join("webhook-tls");
        fs::create_dir_all(&tls).unwrap();
        let (listen, serve) = (free(), free());
        let program = program::path("webhook", WEBHOOK).await.unwrap();
        let mut setting = Self { webhook: ProcessSpec::new(WEBHOOK, program), world, listen, tls };
        setting.configure(serve).await;
        let kubeconfig = setting.kubeconfig().await;
        setting.webhook = setting
            .webhook
            .args(["--kubeconfig".to_owned(), kubeconfig.display().to_string()])
            .args(["--listen".to_owned(), listen.to_string()])
            .args(["--webhook-listen".to_owned(), serve.to_string()])
            .args(["--tls-dir".to_owned(), setting.tls.display().to_string()]);
        setting.start_member().await;
        setting.start_webhook().await;
        setting
    }

    pub(super) fn cluster(&self) -> &Cluster {
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
        let server = self.world.fleet.cluster("leader").unwrap().server();
        let (ca, token) = account::credential(&self.world, "leader", SYSTEM, WEBHOOK).await;
        let kubeconfig = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": {"server": server, "certificate-authority-data": ca}}],
            "users": [{"name": "u", "user": {"token": token}}],
        });
        let path = self.world.fleet.dir().join("webhook.kubeconfig");
        fs::write(&path, kubeconfig.to_string()).unwrap();
        path
    }

    async fn start_member(&mut self) {
        for daemon in &mut self.world.daemons {
            if daemon.is_member {
                daemon.spec.env.extend(LIFETIMES.map(|(name, value)| (name.to_owned(), value.to_owned())));
            }
        }
        for daemon in &self.world.daemons {
            daemon.start(&self.world.fleet).await.unwrap();
        }
    }

    /// Starts it and waits until it says that it is ready.
    pub(super) async fn start_webhook(&self) {
        if let Some(process) = self.world.fleet.process(WEBHOOK).await.unwrap() {
            process.stop().await.unwrap();
        }
        self.world.fleet.run(self.webhook.clone()).await.unwrap();
        eventually("the webhook has a certificate", || async {
            self.mount().await?;
            let metrics = Metrics::read(self.listen).await.map_err(|error| error.to_string())?;
            let expiry = metrics.sum("freeport_webhook_certificate_expiry_timestamp_seconds");
            if expiry > 0.0 { Ok(()) } else { Err(self.world.log_tail(WEBHOOK)) }
        })
        .await;
    }

    /// A Namespace, offloaded or not, in which Pods can be created.
    pub(super) async fn namespace(&self, name: &str, is_offloaded: bool) {
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
    pub(super) async fn mount(&self) -> Result<BTreeMap<String, String>, String> {
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
    pub(super) async fn bundle(&self) -> ByteString {
        let configurations = Api::<MutatingWebhookConfiguration>::all(self.cluster().client.clone());
        let webhooks = configurations.get(WEBHOOK).await.unwrap().webhooks.unwrap();
        webhooks[0].client_config.ca_bundle.clone().unwrap_or_default()
    }

    /// Prints what a Pod costs the webhook.
    pub(super) async fn tell_costs(&self) {
        let metrics = Metrics::read(self.listen).await.unwrap();
        let [count, seconds, bytes] = [
            "freeport_webhook_admission_seconds_count",
            "freeport_webhook_admission_seconds_sum",
            "process_resident_memory_bytes",
        ]
        .map(|metric| metrics.sum(metric));
        let within =
            metrics.of("freeport_webhook_admission_seconds_bucket", "le", "0.001").unwrap_or_default();
        eprintln!(
            "the webhook: {:.0} microseconds a request, {:.2} % within 1 ms, {:.1} MB",
            seconds / count * 1e6,
            within / count * 100.0,
            bytes / 1e6
        );
    }

    /// Waits until the NamespaceOffloading says this of the placement of Pods.
    pub(super) async fn says(&self, namespace: &str, reason: &str) {
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
