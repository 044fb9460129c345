//! What an operator can measure. Prefix `freeport_`, but for what every process measures (`process_...`); labels are bounded: never an
//! object's name, but that of a Common Area as long as it is served.

mod bind;
mod offload;
mod reach;
mod refusals;
mod tally;

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

pub use self::{
    bind::{Bind, Direction},
    offload::Offload,
    reach::Reach,
    refusals::{Refusals, Request},
    tally::Tally,
};

use prometheus::{
    Encoder, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry,
    TextEncoder,
    core::{Collector, MetricVec, MetricVecBuilder},
};

const COMMON_AREA: &str = "common_area";
/// Upper bounds of the buckets of reconciles, in seconds.
const BUCKETS: [f64; 10] = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0];

const RECONCILES: &str = "Reconciles of a key, by result";
const SECONDS: &str = "Duration of one reconcile of a key, in seconds";
const STEP: &str = "Time from when a change was seen until what it asks for was written, in seconds";
const WAITING: &str = "Keys that wait or are being reconciled";
const WATCH_ERRORS: &str = "Failures of watches; a failed watch starts again by itself";
const REFUSED: &str = "Records in a Common Area that are not valid";
const OVER_QUOTA: &str = "Records in a Common Area that are refused because their member has too many";
const EVENTS_DROPPED: &str = "Kubernetes Events not sent because too many were waiting";
const PRESENT: &str = "1 while this daemon holds its Lease in the Common Area";
const ACTIVE: &str =
    "1 while this process is the active one of the replicas of its daemon, 0 while it stands by";
const RESTORED: &str = "Times the daemon noticed that a Common Area was restored from a backup or emptied; without a Common Area: its own cluster";
const DOUBTED: &str = "Services whose records vanished from the Common Area without being withdrawn, so that their imports are kept";
const LEFT_OUT: &str = "Slices of other clusters that are not kept because those have more than they may";
const ENDPOINTS_LEFT_OUT: &str =
    "Addresses of other clusters' endpoints that are not imported because they must not have them here";
const IMPORTS_WAITING: &str = "Imports that are not made, by the reason for which they wait";
const WITHHELD: &str = "Imports that stay, though the leader says that nobody exports them: it took back many at once, and members did not";
const PRUNED: &str = "Writes of which the API server dropped fields, because its CRD does not have them";
const WRITES_REFUSED: &str = "Writes that an API server refuses at present";
const CREDENTIAL: &str = "Until when the token for the leader counts, in seconds since 1970; 0 for one that counts until its account is deleted";
const LINK_STATE: &str = "1 for the reason of the condition Ready of this cluster's ClusterSet";
const MEMBERS: &str = "Members of a Common Area, by whether they renew their Leases";

/// The metric set of both daemons. Cloning shares it.
#[derive(Clone)]
pub struct Metrics {
    registry: Registry,
    /// What every process measures, under the names that all programs use.
    process: Registry,
    /// Label of what is counted; empty, which Prometheus takes for none, where there is but one Common Area.
    area: Arc<str>,
    /// See [`Request::part`].
    part: &'static str,
    reconciles: IntCounterVec,
    seconds: HistogramVec,
    step_seconds: HistogramVec,
    waiting: IntGaugeVec,
    watch_errors: IntCounterVec,
    resyncs: IntCounterVec,
    writes: IntCounterVec,
    refused: IntGaugeVec,
    over_quota: IntGaugeVec,
    events_dropped: IntCounter,
    present: IntGaugeVec,
    active: IntGauge,
    restored: IntCounterVec,
    doubted: IntGauge,
    imports_waiting: IntGaugeVec,
    imports_withheld: IntGauge,
    left_out: IntGauge,
    endpoints_left_out: IntGauge,
    offload: Offload,
    bind: Bind,
    reach: Reach,
    pruned: IntCounterVec,
    refusals: Refusals,
    link_state: IntGaugeVec,
    /// Without labels; it has a value in members alone.
    credential: IntGaugeVec,
    members: IntGaugeVec,
}

