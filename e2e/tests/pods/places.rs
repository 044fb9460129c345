//! Where Pods of offloaded Namespaces run: every strategy with Pods that are pinned to one side, two hosts told apart by their regions,
//! and one Service over Pods at home and at a host.

use std::collections::BTreeSet;

use api::offload::label::{RUNTIME_CLASS, TYPE, VIRTUAL_NODE};
use e2e::{ask::Protocol::Http, cluster::Cluster, waiting::eventually};
use fleet::agnhost::{deployment_spec, pod_spec, service_spec};
use futures::future::join_all;
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{Pod, Service},
};
use kube::{
    ResourceExt,
    api::{ListParams, PostParams},
};
use serde_json::{Value, json};

use crate::pods::{
    offload::{EAST, LEADER, agreed, offloaded, region},
    world::{Pods, shared},
};

/// Pods of a Namespace: name, whether it is pinned to virtual Nodes or to others, whether it has RuntimeClass `liqo`.
const PINNED: [(&str, bool, bool); 4] = [
    ("remote", true, false),
    ("local", false, false),
    ("remote-class", true, true),
    ("local-class", false, true),
];

/// A Namespace, its strategy, the host that it selects, and which of [`PINNED`] run.
struct Row {
    namespace: &'static str,
    strategy: &'static str,
    host: Option<(&'static str, &'static str)>,
    runs: [bool; 4],
}

/// With RuntimeClass `liqo` a Pod is for virtual Nodes, whatever the strategy.
const MATRIX: [Row; 3] = [
    Row { namespace: "matrix-local", strategy: "Local", host: None, runs: [false, true, true, false] },
    Row {
        namespace: "matrix-remote",
        strategy: "Remote",
        host: Some(EAST),
        runs: [true, false, true, false],
    },
    Row {
        namespace: "matrix-both",
        strategy: "LocalAndRemote",
        host: Some(LEADER),
        runs: [true, true, true, false],
    },
];

impl Row {
    fn spec(&self) -> Value {
        let mut spec = json!({"podOffloadingStrategy": self.strategy});
        if let Some((_, of)) = self.host {
            spec["clusterSelector"] = json!({"nodeSelectorTerms": [region(of)]});
        }
        spec
    }

    /// The webhook leaves Pods of the class alone, so these say themselves which host they want.
    fn pod(&self, (name, is_remote, has_class): (&str, bool, bool)) -> Value {
        let mut spec = pod_spec();
        let operator = if is_remote { "In" } else { "NotIn" };
        let mut expressions = vec![json!({"key": TYPE, "operator": operator, "values": [VIRTUAL_NODE]})];
        if has_class {
            spec["runtimeClassName"] = json!(RUNTIME_CLASS);
        }
        if let (true, true, Some((_, of))) = (is_remote, has_class, self.host) {
            expressions.extend(region(of)["matchExpressions"].as_array().unwrap().clone());
        }
        let terms = json!({"nodeSelectorTerms": [{"matchExpressions": expressions}]});
        spec["affinity"] = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}});
        json!({"metadata": {"name": name}, "spec": spec})
    }

    /// Waits until the Pods are where the matrix has them.
    async fn holds(&self, world: &Pods) {
        let pods = world.cluster("west").api::<Pod>(self.namespace);
        for ((name, is_remote, _), runs) in PINNED.into_iter().zip(self.runs) {
            eventually(&format!("{}/{name} runs: {runs}", self.namespace), || async {
                let pod = pods.get(name).await.map_err(|error| error.to_string())?;
                let (node, status) = (pod.spec.unwrap().node_name, pod.status.unwrap_or_default());
                if !runs {
                    assert_eq!(node, None, "{}/{name} is nowhere to run", self.namespace);
                }
                let is_running = status.phase.as_deref() == Some("Running");
                let is_unschedulable = status.conditions.iter().flatten().any(|condition| {
                    condition.type_ == "PodScheduled" && condition.reason.as_deref() == Some("Unschedulable")
                });
                if !(if runs { is_running } else { is_unschedulable }) {
                    return Err(format!("{node:?} {status:?}"));
                }
                let virtual_node = node.filter(|node| node.starts_with("freeport-"));
                assert_eq!(
                    virtual_node.is_some(),
                    runs && is_remote,
                    "{}/{name}: {virtual_node:?}",
                    self.namespace
                );
                if let (Some(node), Some((host, _))) = (virtual_node, self.host) {
                    assert_eq!(node, format!("freeport-{host}"), "{}/{name}", self.namespace);
                }
                Ok(())
            })
            .await;
        }
    }
}

async fn created(cluster: &Cluster, namespace: &str, pod: Value) {
    let pod = serde_json::from_value::<Pod>(pod).unwrap();
    let created = cluster.admit(namespace, &PostParams::default(), &pod).await;
    created.unwrap_or_else(|why| panic!("{namespace}/{}: {why}", pod.name_any()));
}

#[e2e::test]
fn pods_run_where_the_strategy_the_selector_and_they_themselves_allow() {
    shared(async |world| {
        agreed(world).await;
        let west = world.cluster("west");
        let rows = MATRIX.iter().map(async |row| {
            offloaded(world, row.namespace, row.spec()).await;
            join_all(PINNED.map(|pinned| created(west, row.namespace, row.pod(pinned)))).await;
            row.holds(world).await;
        });
        tokio::join!(join_all(rows), one_service_has_pods_at_home_and_at_a_host(world));
        for row in &MATRIX {
            row.holds(world).await;
            world.release(row.namespace).await;
        }
    });
}

async fn one_service_has_pods_at_home_and_at_a_host(world: &Pods) {
    let (ns, (host, of)) = ("spread", EAST);
    let selector = json!({"nodeSelectorTerms": [region(of)]});
    offloaded(world, ns, json!({"clusterSelector": selector})).await;
    let west = world.cluster("west");
    let mut spec = deployment_spec("web", 2);
    spec["template"]["spec"]["topologySpreadConstraints"] = json!([{
        "maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }]);
    let _: Deployment = west.create(ns, json!({"metadata": {"name": "web"}, "spec": spec})).await;
    let _: Service = west.create(ns, json!({"metadata": {"name": "web"}, "spec": service_spec("web")})).await;
    let names = west.servers(ns, "web", 2).await;
    let pods = west.api::<Pod>(ns).list(&ListParams::default()).await.unwrap();
    let nodes: BTreeSet<_> = pods.into_iter().filter_map(|pod| pod.spec?.node_name).collect();
    let remote: Vec<_> = nodes.iter().filter(|node| node.starts_with("freeport-")).collect();
    assert!(nodes.len() == 2 && remote == [&format!("freeport-{host}")], "{nodes:?}");
    let there =
        world.cluster(host).api::<Pod>(&format!("{ns}-west")).list(&ListParams::default()).await.unwrap();
    assert!(there.items.len() == 1 && names.contains(&there.items[0].name_any()), "{there:?}");
    world.answer("west", Http, (&format!("web.{ns}.svc.cluster.local"), 80), &names).await;
    world.release(ns).await;
}
