//! A provider that is played, as Go's backend would be: what it writes into a cluster namespace.

use std::collections::BTreeMap;

use api::bind::{
    binding::ClusterBinding,
    bound_schema::BoundSchema,
    carried,
    export::{APIServiceExport, APIServiceNamespace},
    resource::{InformerScope, Isolation},
};
use cli::objects::bind;
use e2e::{
    binding::{Offered, bind_with, install, kubeconfig},
    waiting::eventually,
    world::World,
};
use k8s_openapi::{
    ByteString,
    api::{
        core::v1::{Namespace, Secret, ServiceAccount},
        rbac::v1::{ClusterRoleBinding, RoleBinding},
    },
};
use kube::{
    Api, ResourceExt,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

const ACCOUNT: &str = "kube-binder";

/// A contract with one export.
pub(super) struct Backend<'a> {
    pub(super) world: &'a World,
    pub(super) cluster_namespace: String,
    isolation: Isolation,
}

impl<'a> Backend<'a> {
    /// Makes the cluster namespace with the export `name`; the credential of the consumer.
    pub(super) async fn begin(
        world: &'a World,
        consumer: &str,
        offered: &Offered,
        (isolation, scope): (Isolation, InformerScope),
    ) -> (Self, ByteString) {
        let cluster_namespace = format!("kube-bind-{}-{consumer}", offered.plural);
        let this = Self { world, cluster_namespace, isolation };
        let (leader, cns) = (world.leader(), this.cluster_namespace.as_str());
        leader.create_namespace(cns).await;
        let _: ServiceAccount = leader.create(cns, json!({"metadata": {"name": ACCOUNT}})).await;
        let _: RoleBinding = leader.create(cns, this.role_binding(ACCOUNT)).await;
        install(leader, &bind::offer(&offered.resource(), isolation)).await;
        let role = format!("freeport-bind-{}", offered.name());
        // Go's backend gives rights on the whole cluster.
        let mut everywhere = this.role_binding(&role);
        everywhere["metadata"]["name"] = json!(format!("{role}-{cns}"));
        let _: ClusterRoleBinding = leader.create_cluster_wide(everywhere).await;
        let kubeconfig = kubeconfig(world, cns, ACCOUNT).await;
        let secret = Secret {
            data: Some(BTreeMap::from([("kubeconfig".to_owned(), kubeconfig.clone())])),
            ..serde_json::from_value(json!({"metadata": {"name": "kubeconfig"}})).unwrap()
        };
        leader.api::<Secret>(cns).create(&PostParams::default(), &secret).await.unwrap();
        let binding = json!({"metadata": {"name": "cluster"},
            "spec": {"kubeconfigSecretRef": {"name": "kubeconfig", "key": "kubeconfig"}, "providerPrettyName": "Played"}});
        let _: ClusterBinding = leader.create(cns, binding).await;
        let (schema, _) = carried::bound(&offered.crd.spec, isolation, scope).unwrap();
        let _: BoundSchema =
            leader.create(cns, json!({"metadata": {"name": offered.name()}, "spec": schema})).await;
        let spec = json!({"resources": [offered.resource()], "isolation": isolation, "informerScope": scope});
        let _: APIServiceExport =
            leader.create(cns, json!({"metadata": {"name": offered.plural}, "spec": spec})).await;
        (this, kubeconfig)
    }

    /// The same of a cluster-wide API of its own, which `east` binds with that credential.
    pub(super) async fn bound(world: &'a World, plural: &str) -> (Offered, Self) {
        let offered = Offered::new(plural, "Cluster");
        offered.install(world.leader()).await;
        let (backend, kubeconfig) =
            Self::begin(world, "east", &offered, (Isolation::Prefixed, InformerScope::Cluster)).await;
        bind_with(world.cluster("east"), plural, &offered, kubeconfig).await;
        (offered, backend)
    }

    pub(super) fn role_binding(&self, role: &str) -> Value {
        let group = "rbac.authorization.k8s.io";
        json!({
            "metadata": {"name": ACCOUNT}, "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role},
            "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": self.cluster_namespace}],
        })
    }

    /// Gives the consumer's Namespace one of ours, once it is asked for; its name.
    pub(super) async fn assign(&self, namespace: &str) -> String {
        let leader = self.world.leader();
        let asked = leader.api::<APIServiceNamespace>(&self.cluster_namespace);
        eventually(&format!("a Namespace for {namespace} is asked for"), || async {
            let asked = asked.get_opt(namespace).await.unwrap();
            asked.map(drop).ok_or_else(|| self.world.log_tail("freeport-member-east"))
        })
        .await;
        let name = match self.isolation {
            Isolation::None => namespace.to_owned(),
            _ => format!("{}-{namespace}", self.cluster_namespace),
        };
        let namespaces = Api::<Namespace>::all(leader.client.clone());
        if namespaces.get_opt(&name).await.unwrap().is_none() {
            leader.create_namespace(&name).await;
        }
        let status = Patch::Merge(json!({"status": {"namespace": name}}));
        asked.patch_status(namespace, &PatchParams::default(), &status).await.unwrap();
        name
    }

    /// Lets the cluster namespace go, and those that it was given.
    pub(super) async fn release(&self) {
        let (leader, cns) = (self.world.leader(), self.cluster_namespace.as_str());
        let all = Api::<Namespace>::all(leader.client.clone()).list(&Default::default()).await.unwrap();
        for namespace in all.iter().map(ResourceExt::name_any).filter(|name| name.starts_with(cns)) {
            leader.release_namespace(&namespace).await;
        }
    }
}
