//! What is said about a binding: pure.

use std::collections::BTreeMap;

use api::{
    bind::{
        binding::APIServiceBinding,
        condition::{Answer, Severity, Verdict},
        export::Phase,
        holder::{CONTRACT_IN_USE, Other},
    },
    cluster_set::WRITES_ACCEPTED,
    words::first_names,
};
use kube::ResourceExt;

use super::{Found, Link};
use crate::bind::{
    contract::Contract,
    credential::Unusable,
    heartbeat::{Beat, Health},
    sync::Unsynced,
};

/// Objects that are not in step, and writes that are refused, do not make a binding unready: the others are and are not.
pub(super) const ASIDE: &[&str] = &["Synced", WRITES_ACCEPTED];

/// Of a provider, as long as nothing is known of it.
const UNANSWERED: &str = "the provider has not answered yet";

fn error(reason: &'static str, message: impl Into<String>) -> Answer {
    Answer::No(Severity::Error, reason, message.into())
}

/// Not `Unknown`, beside which the summary of kube-bind is `True`.
pub(super) fn not_yet(reason: &'static str, message: impl Into<String>) -> Answer {
    Answer::No(Severity::Info, reason, message.into())
}

/// B15.
fn evicted() -> Answer {
    error(
        "Evicted",
        "the provider has ended the contract: it deleted the cluster namespace, or refuses the credential",
    )
}

fn in_use(other: &Other) -> Answer {
    let message = format!(
        "the contract is in use by {other}: nothing of it is read, written or deleted here. Ask the provider for a contract of this cluster's own \
         (--identity); if that cluster is gone, run `freeport bind apiservice NAME -f FILE --take-over`; to do without it here, `freeport bind remove NAME --force`"
    );
    error(CONTRACT_IN_USE, message)
}

fn not_noted(why: &str) -> Answer {
    let message = format!(
        "the provider refuses to note in the status of its ClusterBinding that this cluster uses the contract, so nothing of it is read or written: \
         {why}"
    );
    error("Refused", message)
}

fn away(why: String) -> Answer {
    Answer::No(Severity::Warning, "ProviderUnavailable", why)
}

/// Our own API server refuses something.
fn refused_here(severity: Severity, what: &str, why: &str) -> Answer {
    Answer::No(severity, "Refused", format!("{what}; in this cluster: {why}"))
}

fn unheard(why: Option<&str>) -> Answer {
    let mut message = "the provider does not take the heartbeat".to_owned();
    if let Some(why) = why {
        message.push_str(&format!(": {why}"));
    }
    Answer::No(Severity::Warning, "ClusterBindingUpdateFailed", message)
}

fn unsent(unusable: &Unusable) -> Answer {
    let message = format!("no heartbeat is sent: {unusable}");
    Answer::No(Severity::Warning, "ClusterBindingUpdateFailed", message)
}

/// Without a provider. `was_connected` is whether the binding says something of one.
pub(super) fn unconnected(link: &Link, was_connected: bool) -> Vec<Verdict> {
    let connected = match link {
        Link::Evicted => evicted(),
        Link::InUse(other) => in_use(other),
        Link::Unheld(why) => not_noted(why),
        Link::Failing(failure) => away(failure.to_string()),
        Link::Untold(untold) => away(untold.to_string()),
        Link::Unusable(unusable) => error(unusable.reason(), unusable.to_string()),
        Link::Refused(why) => unclaimed(why),
        // What was said before a restart may still be so.
        Link::Connecting | Link::Up(..) if was_connected => return Vec::new(),
        Link::Connecting | Link::Up(..) => not_yet("Connecting", UNANSWERED),
    };
    let (secret, informers) = match link {
        Link::Unusable(unusable) => (error(unusable.reason(), unusable.to_string()), None),
        Link::Refused(why) => {
            (unclaimed(why), Some(not_yet("Connecting", "the provider is asked after that")))
        }
        Link::Failing(failure) => (Answer::Yes, Some(error("InformerSyncTimeout", failure.to_string()))),
        Link::Evicted => (Answer::Yes, Some(error("InformerSyncTimeout", "the contract has ended"))),
        Link::InUse(other) => (Answer::Yes, Some(in_use(other))),
        Link::Unheld(why) => (Answer::Yes, Some(not_noted(why))),
        Link::Untold(untold) => (Answer::Yes, Some(error("InformerSyncTimeout", untold.to_string()))),
        Link::Connecting | Link::Up(..) => (Answer::Yes, Some(not_yet("Connecting", UNANSWERED))),
    };
    let informers = informers.map(|answer| Verdict::new("InformersSynced", answer));
    // Who does not get as far as that sends no heartbeat either.
    let heartbeat = match link {
        Link::Refused(_) => not_yet("Pending", "the provider is asked after that"),
        Link::InUse(other) => in_use(other),
        Link::Unheld(why) => unheard(Some(why)),
        Link::Unusable(unusable) => unsent(unusable),
        Link::Connecting | Link::Up(..) => not_yet("Pending", UNANSWERED),
        _ => unheard(None),
    };
    let all = [("SecretValid", secret), ("Connected", connected), ("Heartbeating", heartbeat)];
    all.into_iter().map(|(type_, answer)| Verdict::new(type_, answer)).chain(informers).collect()
}

