//! The webhook beside a real API server, which asks it by URL, with the certificate that the member keeps. Without nodes nobody mounts
//! the Secret: the test does.

mod vectors;

use std::collections::BTreeSet;

use api::offload::namespace::NamespaceOffloading;
use e2e::{
    daemon::End,
    fixture::SYSTEM,
    schedule::Place,
    seen::event,
    shared::with_own,
    shell::shell,
    waiting::{always, eventually},
    webhook::{SECRET, WEBHOOK, Webhook},
};
use fleet::program;
use k8s_openapi::{
    ByteString,
    api::{
        admissionregistration::v1::MutatingWebhookConfiguration,
        coordination::v1::Lease,
        core::v1::{ConfigMap, Pod, Secret},
        rbac::v1::ClusterRoleBinding,
    },
    apimachinery::pkg::apis::meta::v1::LabelSelector,
};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ObjectMeta, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

/// A leaf is replaced after 20 seconds and has 10 left, which is enough for a machine that does much else.
const LIFETIMES: [(&str, &str); 2] =
    [("FREEPORT_WEBHOOK_CA_SECONDS", "45"), ("FREEPORT_WEBHOOK_CERTIFICATE_SECONDS", "30")];

const PLACE: Place = Place { name: "webhook", planes: 1, copies: 2 };