impl Metrics {
    /// A registry with everything in it.
    pub fn new() -> prometheus::Result<Self> {
        let registry = Registry::new_custom(Some("freeport".into()), None)?;
        let counts = |name: &str, help: &str, labels: &[&str]| {
            registered(&registry, IntCounterVec::new(Opts::new(name, help), labels))
        };
        let gauges = |name: &str, help: &str, labels: &[&str]| {
            registered(&registry, IntGaugeVec::new(Opts::new(name, help), labels))
        };
        let histograms = |name: &str, help: &str| {
            let opts = HistogramOpts::new(name, help).buckets(BUCKETS.to_vec());
            registered(&registry, HistogramVec::new(opts, &["controller"]))
        };
        let of_kind = [COMMON_AREA, "cluster", "kind"];
        let of_write = [COMMON_AREA, "cluster", "kind", "verb", "result"];
        let process = Registry::new();
        process.register(Box::new(prometheus::process_collector::ProcessCollector::for_self()))?;
        Ok(Self {
            reconciles: counts("reconcile_total", RECONCILES, &[COMMON_AREA, "controller", "result"])?,
            seconds: histograms("reconcile_seconds", SECONDS)?,
            step_seconds: histograms("step_seconds", STEP)?,
            waiting: gauges("queue_keys", WAITING, &[COMMON_AREA, "controller"])?,
            watch_errors: counts("watch_errors_total", WATCH_ERRORS, &of_kind)?,
            resyncs: counts("watch_lists_total", "Full lists with which watches started", &of_kind)?,
            writes: counts("writes_total", "Write requests, by result", &of_write)?,
            refused: gauges("records_refused", REFUSED, &[COMMON_AREA])?,
            over_quota: gauges("records_over_quota", OVER_QUOTA, &[COMMON_AREA])?,
            events_dropped: registered(&registry, IntCounter::new("events_dropped_total", EVENTS_DROPPED))?,
            present: gauges("present", PRESENT, &[COMMON_AREA])?,
            active: registered(&registry, IntGauge::new("active", ACTIVE))?,
            restored: counts("restored_total", RESTORED, &[COMMON_AREA])?,
            doubted: registered(&registry, IntGauge::new("services_doubted", DOUBTED))?,
            imports_waiting: gauges("imports_waiting", IMPORTS_WAITING, &["reason"])?,
            imports_withheld: registered(&registry, IntGauge::new("imports_withheld", WITHHELD))?,
            left_out: registered(&registry, IntGauge::new("records_left_out", LEFT_OUT))?,
            endpoints_left_out: registered(
                &registry,
                IntGauge::new("endpoints_left_out", ENDPOINTS_LEFT_OUT),
            )?,
            offload: Offload::new(&registry)?,
            bind: Bind::new(&registry)?,
            reach: Reach::new(&registry)?,
            pruned: counts("writes_pruned_total", PRUNED, &of_kind)?,
            refusals: Refusals::new(Tally::new(gauges(
                "writes_refused",
                WRITES_REFUSED,
                &[COMMON_AREA, "cluster", "kind", "verb"],
            )?)),
            link_state: gauges("link_state", LINK_STATE, &["state"])?,
            credential: gauges("leader_credential_expiry_timestamp_seconds", CREDENTIAL, &[])?,
            members: gauges("members", MEMBERS, &[COMMON_AREA, "state"])?,
            area: Arc::default(),
            part: "",
            registry,
            process,
        })
    }