/// With one, where the binding itself cannot be held.
pub(super) fn unheld(why: &str) -> Vec<Verdict> {
    let what = "it cannot be kept in step, since its end would not be seen";
    vec![
        Verdict::new("SecretValid", Answer::Yes),
        Verdict::new("InformersSynced", Answer::Yes),
        Verdict::new("Connected", refused_here(Severity::Error, what, why)),
    ]
}

fn unclaimed(why: &str) -> Answer {
    let what = "it cannot be found out, or noted, whose the credential is, so the provider is not asked";
    refused_here(Severity::Error, what, why)
}

fn unkept(why: &str) -> Answer {
    let what = "the provider's new credential cannot be kept, and the old one ends";
    refused_here(Severity::Warning, what, why)
}

/// With one.
pub(super) fn connected(
    found: &Found,
    health: &Health,
    unsynced: &Unsynced,
    binding: &APIServiceBinding,
) -> Vec<Verdict> {
    let was_said = said(binding, "Heartbeating");
    let heartbeat = match &health.beat {
        Some(Beat::Arrived) => Some(Answer::Yes),
        Some(Beat::Failed(why)) => Some(unheard(Some(why))),
        Some(Beat::Unanswered | Beat::Evicted) => Some(unheard(None)),
        // What was said before a restart may still be so.
        None if was_said => None,
        None => Some(not_yet("Pending", "no heartbeat was sent yet")),
    };
    let connected = match health.beat {
        Some(Beat::Evicted) => evicted(),
        Some(Beat::Unanswered) => away("the provider does not answer".to_owned()),
        _ => found.connected.clone(),
    };
    let mut all = vec![
        Verdict::new("SecretValid", health.refused.as_deref().map_or(Answer::Yes, unkept)),
        Verdict::new("InformersSynced", informed(unsynced, &binding.name_any())),
        Verdict::new("Connected", connected),
        Verdict::new("SchemaInSync", found.in_sync.clone()),
        Verdict::new("Synced", synced(unsynced, &binding.name_any())),
    ];
    all.extend(heartbeat.map(|answer| Verdict::new("Heartbeating", answer)));
    all
}

/// Whether the binding says something of its provider, and not only that it is asked.
pub(super) fn was_connected(binding: &APIServiceBinding) -> bool {
    let conditions = binding.status.iter().flat_map(|status| &status.conditions);
    let mut of_it = conditions.filter(|condition| condition.type_ == "InformersSynced");
    of_it.any(|condition| condition.reason.as_deref() != Some("Connecting"))
}

/// Whether the binding has a condition of this type.
fn said(binding: &APIServiceBinding, type_: &str) -> bool {
    let conditions = binding.status.iter().flat_map(|status| &status.conditions);
    conditions.into_iter().any(|condition| condition.type_ == type_)
}

/// Whether every watch has told what there is and may go on, but for those that the provider refuses: those say so in `Synced`.
fn informed(unsynced: &Unsynced, binding: &str) -> Answer {
    unsynced.halted(binding).map_or(Answer::Yes, |(reason, message)| error(reason, message))
}

/// How many objects of the binding are not in step, why, and the first of them.
pub(super) fn synced(unsynced: &Unsynced, binding: &str) -> Answer {
    let of_it = unsynced.of(binding);
    let Some((_, (reason, message))) = of_it.first_key_value() else { return Answer::Yes };
    let message = format!("{} not in step: {}; {message}", of_it.len(), first_names(of_it.keys()));
    Answer::No(Severity::Warning, reason, message)
}

/// Where the provider has more in the cluster namespace than is taken in: what is missing here may be there.
pub(super) fn overrun(found: &mut Found, left_out: usize) {
    let may_follow = matches!(found.connected, Answer::Yes | Answer::No(_, "APIServiceExportNotFound", _));
    if left_out > 0 && may_follow {
        let message = format!(
            "{left_out} objects of the cluster namespace are not taken in, since there are too many of their kind: who provides deletes \
             some, and then they are"
        );
        found.connected = Answer::No(Severity::Warning, "TooMuch", message);
    }
}

/// Where the provider has no export of that name.
pub(super) fn without_export(contract: &Contract, name: &str) -> Found {
    let failed = contract.known.with(|known| {
        let status = known.requests.get(name)?.status.clone()?;
        (status.phase == Phase::Failed).then(|| status.terminal_message.unwrap_or_default())
    });
    let connected = match failed {
        Some(message) => error("APIServiceExportFailed", message),
        None => error("APIServiceExportNotFound", format!("the provider has no APIServiceExport {name}")),
    };
    Found { in_sync: connected.clone(), connected, is_refused: false, bound: BTreeMap::new() }
}

