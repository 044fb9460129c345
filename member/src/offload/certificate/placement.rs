//! Whether new Pods are placed as a NamespaceOffloading says: condition `PlacementEnforced`. Pure.

use api::{
    condition::{Status, Verdict},
    offload::{
        label::SCHEDULING_ENABLED,
        namespace::{
            CERTIFICATE_UNTRUSTED, ENFORCED, NOT_NEEDED, PLACEMENT_ENFORCED, PodOffloadingStrategy,
            WEBHOOK_ALTERED, WEBHOOK_MISSING, WEBHOOK_UNAVAILABLE,
        },
    },
};

/// Reason while the webhook was not asked yet.
const PENDING: &str = "Pending";

/// What came of asking the webhook last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Nobody asked yet.
    #[default]
    Unknown,
    /// No configuration makes API servers ask it.
    Missing,
    /// API servers do not ask it about every new Pod, because of this field.
    Altered(&'static str),
    /// It answers, by a certificate that API servers accept.
    Answers {
        /// Whether Pods are created unplaced while it does not.
        ignores_failures: bool,
    },
    /// It does not answer, or something else does, in words.
    Silent(String),
    /// API servers do not accept its certificate, in words.
    Untrusted(String),
}

/// Whether new Pods are placed as `strategy` says, given what came of asking the webhook, and whether the label of their Namespace has
/// API servers ask it.
pub(crate) fn placement(strategy: PodOffloadingStrategy, answer: &Answer, is_labelled: bool) -> Verdict {
    let is =
        |status, reason: &str, message: String| Verdict::new(PLACEMENT_ENFORCED, status, reason, message);
    if strategy == PodOffloadingStrategy::Local {
        return is(
            Status::True,
            NOT_NEEDED,
            "with strategy Local, Pods run in this cluster without a webhook".into(),
        );
    }
    match answer {
        Answer::Unknown => is(Status::Unknown, PENDING, "the webhook was not asked yet".into()),
        Answer::Missing => is(
            Status::False,
            WEBHOOK_MISSING,
            "there is no MutatingWebhookConfiguration freeport-webhook with pod.mutate.liqo.io, so new Pods are not placed. \
             freeport-member puts back the one that it has seen, within seconds; if it has seen none, install it: freeport join --offload"
                .into(),
        ),
        Answer::Altered(field) => is(
            Status::False,
            WEBHOOK_ALTERED,
            format!(
                "{field} of pod.mutate.liqo.io in MutatingWebhookConfiguration freeport-webhook leaves Pods out, and those are not \
                 placed. freeport-member puts it right within seconds where it is Freeport's; else: freeport join --offload"
            ),
        ),
        Answer::Answers { .. } if !is_labelled => {
            is(Status::Unknown, PENDING, format!("label {SCHEDULING_ENABLED} of the Namespace is not set yet"))
        }
        Answer::Answers { ignores_failures: false } => {
            is(Status::True, ENFORCED, "the webhook answers, and no Pod is created without it".into())
        }
        Answer::Answers { ignores_failures: true } => is(
            Status::True,
            ENFORCED,
            "the webhook answers; while it does not, new Pods are created and not placed (failurePolicy is Ignore)".into(),
        ),
        Answer::Silent(why) => is(Status::False, WEBHOOK_UNAVAILABLE, format!("the webhook does not answer: {why}")),
        Answer::Untrusted(why) => is(
            Status::False,
            CERTIFICATE_UNTRUSTED,
            format!("API servers do not accept the certificate of the webhook: {why}"),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_answer_has_its_reason() {
        use PodOffloadingStrategy::{Local, LocalAndRemote, Remote};
        let silent = Answer::Silent("refused".into());
        for (strategy, answer, status, reason) in [
            (Local, &Answer::Missing, Status::True, NOT_NEEDED),
            (Local, &silent, Status::True, NOT_NEEDED),
            (Remote, &Answer::Unknown, Status::Unknown, PENDING),
            (Remote, &Answer::Missing, Status::False, WEBHOOK_MISSING),
            (Remote, &Answer::Altered("rules"), Status::False, WEBHOOK_ALTERED),
            (LocalAndRemote, &Answer::Answers { ignores_failures: false }, Status::True, ENFORCED),
            (Remote, &silent, Status::False, WEBHOOK_UNAVAILABLE),
            (Remote, &Answer::Untrusted("expired".into()), Status::False, CERTIFICATE_UNTRUSTED),
        ] {
            let verdict = placement(strategy, answer, true);
            assert_eq!(
                (verdict.type_, verdict.status, verdict.reason.as_str()),
                (PLACEMENT_ENFORCED, status, reason)
            );
        }
        let unlabelled = placement(Remote, &Answer::Answers { ignores_failures: false }, false);
        assert_eq!((unlabelled.status, unlabelled.reason.as_str()), (Status::Unknown, PENDING));
        let ignores = placement(Remote, &Answer::Answers { ignores_failures: true }, true);
        assert!(ignores.message.contains("Ignore"), "{}", ignores.message);
        assert!(placement(Remote, &silent, true).message.contains("refused"));
    }
}
