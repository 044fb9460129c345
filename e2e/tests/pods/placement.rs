//! Where Pods of an offloaded Namespace may run, by the judgement of another: kube-scheduler binds what `review` made of random Pods
//! to random Nodes only where the contract allows, and does not bind where it allows nothing.

use std::collections::{BTreeMap, BTreeSet};

use api::offload::{
    label,
    namespace::{NamespaceOffloadingSpec, PodOffloadingStrategy},
    review::review,
    selector::{self, selects},
};
use e2e::{cluster::Cluster, odd::Cases, waiting::eventually};
use futures::future::join_all;
use k8s_openapi::api::core::v1::{Node, NodeSelectorTerm, Pod, ServiceAccount};
use kube::{
    Api,
    api::{DeleteParams, ListParams, Patch, PatchParams},
};
use proptest::{
    prelude::*,
    strategy::ValueTree,
    test_runner::{Config, RngAlgorithm, TestRng, TestRunner},
};
use serde_json::{Value, json};

use crate::pods::world::{SIX, shared};

const NAMESPACE: &str = "placement";
/// Label of this test's Nodes, which only its Pods ask for, and key of a taint, which only they tolerate.
const ORACLE: &str = "freeport.test/oracle";
const SEED: u64 = 15;
const PODS: u64 = 60;
const NODES: usize = 8;

/// A Node that nobody runs.
#[derive(Clone, Debug)]
struct Candidate {
    name: String,
    labels: BTreeMap<String, String>,
}

impl Candidate {
    fn is_virtual(&self) -> bool {
        self.labels.contains_key(label::TYPE)
    }
}

/// Every other one is virtual.
fn nodes() -> impl Strategy<Value = Vec<Candidate>> {
    let region = prop::option::of(prop::sample::select(vec!["a", "b", "c"]));
    let one = (region, prop::option::of(1..14_i32));
    prop::collection::vec(one, NODES).prop_map(|all| {
        let labelled = |(number, (region, cores)): (usize, (Option<&str>, Option<i32>))| {
            let kind = number.is_multiple_of(2).then(|| label::VIRTUAL_NODE.to_owned());
            let labels = [
                (ORACLE, Some("true".to_owned())),
                ("region", region.map(str::to_owned)),
                ("cores", cores.map(|cores| cores.to_string())),
                (label::TYPE, kind),
            ];
            let labels = labels.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
            Candidate { name: format!("oracle-{number}"), labels: labels.collect() }
        };
        all.into_iter().enumerate().map(labelled).collect()
    })
}

fn requirement() -> impl Strategy<Value = Value> {
    let of_label = (
        prop::sample::select(vec!["region", label::TYPE, "absent"]),
        prop::sample::select(vec!["In", "NotIn", "Exists", "DoesNotExist"]),
        prop::sample::select(vec!["a", "b", label::VIRTUAL_NODE]),
    );
    let of_label = of_label.prop_map(|(key, operator, value)| {
        let values = if operator.ends_with("In") { vec![value] } else { vec![] };
        json!({"key": key, "operator": operator, "values": values})
    });
    let of_number = (prop::sample::select(vec!["Gt", "Lt"]), 6..10_i32).prop_map(
        |(operator, bound)| json!({"key": "cores", "operator": operator, "values": [bound.to_string()]}),
    );
    prop_oneof![5 => of_label, 1 => of_number]
}

fn terms() -> impl Strategy<Value = Value> {
    let name = (prop::sample::select(vec!["In", "NotIn", "NotIn"]), 0..NODES).prop_map(|(operator, number)| {
        json!({"key": "metadata.name", "operator": operator, "values": [format!("oracle-{number}")]})
    });
    let term = (prop::collection::vec(requirement(), 0..3), prop::collection::vec(name, 0..2))
        .prop_map(|(expressions, fields)| json!({"matchExpressions": expressions, "matchFields": fields}));
    prop::collection::vec(term, 1..4).prop_map(Value::from)
}

