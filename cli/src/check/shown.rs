//! The report as people and programs get it.

use clap::ValueEnum;
use picture::check::report::{Line, Mark, Report};
use serde_json::{Value, json};

use super::Checked;
use crate::{Error, printable::printable};

/// Form of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// For people: by cluster.
    Table,
    /// What is wrong alone, a line each.
    Short,
    /// For machines, in a shape that stays.
    Json,
}

pub(super) fn text(checked: &Checked, form: Form) -> Result<String, Error> {
    let Checked { notes, report, .. } = checked;
    let lines = match form {
        Form::Table => [notes.clone(), table(report), vec![summary(report)]].concat(),
        Form::Short => short(report),
        Form::Json => {
            let text = serde_json::to_string_pretty(&json(checked));
            return text
                .map(|text| text + "\n")
                .map_err(|source| Error::Json { object: "the report".into(), source });
        }
    };
    Ok(lines.iter().map(|line| printable(line) + "\n").collect())
}

fn summary(report: &Report) -> String {
    let counts = [Mark::Failed, Mark::Warn, Mark::Ok, Mark::Skipped]
        .map(|mark| format!("{} {}", report.count(mark), mark.word()));
    counts.join(", ")
}

/// What was found, with its code.
fn said(line: &Line) -> String {
    match &line.finding {
        Some(finding) => format!("{} {}", finding.code, line.text),
        None => line.text.clone(),
    }
}

/// What to try about what is broken.
fn next(line: &Line) -> Option<String> {
    let finding = line.finding.as_ref().filter(|_| line.mark == Mark::Failed)?;
    Some(finding.next())
}

fn place(line: &Line) -> String {
    line.place.as_ref().map_or_else(|| "between clusters".to_owned(), ToString::to_string)
}

fn table(report: &Report) -> Vec<String> {
    let (mut lines, mut of) = (Vec::new(), None);
    let mut all = report.lines.iter().peekable();
    while let Some(line) = all.next() {
        if of.replace(&line.place) != Some(&line.place) {
            lines.push(place(line));
        }
        let mut groups = line.group.word().to_owned();
        // What is skipped for the same cause is one line.
        let is_alike =
            |next: &&&Line| (&next.place, next.mark, &next.text) == (&line.place, Mark::Skipped, &line.text);
        while let Some(next) = all.peek().filter(|_| line.mark == Mark::Skipped).filter(is_alike) {
            groups = format!("{groups}, {}", next.group.word());
            all.next();
        }
        lines.push(format!("  {:<8} {groups:<8} {}", line.mark.word(), said(line)));
        lines.extend(next(line).map(|next| format!("{:20}try: {next}", "")));
    }
    lines
}

fn short(report: &Report) -> Vec<String> {
    let wrong = report.lines.iter().filter(|line| [Mark::Warn, Mark::Failed].contains(&line.mark));
    let line = |line: &Line| {
        let next = next(line).map_or_else(String::new, |next| format!(". try: {next}"));
        format!("{} {} {}: {}{next}", line.mark.word(), place(line), line.group.word(), said(line))
    };
    wrong.map(line).collect()
}

fn json(checked: &Checked) -> Value {
    let Checked { as_of, notes, report } = checked;
    let count = |mark| report.count(mark);
    let checks: Vec<_> = report.lines.iter().map(check).collect();
    json!({
        "apiVersion": crate::schema::API_VERSION,
        "kind": "Check",
        "asOf": as_of,
        "version": env!("CARGO_PKG_VERSION"),
        "notes": notes,
        "checks": checks,
        "summary": {
            "failed": count(Mark::Failed),
            "warn": count(Mark::Warn),
            "ok": count(Mark::Ok),
            "skipped": count(Mark::Skipped),
        },
    })
}

/// One line. What is not known is left out.
fn check(line: &Line) -> Value {
    let mut check = json!({"group": line.group.word(), "result": line.mark.word(), "message": line.text});
    let mut add = |key: &str, value: Option<String>| {
        if let Some(value) = value {
            check[key] = value.into();
        }
    };
    add("cluster", line.place.as_ref().map(|place| place.title.clone()));
    add("context", line.place.as_ref().map(|place| place.context.clone()));
    add("code", line.finding.as_ref().map(|finding| finding.code.to_string()));
    add("try", next(line));
    check
}

#[cfg(test)]
mod tests {
    use k8s_openapi::jiff::Timestamp;
    use picture::{
        check::report::{Group, Place},
        finding::Finding,
    };

    use super::*;

    fn checked() -> Checked {
        let place = Some(Place { title: "west".into(), context: "kind-west".into() });
        let line = |group, mark, text: &str, finding| Line {
            place: place.clone(),
            group,
            mark,
            text: text.into(),
            finding,
        };
        let finding = Finding::broken(103, "x").with("context", "kind-west");
        let lines = vec![
            line(Group::Api, Mark::Ok, "Kubernetes v1.36.3", None),
            line(Group::Daemons, Mark::Failed, "it \u{1b}[31mdoes not run", Some(finding)),
            line(Group::Link, Mark::Skipped, "follows from FP103", None),
            line(Group::Exports, Mark::Skipped, "follows from FP103", None),
            Line { place: None, ..line(Group::Set, Mark::Ok, "Pods have different addresses", None) },
        ];
        Checked { as_of: Timestamp::UNIX_EPOCH, notes: vec![], report: Report { lines, seen: 1 } }
    }

    #[test]
    fn a_table_has_what_to_try_and_one_line_for_what_follows() {
        let command =
            "kubectl --context kind-west -n freeport-system scale deployment freeport-member --replicas 1";
        let want = format!(
            "west (context kind-west)\n  OK       api      Kubernetes v1.36.3\n  FAILED   daemons  FP103 it  [31mdoes not run\n\
             \x20                   try: {command}\n  skipped  link, exports follows from FP103\nbetween clusters\n  \
             OK       set      Pods have different addresses\n1 FAILED, 0 WARN, 2 OK, 2 skipped\n"
        );
        assert_eq!(text(&checked(), Form::Table).unwrap(), want);
        let short = text(&checked(), Form::Short).unwrap();
        assert_eq!(
            short,
            format!("FAILED west (context kind-west) daemons: FP103 it  [31mdoes not run. try: {command}\n")
        );
    }

    #[test]
    fn json_has_no_control_character_and_its_kind() {
        let text = text(&checked(), Form::Json).unwrap();
        assert!(!text.contains('\u{1b}'), "{text}");
        let json: Value = serde_json::from_str(&text).unwrap();
        assert_eq!((&json["apiVersion"], &json["kind"]), (&json!("cli.freeport.dev/v1"), &json!("Check")));
        let failed = &json["checks"][1];
        assert_eq!(
            (&failed["code"], &failed["cluster"], &failed["result"]),
            (&json!("FP103"), &json!("west"), &json!("FAILED"))
        );
        assert!(failed["try"].is_string() && json["checks"][0].get("code").is_none());
        assert_eq!(json["summary"]["skipped"], 2);
    }
}