    /// Takes in a metric that only one program has.
    pub fn register<C: Collector + Clone + 'static>(
        &self,
        metric: prometheus::Result<C>,
    ) -> prometheus::Result<C> {
        registered(&self.registry, metric)
    }

    /// The same metrics; what is counted from here on belongs to this Common Area. For a daemon that serves several.
    pub fn in_area(&self, common_area: &str) -> Self {
        Self { area: common_area.into(), ..self.clone() }
    }

    /// The same metrics; refusals from here on are of this [`part`](Request::part).
    pub fn for_part(&self, part: &'static str) -> Self {
        Self { part, ..self.clone() }
    }

    /// Drops what belongs to a Common Area that is not served any more, so that nobody is alarmed about it.
    pub fn forget(&self, common_area: &str) {
        self.refusals.forget(common_area);
        for gauges in [&self.waiting, &self.refused, &self.over_quota, &self.present, &self.members] {
            forget(gauges, common_area);
        }
        for counters in
            [&self.reconciles, &self.watch_errors, &self.resyncs, &self.writes, &self.restored, &self.pruned]
        {
            forget(counters, common_area);
        }
    }

    /// One reconcile of a key ended.
    pub fn reconciled(&self, controller: &str, result: &str, took: Duration) {
        self.reconciles.with_label_values(&[&self.area, controller, result]).inc();
        self.seconds.with_label_values(&[controller]).observe(took.as_secs_f64());
    }

    /// What a key was enqueued for is done, so long after.
    pub fn answered(&self, controller: &str, took: Duration) {
        self.step_seconds.with_label_values(&[controller]).observe(took.as_secs_f64());
    }

    /// Gauge of keys waiting in a controller's queue.
    pub fn waiting(&self, controller: &str) -> IntGauge {
        self.waiting.with_label_values(&[&self.area, controller])
    }

    /// A watch failed.
    pub fn watch_failed(&self, cluster: &str, kind: &str) {
        self.watch_errors.with_label_values(&[&self.area, cluster, kind]).inc();
    }

    /// A watch began with a full list.
    pub fn listed(&self, cluster: &str, kind: &str) {
        self.resyncs.with_label_values(&[&self.area, cluster, kind]).inc();
    }

    /// A request that writes ended.
    pub fn wrote(&self, cluster: &str, kind: &str, verb: &str, result: &str) {
        self.writes.with_label_values(&[&self.area, cluster, kind, verb, result]).inc();
    }

    /// Writes that API servers refuse.
    pub fn refusals(&self) -> &Refusals {
        &self.refusals
    }

    /// The Common Area to which belongs what is counted; empty where there is but one.
    pub fn area(&self) -> Arc<str> {
        Arc::clone(&self.area)
    }

    /// The part of the daemon that counts; empty for those that have to do with its ClusterSet.
    pub fn part(&self) -> &'static str {
        self.part
    }

    /// Gauge of refused records in a Common Area.
    pub fn refused(&self, common_area: &str) -> IntGauge {
        self.refused.with_label_values(&[common_area])
    }

    /// Gauge of records in a Common Area that are too much for their members.
    pub fn over_quota(&self, common_area: &str) -> IntGauge {
        self.over_quota.with_label_values(&[common_area])
    }

    /// An Event was dropped.
    pub fn event_dropped(&self) {
        self.events_dropped.inc();
    }

    /// Gauge of presence in a Common Area.
    pub fn present(&self, common_area: &str) -> IntGauge {
        self.present.with_label_values(&[common_area])
    }

    /// Gauge of whether this process is the active replica.
    pub fn active(&self) -> IntGauge {
        self.active.clone()
    }

    /// A Common Area was found to be restored.
    pub fn restored(&self, common_area: &str) {
        self.restored.with_label_values(&[common_area]).inc();
    }

    /// The API server threw away a part of what was written.
    pub fn pruned(&self, cluster: &str, kind: &str) {
        self.pruned.with_label_values(&[&self.area, cluster, kind]).inc();
    }

    /// So many Services are doubted.
    pub fn doubted(&self, services: usize) {
        self.doubted.set(i64::try_from(services).unwrap_or(i64::MAX));
    }

    /// So many slices of other clusters are not kept, because those have more than they may.
    pub fn left_out(&self, records: usize) {
        self.left_out.set(i64::try_from(records).unwrap_or(i64::MAX));
    }

    /// So many addresses of other clusters' endpoints are not imported.
    pub fn endpoints_left_out(&self, addresses: usize) {
        self.endpoints_left_out.set(i64::try_from(addresses).unwrap_or(i64::MAX));
    }

    /// So many imports wait for this reason.
    pub fn imports_waiting(&self, reason: &str, imports: usize) {
        let gauge = self.imports_waiting.with_label_values(&[reason]);
        gauge.set(i64::try_from(imports).unwrap_or(i64::MAX));
    }

    /// So many imports stay, though the leader says that nobody exports them.
    pub fn imports_withheld(&self, imports: usize) {
        self.imports_withheld.set(i64::try_from(imports).unwrap_or(i64::MAX));
    }

    /// What there is to measure of offloading.
    pub fn offload(&self) -> &Offload {
        &self.offload
    }

    /// What there is to measure of API binding.
    pub fn bind(&self) -> &Bind {
        &self.bind
    }

    /// What there is to measure of the ways to other clusters.
    pub fn reach(&self) -> &Reach {
        &self.reach
    }

    /// The link to the leader is in this state, one of the reasons of condition `Ready`; in none when there is no link.
    pub fn link_state(&self, state: Option<&str>) {
        self.link_state.reset();
        if let Some(state) = state {
            self.link_state.with_label_values(&[state]).set(1);
        }
    }

    /// The token for the leader counts until then, in seconds since 1970.
    pub fn credential_expires(&self, second: i64) {
        self.credential.with_label_values(&[""; 0]).set(second);
    }

    /// Gauge of a Common Area's members in this state, `connected` or `disconnected`.
    pub fn members(&self, common_area: &str, state: &str) -> IntGauge {
        self.members.with_label_values(&[common_area, state])
    }

    /// Everything, in the text format of Prometheus, and its content type.
    pub fn render(&self) -> prometheus::Result<(String, Vec<u8>)> {
        self.refusals.prune(Instant::now());
        let encoder = TextEncoder::new();
        let mut text = Vec::new();
        encoder.encode(&self.registry.gather(), &mut text)?;
        encoder.encode(&self.process.gather(), &mut text)?;
        Ok((encoder.format_type().to_owned(), text))
    }
}