/// A Pod as its owner writes it, and what its Namespace says of it.
#[derive(Clone, Debug)]
struct Case {
    own: Option<Value>,
    selector: Option<Value>,
    strategy: PodOffloadingStrategy,
}

/// The Nodes and the Pods of a seed, the latter with their numbers.
fn random(of: Cases) -> (Vec<Candidate>, Vec<(u64, Case)>) {
    use PodOffloadingStrategy::{Local, LocalAndRemote, Remote};
    let case = (
        prop::option::of(terms()),
        prop::option::of(terms()),
        prop::sample::select(vec![Local, LocalAndRemote, Remote, Remote]),
    );
    let case = case.prop_map(|(own, selector, strategy)| Case { own, selector, strategy });
    let of_seed = |number| TestRng::from_seed(RngAlgorithm::ChaCha, &of.bytes(number));
    let runner = |number| TestRunner::new_with_rng(Config::default(), of_seed(number));
    let nodes = nodes().new_tree(&mut runner(u64::MAX)).unwrap().current();
    let numbers = of.batches(usize::MAX).concat();
    (nodes, numbers.into_iter().map(|n| (n, case.new_tree(&mut runner(n)).unwrap().current())).collect())
}

impl Case {
    /// The contract: the Nodes where the Pod may run.
    fn allowed<'a>(&self, nodes: &'a [Candidate]) -> BTreeSet<&'a str> {
        let read = |terms: &Option<Value>| -> Vec<NodeSelectorTerm> {
            terms.clone().map(|terms| serde_json::from_value(terms).unwrap()).unwrap_or_default()
        };
        let (own, selector) = (read(&self.own), read(&self.selector));
        let may = |node: &&Candidate| {
            let (is_virtual, node) =
                (node.is_virtual(), selector::Candidate { name: &node.name, labels: &node.labels });
            let strategy = match self.strategy {
                PodOffloadingStrategy::Local => !is_virtual,
                PodOffloadingStrategy::Remote => is_virtual && selects(&selector, node),
                PodOffloadingStrategy::LocalAndRemote => !is_virtual || selects(&selector, node),
            };
            strategy && selects(&own, node)
        };
        nodes.iter().filter(may).map(|node| node.name.as_str()).collect()
    }

    /// The Pod as it is after the webhook.
    fn pod(&self, name: &str) -> Value {
        let mut pod = json!({"metadata": {"name": name}, "spec": {
            "nodeSelector": {ORACLE: "true"},
            // The Nodes have no kubelet, so that they are tainted in the end.
            "tolerations": [{"key": ORACLE, "operator": "Exists"}, {"key": "node.kubernetes.io/unreachable", "operator": "Exists"}],
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "none", "image": "none.invalid/none"}],
        }});
        if let Some(own) = &self.own {
            let required =
                json!({"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": own}});
            pod["spec"]["affinity"] = json!({"nodeAffinity": required});
        }
        let mut offloading =
            NamespaceOffloadingSpec { pod_offloading_strategy: self.strategy, ..Default::default() };
        if let Some(terms) = &self.selector {
            offloading.cluster_selector =
                serde_json::from_value(json!({"nodeSelectorTerms": terms})).unwrap();
        }
        for add in review(&pod, &offloading).unwrap() {
            let (parent, field) = add["path"].as_str().unwrap().rsplit_once('/').unwrap();
            match pod.pointer_mut(parent).unwrap() {
                Value::Array(list) => list.push(add["value"].clone()),
                object => object[field] = add["value"].clone(),
            }
        }
        pod
    }
}

