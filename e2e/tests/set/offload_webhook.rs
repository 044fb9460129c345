//! The webhook beside a real API server, which asks it by URL, with the certificate that the member keeps. Without nodes nobody mounts
//! the Secret: the test does.

mod fixture;

use std::collections::BTreeSet;

use api::offload::namespace::NamespaceOffloading;
use e2e::waiting::{always, eventually};
use k8s_openapi::{
    ByteString,
    api::core::v1::{Pod, Secret},
};
use kube::api::{DeleteParams, PostParams};
use serde_json::json;

use self::fixture::{SECRET, SYSTEM, Setting, WEBHOOK, setting};

#[test]
fn a_new_pod_is_placed_as_its_namespace_says() {
    setting(async |setting| {
        let east = setting.cluster();
        for (namespace, is_offloaded) in [("shop", true), ("forgotten", true), ("plain", false)] {
            setting.namespace(namespace, is_offloaded).await;
        }
        let region =
            json!([{"matchExpressions": [{"key": "liqo.io/region", "operator": "In", "values": ["us"]}]}]);
        let spec =
            json!({"podOffloadingStrategy": "Remote", "clusterSelector": {"nodeSelectorTerms": region}});
        let offloading = json!({"metadata": {"name": "offloading"}, "spec": spec});
        east.create::<NamespaceOffloading>("shop", offloading).await;

        let placed = eventually("a Pod is placed", || setting.pod("shop")).await;
        let spec = json!(placed.spec.unwrap());
        let required = "requiredDuringSchedulingIgnoredDuringExecution";
        let terms = &spec["affinity"]["nodeAffinity"][required]["nodeSelectorTerms"];
        let keys: Vec<_> =
            terms[0]["matchExpressions"].as_array().unwrap().iter().map(|e| &e["key"]).collect();
        assert_eq!(keys, ["liqo.io/region", "liqo.io/type"]);
        let tolerations = spec["tolerations"].as_array().unwrap();
        let ours =
            tolerations.iter().filter(|toleration| toleration["key"] == "virtual-node.liqo.io/not-allowed");
        assert_eq!(ours.count(), 1);
        setting.says("shop", "Enforced").await;

        let why = setting.pod("forgotten").await.unwrap_err();
        assert!(why.contains("freeport offload namespace forgotten"), "{why}");
        let unplaced = setting.pod("plain").await.unwrap().spec.unwrap();
        assert_eq!(unplaced.affinity, None);
        // A NamespaceOffloading counts at once, and while it is not there nobody remembers it.
        east.create::<NamespaceOffloading>(
            "forgotten",
            json!({"metadata": {"name": "offloading"}, "spec": {}}),
        )
        .await;
        setting.pod("forgotten").await.unwrap();

        // While it is down, Pods of its Namespaces are not created, and those of others are.
        let webhook = setting.world.fleet.process(WEBHOOK).await.unwrap().unwrap();
        webhook.kill().await.unwrap();
        let why = setting.pod("shop").await.unwrap_err();
        assert!(why.contains("pod.mutate.liqo.io"), "{why}");
        setting.pod("plain").await.unwrap();
        setting.says("shop", "WebhookUnavailable").await;
        setting.start_webhook().await;
        eventually("Pods are placed again", || setting.pod("shop")).await;
        somebodys_own_secret_is_used(setting).await;
    });
}

/// As cert-manager keeps one: without our label.
async fn somebodys_own_secret_is_used(setting: &Setting) {
    let cluster = setting.cluster();
    let had = cluster.api::<Secret>(SYSTEM).get(SECRET).await.unwrap();
    let ca = had.data.unwrap()["ca.crt"].clone();
    let twice = ByteString([ca.0.clone(), ca.0].concat());
    let theirs = json!({
        "metadata": {"labels": {"app.kubernetes.io/managed-by": "cert-manager"}},
        "data": {"ca.crt": twice, "tls.key": ByteString(b"garbled".to_vec())},
    });
    let theirs = cluster.patch::<Secret>(SYSTEM, SECRET, &theirs).await;
    eventually("its authorities are trusted", || async {
        if setting.bundle().await == twice { Ok(()) } else { Err("others".to_owned()) }
    })
    .await;
    always("it is not written", || async {
        let now = cluster.api::<Secret>(SYSTEM).get(SECRET).await.unwrap();
        if now.metadata.resource_version == theirs.metadata.resource_version {
            Ok(())
        } else {
            Err(format!("{now:?}"))
        }
    })
    .await;
    // It is ours again: what is garbled is put right.
    let ours = json!({"metadata": {"labels": {"app.kubernetes.io/managed-by": "freeport"}}});
    cluster.patch::<Secret>(SYSTEM, SECRET, &ours).await;
    eventually("it is put right", || async {
        let data = setting.mount().await?;
        if data["tls.key"].contains("PRIVATE KEY") { Ok(()) } else { Err(data["tls.key"].clone()) }
    })
    .await;
    eventually("Pods are placed with it", || setting.pod("shop")).await;
}

#[test]
fn no_pod_is_refused_while_certificates_change() {
    setting(async |setting| {
        setting.namespace("shop", true).await;
        let east = setting.cluster();
        east.create::<NamespaceOffloading>("shop", json!({"metadata": {"name": "offloading"}, "spec": {}}))
            .await;
        eventually("a Pod is placed", || setting.pod("shop")).await;
        let (mut authorities, mut leaves, mut pods) = (BTreeSet::new(), BTreeSet::new(), 0);
        while authorities.len() < 3 || leaves.len() < 4 {
            let data = setting.mount().await.unwrap();
            leaves.insert(data["tls.crt"].clone());
            let first = data["ca.crt"].split_inclusive("END CERTIFICATE").next();
            authorities.insert(first.unwrap().to_owned());
            setting.try_pod("shop").await.unwrap();
            pods += 1;
        }
        eprintln!(
            "{pods} Pods while {} authorities and {} leaves were used",
            authorities.len(),
            leaves.len()
        );
        setting.tell_costs().await;
        // Whoever deletes the Secret gets another one, and no Pod is refused meanwhile.
        let secrets = east.api::<Secret>(SYSTEM);
        secrets.delete(SECRET, &DeleteParams::default()).await.unwrap();
        eventually("the Secret is there again, and a Pod of its leaf is placed", || async {
            setting.try_pod("shop").await.unwrap();
            let data = setting.mount().await?;
            if leaves.contains(&data["tls.crt"]) { Err("the old leaf".to_owned()) } else { Ok(()) }
        })
        .await;
        setting.try_pod("shop").await.unwrap();
    });
}

impl Setting {
    /// A new Pod of the Namespace, or why there is none.
    async fn pod(&self, namespace: &str) -> Result<Pod, String> {
        self.create_pod(namespace, &PostParams::default()).await
    }

    /// The same without creating it.
    async fn try_pod(&self, namespace: &str) -> Result<Pod, String> {
        self.create_pod(namespace, &PostParams { dry_run: true, ..PostParams::default() }).await
    }

    async fn create_pod(&self, namespace: &str, params: &PostParams) -> Result<Pod, String> {
        let spec = json!({"containers": [{"name": "c", "image": "localhost/none"}]});
        let pod = json!({"metadata": {"generateName": "web-"}, "spec": spec});
        let pod: Pod = serde_json::from_value(pod).unwrap();
        self.cluster().api::<Pod>(namespace).create(params, &pod).await.map_err(|error| error.to_string())
    }
}