#[cfg(test)]
mod tests {
    use super::{super::Untold, *};
    use api::bind::{
        binding::APIServiceBindingStatus,
        condition::{Condition, conditions},
    };
    use jiff::Timestamp;
    use kit::{failure::Failure, metrics::Metrics};
    use serde_json::json;

    #[test]
    fn b15_who_is_refused_is_evicted_and_who_is_not_answered_is_not() {
        let says_evicted = |link| unconnected(&link, true).contains(&Verdict::new("Connected", evicted()));
        assert!(says_evicted(Link::Evicted));
        assert!(!says_evicted(Link::Failing(Failure::Unreachable("it is away"))));
    }

    #[test]
    fn a_provider_that_does_not_note_the_holder_is_said_in_its_words() {
        let verdicts = unconnected(&Link::Unheld("denied by policy".into()), true);
        let all = conditions(&[], &verdicts, ASIDE, Timestamp::now());
        for type_ in ["Ready", "Connected"] {
            let said = all.iter().find(|condition| condition.type_ == type_).unwrap();
            assert_eq!(said.reason.as_deref(), Some("Refused"));
            assert!(said.message.as_deref().unwrap().ends_with("denied by policy"));
        }
    }

    #[test]
    fn what_this_cluster_refuses_is_said_of_the_credential_and_nothing_of_the_provider() {
        let refused = Link::Refused("denied by policy".into());
        let all = conditions(&[], &unconnected(&refused, false), ASIDE, Timestamp::now());
        let of = |type_: &str| all.iter().find(|condition| condition.type_ == type_).unwrap();
        for type_ in ["Ready", "SecretValid"] {
            assert_eq!(of(type_).reason.as_deref(), Some("Refused"));
            assert!(of(type_).message.as_deref().unwrap().contains("in this cluster: denied by policy"));
        }
        let blames = |condition: &&Condition| {
            condition.message.as_deref().unwrap_or_default().contains("provider has not")
        };
        assert_eq!(all.iter().find(blames), None);

        let mut binding = binding();
        binding.status = Some(APIServiceBindingStatus { conditions: all.clone(), ..Default::default() });
        assert!(!was_connected(&binding));
        let all = conditions(&all, &unconnected(&Link::Connecting, false), ASIDE, Timestamp::now());
        let refuses = |condition: &&Condition| condition.reason.as_deref() == Some("Refused");
        assert_eq!(all.iter().find(refuses), None, "it takes it now");
    }

    fn binding() -> APIServiceBinding {
        let secret = json!({"namespace": "kube-bind", "name": "k", "key": "kubeconfig"});
        let binding = json!({"metadata": {"name": "mango"}, "spec": {"kubeconfigSecretRef": secret}});
        serde_json::from_value(binding).unwrap()
    }

    #[test]
    fn what_this_cluster_refuses_of_a_provider_that_answers_is_said() {
        let here = "in this cluster: denied by policy";
        let says = |verdicts: &[Verdict], type_: &str| {
            let mut of_it = verdicts.iter().filter(|verdict| verdict.type_ == type_);
            of_it
                .any(|verdict| matches!(&verdict.answer, Answer::No(_, "Refused", why) if why.contains(here)))
        };
        assert!(says(&unheld("denied by policy"), "Connected"));
        let found =
            Found { connected: Answer::Yes, in_sync: Answer::Yes, is_refused: false, bound: BTreeMap::new() };
        let health = Health { beat: Some(Beat::Arrived), refused: Some("denied by policy".into()) };
        let unsynced = Unsynced::new(Metrics::new().unwrap().bind().unsynced());
        let all = connected(&found, &health, &unsynced, &binding());
        assert!(says(&all, "SecretValid") && !says(&all, "Connected"), "{all:?}");
    }

    #[test]
    fn where_nobody_answers_no_heartbeat_arrives() {
        let untold = || Untold { kinds: vec!["Secret"], why: None };
        let heartbeat = Verdict::new("Heartbeating", unheard(None));
        let unusable = Link::Unusable(Unusable::NoKey);
        let is_connected = |verdict: &Verdict| *verdict == Verdict::new("Connected", Answer::Yes);
        assert!(!unconnected(&unusable, true).iter().any(is_connected));
        assert!(unconnected(&unusable, true).iter().any(|verdict| verdict.type_ == "Connected"));
        let unsent = Verdict::new("Heartbeating", unsent(&Unusable::NoKey));
        assert!(unconnected(&unusable, true).contains(&unsent));
        for link in [Link::Failing(Failure::Unreachable("it is away")), Link::Untold(untold())] {
            assert!(unconnected(&link, true).contains(&heartbeat), "{}", link.state());
        }
        assert!(unconnected(&Link::Connecting, true).is_empty(), "what was said may still be so");
    }
}
