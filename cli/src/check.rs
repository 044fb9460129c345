//! `freeport check`: looks at several clusters at once and says what is wrong with them. Writes nothing. What follows from what is seen is
//! decided in [`picture::check`].
//!
//! | module | holds |
//! |---|---|
//! | `look` | reads one cluster |
//! | `clock` | how far the clock of an API server is ahead |
//! | `shown` | the report as a table, in short, or as JSON |

pub(crate) mod clock;
mod look;
mod shown;

use std::time::{Duration, Instant};

use futures::future::join_all;
use k8s_openapi::jiff::Timestamp;
use picture::{
    check::{check as judge, cluster::Cluster as Known, crds, report::Report},
    code::Code,
};

pub(crate) use self::look::installed;
pub use self::shown::Form;
use crate::{
    Error, KubeContext,
    cluster::{Cluster, now},
    look::each_once,
};

/// How long to wait before another look.
const PAUSE: Duration = Duration::from_secs(2);

/// What to look at.
#[derive(Clone, Debug)]
pub struct CheckOptions {
    /// The clusters to look at.
    pub contexts: Vec<KubeContext>,
    /// Codes to look for; none means all.
    pub only: Vec<Code>,
    /// Codes that are no problem.
    pub skip: Vec<Code>,
    /// How long to look again while that may help.
    pub wait: Duration,
}

/// What was seen.
#[derive(Clone, Debug)]
pub struct Checked {
    /// By the clock here.
    pub as_of: Timestamp,
    /// What is to be known beside the report.
    pub notes: Vec<String>,
    /// What was found. Some words are those of other clusters.
    pub report: Report,
}

impl Checked {
    /// The report in this form, as it is printed.
    ///
    /// # Errors
    /// [`Error::Json`].
    pub fn text(&self, form: Form) -> Result<String, Error> {
        shown::text(self, form)
    }
}

/// Looks at all clusters at once, and again while something is found that may mend itself. A cluster that does not answer costs one limit,
/// and is a finding.
///
/// # Errors
/// [`Error::Kubeconfig`].
pub async fn check(options: &CheckOptions) -> Result<Checked, Error> {
    let clusters = Cluster::open_all(&options.contexts).await?;
    let begun = Instant::now();
    loop {
        let checked = once(&clusters, options).await;
        let left = options.wait.saturating_sub(begun.elapsed());
        if left.is_zero() || !checked.report.may_mend() {
            return Ok(checked);
        }
        tokio::time::sleep(PAUSE.min(left)).await;
    }
}

async fn once(clusters: &[Cluster], options: &CheckOptions) -> Checked {
    let crds = crds::names();
    let looks = clusters.iter().map(|cluster| Box::pin(look::look(cluster, &crds)));
    let known = join_all(looks).await;
    let uid = |cluster: &Known| (cluster.context.clone(), cluster.uid.clone().ok());
    let (known, notes) = each_once(known, uid);
    let notes = notes.iter().map(|note| format!("note: {note}")).collect();
    let as_of = now(clusters);
    let report = judge(&known, as_of).narrowed(&options.only, &options.skip);
    Checked { as_of, notes, report }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[tokio::test]
    async fn clusters_that_do_not_answer_are_found_and_nothing_else_is_known() {
        drop(rustls::crypto::ring::default_provider().install_default());
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let config = "{clusters: [{name: n, cluster: {server: 'https://127.0.0.1:1'}}], users: [{name: n, user: {}}], \
                      contexts: [{name: a, context: {cluster: n, user: n}}, {name: b, context: {cluster: n, user: n}}]}";
        file.write_all(config.as_bytes()).unwrap();
        let of = |name: &str| {
            let context = KubeContext {
                file: Some(file.path().into()),
                name: Some(name.into()),
                ..KubeContext::default()
            };
            context.within(Duration::from_secs(5))
        };
        let options = CheckOptions {
            contexts: vec![of("a"), of("b")],
            only: vec![],
            skip: vec![],
            wait: Duration::ZERO,
        };
        let checked = check(&options).await.unwrap();
        assert_eq!((checked.report.seen, checked.report.is_well()), (0, false));
        let text = checked.text(Form::Short).unwrap();
        let lines: Vec<_> = text.lines().collect();
        for (line, name) in lines.iter().zip(["a", "b"]) {
            assert!(line.starts_with(&format!("FAILED {name} api: FP001 {name}: cannot ")), "{text}");
        }
        assert_eq!(lines.len(), 2, "{text}");
    }
}