fn registered<C: Collector + Clone + 'static>(
    registry: &Registry,
    collector: prometheus::Result<C>,
) -> prometheus::Result<C> {
    let collector = collector?;
    registry.register(Box::new(collector.clone()))?;
    Ok(collector)
}

fn forget<B: MetricVecBuilder>(series: &MetricVec<B>, common_area: &str) {
    for family in series.collect() {
        for metric in family.get_metric() {
            let labels: HashMap<_, _> = metric.get_label().iter().map(|l| (l.name(), l.value())).collect();
            if labels.get(COMMON_AREA) == Some(&common_area) {
                // One that is gone already is what we want.
                let _ = series.remove(&labels);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a9_the_process_is_measured_under_the_usual_names() {
        let text = String::from_utf8(Metrics::new().unwrap().render().unwrap().1).unwrap();
        for name in ["cpu_seconds_total", "resident_memory_bytes", "open_fds", "start_time_seconds"] {
            assert!(text.contains(&format!("\nprocess_{name} ")), "{name}: {text}");
        }
        assert!(!text.contains("freeport_process"), "{text}");
    }

    #[test]
    fn a_common_area_that_is_not_served_any_more_leaves_nothing() {
        let metrics = Metrics::new().unwrap();
        let text = || String::from_utf8(metrics.render().unwrap().1).unwrap();
        for name in ["clusterset-a", "clusterset-b"] {
            let area = metrics.in_area(name);
            area.reconciled("merge", "ok", Duration::ZERO);
            area.watch_failed("leader", "Lease");
            area.waiting("merge").set(1);
            area.present(name).set(1);
            area.members(name, "connected").set(1);
        }
        assert!(
            text().contains(
                r#"watch_errors_total{cluster="leader",common_area="clusterset-a",kind="Lease"} 1"#
            )
        );
        metrics.forget("clusterset-a");
        assert!(!text().contains("clusterset-a"), "{}", text());
        assert_eq!(text().matches("clusterset-b").count(), 5, "{}", text());
    }
}
