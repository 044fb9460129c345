//! What is to be done about a Lease for which several compete: pure. Whether its holder lives is judged by our own clock and by its
//! renewals, never by its clock.

use std::time::Duration;

use api::lease::LeaseView;
use jiff::Timestamp;
use tokio::time::Instant;

/// What to do about the Lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// There is none, and nobody goes on as if there was.
    Create,
    /// It is ours, or nobody's.
    Take,
    /// Somebody else has it.
    Wait,
}

/// Whose a holder is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// It is this very process.
    Ours,
    /// It is a process that ended before this one began.
    Predecessors,
    /// It is somebody else.
    Anothers,
}

/// What the Lease says of who has it, and when that one renewed it last.
type Said = (Option<String>, Option<Timestamp>);

/// What was last seen of the Lease of somebody else.
#[derive(Default)]
pub struct Seen(Option<Sight>);

struct Sight {
    /// None: the Lease is gone.
    said: Option<Said>,
    since: Instant,
    /// The last renewal that was seen.
    renewed: Option<Timestamp>,
    /// How long the Lease counts that was seen last.
    lasts: Duration,
}

impl Seen {
    /// What to do about the Lease as it is now; `whose` such a holder is.
    ///
    /// After somebody else has held it, a Lease that is gone or an older one again does not say that this holder ended: somebody
    /// deleted it, or restored its API server from a backup, and the holder goes on for a while.
    pub fn turn(
        &mut self,
        lease: Option<&LeaseView>,
        whose: impl FnOnce(&str) -> Whose,
        now: Instant,
    ) -> Turn {
        let said = lease.map(|lease| (lease.holder().map(str::to_owned), lease.renew_time()));
        let whose = lease.and_then(LeaseView::holder).map(whose);
        if whose == Some(Whose::Ours) {
            // Whoever had it before has lost it.
            self.0 = None;
        }
        let is_free = match (&self.0, whose, &said) {
            (None, whose, _) => whose != Some(Whose::Anothers),
            (Some(seen), None, Some((_, renewed))) => *renewed >= seen.renewed,
            _ => false,
        };
        let free = if lease.is_some() { Turn::Take } else { Turn::Create };
        if is_free || self.lasted(said, lease.map(LeaseView::stale), now) { free } else { Turn::Wait }
    }

    /// Whether this has been said for as long as the Lease counts.
    fn lasted(&mut self, said: Option<Said>, lasts: Option<Duration>, now: Instant) -> bool {
        match &mut self.0 {
            Some(seen) if seen.said == said => {
                now.saturating_duration_since(seen.since) > lasts.unwrap_or(seen.lasts)
            }
            seen => {
                let (before, had) = seen.as_ref().map(|seen| (seen.renewed, seen.lasts)).unwrap_or_default();
                let renewed = said.as_ref().and_then(|(_, renewed)| *renewed).max(before);
                *seen = Some(Sight { said, since: now, renewed, lasts: lasts.unwrap_or(had) });
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
    use serde_json::json;

    use super::*;

    fn lease(holder: &str, renewed: i64) -> LeaseView {
        let at = Timestamp::from_second(renewed).unwrap();
        let spec = json!({"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": MicroTime(at)});
        serde_json::from_value(json!({"metadata": {"name": "x"}, "spec": spec})).unwrap()
    }

    fn whose(holder: &str) -> Whose {
        match holder {
            "us" => Whose::Ours,
            "us before" => Whose::Predecessors,
            _ => Whose::Anothers,
        }
    }

    #[test]
    fn a_lease_that_is_gone_or_an_older_one_again_does_not_say_that_its_holder_ended() {
        let (mut seen, begun) = (Seen::default(), Instant::now());
        let mut turn = |lease: Option<LeaseView>, after: u64| {
            seen.turn(lease.as_ref(), whose, begun + Duration::from_secs(after))
        };
        assert_eq!(turn(Some(lease("us before", 1)), 0), Turn::Take, "nobody else was seen");
        assert_eq!(turn(Some(lease("other", 20)), 0), Turn::Wait);
        for odd in [None, Some(lease("us before", 1)), Some(lease("", 19))] {
            assert_eq!(turn(Some(lease("other", 20)), 1), Turn::Wait);
            assert_eq!(turn(odd.clone(), 1), Turn::Wait);
            assert_eq!(turn(odd.clone(), 16), Turn::Wait);
            assert_ne!(turn(odd, 17), Turn::Wait, "nobody put it right");
        }
        assert_eq!(turn(Some(lease("other", 20)), 17), Turn::Wait);
        assert_eq!(turn(Some(lease("", 20)), 17), Turn::Take, "it gave it up");
        assert_eq!(turn(Some(lease("other", 30)), 18), Turn::Wait);
        assert_eq!(turn(Some(lease("us", 31)), 18), Turn::Take, "we took it, and the answer was lost");
        assert_eq!(turn(None, 18), Turn::Create, "it was ours");
    }

    #[test]
    fn a_lease_is_taken_when_nobody_renews_it_by_our_own_clock() {
        let (mut seen, begun) = (Seen::default(), Instant::now());
        let mut turn = |lease: Option<LeaseView>, after: u64| {
            seen.turn(lease.as_ref(), whose, begun + Duration::from_secs(after))
        };
        assert_eq!(turn(None, 0), Turn::Create);
        assert_eq!(turn(Some(lease("us", 1)), 0), Turn::Take);
        assert_eq!(turn(Some(lease("", 1)), 0), Turn::Take);
        assert_eq!(turn(Some(lease("go", 1)), 0), Turn::Wait, "however old it says that it is");
        assert_eq!(turn(Some(lease("go", 1)), 15), Turn::Wait);
        assert_eq!(turn(Some(lease("go", 2)), 16), Turn::Wait, "it lives");
        assert_eq!(turn(Some(lease("go", 2)), 30), Turn::Wait);
        assert_eq!(turn(Some(lease("go", 2)), 32), Turn::Take);
    }
}
