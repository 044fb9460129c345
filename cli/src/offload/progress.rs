//! How far a NamespaceOffloading is: pure.

use api::offload::{
    namespace::{
        CERTIFICATE_UNTRUSTED, NamespaceOffloadingStatus, OFFLOADING_REQUIRED, PLACEMENT_ENFORCED, READY,
        VALID, WEBHOOK_UNAVAILABLE,
    },
    phase::Phase,
    view::NamespaceOffloadingView,
};

use super::{condition, refused::reported};

/// How far it is, in words.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// All that it asks for is there.
    Done(String),
    /// It may still come.
    Waits(String),
    /// It does not come unless somebody does something.
    Failed(String),
}

/// How far it is, as its status says.
pub(crate) fn progress(offloading: Option<&NamespaceOffloadingView>) -> Progress {
    let progress = far(offloading);
    let status = offloading.and_then(|offloading| offloading.status.0.as_ref().ok());
    match (progress, status.and_then(|status| reported(&status.conditions))) {
        (Progress::Waits(message), Some(refused)) => Progress::Failed(format!("{message}; {refused}")),
        (progress, _) => progress,
    }
}

fn far(offloading: Option<&NamespaceOffloadingView>) -> Progress {
    let Some(offloading) = offloading else {
        return Progress::Failed("somebody deleted its NamespaceOffloading".into());
    };
    let waits = |message: &str| Progress::Waits(message.to_owned());
    let Ok(status) = &offloading.status.0 else { return waits("its status cannot be read") };
    if status.observed_generation != offloading.metadata.generation {
        return waits("freeport-member has not seen it yet");
    }
    if let Some(invalid) = condition(&status.conditions, VALID).filter(|valid| valid.status == "False") {
        return Progress::Failed(format!("{}: {}", invalid.reason, invalid.message));
    }
    let phase = status.offloading_phase.as_deref().unwrap_or_default();
    let is = |other: Phase| phase == other.as_str();
    let clusters = clusters(status);
    if is(Phase::SomeFailed) || is(Phase::AllFailed) {
        return Progress::Failed(clusters);
    }
    if is(Phase::Terminating) {
        return Progress::Failed("its NamespaceOffloading is being deleted".into());
    }
    let is_there = is(Phase::Ready) || is(Phase::PlacementNotEnforced);
    let there = match (is_there, is(Phase::NoClusterSelected)) {
        (true, _) => format!(
            "offloaded as {} to {}",
            status.remote_namespace_name.as_deref().unwrap_or_default(),
            required(status)
        ),
        (_, true) => {
            "no cluster is selected: there is no twin until a virtual node matches (freeport offload status)"
                .into()
        }
        _ => return Progress::Waits(clusters),
    };
    match condition(&status.conditions, PLACEMENT_ENFORCED) {
        Some(placed) if placed.status == "True" => Progress::Done(there),
        Some(placed) => {
            let pods = if [WEBHOOK_UNAVAILABLE, CERTIFICATE_UNTRUSTED].contains(&placed.reason.as_str()) {
                "; new Pods are refused meanwhile, or not placed where failurePolicy is Ignore"
            } else {
                ""
            };
            Progress::Waits(format!("{there}, but {}: {}{pods}", placed.reason, placed.message))
        }
        None => Progress::Waits(format!("{there}, but whether its Pods are placed is not said yet")),
    }
}

/// IDs of the clusters that are selected.
fn required(status: &NamespaceOffloadingStatus) -> String {
    let is_required = |(_, conditions): &(&String, &Vec<_>)| {
        condition(conditions, OFFLOADING_REQUIRED).is_some_and(|required| required.status == "True")
    };
    let ids = status.remote_namespaces_conditions.iter().filter(is_required).map(|(id, _)| id.as_str());
    ids.collect::<Vec<_>>().join(", ")
}

