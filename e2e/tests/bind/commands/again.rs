//! `freeport bind apiservice` where the binding is there already, and `remove` with a cluster that it is not with.

use api::bind::{binding::APIServiceBinding, export::APIServiceExport};
use e2e::{
    binding::{BINDING, CREDENTIALS, Offered, becomes, binding_says, vanishes},
    world::World,
};
use fleet::program;
use k8s_openapi::{
    ByteString,
    api::core::v1::{Namespace, Secret, ServiceAccount},
};
use kube::{Api, ResourceExt, api::DeleteParams};
use serde_json::{Value, json};
use tokio::process::Command;

use super::{daemons, freeport};

/// Runs `freeport bind`, which has to succeed with a reader that is gone.
async fn unread(world: &World, line: &str) {
    let program = program::path("cli", "freeport").await.unwrap();
    let script = format!("set -o pipefail; {} bind {line} | true", program.display());
    let mut shell = Command::new("bash");
    shell.args(["-c", &script]).env("KUBECONFIG", world.real().fleet.kubeconfig());
    let ran = shell.output().await.unwrap();
    assert!(ran.status.success(), "{:?}: {}", ran.status.code(), String::from_utf8_lossy(&ran.stderr));
}

#[e2e::test(real)]
fn a_second_run_mends_what_is_missing_and_refuses_what_it_would_not_do() {
    BINDING.beside(async |world| {
        let (leader, west) = (world.leader(), world.cluster("west"));
        let (offered, other) = (Offered::new("agains", "Cluster"), Offered::new("elses", "Cluster"));
        for offered in [&offered, &other] {
            offered.install(leader).await;
            let offer = format!("offer {} --context leader --resource {}", offered.plural, offered.name());
            unread(world, &offer).await;
        }
        let both = "--context west --provider-context leader";
        let bind =
            |template: &str| format!("apiservice agains -t {template} {both} {}", daemons(world, "west"));
        freeport(world, &bind("agains")).await.succeeded();
        freeport(world, &bind("elses")).await.refused(&["bound already", &offered.name(), "elses"]);

        let bindings = Api::<APIServiceBinding>::all(west.client.clone());
        let bound = bindings.get("agains").await.unwrap();
        let cns = bound.spec.kubeconfig_secret_ref.name;
        west.delete::<Secret>(CREDENTIALS, &cns).await;
        binding_says(world, "west", "agains", "SecretValid", "False", "KubeconfigSecretNotFound").await;
        freeport(world, &bind("agains")).await.succeeded();
        binding_says(world, "west", "agains", "Ready", "True", "").await;

        // Its credential is revoked, and whoever provides gives a new one at once.
        let delete = DeleteParams::default();
        leader.api::<ServiceAccount>(&cns).delete("kube-binder", &delete).await.unwrap();
        leader.api::<Secret>(&cns).delete("kubeconfig", &delete).await.unwrap();
        let system = Api::<Namespace>::all(west.client.clone()).get("kube-system").await.unwrap();
        let half = format!(
            "apiservice agains -t agains --only provider --provider-context leader --identity {}",
            system.uid().unwrap()
        );
        let said = freeport(world, &half).await.succeeded();
        let file = world.real().fleet.cluster("west").unwrap().dir().join("again.yaml");
        std::fs::write(&file, &said).unwrap();
        let consumer = format!("--only consumer -f {} --context west", file.display());
        freeport(world, &format!("apiservice agains {consumer} {}", daemons(world, "west")))
            .await
            .succeeded();
        // What was said before is no sign that the member has taken the new one.
        let (here, copies) = (offered.objects(west, None), offered.objects(leader, None));
        let goes_up = async |name: &str| {
            let copy = format!("{cns}-{name}");
            offered.create(west, None, name, json!({"spec": {"size": "s"}})).await;
            becomes("is at the provider", &copies, &copy, |copy| copy.data["spec"]["size"] == "s").await;
            here.delete(name, &DeleteParams::default()).await.unwrap();
            vanishes(&copies, &copy).await;
        };
        goes_up("renewed").await;

        // The provider was at another address before, where nobody answers any more.
        let server = world.real().fleet.cluster("leader").unwrap().server();
        let secret = west.api::<Secret>(CREDENTIALS).get(&cns).await.unwrap();
        let had: Value = serde_json::from_slice(&secret.data.unwrap()["kubeconfig"].0).unwrap();
        let leads_to = async |change: &dyn Fn(&mut Value)| {
            let mut now = had.clone();
            now["clusters"][0]["cluster"]["server"] = json!("https://127.0.0.1:1");
            change(&mut now);
            let bytes = ByteString(now.to_string().into_bytes());
            west.patch::<Secret>(CREDENTIALS, &cns, &json!({"data": {"kubeconfig": bytes}})).await;
        };
        let half = format!("apiservice agains {consumer} {}", daemons(world, "west"));
        leads_to(&|now| now["users"][0]["user"]["token"] = json!("another cluster's")).await;
        binding_says(world, "west", "agains", "Connected", "False", "ProviderUnavailable").await;
        freeport(world, &half).await.refused(&["127.0.0.1:1", &server, "nothing was changed"]);
        freeport(world, &bind("agains")).await.refused(&["127.0.0.1:1", &cns, "nothing was changed"]);
        leads_to(&|_| {}).await;
        freeport(world, &bind("agains")).await.succeeded();
        goes_up("moved").await;

        // Neither its credential nor its export is there any more: the cluster namespace says that it is the same provider.
        west.delete::<Secret>(CREDENTIALS, &cns).await;
        leader.api::<APIServiceExport>(&cns).delete("agains", &delete).await.unwrap();
        leader.patch::<APIServiceExport>(&cns, "agains", &json!({"metadata": {"finalizers": null}})).await;
        freeport(world, &bind("agains")).await.succeeded();
        goes_up("anew").await;

        let more = said.replacen(&format!("resource: {}", offered.plural), "resource: elses", 1);
        assert_ne!(more, said);
        std::fs::write(&file, more).unwrap();
        freeport(world, &format!("apiservice agains {consumer} {}", daemons(world, "west")))
            .await
            .refused(&["bound already", "elses"]);

        let wrong = "remove agains --context west --provider-context east";
        freeport(world, wrong).await.refused(&[&server, &cns, "nothing was changed"]);
        assert_eq!(bindings.get("agains").await.unwrap().metadata.deletion_timestamp, None);

        // Nothing says that a binding without a Secret is with this provider, where another one's contract is.
        let lost = json!({"metadata": {"name": "lost"},
            "spec": {"kubeconfigSecretRef": {"namespace": CREDENTIALS, "name": "lost", "key": "kubeconfig"}}});
        let _: APIServiceBinding = west.create_cluster_wide(lost).await;
        freeport(world, &format!("apiservice lost -t agains {both} {}", daemons(world, "west")))
            .await
            .refused(&["lost is bound", "nothing was changed"]);
        freeport(world, &format!("remove agains {both} --orphan")).await.succeeded();
        let said = freeport(world, &format!("remove lost {both}")).await.succeeded();
        assert!(said.contains(&format!("{cns} stays")), "{said}");
        let contract = Api::<Namespace>::all(leader.client.clone()).get(&cns).await.unwrap();
        assert_eq!(contract.metadata.deletion_timestamp, None);
        leader.release_namespace(&cns).await;
        for offered in [&offered, &other] {
            leader.take_crd(&offered.name()).await;
        }
    });
}
