//! What is missing in this cluster only because it was restored from a backup. Pure.

use std::time::Duration;

use api::{
    label,
    lease::{LeaseView, Pace},
};
use jiff::Timestamp;
use kube::ResourceExt;

use super::Home;

/// The time between a backup and its restore: what was made in it is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lost {
    from: Timestamp,
    until: Timestamp,
}

impl Lost {
    pub(crate) fn between(from: Timestamp, until: Timestamp) -> Self {
        Self { from, until }
    }

    /// When the backup was restored.
    pub(crate) fn until(self) -> Timestamp {
        self.until
    }

    /// Whether an object of this age is missing for that alone.
    pub(crate) fn has(self, created: Timestamp) -> bool {
        self.may_have(created, Duration::ZERO)
    }

    /// [`has`](Self::has), where the clock that says its age may be ahead of ours by so much.
    pub(crate) fn may_have(self, created: Timestamp, ahead: Duration) -> bool {
        let until = self.until.checked_add(ahead).unwrap_or(Timestamp::MAX);
        // API servers note ages in whole seconds.
        self.from.as_second() <= created.as_second() && created <= until
    }

    pub(super) fn parse(text: &str) -> Option<Self> {
        let (from, until) = text.split_once('/')?;
        Some(Self { from: from.parse().ok()?, until: until.parse().ok()? })
    }

    pub(super) fn text(self) -> String {
        format!("{}/{}", self.from, self.until)
    }
}

/// What is missing here for a restore alone, by the Lease as it was when it became ours.
#[derive(Clone, Copy, Default)]
pub(super) struct Missing {
    pub(super) lost: Option<Lost>,
    /// From the last renewal of the Lease to when this process could first renew it: nobody wrote anything meanwhile.
    pub(super) unattended: Option<Lost>,
}

impl Missing {
    /// `before`: what was known of this cluster until it was restored.
    pub(super) fn of(found: Option<&LeaseView>, before: Option<&Home>, pace: Pace, now: Timestamp) -> Self {
        let noted = found.and_then(|lease| Lost::parse(lease.annotations().get(label::RESTORED)?));
        let backed_up = found.and_then(LeaseView::renew_time);
        let now_lost = before.and(backed_up).map(|from| Lost { from, until: now });
        let known_lost = noted.or_else(|| before.and_then(Home::lost));
        Self {
            lost: both(now_lost, known_lost),
            unattended: backed_up.filter(|_| before.is_none()).and_then(|last| unattended(last, pace, now)),
        }
    }
}

/// The time before `now` in which no daemon ran that renewed its Lease last at `last`. It may have run until it was to renew again.
pub(super) fn unattended(last: Timestamp, pace: Pace, now: Timestamp) -> Option<Lost> {
    let from = last.checked_add(pace.renew()).ok()?;
    (from < now).then_some(Lost { from, until: now })
}

/// What is lost by either restore: nothing is noted of the time between them.
pub(super) fn both(new: Option<Lost>, old: Option<Lost>) -> Option<Lost> {
    match (new, old) {
        (Some(a), Some(b)) => Some(Lost { from: a.from.min(b.from), until: a.until.max(b.until) }),
        (one, other) => one.or(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a7_what_was_made_between_backup_and_restore_is_lost() {
        let at = |minute: u8| format!("2026-11-01T12:{minute:02}:00Z").parse::<Timestamp>().unwrap();
        let lost = Lost { from: at(10), until: at(30) };
        assert_eq!([9, 10, 30, 31].map(|minute| lost.has(at(minute))), [false, true, true, false]);
        assert_eq!(Lost::parse(&lost.text()), Some(lost));
        assert_eq!(Lost::parse("yesterday"), None);
        let later = Lost { from: at(45), until: at(59) };
        assert_eq!(both(Some(later), Some(lost)), Some(Lost { from: at(10), until: at(59) }));
        assert_eq!((both(None, Some(lost)), both(Some(later), None)), (Some(lost), Some(later)));
    }
}
