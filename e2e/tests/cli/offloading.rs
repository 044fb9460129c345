//! `--offload` of `init` and `join`, and the commands of offloading, on clusters where no daemon runs: what they write, say and refuse.

use serde_json::{Value, json};

use crate::cli::{
    clusters::Clusters,
    program::{is_unchanged, touched},
};

const JOIN: &str = "join --clusterset demo --cluster-id east --context spoke --leader-context hub";
const INIT: &str = "init --clusterset demo --cluster-id leader --context hub --dedicated";

/// `spoke` is member `east` of `demo`, which `hub` leads. In the end it is none any more.
pub(crate) async fn from_nothing(clusters: &Clusters) {
    liqo_is_refused(clusters).await;
    let unset = clusters.freeport("offload accept west --context spoke").await;
    unset.refused(&["spoke: offloading is not set up here", "freeport join --offload"]);
    set_up(clusters).await;
    consents(clusters).await;
    namespaces(clusters).await;
    leaving_leaves_nothing(clusters).await;
}

async fn apply(clusters: &Clusters, cluster: &str, object: &Value) {
    apply_as("kubectl", clusters, cluster, object).await;
}

/// Applies an object under the name of this field manager.
async fn apply_as(manager: &str, clusters: &Clusters, cluster: &str, object: &Value) {
    let apply = format!("--context {cluster} apply --field-manager {manager} -f -");
    clusters.kubectl_reading(&apply, &object.to_string()).await.succeeded();
}

async fn liqo_is_refused(clusters: &Clusters) {
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "tenants.authentication.liqo.io"},
        "spec": {
            "group": "authentication.liqo.io", "scope": "Cluster",
            "names": {"kind": "Tenant", "plural": "tenants"},
            "versions": [{
                "name": "v1beta1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}},
            }],
        },
    });
    for (cluster, line) in [("hub", INIT), ("spoke", JOIN)] {
        apply(clusters, cluster, &crd).await;
        let before = clusters.written_by_people(cluster).await;
        let ran = clusters.freeport(&format!("{line} --offload --no-wait")).await;
        ran.refused(&[
            &format!("{cluster}: offloading cannot be set up: Liqo is installed here"),
            "tenants.authentication.liqo.io",
        ]);
        assert_eq!(clusters.written_by_people(cluster).await, before, "nothing was changed");
        let crd = format!("--context {cluster} delete crd tenants.authentication.liqo.io");
        clusters.kubectl(&crd).await.succeeded();
    }
}

