//! How answers differ, and the list of it.

use std::{collections::BTreeSet, fs, path::PathBuf};

use serde_json::Value;

use crate::model::{answer::Answer, script::Script};

const HEAD: &str = "\
# How the model's answers differ from those of a kube-apiserver: script, number and target of the request, field, real value, model's value.
# Written by `FREEPORT_MODEL_WRITE=1 cargo test -p e2e --test without_nodes -- model::`. It may only shrink.
";

/// Lines shown of each kind when a test fails.
const SHOWN: usize = 40;

/// A line of the list. Lines are in the order of scripts and requests.
type Line = (String, usize, String);

/// How the answers to a script differ. Where codes differ, bodies are not compared.
pub(crate) fn of_script(script: &Script, real: Vec<Answer>, model: Vec<Answer>) -> Vec<Line> {
    let mut lines = Vec::new();
    for (at, (step, (real, model))) in script.steps.iter().zip(real.into_iter().zip(model)).enumerate() {
        let mut fields = Vec::new();
        if real.code == model.code {
            compare(String::new(), Some(&real.body), Some(&model.body), &mut fields);
        } else {
            fields.push(("code".to_owned(), verdict(&real), verdict(&model)));
        }
        lines.extend(fields.into_iter().map(|(path, real, model)| {
            let request = format!("{} {}", step.verb, step.target);
            (script.name.clone(), at + 1, format!("{request} {path} | {real} | {model}"))
        }));
    }
    lines
}

/// Code and, of a refusal, its reason and message.
fn verdict(answer: &Answer) -> String {
    let said = |key: &str| answer.body[key].as_str().unwrap_or_default();
    match answer.code {
        200..300 => answer.code.to_string(),
        code => format!("{code} {} {:?}", said("reason"), said("message")),
    }
}

fn compare(
    path: String,
    real: Option<&Value>,
    model: Option<&Value>,
    fields: &mut Vec<(String, String, String)>,
) {
    match (real, model) {
        (Some(Value::Object(real)), Some(Value::Object(model))) => {
            let keys: BTreeSet<_> = real.keys().chain(model.keys()).collect();
            for key in keys {
                compare(format!("{path}.{key}"), real.get(key), model.get(key), fields);
            }
        }
        (Some(Value::Array(real)), Some(Value::Array(model))) => {
            for at in 0..real.len().max(model.len()) {
                compare(format!("{path}[{at}]"), real.get(at), model.get(at), fields);
            }
        }
        (real, model) if real != model => fields.push((path, shown(real), shown(model))),
        _ => {}
    }
}

fn shown(value: Option<&Value>) -> String {
    value.map_or_else(|| "absent".to_owned(), Value::to_string)
}

/// The list of known differences.
pub(crate) struct Listed {
    file: PathBuf,
}

impl Listed {
    pub(crate) fn at(file: PathBuf) -> Self {
        Self { file }
    }

    /// Lists these and no others.
    pub(crate) fn write(&self, found: &BTreeSet<Line>) {
        let lines: String = found.iter().map(|line| text(line) + "\n").collect();
        fs::write(&self.file, format!("{HEAD}{lines}")).unwrap();
    }

    /// Fails unless these are listed, and no others.
    pub(crate) fn check(&self, found: &BTreeSet<Line>) {
        let list = fs::read_to_string(&self.file).unwrap_or_default();
        let listed: BTreeSet<_> = list.lines().filter(|line| !line.starts_with('#')).collect();
        let found: Vec<_> = found.iter().map(text).collect();
        let new: Vec<_> = found.iter().filter(|line| !listed.contains(line.as_str())).cloned().collect();
        let over: Vec<_> = listed.iter().filter(|line| !found.iter().any(|found| found == *line)).collect();
        assert!(new.is_empty(), "{} differences are not listed:\n{}", new.len(), first(&new));
        assert!(
            over.is_empty(),
            "{} listed differences are over. Remove their lines (FREEPORT_MODEL_WRITE=1 does it):\n{}",
            over.len(),
            first(&over)
        );
    }
}

fn text((script, step, rest): &Line) -> String {
    format!("{script} {step} {rest}")
}

fn first<T: AsRef<str>>(lines: &[T]) -> String {
    let shown: Vec<_> = lines.iter().take(SHOWN).map(AsRef::as_ref).collect();
    shown.join("\n")
}