/// Makes the Nodes, which nobody runs, and lets them say that they take Pods.
async fn make_nodes(cluster: &Cluster, nodes: &[Candidate]) {
    for node in nodes {
        let (name, is_virtual) = (&node.name, node.is_virtual());
        let taint = |key: &str, effect: &str| json!({"key": key, "value": "true", "effect": effect});
        let mut taints = vec![taint(ORACLE, label::NO_SCHEDULE)];
        taints.extend(is_virtual.then(|| taint(label::NOT_ALLOWED, label::NO_EXECUTE)));
        let node = json!({"metadata": {"name": name, "labels": node.labels}, "spec": {"taints": taints}});
        cluster.create_cluster_wide::<Node>(node).await;
        let amounts = json!({"cpu": "64", "memory": "64Gi", "pods": "110"});
        let ready = json!({"type": "Ready", "status": "True", "reason": "Test", "message": "",
            "lastHeartbeatTime": "2026-01-01T00:00:00Z", "lastTransitionTime": "2026-01-01T00:00:00Z"});
        let status = json!({"status": {"capacity": amounts, "allocatable": amounts, "conditions": [ready]}});
        let nodes = Api::<Node>::all(cluster.client.clone());
        nodes.patch_status(name, &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
    }
}

/// The Node that the scheduler bound the Pod to; none if it says that there is none for it.
fn decided(pod: &Pod) -> Option<Option<&str>> {
    let spec = pod.spec.as_ref().unwrap();
    let mut conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    match &spec.node_name {
        Some(node) => Some(Some(node)),
        None => conditions.any(|c| c.type_ == "PodScheduled" && c.status == "False").then_some(None),
    }
}

#[e2e::test]
fn the_scheduler_binds_only_where_the_contract_allows() {
    shared(async |world| {
        let cluster = world.cluster(SIX);
        cluster.create_namespace(NAMESPACE).await;
        let of = Cases::of_environment(SEED, PODS);
        let (nodes, cases) = random(of);
        make_nodes(cluster, &nodes).await;
        eventually("the Nodes take Pods", || async {
            let nodes = Api::<Node>::all(cluster.client.clone())
                .list(&ListParams::default().labels(ORACLE))
                .await
                .unwrap();
            let is_not_ready = |node: &Node| {
                let taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
                taints.into_iter().any(|taint| taint.key == "node.kubernetes.io/not-ready")
            };
            let waits: Vec<_> = nodes
                .iter()
                .filter(|node| is_not_ready(node))
                .filter_map(|node| node.metadata.name.clone())
                .collect();
            if waits.is_empty() { Ok(()) } else { Err(format!("{waits:?}")) }
        })
        .await;
        eventually("Pods can be created", || async {
            cluster
                .api::<ServiceAccount>(NAMESPACE)
                .get("default")
                .await
                .map(drop)
                .map_err(|error| error.to_string())
        })
        .await;
        let create =
            |(n, case): &(u64, Case)| cluster.create::<Pod>(NAMESPACE, case.pod(&format!("pod-{n}")));
        join_all(cases.iter().map(create)).await;
        let (mut bound, mut nowhere) = (0, 0);
        for (n, case) in &cases {
            let (name, allowed) = (format!("pod-{n}"), case.allowed(&nodes));
            eventually(&format!("{name} is where it may be, one of {allowed:?}: {case:?}"), || async {
                let pod = cluster.api::<Pod>(NAMESPACE).get(&name).await.unwrap();
                match decided(&pod) {
                    Some(Some(node)) => {
                        assert!(
                            allowed.contains(node),
                            "{name} is on {node}, and may be on {allowed:?}: {case:?}"
                        );
                        Ok(())
                    }
                    Some(None) if allowed.is_empty() => Ok(()),
                    undecided => Err(format!("{undecided:?}")),
                }
            })
            .await;
            if allowed.is_empty() { nowhere += 1 } else { bound += 1 }
        }
        let few = cases.len() / 20;
        assert!(bound >= few && nowhere >= few, "{bound} bound, {nowhere} nowhere: too much alike");
        world.release(NAMESPACE).await;
        for node in nodes {
            let api = Api::<Node>::all(cluster.client.clone());
            api.delete(&node.name, &DeleteParams::default()).await.unwrap();
        }
    });
}
