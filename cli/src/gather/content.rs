//! The files of a bundle: answers, logs and reports, without credentials. Reports are made of the answers as they are in the bundle.

use std::{collections::BTreeMap, time::Duration};

use k8s_openapi::jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use super::{
    keep::{Wanted, kept},
    read::Asked,
};
use crate::{
    CheckForm, CheckOptions, Error, KubeContext, StatusOptions, VersionOptions,
    bundle::{Bundle, Files, MANIFEST, Manifest, Seen, file},
    check,
    redact::{Cut, Redactor},
    status, version,
};

/// File of the bundle that lists the cuts.
const CUT: &str = "cut.txt";
/// File of the bundle that lists the missing parts.
const MISSING: &str = "missing.txt";

/// Files without credentials.
#[derive(Default)]
pub(super) struct Content {
    redactor: Redactor,
    clusters: Vec<Seen>,
    taken_at: Timestamp,
    missing: Vec<String>,
    files: Files,
    /// Cuts, as `file: place: kind`.
    cuts: Vec<String>,
}

impl Content {
    /// The answers, logs and metrics of these clusters.
    pub(super) fn of(mut all: Vec<Asked>, taken_at: Timestamp, missing: &[String]) -> Self {
        let mut content = Self { taken_at, ..Self::default() };
        for (key, held) in all.iter().flat_map(Asked::secrets) {
            content.redactor.learn(&key, &held.0);
        }
        content.missing = missing.iter().map(|line| content.redactor.text(line).0).collect();
        let wanted = Wanted::of(&all);
        let mut folders = Vec::new();
        for asked in &mut all {
            asked.seen.folder = folder(&asked.seen.context, &folders);
            folders.push(asked.seen.folder.clone());
        }
        for Asked { mut seen, answers, texts, .. } in all {
            for (path, answer) in kept(answers, &wanted) {
                content.add_json(file(&seen.folder, &path), answer);
            }
            for (path, text) in texts {
                content.add_text(format!("clusters/{}/{path}", seen.folder), &text);
            }
            seen.server = content.redactor.text(&seen.server).0;
            if let Some(away) = &mut seen.away {
                away.message = content.redactor.text(&away.message).0;
            }
            content.clusters.push(seen);
        }
        content
    }

    fn add_json(&mut self, file: String, mut value: Value) {
        let cuts = self.redactor.json(&mut value);
        self.note(&file, cuts);
        // Whoever unpacks the bundle reads it.
        let text = serde_json::to_vec_pretty(&value).unwrap_or_default();
        self.files.insert(file, text);
    }

    fn add_text(&mut self, file: String, text: &str) {
        let (text, cuts) = self.redactor.text(text);
        self.note(&file, cuts);
        self.files.insert(file, text.into_bytes());
    }

    fn note(&mut self, file: &str, cuts: Vec<Cut>) {
        self.cuts.extend(cuts.into_iter().map(|Cut { place, kind }| format!("{file}: {place}: {kind}")));
    }

    /// All files, what is missing, and the number of places where something was cut.
    pub(super) async fn finished(mut self) -> Result<(Files, Vec<String>, usize), Error> {
        self.reports().await?;
        let lines = |lines: &[String]| lines.iter().map(|line| format!("{line}\n")).collect::<String>();
        self.files.insert(CUT.into(), lines(&self.cuts).into_bytes());
        self.files.insert(MISSING.into(), lines(&self.missing).into_bytes());
        let mut manifest = self.manifest();
        manifest.files = self.files.len();
        let manifest = json_of("the bundle", &manifest)?;
        self.files.insert(MANIFEST.into(), manifest);
        Ok((self.files, self.missing, self.cuts.len()))
    }

    fn manifest(&self) -> Manifest {
        Manifest::new(self.taken_at, self.clusters.clone())
    }

    /// Adds the output of `freeport status`, `check` and `version` for this bundle.
    async fn reports(&mut self) -> Result<(), Error> {
        let bundle = Bundle::of("the bundle".into(), self.manifest(), self.files.clone());
        let contexts = KubeContext { bundle: Some(bundle), ..KubeContext::default() }.all()?;
        let mut reports = BTreeMap::new();
        for (context, seen) in contexts.iter().zip(&self.clusters) {
            let options = StatusOptions { cluster: context.clone(), cluster_set: None };
            // Of a cluster that is away there is nothing to report.
            if let Ok(report) = Box::pin(status::status(&options)).await {
                let of = |form| format!("clusters/{}/status.{form}", seen.folder);
                reports.insert(of("txt"), status::text(&report).into_bytes());
                reports.insert(of("json"), json_of("the report", &report)?);
            }
        }
        let options =
            CheckOptions { contexts: contexts.clone(), only: vec![], skip: vec![], wait: Duration::ZERO };
        let checked = Box::pin(check(&options)).await?;
        reports.insert("check.txt".into(), checked.text(CheckForm::Table)?.into_bytes());
        reports.insert("check.json".into(), checked.text(CheckForm::Json)?.into_bytes());
        let version = Box::pin(version(&VersionOptions { contexts })).await?;
        reports.insert("version.json".into(), json_of("the versions", &version)?);
        self.files.append(&mut reports);
        Ok(())
    }
}

fn json_of(what: &str, value: &impl Serialize) -> Result<Vec<u8>, Error> {
    serde_json::to_vec_pretty(value).map_err(|source| Error::Json { object: what.into(), source })
}

/// Name of a cluster's folder, other than those of the others.
fn folder(context: &str, others: &[String]) -> String {
    let plain = |char: char| if char.is_ascii_alphanumeric() || "-_".contains(char) { char } else { '_' };
    let name: String = context.chars().map(plain).take(60).collect();
    let is_free = |name: &String| !others.contains(name);
    let numbered = (2..).map(|number| format!("{name}-{number}"));
    std::iter::once(name.clone()).chain(numbered).find(is_free).unwrap_or(name)
}
