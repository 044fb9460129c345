//! How it stands with the token for the leader.

use api::{
    cluster_set::CREDENTIAL_RENEWED,
    condition::{Status, Verdict},
    membership::Wire,
};

use super::Complete;
use crate::session::Renewal;

/// What there is to say of the token; nothing where the leader is Antrea's, whose members have one that counts for ever.
pub(in crate::membership) fn credential(renewal: &Renewal, wire: Wire) -> Option<Complete> {
    let said =
        |status, reason: &str, message: String| Verdict::new(CREDENTIAL_RENEWED, status, reason, message);
    let (verdict, is_problem) = match renewal {
        Renewal::Renewed { until } => {
            let message =
                format!("the token for the leader counts until {until}; this member replaces it before");
            (said(Status::True, "Renewed", message), false)
        }
        Renewal::Failing { until, why } => {
            let message = format!(
                "the token for the leader counts until {until}, and this member cannot replace it: {why}. Run freeport join again, which \
                 brings a new token and the right to replace it"
            );
            (said(Status::False, "NotRenewed", message), true)
        }
        Renewal::LongLived { .. } if wire == Wire::Antrea => return None,
        Renewal::LongLived { why } => {
            let message = format!(
                "the token for the leader counts until its ServiceAccount is deleted, and this member cannot replace it: {why}. Run freeport \
                 join again, which brings a token that ends and the right to replace it"
            );
            (said(Status::False, "LongLived", message), true)
        }
    };
    Some(Complete { verdict, is_problem })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn somebody_has_to_act_unless_it_is_replaced_or_the_leader_is_antreas() {
        let until = "2026-11-03T00:00:00Z".parse().unwrap();
        let said = |renewal, wire| {
            let said = credential(&renewal, wire)?;
            assert!(!said.verdict.message.contains("  "), "{}", said.verdict.message);
            Some((said.verdict.status, said.verdict.reason, said.is_problem))
        };
        let why = || "forbidden (403): no".to_owned();
        let good = Some((Status::True, "Renewed".into(), false));
        assert_eq!(said(Renewal::Renewed { until }, Wire::Freeport), good);
        assert_eq!(said(Renewal::Renewed { until }, Wire::Antrea), good);
        let failing = Some((Status::False, "NotRenewed".into(), true));
        assert_eq!(said(Renewal::Failing { until, why: why() }, Wire::Freeport), failing);
        let for_ever = Some((Status::False, "LongLived".into(), true));
        assert_eq!(said(Renewal::LongLived { why: why() }, Wire::Freeport), for_ever);
        assert_eq!(said(Renewal::LongLived { why: why() }, Wire::Antrea), None);
    }
}