async fn set_up(clusters: &Clusters) {
    let outside = |cluster: &str| format!("--external {}", clusters.folder(cluster));
    let join = format!("{JOIN} {}", outside("spoke"));
    let ran = clusters.freeport(&format!("{join} --offload")).await;
    ran.warned(&[
        "hub: CustomResourceDefinition namespacemaps.offloading.liqo.io does not exist",
        "init --offload",
    ]);
    assert!(ran.stdout.contains("spoke: created ClusterRole freeport-member-offload"), "{}", ran.stdout);
    assert!(ran.stdout.contains("run this again with --webhook-url"), "{}", ran.stdout);
    let url = "https://127.0.0.1:1/mutate/pod";
    let webhook = "MutatingWebhookConfiguration freeport-webhook";
    let said = clusters.freeport(&format!("{join} --offload --webhook-url {url}")).await.succeeded();
    assert!(said.contains(&format!("spoke: created {webhook}")), "{said}");

    let init = format!("{INIT} {}", outside("hub"));
    let said = clusters.freeport(&format!("{init} --offload")).await.succeeded();
    assert!(
        said.contains("hub: created CustomResourceDefinition namespacemaps.offloading.liqo.io"),
        "{said}"
    );
    for line in [&init, &join] {
        let [with, without] = [format!("{line} --offload"), line.clone()];
        let with = clusters.freeport(&with).await.succeeded();
        assert_eq!(touched(&with), [""; 0]);
        let without = clusters.freeport(&without).await.succeeded();
        let kept = |said: &str| {
            said.lines().filter(|line| is_unchanged(line)).map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(kept(&without), kept(&with), "as many objects are kept without --offload");
        assert_eq!(touched(&without), [""; 0]);
    }
    let inside = clusters.freeport(&format!("{JOIN} --offload --webhook-url {url} --no-wait")).await;
    inside.misused(&["--webhook-url", "--external"]);
}

async fn consents(clusters: &Clusters) {
    let run = async |line: &str| clusters.freeport(&format!("offload {line} --context spoke")).await;
    run("accept east").await.refused(&["spoke: east is the ID of this cluster itself"]);
    run("accept West").await.misused(&["cluster ID"]);
    run("accept leader --label kubernetes.io/os=x").await.misused(&["--label kubernetes.io/os"]);
    let said = run("accept leader --label liqo.io/region=eu --namespace team-*").await.succeeded();
    assert!(said.contains("spoke: created OffloadPeer leader: incoming"), "{said}");
    assert!(
        said.ends_with("next, in cluster leader, unless that was done before: freeport offload use east\n"),
        "{said}"
    );
    let said = run("accept leader --label liqo.io/region=eu").await.succeeded();
    assert!(said.contains("spoke: unchanged OffloadPeer leader"), "{said}");
    let said = run("use leader --no-wait").await.succeeded();
    assert!(said.contains("spoke: changed OffloadPeer leader: outgoing"), "{said}");
    let peer = clusters.kubectl("--context spoke get offloadpeer leader -o json").await.succeeded();
    let spec: Value = serde_json::from_str::<Value>(&peer).unwrap()["spec"].take();
    assert_eq!((&spec["outgoing"], &spec["incoming"]["namespaces"]), (&json!({}), &json!(["team-*"])));
    assert_eq!(spec["incoming"]["nodeLabels"], json!({"liqo.io/region": "eu"}));
    run("use leader --timeout 1")
        .await
        .timed_out(&["OffloadPeer leader is not ready", "has not seen it yet"]);
    let status = clusters.freeport("offload status --context spoke").await;
    status.reported(1, &["leader: is a node here, and may come here: Unknown", "virtual nodes: none"]);
    let said = run("accept leader --remove").await.succeeded();
    assert!(said.contains("spoke: changed OffloadPeer leader: no incoming"), "{said}");
    let said = run("use leader --remove").await.succeeded();
    assert!(said.contains("spoke: deleted OffloadPeer leader"), "{said}");
    let said = run("use leader --remove").await.succeeded();
    assert_eq!(said, "spoke: there is no OffloadPeer leader\nspoke: cluster leader is no node here\n");
    clusters.freeport("offload status --context spoke").await.reported(0, &["clusters: none"]);
}

async fn namespaces(clusters: &Clusters) {
    let run = async |line: &str| clusters.freeport(&format!("{line} --context spoke")).await;
    run("offload namespace offload-shop").await.refused(&["there is no Namespace offload-shop"]);
    clusters.kubectl("--context spoke create namespace offload-shop").await.succeeded();
    let before = clusters.written_by_people("spoke").await;
    let system = run("offload namespace offload-shop kube-system").await;
    system.refused(&["Namespace kube-system cannot be offloaded", "nothing was changed"]);
    assert_eq!(clusters.written_by_people("spoke").await, before, "one of two is refused");
    let printed = run("offload namespace offload-shop --selector liqo.io/region=eu --dry-run -o yaml")
        .await
        .succeeded();
    assert_eq!(clusters.written_by_people("spoke").await, before, "a dry run writes nothing");
    let as_json = run("offload namespace offload-shop --selector liqo.io/region=eu --dry-run -o json")
        .await
        .succeeded();
    let as_json: Value = serde_json::from_str(&as_json).unwrap();
    assert_eq!(as_json["items"].as_array().map(Vec::len), Some(2), "{as_json}");
    clusters.kubectl_reading("--context spoke apply -f -", &printed).await.succeeded();
    let said = clusters.kubectl_reading("--context spoke apply -f -", &as_json.to_string()).await.succeeded();
    assert!(said.contains("namespaceoffloading.offloading.liqo.io/offloading unchanged"), "{said}");
    let said = run("offload namespace offload-shop --no-wait").await.succeeded();
    assert!(said.contains("unchanged NamespaceOffloading offload-shop/offloading"), "{said}");
    let said =
        run("offload namespace offload-shop --pod-offloading-strategy Remote --no-wait").await.succeeded();
    assert!(said.contains("changed NamespaceOffloading offload-shop/offloading"), "{said}");
    assert!(!said.contains("older than this"), "no Pod is there: {said}");
    let get = "--context spoke -n offload-shop get namespaceoffloading offloading -o jsonpath={.spec}";
    let spec: Value = serde_json::from_str(&clusters.kubectl(get).await.succeeded()).unwrap();
    let requirement = json!({"key": "liqo.io/region", "operator": "In", "values": ["eu"]});
    assert_eq!(spec["podOffloadingStrategy"], "Remote");
    assert_eq!(
        spec["clusterSelector"]["nodeSelectorTerms"][0]["matchExpressions"],
        json!([requirement]),
        "it stays"
    );
    let waited = run("offload namespace offload-shop --timeout 1").await;
    waited.timed_out(&["Namespace offload-shop is not ready", "freeport-member has not seen it yet"]);
    let mapping = "offload namespace offload-shop --namespace-mapping-strategy EnforceSameName";
    run(mapping).await.refused(&["namespaceMappingStrategy cannot be changed"]);
    run("offload status -n offload-shop").await.reported(1, &["offload-shop: Unknown, Remote"]);
    let report = run("offload status -o json").await;
    let report: Value = serde_json::from_str(&report.stdout).unwrap();
    assert_eq!(report["namespaces"][0]["namespace"], "offload-shop");

    let said = run("unoffload namespace offload-shop").await.misused(&["run it again with --yes"]);
    assert!(said.contains("has said nothing of its NamespaceOffloading yet"), "{said}");
    let said = run("unoffload namespace offload-shop --yes").await.succeeded();
    assert!(said.contains("spoke: Namespace offload-shop is not offloaded any more"), "{said}");
    let said = run("unoffload namespace offload-shop").await.succeeded();
    assert!(said.contains("Namespace offload-shop is not offloaded"), "{said}");
    run("unoffload namespace nowhere --yes").await.refused(&["there is no Namespace nowhere"]);
}

/// As daemons would have left it that end in the middle of everything.
async fn leaving_leaves_nothing(clusters: &Clusters) {
    let ours = |more: Value| {
        let mut labels = json!({"app.kubernetes.io/managed-by": "freeport"});
        labels.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        labels
    };
    let twin = |name: &str, map: &str| {
        let labels = ours(json!({"liqo.io/remote-cluster-id": "leader"}));
        let annotations = json!({"liqo.io/managed-by-namespace-map": map});
        json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": name, "labels": labels, "annotations": annotations},
        })
    };
    let finalizers = json!(["namespaceoffloading-controller.liqo.io/finalizer", "example.com/theirs"]);
    for object in [
        json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": "offload-shop", "labels": {"liqo.io/scheduling-enabled": "true"}},
        }),
        json!({
            "apiVersion": "offloading.liqo.io/v1beta1", "kind": "NamespaceOffloading",
            "metadata": {"name": "offloading", "namespace": "offload-shop", "finalizers": finalizers},
        }),
    ] {
        apply(clusters, "spoke", &object).await;
    }
    let node = |name: &str| {
        json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": {"name": name, "labels": ours(json!({"liqo.io/type": "virtual-node"}))},
        })
    };
    for (manager, object) in [
        ("freeport-member", node("freeport-leader")),
        ("kubectl", node("freeport-copied")),
        ("freeport-member", twin("web-leader", "1.leader.east")),
        // As a backup of another cluster has it.
        ("freeport-member", twin("restored-leader", "1.leader.north")),
        ("kubectl", twin("copied-leader", "1.leader.east")),
    ] {
        apply_as(manager, clusters, "spoke", &object).await;
    }
    let record = |group: &str, kind: &str, name: &str, spec: Value| {
        let metadata = json!({"name": name, "namespace": "clusterset-demo"});
        json!({"apiVersion": group, "kind": kind, "metadata": metadata, "spec": spec})
    };
    let (map, offer) = ("offloading.liqo.io/v1beta1", "multicluster.freeport.dev/v1alpha1");
    let wanted = |origin: &str, destination: &str| json!({"origin": origin, "destination": destination, "desiredMapping": {"shop": "shop-x"}});
    let shadow_pod = |origin: &str, destination: &str| json!({"origin": origin, "destination": destination, "namespace": "shop-x", "pod": "web", "uid": "7", "sealed": ""});
    for object in [
        record(map, "NamespaceMap", "1.east.leader", wanted("east", "leader")),
        record(map, "NamespaceMap", "1.leader.east", wanted("leader", "east")),
        record(
            offer,
            "OffloadOffer",
            "1.east.leader",
            json!({
                "host": "east", "home": "leader", "resources": {}, "publicKey": "",
            }),
        ),
        record(offer, "ShadowPod", "1.east.leader.7", shadow_pod("east", "leader")),
        record(offer, "ShadowPod", "1.leader.east.7", shadow_pod("leader", "east")),
    ] {
        apply(clusters, "hub", &object).await;
    }

    let said = clusters.freeport("leave --force --context spoke").await.succeeded();
    for done in [
        "twins of other clusters here go with all that is in them: web-leader",
        "twins that these Namespaces have in other clusters go with all that is in them: offload-shop",
        "deleted MutatingWebhookConfiguration freeport-webhook",
        "changed Namespace offload-shop: not offloaded",
        "changed NamespaceOffloading offload-shop/offloading: not waited for",
        "deleted 1 Node",
        "deleted 1 Namespace",
        "left Namespaces as they are, since nothing proves that freeport-member made them in this cluster: copied-leader, restored-leader;",
    ] {
        assert!(said.contains(&format!("spoke: {done}")), "{done}: {said}");
    }
    let left = "--context spoke -n offload-shop get namespaceoffloading offloading -o jsonpath={.metadata.finalizers}";
    assert_eq!(clusters.kubectl(left).await.succeeded(), r#"["example.com/theirs"]"#);

    let gone = "leave --force --clusterset demo --cluster-id east --leader-context hub";
    let said = clusters.freeport(gone).await.succeeded();
    for done in [
        "changed NamespaceMap clusterset-demo/1.east.leader: nothing is wanted any more",
        "deleted NamespaceMap clusterset-demo/1.east.leader",
        "deleted OffloadOffer clusterset-demo/1.east.leader",
        // What it said it holds for others is gone with it.
        "deleted NamespaceMap clusterset-demo/1.leader.east",
        "deleted ShadowPod clusterset-demo/1.east.leader.7",
        "deleted ShadowPod clusterset-demo/1.leader.east.7",
    ] {
        assert!(said.contains(&format!("hub: {done}")), "{done}: {said}");
    }
    let free = r#"{"metadata":{"finalizers":null}}"#;
    let free = format!(
        "--context spoke -n offload-shop patch namespaceoffloading offloading --type merge -p {free}"
    );
    clusters.kubectl(&free).await.succeeded();
    for namespace in ["offload-shop", "restored-leader", "copied-leader"] {
        clusters
            .kubectl(&format!("--context spoke delete namespace {namespace} --wait=false"))
            .await
            .succeeded();
    }

    // Also where the CRD of OffloadPeers is gone. Nobody knows the ID any more, so nothing proves whose twin it is.
    let peers = "--context spoke delete crd offloadpeers.multicluster.freeport.dev";
    clusters.kubectl(peers).await.succeeded();
    for object in [
        twin("late-leader", "1.leader.east"),
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
            "metadata": {"name": "freeport-webhook", "labels": ours(json!({}))},
        }),
    ] {
        apply(clusters, "spoke", &object).await;
    }
    apply_as("freeport-member", clusters, "spoke", &node("freeport-leader")).await;
    let said = clusters.freeport("leave --force --context spoke").await.succeeded();
    for done in ["deleted MutatingWebhookConfiguration freeport-webhook", "deleted 1 Node"] {
        assert!(said.contains(&format!("spoke: {done}")), "{done}: {said}");
    }
    assert!(said.contains("in this cluster: late-leader;"), "{said}");
    clusters.kubectl("--context spoke delete namespace late-leader --wait=false").await.succeeded();
}
