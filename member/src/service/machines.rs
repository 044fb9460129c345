//! The addresses of this cluster itself: the ranges of its Services, its Nodes and its API servers. No endpoint of another cluster has one
//! of them.

use std::{collections::BTreeSet, net::IpAddr, sync::Arc, time::Duration};

use api::{
    label,
    view::{Lenient, lean},
};
use k8s_openapi::api::core::v1::Node;
use kit::{
    boot::Env,
    index::Shared,
    objects::{Change, Objects},
    watch::{Source, Watches},
};
use kube::{Api, Resource, ResourceExt, api::ObjectMeta, runtime::watcher};
use serde::Deserialize;
use tokio::{sync::watch, time::timeout};

use super::{index::view::Slice, knowledge::Knowledge};
use crate::ranges;

/// Where Kubernetes has its own Service, whose endpoints are the API servers, and its name.
const NAMESPACE: &str = "default";
const KUBERNETES: &str = "kubernetes";

/// Time for an answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// A Node of this cluster.
#[derive(Resource, Clone, Debug, Deserialize)]
#[resource(inherit = Node)]
struct Machine {
    #[serde(deserialize_with = "lean")]
    metadata: ObjectMeta,
    #[serde(default)]
    status: Lenient<Addresses>,
}

/// The addresses of a Node by which it is reached.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(from = "Status")]
struct Addresses(Box<[IpAddr]>);

#[derive(Default, Deserialize)]
#[serde(default)]
struct Status {
    addresses: Option<Vec<Address>>,
}

#[derive(Deserialize)]
struct Address {
    #[serde(rename = "type")]
    kind: String,
    address: String,
}

impl From<Status> for Addresses {
    fn from(status: Status) -> Self {
        let is_reached = |address: &Address| matches!(address.kind.as_str(), "InternalIP" | "ExternalIP");
        let all = status.addresses.into_iter().flatten().filter(is_reached);
        Self(all.filter_map(|address| address.address.parse().ok()).collect())
    }
}

/// Nodes and API servers, as far as they are known.
#[derive(Default)]
struct Machines {
    nodes: Objects<Machine>,
    servers: Objects<Slice>,
}

impl Machines {
    /// Takes in a change of Nodes; whether one has other addresses now. Most changes are about something else.
    fn change_nodes(&mut self, change: Change<Machine>) -> bool {
        let is_same = match &change {
            Change::Apply(node) => {
                self.nodes.get(&node.name_any()).is_some_and(|before| before.status == node.status)
            }
            Change::Remove(_) | Change::Reset(_) => false,
        };
        self.nodes.change(change);
        !is_same
    }

    fn addresses(&self) -> BTreeSet<IpAddr> {
        let nodes = self.nodes.iter().filter_map(|node| node.status.0.as_ref().ok());
        let nodes = nodes.flat_map(|addresses| addresses.0.iter().copied());
        let servers = self.servers.iter().flat_map(|slice| &slice.endpoints);
        let servers = servers.flat_map(|endpoint| &endpoint.shared.addresses);
        nodes.chain(servers.filter_map(|address| address.parse().ok())).collect()
    }
}

/// Learns them, for ever. Nothing waits long for it: `known` is true once all was told, or was not in a while. What cannot be known limits
/// nothing; the log says so.
pub(super) async fn learn(env: Env, knowledge: Knowledge, known: watch::Sender<bool>) {
    // By themselves: whoever may not list Nodes imports all the same.
    let (watches, machines) = (Watches::default(), Shared::new(Machines::default()));
    let tell = |knowledge: &Knowledge, machines: &Machines| {
        let addresses = Arc::new(machines.addresses());
        knowledge.have_limits(|limits| limits.machines = addresses);
    };
    let (of_nodes, told) = (machines.clone(), knowledge.clone());
    let source = Source { cluster: "local", kind: "Node" };
    let (api, all) = (Api::<Machine>::all(env.client.clone()), watcher::Config::default());
    let nodes = watches.watch(api, all, source, env.metrics.clone(), move |change| {
        of_nodes.with(|machines| {
            if machines.change_nodes(change) {
                tell(&told, machines);
            }
        });
    });
    let (of_servers, told) = (machines, knowledge.clone());
    let source = Source { cluster: "local", kind: "EndpointSlice of API servers" };
    let api = Api::<Slice>::namespaced(env.client.clone(), NAMESPACE);
    let theirs = watcher::Config::default().labels(&format!("{}={KUBERNETES}", label::SERVICE_NAME));
    let servers = watches.watch(api, theirs, source, env.metrics.clone(), move |change| {
        of_servers.with(|machines| {
            machines.servers.change(change);
            tell(&told, machines);
        });
    });
    let (services, asked) = (Shared::<Arc<_>>::default(), watch::Sender::new(false));
    let learned = ranges::learn(env.client.clone(), services.clone(), asked.clone());
    let take_in = async {
        let mut asked = asked.subscribe();
        let tell =
            || knowledge.have_limits(|limits| limits.services = services.with(|ranges| ranges.clone()));
        drop(asked.wait_for(|asked| *asked).await);
        tell();
        drop(timeout(PATIENCE, watches.answered()).await);
        known.send_replace(true);
        while asked.changed().await.is_ok() {
            tell();
        }
    };
    tokio::join!(nodes, servers, learned, take_in);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn node(addresses: &[(&str, &str)], labels: &Value) -> Machine {
        let addresses: Vec<_> =
            addresses.iter().map(|(kind, address)| json!({"type": kind, "address": address})).collect();
        let metadata = json!({"name": "node", "labels": labels});
        serde_json::from_value(json!({"metadata": metadata, "status": {"addresses": addresses}})).unwrap()
    }

    #[test]
    fn nodes_and_api_servers_are_known_by_their_addresses() {
        let mut machines = Machines::default();
        let addresses = [
            ("InternalIP", "10.0.0.7"),
            ("ExternalIP", "2001:db8::7"),
            ("Hostname", "10.9.9.9"),
            ("InternalIP", "?"),
        ];
        assert!(machines.change_nodes(Change::Apply(node(&addresses, &json!({})))));
        assert!(
            !machines.change_nodes(Change::Apply(node(&addresses, &json!({"zone": "a"})))),
            "nothing new"
        );
        let slice = json!({"metadata": {"name": "kubernetes", "namespace": "default"}, "addressType": "IPv4", "endpoints": [{"addresses": ["192.0.2.1"]}]});
        machines.servers.change(Change::Reset(vec![serde_json::from_value(slice).unwrap()]));
        let words: Vec<_> = machines.addresses().iter().map(ToString::to_string).collect();
        assert_eq!(words, ["10.0.0.7", "192.0.2.1", "2001:db8::7"]);
        assert!(machines.change_nodes(Change::Apply(node(&addresses[..1], &json!({})))));
        assert!(machines.change_nodes(Change::Remove(node(&[], &json!({})))));
        assert_eq!(machines.addresses().len(), 1);
    }

    proptest! {
        #[test]
        fn a1_no_node_stops_a_list(odd in odd::anything(&["addresses", "type", "address"])) {
            for node in odd::everywhere::<Machine>(&odd).unwrap() {
                let _ = node.status;
            }
        }
    }
}
