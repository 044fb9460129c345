//! Counting objects by their conditions, and naming the first of those with something wrong.

use api::{
    condition::AntreaCondition, mcs::NO_READY_ENDPOINTS, offload::map::DELETION_REFUSED, words::first_names,
};

use super::{DELETED, TRUE, Verdict, line, said};
use crate::status::{
    found::Entry,
    report::{Said, Tally, Trouble},
};

/// How many are named; the others are counted.
const NAMED: usize = 10;

/// Counts `entries`; `wrong` picks the condition that says what is wrong with one, if any.
pub(super) fn tally<'e>(
    entries: impl IntoIterator<Item = &'e Entry>,
    wrong: impl Fn(&[AntreaCondition]) -> Option<Said>,
) -> Tally {
    let mut total = 0;
    let mut troubles: Vec<Trouble> = entries
        .into_iter()
        .inspect(|_| total += 1)
        .filter_map(|entry| {
            let condition = wrong(&entry.conditions)?;
            Some(Trouble { namespace: entry.namespace.clone(), name: entry.name.clone(), condition })
        })
        .collect();
    let troubled = troubles.len();
    troubles.sort_by(|a, b| (&a.namespace, &a.name).cmp(&(&b.namespace, &b.name)));
    troubles.truncate(NAMED);
    Tally { total, troubled, first: troubles }
}

/// The first condition that is not as it should be: one of `wanted` that is not True or is missing, or one of `unwanted`
/// that is True.
pub(super) fn unless_true(have: &[AntreaCondition], wanted: &[&str], unwanted: &[&str]) -> Option<Said> {
    let find = |type_: &str| have.iter().find(|c| c.type_.as_deref() == Some(type_)).map(said);
    let missing = |type_: &str| Said {
        type_: type_.into(),
        status: "Unknown".into(),
        reason: String::new(),
        message: "freeport-member has not processed it yet".into(),
        since: None,
    };
    wanted
        .iter()
        .map(|type_| find(type_).unwrap_or_else(|| missing(type_)))
        .find(|said| said.status != TRUE)
        .or_else(|| unwanted.iter().filter_map(|type_| find(type_)).find(|said| said.status == TRUE))
}

/// The condition of type `type_`, whatever its status.
pub(super) fn named(have: &[AntreaCondition], type_: &str) -> Option<Said> {
    have.iter().find(|c| c.type_.as_deref() == Some(type_)).map(said)
}

impl Verdict<'_> {
    /// Notes objects of which no endpoint can answer: nobody but their users knows whether that is meant.
    pub(super) fn unanswered(&mut self, kind: &str, entries: &[Entry]) {
        let of = |entry: &Entry| {
            let said = named(&entry.conditions, NO_READY_ENDPOINTS).filter(|said| said.status == TRUE)?;
            Some(format!("{}/{} ({})", entry.namespace, entry.name, said.reason))
        };
        let mut all: Vec<_> = entries.iter().filter_map(of).collect();
        if all.is_empty() {
            return;
        }
        all.sort();
        self.notes.push(format!("{kind}s without an endpoint that can answer: {}", first_names(all)));
    }

    /// One problem for each object named, and one for all others.
    pub(super) fn troubles(&mut self, kind: &str, tally: &Tally) {
        let plural = kind.to_lowercase();
        for Trouble { namespace, name, condition } in &tally.first {
            let (place, within) = match namespace.as_str() {
                "" => (format!("{kind} {name}"), String::new()),
                namespace => (format!("{kind} {namespace}/{name}"), format!("-n {namespace} ")),
            };
            let describe = format!("kubectl {within}describe {plural} {name}");
            self.problem(place, line(condition), next(kind, condition, &describe));
        }
        let more = tally.troubled - tally.first.len();
        if more > 0 {
            self.problem(
                format!("{kind}s"),
                format!("{more} more have something wrong"),
                format!("kubectl get {plural}s -A -o yaml"),
            );
        }
    }
}

/// What to do about one object, where its condition has more than to be read; `describe` shows it.
fn next(kind: &str, condition: &Said, describe: &str) -> String {
    if condition.type_ == DELETED {
        return format!("wait, or see to what holds it; {describe}");
    }
    match (kind, condition.reason.as_str()) {
        ("ServiceImport", "ServiceNameTaken") => {
            "rename or delete that Service; if it is the imported one, set its label app.kubernetes.io/managed-by: freeport again".to_owned()
        }
        ("NamespaceOffloading", DELETION_REFUSED) => format!(
            "in that cluster, change the policy, webhook or right that refuses it: freeport-member there tries again within a minute; {describe}"
        ),
        (_, DELETION_REFUSED | "ServiceRefused" | "ServiceImportRefused" | "EndpointSliceRefused" | "EndpointsRefused" | "Refused") => format!(
            "remove the cause (a quota, an admission policy, an object of that name): freeport-member tries again within a minute; {describe}"
        ),
        ("ServiceImport", "NotOurs") => format!("delete the object that has its name: Freeport creates its own; {describe}"),
        ("ServiceImport", "IPFamilyNotSupported") => {
            "export the Service with an IP family that all clusters have, or give this cluster that family".to_owned()
        }
        (_, "Terminating") => format!("wait, or see to the finalizers that hold it; {describe}"),
        ("ServiceExport", "NoService") => "create the Service, or delete the ServiceExport".to_owned(),
        ("ServiceExport", "NamespaceExcluded") => {
            "delete the ServiceExport, or have the label multicluster.freeport.dev/export taken off the Namespace".to_owned()
        }
        _ => describe.to_owned(),
    }
}
