//! How many things of one kind there are, by their labels: a metric.

use std::collections::BTreeMap;

use prometheus::IntGaugeVec;

use crate::index::Shared;

/// Counts, and shows the sums as a metric until the last clone is dropped.
#[derive(Clone)]
pub struct Tally(Shared<Counts>);

struct Counts {
    gauge: IntGaugeVec,
    /// What each key brings in: labels, and how many.
    keys: BTreeMap<String, BTreeMap<Vec<String>, i64>>,
}

impl Tally {
    /// Nothing yet.
    pub(super) fn new(gauge: IntGaugeVec) -> Self {
        Self(Shared::new(Counts { gauge, keys: BTreeMap::new() }))
    }

    /// So `many` with these labels are under this key now, and no others.
    pub fn count<'a, const N: usize>(&self, key: &str, many: impl IntoIterator<Item = ([&'a str; N], i64)>) {
        let labelled = |labels: [&str; N]| labels.map(str::to_owned).to_vec();
        let many = many.into_iter().filter(|(_, many)| *many > 0);
        let now = many.map(|(labels, many)| (labelled(labels), many)).collect();
        self.0.with(|counts| counts.put(key, now));
    }

    /// What has these labels is under this key now; nothing if there are none.
    pub fn put<const N: usize>(&self, key: &str, labels: Option<[&str; N]>) {
        self.count(key, labels.map(|labels| (labels, 1)));
    }
}

impl Counts {
    fn put(&mut self, key: &str, now: BTreeMap<Vec<String>, i64>) {
        if self.keys.get(key) == Some(&now) {
            return;
        }
        now.iter().for_each(|(labels, many)| self.gauge.with_label_values(labels).add(*many));
        let before = match now.is_empty() {
            true => self.keys.remove(key),
            false => self.keys.insert(key.to_owned(), now),
        };
        self.take(before.into_iter());
    }

    fn take(&self, before: impl Iterator<Item = BTreeMap<Vec<String>, i64>>) {
        before.flatten().for_each(|(labels, many)| self.gauge.with_label_values(&labels).sub(many));
    }
}

impl Drop for Counts {
    fn drop(&mut self) {
        let keys = std::mem::take(&mut self.keys);
        self.take(keys.into_values());
    }
}

#[cfg(test)]
mod tests {
    use crate::metrics::Metrics;

    #[test]
    fn each_key_counts_as_it_is_now() {
        let metrics = Metrics::new().unwrap();
        let shows = |phase: &str, pods: usize| {
            let text = String::from_utf8(metrics.render().unwrap().1).unwrap();
            let line = format!("freeport_offload_pods{{cluster=\"east\",phase=\"{phase}\"}} {pods}\n");
            assert!(text.contains(&line), "{line}: {text}");
        };
        let tally = metrics.offload().pods();
        for (uid, phase) in [("a", "Pending"), ("b", "Running"), ("a", "Running"), ("a", "Running")] {
            tally.put(uid, Some(["east", phase]));
        }
        shows("Running", 2);
        shows("Pending", 0);
        tally.count("c", [(["east", "Running"], 5), (["east", "Pending"], 3)]);
        shows("Running", 7);
        shows("Pending", 3);
        tally.put::<2>("b", None);
        shows("Running", 6);
        drop((tally.clone(), tally));
        shows("Running", 0);
        shows("Pending", 0);
    }
}
