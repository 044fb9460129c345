//! What the member writes for offloading.

use cli::objects::offload::webhook::configuration;
use e2e::{fixture::SYSTEM, waiting::eventually};
use serde_json::json;

use super::{Target, named};
use crate::rights::{
    attempt::{Do, EVERYWHERE},
    parties::Parties,
    samples::{self, ours},
};

/// A twin that it makes.
pub(in crate::rights::hostile) const TWIN: &str = "hostile-twin";
/// A Namespace whose label asks for a NamespaceOffloading.
pub(in crate::rights::hostile) const ENABLED: &str = "hostile-enabled";

/// What the member writes for offloading.
pub(super) async fn targets(parties: &Parties, space: &str) -> Vec<Target> {
    let admin = parties.world.leader();
    let configuration = configuration(Some("https://127.0.0.1:1/mutate/pod"));
    let peers = samples::peers();
    let enabled = json!({"metadata": {"name": ENABLED, "labels": {"liqo.io/enabled": "true"}}});
    for (namespace, kind, object) in [
        (EVERYWHERE, samples::nodes(), named("freeport-hostile-theirs")),
        (EVERYWHERE, peers.clone(), json!({"metadata": {"name": "hostile"}, "spec": {}})),
        (EVERYWHERE, configuration.resource.clone(), configuration.body.clone()),
        (space, samples::offloadings(), samples::offloading(&json!({}))),
        (EVERYWHERE, samples::namespaces(), enabled),
        (space, samples::pods(), samples::bound("virtual", "freeport-hostile")),
        (ENABLED, samples::pods(), samples::bound("theirs", "worker")),
    ] {
        let create = Do::Create(object);
        eventually("a Namespace takes Pods", || async {
            let done = create.by(&admin.client, namespace, &kind).await;
            done.map_err(|refusal| format!("{refusal:?}"))
        })
        .await;
    }
    let mut by_label = samples::offloading(&json!({}));
    by_label["metadata"]["annotations"] = json!({"liqo.io/resource-controlled-by": "This resource is ..."});
    let node = samples::virtual_node("freeport-hostile");
    let mut other_binding = samples::binding();
    other_binding["roleRef"]["name"] = json!("freeport-member");
    let secret = |name: &str| json!({"metadata": ours(name)});
    vec![
        Target {
            own: Some(samples::twin(TWIN)),
            another: Some(samples::twin("hostile-other")),
            squats: vec![named("hostile-squat"), samples::twin("kube-squat")],
            ..Target::new("namespaces", samples::namespaces(), EVERYWHERE)
        },
        Target {
            own: Some(samples::binding()),
            squats: vec![other_binding],
            ..Target::new("rolebindings", samples::bindings(), TWIN)
        },
        Target {
            own: Some(samples::hosted("web")),
            others_in: vec![ENABLED.to_owned()],
            squats: vec![samples::pod("squat"), samples::bound("squat", "freeport-hostile")],
            ..Target::new("pods", samples::pods(), TWIN)
        },
        Target {
            own: Some(samples::pod("virtual")),
            others_in: vec![TWIN.to_owned()],
            ..Target::new("pods/status", samples::pods(), space)
        },
        Target {
            own: Some(node.clone()),
            squats: vec![named("freeport-squat"), samples::virtual_node("squat")],
            ..Target::new("nodes", samples::nodes(), EVERYWHERE)
        },
        Target { own: Some(node), ..Target::new("nodes/status", samples::nodes(), EVERYWHERE) },
        Target {
            own: Some(by_label),
            others_in: vec![space.to_owned()],
            squats: vec![samples::offloading(&json!({}))],
            ..Target::new("namespaceoffloadings", samples::offloadings(), ENABLED)
        },
        Target::new("namespaceoffloadings/status", samples::offloadings(), space),
        Target::new("offloadpeers/status", peers, EVERYWHERE),
        Target {
            own: Some(named(&configuration.name)),
            squats: vec![named("hostile-squat")],
            is_given: true,
            ..Target::new("mutatingwebhookconfigurations", configuration.resource, EVERYWHERE)
        },
        Target {
            own: Some(secret("freeport-webhook-tls")),
            also_own: Some("freeport-leader-demo"),
            squats: vec![secret("other"), named("freeport-webhook-tls")],
            ..Target::new("secrets", samples::secrets(), SYSTEM)
        },
        Target {
            own: Some(named("freeport-hostile")),
            squats: vec![named("worker")],
            ..Target::new("leases", samples::leases(), "kube-node-lease")
        },
    ]
}
