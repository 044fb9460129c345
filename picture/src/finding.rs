//! One finding: a code, and what is so in these clusters.

use crate::code::{Code, entry, unfilled};

/// How much a finding breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// The importer cannot use the Service, or gets no change of it any more: later steps say nothing.
    Broken,
    /// It can be used in part.
    Degraded,
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Which of the table.
    pub code: Code,
    /// How much it breaks.
    pub weight: Weight,
    /// What is so in these clusters: a part of a sentence.
    pub what: String,
    /// Values of the command.
    values: Vec<(&'static str, String)>,
}

impl Finding {
    /// A finding that breaks the Service.
    pub fn broken(code: u16, what: impl Into<String>) -> Self {
        Self { code: Code(code), weight: Weight::Broken, what: what.into(), values: vec![] }
    }

    /// The same finding, where the Service can be used in part.
    pub fn degraded(self) -> Self {
        Self { weight: Weight::Degraded, ..self }
    }

    /// Gives the command of the table a value: for `context` it replaces `{context}`.
    pub fn with(mut self, word: &'static str, value: impl Into<String>) -> Self {
        self.values.push((word, value.into()));
        self
    }

    /// What to try, with the names of these clusters as far as they are known.
    pub fn next(&self) -> String {
        let command = entry(self.code).map(|entry| entry.next).unwrap_or_default().to_owned();
        let filled = |command: String, (word, value): &(&str, String)| {
            command.replace(&format!("{{{word}}}"), &quoted(value))
        };
        unfilled(&self.values.iter().fold(command, filled))
    }
}

/// The value as a shell takes it for one word.
fn quoted(value: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@=+,".contains(c);
    match !value.is_empty() && value.chars().all(is_plain) {
        true => value.to_owned(),
        false => format!("'{}'", value.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_has_the_names_of_the_clusters_and_works_when_pasted() {
        let next = |context: &str| {
            Finding::broken(501, "").with("context", context).with("namespace", "shop").next()
        };
        assert_eq!(next("west"), "kubectl --context west create namespace shop");
        assert_eq!(next("my west's"), r"kubectl --context 'my west'\''s' create namespace shop");
        assert_eq!(Finding::broken(501, "").next(), "kubectl --context CONTEXT create namespace NAMESPACE");
    }
}
