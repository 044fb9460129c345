//! What a virtual node says of itself, by what is heard of its host: pure.

use api::{
    cluster_set::WRITES_ACCEPTED,
    condition::Verdict,
    offload::{
        names,
        offer::OffloadOfferSpec,
        quantity::{Resources, nanos},
    },
};
use jiff::Timestamp;
use presence::standing::Standing;
use serde_json::{Value, json};

use crate::offload::view::{NodeCondition, READY, VirtualNode};

/// Reason of a condition that Kubernetes has made Unknown, since nobody renewed the Lease of the Node for a while. It does so only to one that
/// was True or False.
const GIVEN_UP: &str = "NodeStatusUnknown";

/// How it stands with the host.
pub(super) struct Condition {
    /// The Common Area is heard: it is known how it stands.
    pub(super) is_heard: bool,
    pub(super) standing: Option<Standing>,
    /// It has said that it leaves, and has no Lease.
    pub(super) has_left: bool,
}

impl Condition {
    pub(super) fn takes_pods(&self) -> bool {
        self.is_heard
    }

    /// Status, reason and message of [`READY`], where it was `before`.
    fn ready(&self, before: Option<&NodeCondition>) -> (String, String, String) {
        let says = |status: &str, reason: &str, message: &str| {
            (status.to_owned(), reason.to_owned(), message.to_owned())
        };
        // We never say that it is not ready: what Kubernetes has given up was ready.
        let was_ready = before.is_some_and(|before| before.status == "True" || before.reason == GIVEN_UP);
        let not_heard_yet = "the host's next renewal is awaited";
        let not_heard = "nothing is heard of the Common Area; the host is taken to be as before";
        match &self.standing {
            _ if !self.is_heard => {
                says(if was_ready { "True" } else { "Unknown" }, "LeaderNotHeard", not_heard)
            }
            _ if self.has_left => says("Unknown", "HostLeft", "the host has left the ClusterSet"),
            Some(Standing::Present) => says("True", "HostPresent", "the host renews its Lease"),
            // What was known before stays.
            Some(Standing::Unheard) => match before {
                Some(before) if before.reason == GIVEN_UP => says("True", "HostNotHeardYet", not_heard_yet),
                Some(before) => (before.status.clone(), before.reason.clone(), before.message.clone()),
                None => says("Unknown", "HostNotHeardYet", not_heard_yet),
            },
            Some(Standing::Silent { .. }) => {
                says("Unknown", "HostSilent", "the host does not renew its Lease")
            }
            None => says("Unknown", "HostUnknown", "the host has no Lease in the Common Area"),
        }
    }
}

/// The status to apply, if it says something else than the Node does. Without an offer it has what it had. `refused`: what API servers refuse,
/// where the end of the Node waits for that.
pub(super) fn status(
    cluster: &str,
    node: &VirtualNode,
    offered: Option<&OffloadOfferSpec>,
    now: &Condition,
    refused: Option<&Verdict>,
    at: Timestamp,
) -> Option<Value> {
    let have = node.status.0.clone().unwrap_or_default();
    let capacity = offered.map_or(&have.capacity, |offered| &offered.resources);
    let ready = Some(now.ready(have.ready()));
    let refused = refused
        .map(|verdict| (verdict.status.as_str().to_owned(), verdict.reason.clone(), verdict.message.clone()));
    let want = [(READY, ready), (WRITES_ACCEPTED, refused)];
    let says_so = want.iter().all(|(type_, want)| {
        let have = have.condition(type_).map(|have| (&have.status, &have.reason, &have.message));
        have == want.as_ref().map(|(status, reason, message)| (status, reason, message))
    });
    if says_so && is_same(&have.capacity, capacity) && is_same(&have.allocatable, capacity) {
        return None;
    }
    let at = format!("{at:.0}");
    let condition = |(type_, want): (&str, Option<(String, String, String)>)| {
        let (status, reason, message) = want?;
        let since = have.condition(type_).filter(|before| before.status == status);
        let since =
            since.and_then(|before| before.last_transition_time.clone()).unwrap_or_else(|| at.clone());
        Some(json!({
            "type": type_, "status": status, "reason": reason, "message": message,
            "lastHeartbeatTime": at, "lastTransitionTime": since,
        }))
    };
    let conditions: Vec<_> = want.into_iter().filter_map(condition).collect();
    let hostname = json!({"type": "Hostname", "address": names::hostname(cluster)});
    Some(json!({
        "capacity": capacity, "allocatable": capacity, "conditions": conditions, "addresses": [hostname],
    }))
}

/// Whether both are the same amounts: API servers write `1024Mi` as `1Gi`.
fn is_same(have: &Resources, want: &Resources) -> bool {
    let same = |(key, want): (&String, &k8s_openapi::apimachinery::pkg::api::resource::Quantity)| {
        have.get(key).is_some_and(|have| have == want || nanos(&have.0) == nanos(&want.0))
    };
    have.len() == want.len() && want.iter().all(same)
}

#[cfg(test)]
mod tests {
    use api::condition::Status;

    use crate::offload::node::desired::{anew, node, tests::offered, with_status};

    use super::*;

