//! What an operator sees besides what every program measures.

use std::time::Duration;

use jiff::Timestamp;
use kit::metrics::Metrics as Registry;
use prometheus::{Histogram, HistogramOpts, IntCounterVec, IntGauge, Opts};

const ADMISSIONS: &str = "Requests of API servers, by result";
const SECONDS: &str = "Duration of one request once its body is there, in seconds";
const EXPIRY: &str = "When the certificate that is served expires, in seconds since 1970; 0 without one";
const UNUSABLE: &str =
    "1 while the files of the certificate cannot be used, so that an older one is served, or none";

/// Upper bounds of the buckets of requests, in seconds.
const BUCKETS: [f64; 10] = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.025, 0.1, 0.5, 2.5];

/// The metrics of the webhook. Cloning shares them.
#[derive(Clone)]
pub(crate) struct Metrics {
    admissions: IntCounterVec,
    seconds: Histogram,
    expiry: IntGauge,
    unusable: IntGauge,
}

impl Metrics {
    /// In this registry.
    pub(crate) fn new(registry: &Registry) -> prometheus::Result<Self> {
        let admissions = IntCounterVec::new(Opts::new("webhook_admissions_total", ADMISSIONS), &["result"]);
        let seconds = HistogramOpts::new("webhook_admission_seconds", SECONDS).buckets(BUCKETS.to_vec());
        let expiry = IntGauge::new("webhook_certificate_expiry_timestamp_seconds", EXPIRY);
        let unusable = IntGauge::new("webhook_certificate_unusable", UNUSABLE);
        Ok(Self {
            admissions: registry.register(admissions)?,
            seconds: registry.register(Histogram::with_opts(seconds))?,
            expiry: registry.register(expiry)?,
            unusable: registry.register(unusable)?,
        })
    }

    /// A request was answered so, after this time.
    pub(crate) fn answered(&self, result: &str, took: Duration) {
        self.admissions.with_label_values(&[result]).inc();
        self.seconds.observe(took.as_secs_f64());
    }

    /// The certificate that is served expires then, and the files may be of no use.
    pub(crate) fn certificate(&self, expiry: Option<Timestamp>, is_unusable: bool) {
        self.expiry.set(expiry.map_or(0, Timestamp::as_second));
        self.unusable.set(is_unusable.into());
    }
}
