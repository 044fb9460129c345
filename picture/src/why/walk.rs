//! The steps as lines, and the verdict.

use std::collections::BTreeSet;

use super::{Looked, scene::Scene};
use crate::{
    code::Code,
    finding::{Finding, Weight},
    step::Step,
};

/// How a step is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// Well.
    Ok,
    /// Degraded.
    Warn,
    /// Broken.
    Fail,
    /// Not known.
    Unknown,
}

impl Mark {
    fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Fail => "FAIL",
            Self::Unknown => "?",
        }
    }
}

/// One line of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Which.
    pub step: Step,
    /// How it is.
    pub mark: Mark,
    /// What is so.
    pub text: String,
}

/// How far the Service comes.
#[derive(Clone, Debug)]
pub struct Walk {
    /// Lines of all steps that were looked at.
    pub lines: Vec<Line>,
    /// Steps that follow from the one that is broken.
    pub skipped: Vec<Step>,
    /// All that was found.
    pub findings: Vec<Finding>,
    /// Whether the importing cluster was asked and nothing of it could be read.
    pub is_unseen: bool,
    /// One sentence, and what to try.
    pub verdict: String,
}

impl Walk {
    /// Codes of all that was found.
    pub fn codes(&self) -> Vec<Code> {
        self.findings.iter().map(|finding| finding.code).collect()
    }

    /// All lines as text.
    pub fn text(&self) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        let mut before = None;
        for Line { step, mark, text } in &self.lines {
            let number = match before.replace(*step) {
                Some(before) if before == *step => " ".to_owned(),
                _ => (*step as usize + 1).to_string(),
            };
            lines.push(format!("{number} {:<5} {:<10} {text}", mark.word(), step.word()));
        }
        if !self.skipped.is_empty() {
            let words: Vec<_> = self.skipped.iter().map(|step| step.word()).collect();
            lines.push(format!("  skip  {}", words.join(", ")));
        }
        lines.push(self.verdict.clone());
        lines
    }
}

/// A walk on its way.
#[derive(Default)]
pub(super) struct Walking {
    lines: Vec<Line>,
    skipped: Vec<Step>,
    findings: Vec<Finding>,
    unknown: Vec<Step>,
}

impl Walking {
    pub(super) fn step(&mut self, step: Step, look: impl FnOnce(Step) -> Looked) {
        if self.broken().is_some() {
            self.skipped.push(step);
            return;
        }
        let Looked { findings, said, unknown } = look(step);
        let line = |mark, text| Line { step, mark, text };
        self.lines.extend(findings.iter().map(|finding| {
            let mark = if finding.weight == Weight::Broken { Mark::Fail } else { Mark::Warn };
            line(mark, format!("{} {}", finding.code, finding.what))
        }));
        if !unknown.is_empty() {
            self.unknown.push(step);
            self.lines.push(line(Mark::Unknown, unknown.join("; ")));
        }
        // What is well beside a finding or a gap is a line of its own.
        if !said.is_empty() {
            self.lines.push(line(Mark::Ok, said.join("; ")));
        }
        self.findings.extend(findings);
    }

    fn broken(&self) -> Option<&Finding> {
        self.findings.iter().find(|finding| finding.weight == Weight::Broken)
    }

    pub(super) fn end(self, scene: &Scene<'_>) -> Walk {
        let verdict = self.verdict(scene);
        let is_unseen = scene.importer.cluster.is_some_and(|cluster| cluster.unseen().is_some());
        let Self { lines, skipped, findings, .. } = self;
        Walk { lines, skipped, findings, is_unseen, verdict }
    }

    fn verdict(&self, scene: &Scene<'_>) -> String {
        let (importer, service) = (scene.importer.id, scene.service());
        if let Some(broken) = self.broken() {
            let has_import =
                scene.importer.cluster.is_some_and(|cluster| matches!(&cluster.import, Ok(Some(_))));
            let is_cut = self.lines.last().is_some_and(|line| line.step == Step::Set);
            let said = match has_import && is_cut {
                true => format!("{importer} keeps the {service} that it has, and gets no changes of it"),
                false => format!("{importer} cannot use {service}"),
            };
            return format!("{said}. try: {}", broken.next());
        }
        if let Some(first) = self.findings.first() {
            let codes: BTreeSet<_> = self.findings.iter().map(|finding| finding.code).collect();
            let codes: Vec<_> = codes.iter().map(Code::to_string).collect();
            return format!(
                "{importer} can use {service} in part ({}); not dialled. try: {}",
                codes.join(", "),
                first.next()
            );
        }
        if !self.unknown.is_empty() {
            let steps: Vec<_> = self.unknown.iter().map(|step| step.word()).collect();
            return format!(
                "nothing found in what was looked at; not known: {}; not dialled",
                steps.join(", ")
            );
        }
        let nothing = Code(606);
        format!("{nothing} nothing found: {importer} can use {service} as far as objects show; not dialled")
    }
}
