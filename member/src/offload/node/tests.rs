use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::offload::arrivals::{Known, Looks, events, seen};

/// What becomes of the Node, and what it is to say.
fn look(known: &Known, cluster: &str) -> BTreeMap<String, Value> {
    let entry = known.all.clusters.get(&cluster.to_owned()).unwrap_or_default();
    let around = Around { is_seen: true, is_current: true, has_pods: false, has_asked: |_: &String| true };
    let has_left = known.all.has_left(cluster, &entry, known.now);
    let standing = known.all.standing(cluster, known.now);
    // Whether anything is heard is found out at the next heartbeat.
    let now = Condition { is_heard: true, standing, has_left };
    let node = entry.offered().map(|offered| node(cluster, offered, entry.node.as_ref(), now.takes_pods()));
    let ready = node
        .as_ref()
        .and_then(|node| status(cluster, node, entry.offered(), &now, None, Timestamp::UNIX_EPOCH));
    let sees = match plan(&entry, around) {
        Plan::Nothing => Value::Null,
        plan => json!([format!("{plan:?}"), node, ready]),
    };
    [(cluster.to_owned(), sees)].into()
}

const LOOKS: Looks<Value> =
    Looks { queue: |known| known.clusters.queue(1), keys: |known| known.clusters.keys(), at: look };

proptest! {
    #[test]
    fn whoever_keeps_a_node_has_seen_the_last_of_what_decides_it(events in events()) {
        let [last, now] = seen(&events, &LOOKS, &[]);
        prop_assert_eq!(last, now);
    }
}