/// Runs a test with a webhook of its own, whose member has `env`.
fn with_webhook<F: Future<Output = ()>>(env: &[(&str, &str)], test: impl FnOnce(&'static Webhook) -> F) {
    with_own(PLACE, Webhook::up(env), test);
}

#[e2e::test]
fn a_new_pod_is_placed_as_its_namespace_says() {
    with_webhook(&[], async |webhook| {
        let east = webhook.cluster();
        shop_is_offloaded(webhook).await;
        let placed = eventually("a Pod is placed", || webhook.pod("shop")).await;
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
        webhook.says("shop", "Enforced").await;

        let why = webhook.pod("forgotten").await.unwrap_err();
        assert!(why.contains("freeport offload namespace forgotten"), "{why}");
        let unplaced = webhook.pod("plain").await.unwrap().spec.unwrap();
        assert_eq!(unplaced.affinity, None);
        // A NamespaceOffloading counts at once, and while it is not there nobody remembers it.
        east.create::<NamespaceOffloading>(
            "forgotten",
            json!({"metadata": {"name": "offloading"}, "spec": {}}),
        )
        .await;
        webhook.pod("forgotten").await.unwrap();

        vectors::hold_through_an_api_server(webhook).await;

        // While it is down, Pods of its Namespaces are not created, and those of others are.
        let process = webhook.world.real().fleet.process(WEBHOOK).await.unwrap().unwrap();
        process.kill().await.unwrap();
        let why = webhook.pod("shop").await.unwrap_err();
        assert!(why.contains("pod.mutate.liqo.io"), "{why}");
        webhook.pod("plain").await.unwrap();
        webhook.says("shop", "WebhookUnavailable").await;
        webhook.start().await;
        eventually("Pods are placed again", || webhook.pod("shop")).await;
        what_cannot_travel_stays_at_home(webhook).await;
    });
}

#[e2e::test]
fn what_is_edited_deleted_or_restored_is_put_right() {
    with_webhook(&[], async |webhook| {
        shop_is_offloaded(webhook).await;
        a_configuration_of_ours_is_put_back(webhook).await;
        one_of_somebody_else_is_left_alone(webhook).await;
        without_rights_it_places_no_pod_and_says_so(webhook).await;
        without_its_kind_it_says_what_to_do(webhook).await;
        somebodys_own_secret_is_used(webhook).await;
        in_a_restored_cluster_both_go_on(webhook).await;
        who_leaves_has_it_deleted(webhook).await;
    });
}

/// Pods of Namespace `shop` go to a region, those of `forgotten` cannot be placed, and those of `plain` stay.
async fn shop_is_offloaded(webhook: &Webhook) {
    for (namespace, is_offloaded) in [("shop", true), ("forgotten", true), ("plain", false)] {
        webhook.namespace(namespace, is_offloaded).await;
    }
    let region =
        json!([{"matchExpressions": [{"key": "liqo.io/region", "operator": "In", "values": ["us"]}]}]);
    let spec = json!({"podOffloadingStrategy": "Remote", "clusterSelector": {"nodeSelectorTerms": region}});
    let offloading = json!({"metadata": {"name": "offloading"}, "spec": spec});
    webhook.cluster().create::<NamespaceOffloading>("shop", offloading).await;
}

fn configurations(webhook: &Webhook) -> Api<MutatingWebhookConfiguration> {
    Api::all(webhook.cluster().client.clone())
}

/// Has API servers ask about fewer Pods, or about all.
async fn select(webhook: &Webhook, selector: Value) {
    let patch = json!([{"op": "replace", "path": "/webhooks/0/objectSelector", "value": selector}]);
    let patch: Patch<()> = Patch::Json(serde_json::from_value(patch).unwrap());
    configurations(webhook).patch(WEBHOOK, &PatchParams::default(), &patch).await.unwrap();
}

/// Whether API servers ask about every Pod, and where they did before, and trust whom the member says.
async fn asks_about_all(webhook: &Webhook, url: Option<&str>) -> Result<(), String> {
    let there = configurations(webhook).get(WEBHOOK).await.map_err(|error| error.to_string())?;
    let it = there.webhooks.iter().flatten().next().ok_or("there is no webhook")?;
    let selects_all = it.object_selector.clone().unwrap_or_default() == LabelSelector::default();
    let is_trusted = it.client_config.ca_bundle.is_some();
    match selects_all && is_trusted && it.client_config.url.as_deref() == url {
        true => Ok(()),
        false => Err(format!("{it:?}")),
    }
}

/// Whether the installer owns the webhook, which it has to be able to change, and not the label that somebody else had set.
async fn is_as_installed(webhook: &Webhook) {
    let there = configurations(webhook).get(WEBHOOK).await.unwrap();
    assert_eq!(there.labels().get("team").map(String::as_str), Some("platform"), "{:?}", there.metadata);
    let owns = |manager: &str, field: &str| {
        let entries = there.managed_fields().iter().filter(|entry| entry.manager.as_deref() == Some(manager));
        let fields: Vec<_> = entries.map(|entry| json!(entry.fields_v1).to_string()).collect();
        fields.iter().any(|fields| fields.contains(field))
    };
    assert!(owns("freeport-cli", "f:url") && !owns("freeport-cli", "f:team"), "{:?}", there.managed_fields());
    assert!(!owns("freeport-member", "f:url"), "{:?}", there.managed_fields());
}

/// In place and whole again, whether somebody narrowed or deleted it, also while no member runs.
async fn a_configuration_of_ours_is_put_back(webhook: &Webhook) {
    let installed = configurations(webhook).get(WEBHOOK).await.unwrap();
    let url = installed.webhooks.unwrap().remove(0).client_config.url;
    let is_back = || asks_about_all(webhook, url.as_deref());
    select(webhook, json!({"matchLabels": {"only": "these"}})).await;
    eventually("it asks about all again", is_back).await;
    let label = json!({"metadata": {"labels": {"team": "platform"}}});
    configurations(webhook).patch(WEBHOOK, &PatchParams::default(), &Patch::Merge(label)).await.unwrap();
    eventually("the member remembers the label", || async {
        let secret = webhook.cluster().api::<Secret>(SYSTEM).get(SECRET).await.unwrap();
        let data = secret.data.unwrap_or_default();
        let remembered = data.get("webhook.json").map(|it| String::from_utf8_lossy(&it.0).into_owned());
        remembered.filter(|it| it.contains("platform")).map(drop).ok_or_else(|| "not yet".to_owned())
    })
    .await;
    configurations(webhook).delete(WEBHOOK, &DeleteParams::default()).await.unwrap();
    eventually("it is there again", is_back).await;
    is_as_installed(webhook).await;
    let none = Patch::Merge(json!({"webhooks": []}));
    configurations(webhook).patch(WEBHOOK, &PatchParams::default(), &none).await.unwrap();
    eventually("its webhook is there again", is_back).await;
    is_as_installed(webhook).await;
    eventually("an Event says so", || event(webhook.cluster(), "default", WEBHOOK, "WebhookPutBack")).await;
    let placed = eventually("a Pod is placed", || webhook.pod("shop")).await;
    assert!(placed.spec.as_ref().unwrap().affinity.is_some(), "{placed:?}");

    let member = "freeport-member-leader";
    webhook.world.end(member, End::Stop).await;
    configurations(webhook).delete(WEBHOOK, &DeleteParams::default()).await.unwrap();
    webhook.world.launch(member).await;
    eventually("a member that starts puts it back", is_back).await;
    webhook.says("shop", "Enforced").await;
}

/// Without our label it is not ours: API servers that are not asked about every Pod are said, and nothing else.
async fn one_of_somebody_else_is_left_alone(webhook: &Webhook) {
    let label = async |value: Value| {
        let patch = json!({"metadata": {"labels": {"app.kubernetes.io/managed-by": value}}});
        let patch = Patch::Merge(patch);
        configurations(webhook).patch(WEBHOOK, &PatchParams::default(), &patch).await.unwrap();
    };
    label(Value::Null).await;
    select(webhook, json!({"matchLabels": {"only": "these"}})).await;
    webhook.says("shop", "WebhookAltered").await;
    let there = configurations(webhook).get(WEBHOOK).await.unwrap();
    let selector = there.webhooks.unwrap()[0].object_selector.clone().unwrap();
    assert_eq!(selector.match_labels.unwrap()["only"], "these");
    select(webhook, json!({})).await;
    webhook.says("shop", "Enforced").await;
    label(json!("freeport")).await;
}

/// With LocalAndRemote such a Pod keeps off virtual nodes; with Remote whoever creates it reads that it will wait.
async fn what_cannot_travel_stays_at_home(webhook: &Webhook) {
    let east = webhook.cluster();
    webhook.namespace("both", true).await;
    east.create::<NamespaceOffloading>("both", json!({"metadata": {"name": "offloading"}, "spec": {}})).await;
    let pod = json!({
        "metadata": {"generateName": "conf-"},
        "spec": {
            "containers": [{"name": "c", "image": "localhost/none"}],
            "volumes": [{"name": "conf", "configMap": {"name": "conf"}}],
        },
    });
    let create = async |namespace: &str| {
        let pods = east.api::<Pod>(namespace);
        let pod = serde_json::from_value(pod.clone()).unwrap();
        pods.create(&PostParams::default(), &pod).await.map_err(|error| error.to_string())
    };
    let required = "/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms";
    let virtual_nodes = |operator: &str| {
        let type_ = json!({"key": "liqo.io/type", "operator": operator, "values": ["virtual-node"]});
        json!([{"matchExpressions": [type_]}])
    };
    let tolerates =
        |spec: &Value| spec["tolerations"].to_string().contains("virtual-node.liqo.io/not-allowed");
    let home = json!(eventually("a Pod is created", || create("both")).await.spec.unwrap());
    assert_eq!(home.pointer(required), Some(&virtual_nodes("NotIn")), "{home}");
    assert!(!tolerates(&home), "{home}");
    let remote = json!(create("shop").await.unwrap().spec.unwrap());
    assert!(remote.pointer(required).is_some() && tolerates(&remote), "{remote}");
    // What all Pods have that are made here does not keep them.
    let plain = json!(webhook.pod("both").await.unwrap().spec.unwrap());
    assert!(plain.pointer(required).is_none() && tolerates(&plain), "{plain}");
}

/// Whoever leaves does not get it back.
async fn who_leaves_has_it_deleted(webhook: &Webhook) {
    let freeport = program::path("cli", "freeport").await.unwrap();
    let said = shell(&webhook.world.real().fleet, &[freeport], "freeport leave --context leader 2>&1").await;
    assert!(said.contains("deleted MutatingWebhookConfiguration freeport-webhook"), "{said}");
    always("it stays deleted", || async {
        let there = configurations(webhook).get_opt(WEBHOOK).await.map_err(|error| error.to_string())?;
        there.map_or(Ok(()), |there| Err(format!("{there:?}")))
    })
    .await;
}

/// It cannot tell where a Pod has to go.
async fn without_rights_it_places_no_pod_and_says_so(webhook: &Webhook) {
    let bindings = Api::<ClusterRoleBinding>::all(webhook.cluster().client.clone());
    let had = bindings.get(WEBHOOK).await.unwrap();
    bindings.delete(WEBHOOK, &DeleteParams::default()).await.unwrap();
    webhook.says("shop", "WebhookUnavailable").await;
    webhook.pod("shop").await.unwrap_err();
    let metadata = ObjectMeta { name: Some(WEBHOOK.to_owned()), ..ObjectMeta::default() };
    let again = ClusterRoleBinding { metadata, ..had };
    bindings.create(&PostParams::default(), &again).await.unwrap();
    webhook.says("shop", "Enforced").await;
    eventually("Pods are placed again", || webhook.pod("shop")).await;
}

/// Who is refused knows why, also by a webhook that begins without the kind.
async fn without_its_kind_it_says_what_to_do(webhook: &Webhook) {
    let cluster = webhook.cluster();
    let had = cluster.take_crd("namespaceoffloadings.offloading.liqo.io").await;
    let refused = || async {
        let why = webhook.pod("shop").await.err().ok_or("it is created")?;
        if why.contains("freeport join --offload") { Ok(()) } else { Err(why) }
    };
    eventually("it is said what to do", refused).await;
    webhook.world.real().fleet.process(WEBHOOK).await.unwrap().unwrap().kill().await.unwrap();
    webhook.start().await;
    eventually("it is said what to do", refused).await;
    cluster.put_back_crd(had).await;
    let offloading = json!({"metadata": {"name": "offloading"}, "spec": {"podOffloadingStrategy": "Remote"}});
    cluster.create::<NamespaceOffloading>("shop", offloading).await;
    webhook.says("shop", "Enforced").await;
    eventually("Pods are placed again", || webhook.pod("shop")).await;
}

/// As cert-manager keeps one: without our label.
async fn somebodys_own_secret_is_used(webhook: &Webhook) {
    let cluster = webhook.cluster();
    let had = cluster.api::<Secret>(SYSTEM).get(SECRET).await.unwrap();
    let ca = had.data.unwrap()["ca.crt"].clone();
    let twice = ByteString([ca.0.clone(), ca.0].concat());
    let theirs = json!({
        "metadata": {"labels": {"app.kubernetes.io/managed-by": "cert-manager"}},
        "data": {"ca.crt": twice, "tls.key": ByteString(b"garbled".to_vec())},
    });
    let theirs = cluster.patch::<Secret>(SYSTEM, SECRET, &theirs).await;
    eventually("its authorities are trusted", || async {
        if webhook.bundle().await == twice { Ok(()) } else { Err("others".to_owned()) }
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
        let data = webhook.mount().await?;
        if data["tls.key"].contains("PRIVATE KEY") { Ok(()) } else { Err(data["tls.key"].clone()) }
    })
    .await;
    eventually("Pods are placed with it", || webhook.pod("shop")).await;
}

/// The keeper of the certificate, and the webhook.
async fn in_a_restored_cluster_both_go_on(webhook: &Webhook) {
    let cluster = webhook.cluster();
    let backup = webhook.world.back_up("leader").await;
    // Watches that go on at the version they were at hear nothing of the next events.
    for number in 0..150 {
        let filler = json!({"metadata": {"name": format!("filler-{number}")}});
        let _: ConfigMap = cluster.create("plain", filler).await;
    }
    // A backup that is as new as the cluster is no loss: the member writes something after it.
    let leases = cluster.api::<Lease>(SYSTEM);
    let renewed = async || leases.get("freeport-member").await.unwrap().spec.unwrap().renew_time;
    let before = renewed().await;
    eventually("the member renews its Lease", || async {
        let now = renewed().await;
        if now > before { Ok(()) } else { Err(format!("{now:?}")) }
    })
    .await;
    webhook.world.restore(&backup).await;
    eventually("the member says so", || event(cluster, SYSTEM, "freeport-member", "ClusterRestored")).await;
    let secrets = cluster.api::<Secret>(SYSTEM);
    secrets.delete(SECRET, &DeleteParams::default()).await.unwrap();
    eventually("the Secret is there again", || webhook.mount()).await;
    let placed = eventually("a Pod is placed", || webhook.pod("shop")).await;
    assert!(placed.spec.as_ref().unwrap().affinity.is_some(), "{placed:?}");
    webhook.says("shop", "Enforced").await;
}

#[e2e::test]
fn no_pod_is_refused_while_certificates_change() {
    with_webhook(&LIFETIMES, async |webhook| {
        webhook.namespace("shop", true).await;
        let east = webhook.cluster();
        east.create::<NamespaceOffloading>("shop", json!({"metadata": {"name": "offloading"}, "spec": {}}))
            .await;
        eventually("a Pod is placed", || webhook.pod("shop")).await;
        let (mut authorities, mut leaves, mut pods) = (BTreeSet::new(), BTreeSet::new(), 0);
        while authorities.len() < 3 || leaves.len() < 4 {
            let data = webhook.mount().await.unwrap();
            leaves.insert(data["tls.crt"].clone());
            let first = data["ca.crt"].split_inclusive("END CERTIFICATE").next();
            authorities.insert(first.unwrap().to_owned());
            webhook.try_pod("shop").await.unwrap();
            pods += 1;
        }
        e2e::note!(
            "{pods} Pods while {} authorities and {} leaves were used",
            authorities.len(),
            leaves.len()
        );
        // Whoever deletes the Secret gets another one, and no Pod is refused meanwhile.
        let secrets = east.api::<Secret>(SYSTEM);
        secrets.delete(SECRET, &DeleteParams::default()).await.unwrap();
        eventually("the Secret is there again, and a Pod of its leaf is placed", || async {
            webhook.try_pod("shop").await.unwrap();
            let data = webhook.mount().await?;
            if leaves.contains(&data["tls.crt"]) { Err("the old leaf".to_owned()) } else { Ok(()) }
        })
        .await;
        webhook.try_pod("shop").await.unwrap();
    });
}
