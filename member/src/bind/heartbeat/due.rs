//! When a heartbeat is due: pure.

use std::time::Duration;

use api::bind::binding::ClusterBindingStatus;
use jiff::Timestamp;

/// How often one is due.
pub(super) const EVERY: Duration = Duration::from_secs(150);
/// How much later than the last one something else is told: another konnector may say otherwise each time.
pub(super) const AT_MOST_EVERY: Duration = Duration::from_secs(30);

/// How long the status can stay as it is; nothing where it cannot. `wrote` is how long ago we wrote it.
pub(super) fn due(
    have: &ClusterBindingStatus,
    want: &ClusterBindingStatus,
    now: Timestamp,
    wrote: Option<Duration>,
) -> Option<Duration> {
    if let Some(left) =
        wrote.and_then(|wrote| AT_MOST_EVERY.checked_sub(wrote)).filter(|left| !left.is_zero())
    {
        return Some(left);
    }
    let undated =
        |status: &ClusterBindingStatus| ClusterBindingStatus { last_heartbeat_time: None, ..status.clone() };
    if undated(have) != undated(want) {
        return None;
    }
    let last = have.last_heartbeat_time.as_ref()?.0;
    let since = Duration::try_from(now.duration_since(last)).ok()?;
    EVERY.checked_sub(since).filter(|left| !left.is_zero())
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    use super::*;

    #[test]
    fn a_heartbeat_is_due_every_two_and_a_half_minutes_or_when_something_else_is_new() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let due = |have: &_, want: &_, now| super::due(have, want, now, None);
        let status = |second| ClusterBindingStatus {
            last_heartbeat_time: Some(Time(at(second))),
            konnector_version: Some("v1".into()),
            ..ClusterBindingStatus::default()
        };
        assert_eq!(due(&status(1000), &status(1050), at(1050)), Some(Duration::from_secs(100)));
        assert_eq!(due(&status(1000), &status(1150), at(1150)), None);
        assert_eq!(due(&status(1000), &status(900), at(900)), None, "it is dated from the future");
        assert_eq!(due(&ClusterBindingStatus::default(), &status(1), at(1)), None);
        let other = ClusterBindingStatus { konnector_version: Some("v2".into()), ..status(1001) };
        assert_eq!(due(&status(1000), &other, at(1001)), None);
        let ago = |seconds| Some(Duration::from_secs(seconds));
        let again = |wrote| super::due(&status(1000), &other, at(1001), wrote);
        assert_eq!(again(ago(10)), ago(20), "another konnector writes it, too");
        assert_eq!(again(ago(30)), None);
    }
}
