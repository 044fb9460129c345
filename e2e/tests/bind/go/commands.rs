//! kube-bind's command line with our provider, which is played; where KUBE_BIND_BIN names a folder with `kubectl-bind`, that one runs instead
//! (`apiservice --remote-kubeconfig F -f request.yaml --skip-konnector --config-file X`).

use api::bind::{
    binding::APIServiceBinding,
    export::{APIServiceExport, APIServiceExportRequest, Phase},
    label,
};
use cli::objects::bind;
use e2e::{
    binding::{
        BINDING, CREDENTIALS, Offered, becomes, binding_says, install, kube_bind,
        provider::{contract, offer},
    },
    waiting::eventually,
    world::World,
};
use k8s_openapi::{ByteString, api::core::v1::Secret};
use kube::{
    Api, Client, Config, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
    config::{KubeConfigOptions, Kubeconfig},
};
use serde_json::{Value, json};

/// Binds what the request asks for.
async fn binds(world: &World, cns: &str, kubeconfig: &ByteString, request: &Value) {
    let Some(program) = kube_bind("kubectl-bind") else {
        return plays(world, cns, kubeconfig, request).await;
    };
    let east = world.real().fleet.cluster("east").unwrap();
    let (file, asked) = (east.dir().join("remote.kubeconfig"), east.dir().join("request.json"));
    std::fs::write(&file, &kubeconfig.0).unwrap();
    std::fs::write(&asked, request.to_string()).unwrap();
    // It asks for the server that it is logged in to, and uses none here.
    let (config, server) = (east.dir().join("kube-bind-config"), "http://127.0.0.1:9");
    let logged_in = json!({"apiVersion": "v1", "kind": "Config", "current": server, "servers": {server: {"url": server}}});
    std::fs::write(&config, logged_in.to_string()).unwrap();
    let mut kubectl = tokio::process::Command::new(program);
    kubectl.args(["apiservice", "--skip-konnector", "--remote-kubeconfig"]).arg(file).arg("-f").arg(asked);
    kubectl.arg("--config-file").arg(config);
    // It waits for the binding, which waits for somebody's consent here.
    kubectl.env("KUBECONFIG", east.kubeconfig()).kill_on_drop(true);
    let mut bound = kubectl.spawn().unwrap();
    let bindings = Api::<APIServiceBinding>::all(world.cluster("east").client.clone());
    eventually("it is bound", || async {
        let all = bindings.list(&ListParams::default()).await.unwrap();
        (!all.items.is_empty()).then_some(()).ok_or_else(|| "no binding".to_owned())
    })
    .await;
    bound.kill().await.unwrap();
}

async fn plays(world: &World, cns: &str, kubeconfig: &ByteString, request: &Value) {
    let east = world.cluster("east");
    let secret = json!({"metadata": {"name": "kubeconfig-x1x2x", "labels": {label::PROVIDER_KUBECONFIG: "true"}},
        "data": {"kubeconfig": kubeconfig}});
    let secret: Secret = east.create(CREDENTIALS, secret).await;
    let read: Kubeconfig = serde_json::from_slice(&kubeconfig.0).unwrap();
    let config = Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await.unwrap();
    let asks = Api::<APIServiceExportRequest>::namespaced(Client::try_from(config).unwrap(), cns);
    let mut request = request.clone();
    request["metadata"] = json!({"generateName": "export-"});
    let request = serde_json::from_value(request).unwrap();
    let asked = asks.create(&PostParams::default(), &request).await.unwrap().name_any();
    eventually("the request is granted", || async {
        let status = asks.get(&asked).await.unwrap().status.unwrap_or_default();
        if status.phase == Phase::Succeeded { Ok(()) } else { Err(format!("{status:?}")) }
    })
    .await;
    let binding = json!({"metadata": {"name": asked},
        "spec": {"kubeconfigSecretRef": {"namespace": CREDENTIALS, "name": secret.name_any(), "key": "kubeconfig"}}});
    let _: APIServiceBinding = east.create_cluster_wide(binding).await;
    let pending = json!({"type": "Ready", "status": "False", "severity": "Info", "reason": "Pending", "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let status = Patch::Merge(json!({"status": {"conditions": [pending]}}));
    let bindings = Api::<APIServiceBinding>::all(east.client.clone());
    bindings.patch_status(&asked, &PatchParams::default(), &status).await.unwrap();
}

#[e2e::test(real)]
fn b9_kube_binds_command_line_binds_an_api_of_our_provider_once_somebody_agrees() {
    BINDING.alone(async |world| {
        let (leader, east) = (world.leader(), world.cluster("east"));
        let offered = Offered::new("lined", "Cluster");
        offer(leader, &offered, json!({})).await;
        let (cns, kubeconfig) = contract(world, "kube-bind-cli", &offered.plural).await;
        // Without versions, of a template that names them.
        let resource = json!({"group": offered.resource().group, "resource": offered.plural});
        let request = json!({"apiVersion": "kube-bind.io/v1alpha2", "kind": "APIServiceExportRequest",
            "spec": {"resources": [resource]}});
        binds(world, &cns, &kubeconfig, &request).await;
        let exports = leader.api::<APIServiceExport>(&cns).list(&ListParams::default()).await.unwrap();
        let name = exports.items[0].name_any();
        binding_says(world, "east", &name, "Connected", "False", "CustomResourceDefinitionCreateFailed")
            .await;

        install(east, &bind::bound(&offered.resource())).await;
        binding_says(world, "east", &name, "Ready", "True", "").await;
        offered.create(east, None, "foo", json!({"spec": {"size": "l"}})).await;
        let there = offered.objects(leader, None);
        becomes("is at the provider", &there, &format!("{cns}-foo"), |_| true).await;
        let bindings = Api::<APIServiceBinding>::all(east.client.clone());
        bindings.delete(&name, &DeleteParams::default()).await.unwrap();
        eventually("the binding is gone", || async {
            let there = bindings.get_opt(&name).await.unwrap();
            there.map_or(Ok(()), |there| Err(format!("{:?}", there.metadata)))
        })
        .await;
        let secrets = east.api::<Secret>(CREDENTIALS);
        let labelled = ListParams::default().labels(&format!("{}=true", label::PROVIDER_KUBECONFIG));
        for secret in secrets.list(&labelled).await.unwrap() {
            secrets.delete(&secret.name_any(), &DeleteParams::default()).await.unwrap();
        }
        leader.release_namespace(&cns).await;
        leader.take_crd(&offered.name()).await;
    });
}