/// What the clusters say whose twin is not there, in their words.
fn clusters(status: &NamespaceOffloadingStatus) -> String {
    let says = status.remote_namespaces_conditions.iter().filter_map(|(id, conditions)| {
        let ready = condition(conditions, READY).filter(|ready| ready.status != "True")?;
        Some(format!("{id}: {}: {}", ready.reason, ready.message))
    });
    let says: Vec<_> = says.collect();
    if says.is_empty() { "no cluster has said anything yet".into() } else { says.join("; ") }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn said(type_: &str, status: &str, reason: &str) -> Value {
        json!({
            "type": type_, "status": status, "reason": reason, "message": "m",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        })
    }

    fn with(phase: &str, conditions: &Value, ready: &Value) -> Progress {
        let east = json!([said("OffloadingRequired", "True", "ClusterSelected"), ready]);
        let offloading = json!({
            "metadata": {"name": "offloading", "generation": 2},
            "spec": {},
            "status": {
                "observedGeneration": 2, "offloadingPhase": phase, "remoteNamespaceName": "shop-west",
                "conditions": conditions, "remoteNamespacesConditions": {"east": east},
            },
        });
        progress(Some(&serde_json::from_value(offloading).unwrap()))
    }

    #[test]
    fn it_is_done_when_twins_are_there_and_pods_are_placed() {
        let ready = || said("Ready", "True", "NamespaceCreated");
        let creating = || said("Ready", "False", "Creating");
        let enforced = || json!([said("PlacementEnforced", "True", "Enforced")]);
        let done = Progress::Done("offloaded as shop-west to east".into());
        assert_eq!(with("Ready", &enforced(), &ready()), done);
        let missing = json!([said("PlacementEnforced", "False", "WebhookMissing")]);
        let waits = Progress::Waits("offloaded as shop-west to east, but WebhookMissing: m".into());
        for phase in ["PlacementNotEnforced", "Ready"] {
            assert_eq!(with(phase, &missing, &ready()), waits, "a member of v0.5.2 says Ready");
        }
        let silent = json!([said("PlacementEnforced", "False", "WebhookUnavailable")]);
        let Progress::Waits(message) = with("Ready", &silent, &ready()) else { panic!() };
        for part in ["offloaded as shop-west to east, but WebhookUnavailable: m", "new Pods are refused"] {
            assert!(message.contains(part), "{message}");
        }
        assert!(matches!(with("Ready", &json!([]), &ready()), Progress::Waits(_)));
        let waits = Progress::Waits("east: Creating: m".into());
        assert_eq!(with("InProgress", &enforced(), &creating()), waits);
        let Progress::Done(message) = with("NoClusterSelected", &enforced(), &creating()) else { panic!() };
        assert!(message.contains("no cluster is selected"), "{message}");
    }

    #[test]
    fn it_does_not_come_while_an_api_server_refuses_what_it_needs() {
        let ready = |reason| said("Ready", "False", reason);
        let refused = || json!([said("WritesAccepted", "False", "Refused")]);
        let failed = Progress::Failed("east: Creating: m; m".into());
        assert_eq!(with("InProgress", &refused(), &ready("Creating")), failed);
        let both = json!([
            said("WritesAccepted", "False", "Refused"),
            said("PlacementEnforced", "True", "Enforced")
        ]);
        let done = with("Ready", &both, &said("Ready", "True", "NamespaceCreated"));
        assert!(matches!(done, Progress::Done(_)), "what is refused is about something else");
    }

    #[test]
    fn hosts_that_refuse_are_quoted() {
        let refused = said("Ready", "False", "CreationLoopBackOff");
        let failed = Progress::Failed("east: CreationLoopBackOff: m".into());
        assert_eq!(with("AllFailed", &json!([]), &refused), failed);
        assert!(matches!(progress(None), Progress::Failed(_)));
        let invalid = json!([said("Valid", "False", "NameTooLong")]);
        let failed = Progress::Failed("NameTooLong: m".into());
        assert_eq!(with("NoClusterSelected", &invalid, &refused), failed, "it offloads nothing");
    }

    #[test]
    fn a_status_of_an_older_spec_says_nothing() {
        let offloading = json!({
            "metadata": {"name": "offloading", "generation": 3}, "spec": {},
            "status": {"observedGeneration": 2, "offloadingPhase": "Ready"},
        });
        let waits = progress(Some(&serde_json::from_value(offloading).unwrap()));
        assert_eq!(waits, Progress::Waits("freeport-member has not seen it yet".into()));
    }
}
