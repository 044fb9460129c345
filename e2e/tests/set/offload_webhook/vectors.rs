//! The vectors of the reference, by Pods that a real API server takes (B25): as they are there, with its defaults and admission.

use std::collections::BTreeMap;

use api::offload::namespace::NamespaceOffloading;
use e2e::{waiting::eventually, webhook::Webhook};
use k8s_openapi::api::{core::v1::Pod, node::v1::RuntimeClass};
use kube::api::PostParams;
use serde_json::{Value, json};

// What these rows mean is read once for the function and for the API server.
#[path = "../../../../api/src/offload/review/tests/cluster.rs"]
mod cluster;
#[path = "../../../../api/src/offload/review/tests/notation.rs"]
mod notation;

const ROWS: &str = include_str!("../../../../api/src/offload/review/tests/vectors.txt");
/// Rows in which ours is another text for the same Nodes: a term that already requires enough stays alone.
const OTHER_TEXT: [(&str, &str); 1] = [("E25", "{T!=vn}")];
const VT: &str = "virtual-node.liqo.io/not-allowed";

struct Row {
    id: &'static str,
    strategy: &'static str,
    selector: Option<Value>,
    pod: Value,
    class: Option<&'static str>,
    /// The required terms of the Pod that was created.
    terms: Option<Value>,
    /// Keys that it tolerates.
    tolerates: Vec<&'static str>,
    nodes: Vec<&'static str>,
}

fn listed(text: &'static str) -> Vec<&'static str> {
    let text = text.trim_start_matches('[').trim_end_matches(']');
    text.split([',', ' ']).filter(|name| !matches!(*name, "" | "-")).collect()
}

fn terms(text: &str) -> Option<Value> {
    // An API server takes no such value for one of a label. No Node of the vectors has it or the other.
    let text = text.replace("A,B", "A-B").replace("C,D", "C-D");
    notation::terms(&text).map(|terms| notation::json(&terms))
}

fn key(name: &'static str) -> &'static str {
    if name == "VT" { VT } else { name }
}

impl Row {
    /// None where upstream's own answer stands, or nothing can be read.
    fn read(row: &'static str) -> Option<Self> {
        let fields: Vec<_> = row.split(" ; ").collect();
        let [id, strategy, selector, before, tolerates, class, after, tolerates_after, nodes, kind] =
            fields[..].try_into().unwrap();
        if kind == "upstream" {
            return None;
        }
        let other = OTHER_TEXT.iter().find(|(other, _)| *other == id);
        let after = other.map_or(after, |(_, after)| after);
        let class = (class != "-").then_some(class);
        let tolerated =
            listed(tolerates).into_iter().map(|name| json!({"key": key(name), "operator": "Exists"}));
        let container = json!({"name": "c", "image": "localhost/none"});
        let mut spec = json!({"containers": [container], "tolerations": tolerated.collect::<Vec<_>>()});
        if let Some(class) = class {
            spec["runtimeClassName"] = json!(class);
        }
        if let Some(terms) = terms(before) {
            let required = json!({"nodeSelectorTerms": terms});
            spec["affinity"] =
                json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}});
        }
        Some(Self {
            id,
            strategy: match strategy {
                "L" => "Local",
                "R" => "Remote",
                "LR" => "LocalAndRemote",
                other => panic!("{other}"),
            },
            selector: terms(selector),
            pod: json!({"metadata": {"generateName": "row-"}, "spec": spec}),
            class,
            terms: terms(after),
            tolerates: listed(tolerates_after).into_iter().map(key).collect(),
            nodes: listed(nodes),
        })
    }

    fn offloading(&self) -> Value {
        let mut spec = json!({"podOffloadingStrategy": self.strategy});
        if let Some(terms) = &self.selector {
            spec["clusterSelector"] = json!({"nodeSelectorTerms": terms});
        }
        spec
    }

    /// Whether the webhook keeps the Pod at home, whatever the row says: no other cluster has its RuntimeClass.
    fn stays_at_home(&self) -> bool {
        self.strategy == "LocalAndRemote" && self.class.is_some_and(|class| class != "liqo")
    }

    /// The Pod that was created is the one of the row.
    fn holds(&self, pod: &Pod) {
        let (id, pod) = (self.id, json!(pod));
        if self.stays_at_home() {
            let nodes = cluster::NODES.iter().filter(|node| node.takes(&pod)).map(|node| node.name);
            let at_home = self.nodes.iter().copied().filter(|node| !node.starts_with('v'));
            assert_eq!(nodes.collect::<Vec<_>>(), at_home.collect::<Vec<_>>(), "{id}");
            return;
        }
        let required =
            "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms";
        assert_eq!(pod.pointer(required), self.terms.as_ref(), "{id}");
        let tolerations = pod["spec"]["tolerations"].as_array().cloned().unwrap_or_default();
        let tolerates = |key: &str| tolerations.iter().any(|one| one["key"] == key);
        assert!(self.tolerates.iter().all(|key| tolerates(key)), "{id}: {tolerations:?}");
        // The RuntimeClass adds it of itself.
        let may = self.tolerates.contains(&VT) || self.class == Some("liqo");
        assert!(may || !tolerates(VT), "{id}: {tolerations:?}");
        let taken = cluster::NODES.iter().filter(|node| node.takes(&pod)).map(|node| node.name);
        assert_eq!(taken.collect::<Vec<_>>(), self.nodes, "{id}");
    }
}

/// Whether a scheduler would be asked about such terms: an empty list, and an empty term in a selector, are refused before.
fn is_refused(row: &Row) -> bool {
    row.terms == Some(json!([]))
}

pub(super) async fn hold_through_an_api_server(webhook: &Webhook) {
    let cluster = webhook.cluster();
    for class in ["my-custom-runtime", "kata"] {
        let class = json!({"metadata": {"name": class}, "handler": "none"});
        cluster.create_cluster_wide::<RuntimeClass>(class).await;
    }
    let mut spaces = BTreeMap::<String, String>::new();
    let (mut held, mut refused) = (Vec::new(), Vec::new());
    for row in ROWS.lines().filter_map(Row::read) {
        let offloading = row.offloading();
        let namespace = match spaces.get(&offloading.to_string()) {
            Some(namespace) => namespace.clone(),
            None => {
                let namespace = format!("row-{}", row.id.to_lowercase());
                webhook.namespace(&namespace, true).await;
                let object = json!({"metadata": {"name": "offloading"}, "spec": offloading});
                let object: NamespaceOffloading = serde_json::from_value(object).unwrap();
                let offloadings = cluster.api::<NamespaceOffloading>(&namespace);
                if let Err(why) = offloadings.create(&PostParams::default(), &object).await {
                    let why = why.to_string();
                    assert!(why.contains("term"), "{}: {why}", row.id);
                    refused.push(row.id);
                    continue;
                }
                spaces.insert(offloading.to_string(), namespace.clone());
                namespace
            }
        };
        let dry = PostParams { dry_run: true, ..PostParams::default() };
        let pod: Pod = serde_json::from_value(row.pod.clone()).unwrap();
        match cluster.admit(&namespace, &dry, &pod).await {
            Ok(pod) => {
                row.holds(&pod);
                held.push(row.id);
            }
            Err(why) => {
                assert!(is_refused(&row), "{}: {why}", row.id);
                refused.push(row.id);
            }
        }
    }
    assert!(held.len() > 50, "{held:?}");
    assert_eq!(refused, ["E07", "G01", "G02"]);
    for namespace in spaces.into_values() {
        cluster.release_namespace(&namespace).await;
    }
    eventually("Pods are placed as before", || webhook.try_pod("shop")).await;
}
