//! The reports of the clusters, as they count here: pure. Each change costs a write for each of our exports that it is about, so a report is
//! taken in no more often than its member should write it, however often that does.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use api::report::ClusterReportStatus;

use super::{
    content::difference,
    pace::{Difference, Pace},
};
use crate::service::index::reports::Reported;

/// What counts, by cluster ID, and when it was taken in.
#[derive(Debug, Default)]
pub(super) struct Heard(BTreeMap<String, (ClusterReportStatus, Pace)>);

impl Heard {
    /// Takes in these reports, which are all there are. Returns after which time the next one counts, if one has to wait.
    pub(super) fn take_in(
        &mut self,
        mut now_said: BTreeMap<String, ClusterReportStatus>,
        now: Instant,
    ) -> Option<Duration> {
        // A report that is gone says nothing.
        for cluster in self.0.keys() {
            now_said.entry(cluster.clone()).or_default();
        }
        let mut waits = Vec::new();
        for (cluster, said) in now_said {
            let (counts, pace) = self.0.entry(cluster).or_default();
            match difference(Some(counts), &said) {
                Difference::None => continue,
                Difference::Numbers => {}
                Difference::Content | Difference::All => match pace.wait(Difference::Content, now) {
                    Some(wait) if !wait.is_zero() => {
                        waits.push(wait);
                        continue;
                    }
                    _ => pace.wrote(now),
                },
            }
            *counts = said;
        }
        waits.into_iter().min()
    }

    /// What the clusters report, by what it is about.
    pub(super) fn reported(&self) -> Reported {
        Reported::of(self.0.iter().map(|(cluster, (counts, _))| (cluster.as_str(), counts)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lacks(namespaces: &[&str]) -> ClusterReportStatus {
        let missing_namespaces = namespaces.iter().map(|&namespace| namespace.to_owned()).collect();
        ClusterReportStatus { missing_namespaces, ..ClusterReportStatus::default() }
    }

    fn said(reports: &[(&str, &ClusterReportStatus)]) -> BTreeMap<String, ClusterReportStatus> {
        reports.iter().map(|(cluster, status)| ((*cluster).to_owned(), (*status).clone())).collect()
    }

    #[test]
    fn all_that_is_listed_counts_at_once_and_what_is_gone_says_nothing() {
        let (mut heard, now) = (Heard::default(), Instant::now());
        let shop = lacks(&["shop"]);
        assert_eq!(heard.take_in(said(&[("north", &shop), ("west", &shop)]), now), None);
        assert_eq!(heard.reported().lacking("shop"), ["north", "west"]);
        let later = now + Duration::from_secs(60);
        assert_eq!(heard.take_in(said(&[("west", &shop)]), later), None);
        assert_eq!(heard.reported().lacking("shop"), ["west"]);
    }

    #[test]
    fn a_report_that_is_written_all_the_time_counts_less_and_less_often() {
        let (mut heard, start) = (Heard::default(), Instant::now());
        let (one, other, good) = (lacks(&["shop"]), lacks(&[]), lacks(&["pay"]));
        let mut changes = 0;
        for second in 0..3600 {
            let flaps = if second % 2 == 0 { &one } else { &other };
            let before = heard.reported();
            heard.take_in(said(&[("north", &good), ("west", flaps)]), start + Duration::from_secs(second));
            changes += usize::from(heard.reported() != before);
        }
        assert!((10..=20).contains(&changes), "{changes}");
        let at = start + Duration::from_secs(3600);
        heard.take_in(said(&[("north", &lacks(&["bank"])), ("west", &one)]), at);
        assert_eq!(heard.reported().lacking("bank"), ["north"], "others are heard at once");
        let wait = heard.take_in(said(&[("west", &one)]), at + Duration::from_secs(1));
        assert_eq!(wait, Some(Duration::from_secs(9)), "what it says in the end counts then");
    }
}
