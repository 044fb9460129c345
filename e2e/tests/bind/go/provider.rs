//! Our konnector with Go's backend, which is played; where KUBE_BIND_BIN names a folder with `backend`, that one runs instead.

use std::process::{Command, Stdio};

use api::bind::resource::{InformerScope, Isolation};
use e2e::{
    binding::{
        BINDING, Offered, becomes, bind_with, binding_says, kube_bind,
        provider::{contract_by, granted, offer},
        vanishes,
    },
    world::World,
};
use k8s_openapi::ByteString;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;

use super::{
    super::{backend::Backend, konnector::unbind},
    Process,
};

/// Our leader answers elsewhere.
const ASKED_IN: &str = "default";

/// Whoever provides.
enum Provider<'a> {
    Gos(Process, String),
    Played(Backend<'a>),
}

impl<'a> Provider<'a> {
    /// With one API that is granted; the credential of `east`.
    async fn begin(world: &'a World, offered: &Offered) -> (Self, ByteString) {
        let Some(program) = kube_bind("backend") else {
            offered.install(world.leader()).await;
            let kept = (Isolation::Prefixed, InformerScope::Cluster);
            let (backend, kubeconfig) = Backend::begin(world, "east", offered, kept).await;
            return (Self::Played(backend), kubeconfig);
        };
        offer(world.leader(), offered, json!({})).await;
        let leader = world.real().fleet.cluster("leader").unwrap();
        let mut backend = Command::new(program);
        backend.args([
            "--frontend-disabled",
            "--listen-address",
            "127.0.0.1:0",
            "--namespace-prefix",
            "kube-bind-",
        ]);
        backend.args(["--consumer-scope", "cluster", "--isolation", "prefixed"]);
        backend.arg("--external-address").arg(leader.server()).arg("--kubeconfig").arg(leader.kubeconfig());
        let process = Process::start(backend.stdin(Stdio::null()));
        let (cns, kubeconfig) = contract_by(world, ASKED_IN, "our-konnector", &offered.plural).await;
        granted(world, &cns, offered).await;
        (Self::Gos(process, cns), kubeconfig)
    }

    /// The Namespace at the provider for this one of the consumer.
    async fn assigns(&self, namespace: &str) -> String {
        match self {
            Self::Gos(_, cns) => format!("{cns}-{namespace}"),
            Self::Played(backend) => backend.assign(namespace).await,
        }
    }

    async fn end(self, world: &World) {
        match self {
            Self::Gos(process, cns) => {
                drop(process);
                world.leader().release_namespace(&cns).await;
            }
            Self::Played(backend) => backend.release().await,
        }
    }
}

#[e2e::test(real)]
fn our_konnector_works_with_gos_backend() {
    BINDING.alone(async |world| {
        let (leader, east) = (world.leader(), world.cluster("east"));
        let offered = Offered::new("backed", "Namespaced");
        let (provider, kubeconfig) = Provider::begin(world, &offered).await;
        bind_with(east, &offered.plural, &offered, kubeconfig).await;
        let ns = world.namespace("bind-backed", &["east"]).await;
        offered.create(east, Some(&ns), "foo", json!({"spec": {"size": "l"}})).await;
        let there_ns = provider.assigns(&ns).await;
        let (here, there) = (offered.objects(east, Some(&ns)), offered.objects(leader, Some(&there_ns)));
        becomes("is at the provider", &there, "foo", |copy| copy.data["spec"]["size"] == "l").await;
        let status = Patch::Merge(json!({"status": {"phase": "Ready"}}));
        there.patch_status("foo", &PatchParams::default(), &status).await.unwrap();
        becomes("has its status", &here, "foo", |object| object.data["status"]["phase"] == "Ready").await;
        binding_says(world, "east", &offered.plural, "Ready", "True", "").await;
        here.delete("foo", &DeleteParams::default()).await.unwrap();
        vanishes(&there, "foo").await;
        vanishes(&here, "foo").await;
        world.release(&ns).await;
        unbind(world, "east", &offered).await;
        provider.end(world).await;
        leader.take_crd(&offered.name()).await;
    });
}
