//! How many Pods of one host are in each phase.

use std::collections::BTreeMap;

use kit::metrics::Metrics;

/// Counts Pods, and shows the numbers as metrics until it is dropped.
pub(super) struct Tally {
    host: String,
    metrics: Metrics,
    phases: BTreeMap<String, String>,
}

impl Tally {
    pub(super) fn new(host: String, metrics: Metrics) -> Self {
        Self { host, metrics, phases: BTreeMap::new() }
    }

    /// The Pod with this uid is in this phase now, or gone.
    pub(super) fn count(&mut self, uid: &str, phase: Option<String>) {
        let before = match phase.clone() {
            Some(phase) => self.phases.insert(uid.to_owned(), phase),
            None => self.phases.remove(uid),
        };
        if before != phase {
            before.into_iter().chain(phase).for_each(|phase| self.show(&phase));
        }
    }

    fn show(&self, phase: &str) {
        let pods = self.phases.values().filter(|other| *other == phase).count();
        self.metrics.offloaded_pods(&self.host, phase, pods);
    }
}

impl Drop for Tally {
    fn drop(&mut self) {
        let phases = std::mem::take(&mut self.phases);
        phases.values().for_each(|phase| self.show(phase));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_is_counted_once() {
        let metrics = Metrics::new().unwrap();
        let shows = |phase: &str, pods: usize| {
            let text = String::from_utf8(metrics.render().unwrap().1).unwrap();
            let line = format!("freeport_offload_pods{{cluster=\"east\",phase=\"{phase}\"}} {pods}");
            assert!(text.contains(&line), "{line}: {text}");
        };
        let mut tally = Tally::new("east".into(), metrics.clone());
        for (uid, phase) in [("a", "Pending"), ("b", "Running"), ("a", "Running"), ("a", "Running")] {
            tally.count(uid, Some(phase.into()));
        }
        shows("Running", 2);
        shows("Pending", 0);
        tally.count("b", None);
        shows("Running", 1);
        drop(tally);
        shows("Running", 0);
    }
}
