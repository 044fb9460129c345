//! ServiceImports in a member's cluster: written by controllers, not by users of the Namespace.

use api::mcs::{ServiceExport, ServiceImport};
use e2e::{waiting::eventually, world::World};
use kube::{
    Client, Config,
    api::ApiResource,
    config::{KubeConfigOptions, Kubeconfig},
};
use serde_json::{Value, json};

use crate::rights::{
    account::{self, Rights, until_allowed},
    attempt::Do,
    parties::shared,
};

const MCS: &str = "multicluster.x-k8s.io";
const REFUSED: &str = "ServiceImports are written by the member; create a ServiceExport instead";

fn exports() -> ApiResource {
    ApiResource::erase::<ServiceExport>(&())
}

fn imports() -> ApiResource {
    ApiResource::erase::<ServiceImport>(&())
}

fn import(name: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"type": "ClusterSetIP", "ports": [{"port": 80, "protocol": "TCP"}]}})
}

fn note() -> Value {
    json!({"metadata": {"annotations": {"seen": "here"}}})
}

/// A Namespace of the test's own, with a ServiceImport `there` that an administrator wrote.
async fn namespace(world: &World, name: &str) {
    world.namespace(name, &["leader"]).await;
    let _: ServiceImport = world.leader().create(name, import("there")).await;
}

/// Policies are enforced a moment after they were created.
async fn until_refused(client: &Client, namespace: &str) {
    eventually("freeport-imports is enforced", || async {
        match Do::DryCreate(import("probe")).by(client, namespace, &imports()).await {
            Err(refusal) if refusal.is_by_policy(REFUSED) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
}

#[e2e::test]
fn r7_r36_a_namespace_admin_exports_and_does_not_import() {
    shared(async |parties| {
        let space = "rights-admin";
        namespace(&parties.world, space).await;
        let admin = account::with(&parties.world, space, "admin", Rights::ClusterRole("admin")).await;
        for verb in ["create", "delete"] {
            until_allowed(&admin, space, MCS, "serviceexports", verb).await;
        }
        until_allowed(&admin, space, MCS, "serviceimports", "list").await;

        let export = json!({"metadata": {"name": "web"}});
        Do::Create(export).by(&admin, space, &exports()).await.unwrap();
        Do::Patch("web".into(), note()).by(&admin, space, &exports()).await.unwrap();
        Do::Delete("web".into()).by(&admin, space, &exports()).await.unwrap();
        Do::Get("there".into()).by(&admin, space, &imports()).await.unwrap();
        for todo in [Do::Create(import("web")), Do::Patch("there".into(), note()), Do::Delete("there".into())]
        {
            let done = todo.by(&admin, space, &imports()).await;
            assert!(done.as_ref().is_err_and(|refusal| refusal.code == 403), "{todo:?}: {done:?}");
        }
    });
}

#[e2e::test]
fn r36_a_role_for_serviceimports_does_not_make_a_controller() {
    shared(async |parties| {
        let space = "rights-by-hand";
        namespace(&parties.world, space).await;
        let verbs = ["get", "list", "watch", "create", "update", "patch", "delete"];
        let rules = json!([{"apiGroups": [MCS], "resources": ["serviceimports"], "verbs": verbs}]);
        let hand = account::with(&parties.world, space, "by-hand", Rights::Role(rules)).await;
        until_allowed(&hand, space, MCS, "serviceimports", "create").await;
        until_refused(&hand, space).await;

        for todo in [
            Do::Create(import("web")),
            Do::Patch("there".into(), note()),
            Do::Replace("there".into(), note()),
        ] {
            let done = todo.by(&hand, space, &imports()).await;
            assert!(done.as_ref().is_err_and(|refusal| refusal.is_by_policy(REFUSED)), "{todo:?}: {done:?}");
        }
        // The member makes it anew if there is an import.
        Do::Delete("there".into()).by(&hand, space, &imports()).await.unwrap();
    });
}

#[e2e::test]
fn another_controller_is_let_through() {
    shared(async |parties| {
        let space = "rights-controller";
        namespace(&parties.world, space).await;
        let rules = json!([
            {"apiGroups": [MCS], "resources": ["serviceimports"], "verbs": ["get", "create", "update", "patch"]},
            {"apiGroups": [MCS], "resources": ["serviceimports/status"], "verbs": ["update"]},
        ]);
        let controller = account::with(&parties.world, space, "controller", Rights::Role(rules)).await;
        until_allowed(&controller, space, MCS, "serviceimports", "create").await;
        until_allowed(&controller, space, MCS, "serviceimports/status", "update").await;

        for todo in
            [Do::Create(import("web")), Do::Patch("web".into(), note()), Do::Replace("there".into(), note())]
        {
            let done = todo.by(&controller, space, &imports()).await;
            assert!(done.is_ok(), "{todo:?}: {done:?}");
        }
    });
}

#[e2e::test]
fn the_garbage_collector_is_let_through() {
    shared(async |parties| {
        let space = "rights-garbage";
        namespace(&parties.world, space).await;
        let context = KubeConfigOptions { context: Some("leader".into()), ..KubeConfigOptions::default() };
        let kubeconfig = Kubeconfig::read_from(parties.world.real().fleet.kubeconfig()).unwrap();
        let mut config = Config::from_custom_kubeconfig(kubeconfig, &context).await.unwrap();
        let collector = "system:serviceaccount:kube-system:generic-garbage-collector";
        config.auth_info.impersonate = Some(collector.into());
        let collector = Client::try_from(config).unwrap();
        Do::Patch("there".into(), note()).by(&collector, space, &imports()).await.unwrap();
    });
}