    fn heard(standing: Option<Standing>) -> Condition {
        Condition { is_heard: true, standing, has_left: false }
    }

    fn at() -> Timestamp {
        "2026-11-01T12:00:00Z".parse().unwrap()
    }

    #[test]
    fn ready_follows_the_host_and_stays_while_the_leader_is_not_heard() {
        let mut node = node("east", &offered(), None, true);
        let mut says = |now: Condition| {
            let want = status("east", &node, Some(&offered()), &now, None, at());
            if let Some(want) = want {
                node.status = serde_json::from_value(want).unwrap();
            }
            node.status.0.as_ref().unwrap().ready().unwrap().status.clone()
        };
        assert_eq!(says(heard(Some(Standing::Unheard))), "Unknown");
        assert_eq!(says(heard(Some(Standing::Present))), "True");
        assert_eq!(
            says(Condition { is_heard: false, standing: None, has_left: false }),
            "True",
            "only the leader is not heard"
        );
        assert_eq!(says(heard(Some(Standing::Unheard))), "True", "what was known before stays");
        assert_eq!(says(heard(Some(Standing::Silent { since: None }))), "Unknown");
        assert_eq!(says(heard(None)), "Unknown");
        let left = Condition { has_left: true, ..heard(Some(Standing::Unheard)) };
        assert_eq!(says(left), "Unknown", "at once, and not when it is missed for long");
        let not_heard = Condition { is_heard: false, has_left: true, standing: None };
        assert_eq!(not_heard.ready(None).1, "LeaderNotHeard", "nobody is evicted for a lost hub");
    }

    #[test]
    fn a_node_that_kubernetes_gave_up_while_we_were_away_is_ready_as_it_was() {
        let says = |before: &str, now: Condition| {
            let mut node = node("east", &offered(), None, true);
            let ready = json!({"type": READY, "status": "Unknown", "reason": before, "message": ""});
            node.status = serde_json::from_value(json!({"conditions": [ready]})).unwrap();
            let want = status("east", &node, Some(&offered()), &now, None, at()).unwrap();
            want["conditions"][0]["status"].as_str().unwrap().to_owned()
        };
        let not_heard = || Condition { is_heard: false, standing: None, has_left: false };
        assert_eq!(says(GIVEN_UP, not_heard()), "True", "nobody is evicted for a lost hub");
        assert_eq!(says("HostSilent", not_heard()), "Unknown", "it was not ready before");
        assert_eq!(says(GIVEN_UP, heard(Some(Standing::Unheard))), "True");
        assert_eq!(says(GIVEN_UP, heard(Some(Standing::Silent { since: None }))), "Unknown");
    }

    #[test]
    fn a_node_made_anew_is_ready_as_it_was_while_the_leader_is_not_heard() {
        let mut before = node("east", &offered(), None, true);
        let ready =
            status("east", &before, Some(&offered()), &heard(Some(Standing::Present)), None, at()).unwrap();
        before.status = serde_json::from_value(ready.clone()).unwrap();
        let made = with_status(anew(&before), None, Some(&before));
        let says = status(
            "east",
            &made,
            None,
            &Condition { is_heard: false, standing: None, has_left: false },
            None,
            at(),
        )
        .unwrap();
        assert_eq!(
            (&says["conditions"][0]["status"], &says["capacity"]),
            (&json!("True"), &ready["capacity"])
        );
        assert_eq!(with_status(anew(&before), Some(&before), None), anew(&before));
    }

    #[test]
    fn amounts_that_the_api_server_writes_otherwise_are_the_same() {
        let mut node = node("east", &offered(), None, true);
        let now = heard(Some(Standing::Present));
        let mut want = status("east", &node, Some(&offered()), &now, None, at()).unwrap();
        for field in ["capacity", "allocatable"] {
            want[field] = json!({"cpu": "2", "memory": "1Gi"});
        }
        node.status = serde_json::from_value(want).unwrap();
        assert_eq!(status("east", &node, Some(&offered()), &now, None, at()), None);
    }

    #[test]
    fn a_node_whose_end_is_refused_says_so_until_it_is_not() {
        let mut node = node("east", &offered(), None, true);
        let now = heard(Some(Standing::Present));
        let mut says = |refused: Option<&str>| {
            let verdict =
                refused.map(|message| Verdict::new(WRITES_ACCEPTED, Status::False, "Refused", message));
            let want = status("east", &node, Some(&offered()), &now, verdict.as_ref(), at());
            let is_news = want.is_some();
            if let Some(want) = want {
                node.status = serde_json::from_value(want).unwrap();
            }
            let said = node.status.0.as_ref().unwrap();
            assert_eq!(said.ready().unwrap().status, "True");
            (is_news, said.condition(WRITES_ACCEPTED).map(|said| said.message.clone()))
        };
        assert_eq!(says(None), (true, None));
        assert_eq!(says(Some("no")), (true, Some("no".to_owned())));
        assert_eq!(says(Some("no")), (false, Some("no".to_owned())));
        assert_eq!(says(Some("never")), (true, Some("never".to_owned())));
        assert_eq!(says(None), (true, None));
        assert_eq!(says(None), (false, None));
    }
}
