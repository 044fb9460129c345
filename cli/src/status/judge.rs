//! Turns what was read into a report. Pure: the clock is an argument.

mod belonging;
mod binding;
mod daemons;
mod leading;
mod objects;
mod offloading;
mod policies;

use api::{
    cluster_set::WRITES_ACCEPTED,
    condition::AntreaCondition,
    mcs::{CONFLICT, READY, VALID},
    resource_export::FAILURE,
};
use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};

use super::{
    found::{Entry, Found, Gap, Part, Why},
    report::{Problem, Report, Said},
};
use crate::view::ClusterSetView;

/// The answer of a condition.
const TRUE: &str = "True";

/// Condition that stands for a deletion that has not come to its end, which is no condition of an object's own.
const DELETED: &str = "Deleted";

/// Judges everything; `now` is by the clock of whoever asks.
pub(super) fn report(found: &Found, now: Timestamp) -> Report {
    let imports = found.imports.as_ref().and_then(|part| part.as_ref().ok());
    let not_ready = |entries: &Vec<Entry>| objects::tally(entries, ready_import).troubled;
    let mut verdict = Verdict {
        now,
        version: &found.version,
        has_import_troubles: imports.map_or(0, not_ready) > 0,
        problems: Vec::new(),
        notes: Vec::new(),
    };
    let areas = verdict.part(&found.areas, "init").map(Vec::as_slice).unwrap_or_default();
    let sets = verdict.part(&found.sets, "join").map(Vec::as_slice).unwrap_or_default();
    let leads = areas.iter().map(|area| verdict.leading(area)).collect();
    let noted = verdict.part(&found.noted, "join").and_then(Option::as_ref);
    let member_is_away = verdict.is_member_away(found);
    let belongs = verdict.belongings(sets, noted, member_is_away);
    verdict.policies(found);
    let active_replicas = verdict.active_replicas(found);
    let exports = found.exports.as_ref().and_then(|part| verdict.part(part, "join"));
    let imports = found.imports.as_ref().and_then(|part| verdict.part(part, "join"));
    let service_exports = exports.map(|entries| {
        let tally = objects::tally(entries, |c| objects::unless_true(c, &[VALID, READY], &[CONFLICT]));
        verdict.troubles("ServiceExport", &tally);
        verdict.unanswered("ServiceExport", entries);
        tally
    });
    let service_imports = imports.map(|entries| {
        let tally = objects::tally(entries, ready_import);
        verdict.troubles("ServiceImport", &tally);
        verdict.unanswered("ServiceImport", entries);
        tally
    });
    let (offload_peers, namespace_offloadings) = match &found.offloading {
        Some(offloading) => verdict.offloading(offloading),
        None => (None, None),
    };
    verdict.records(&found.lost_records);
    let (cluster_bindings, api_service_bindings) = match &found.binding {
        Some(binding) => verdict.binding(binding),
        None => (None, None),
    };
    let no_area = found.areas.as_ref().is_ok_and(Vec::is_empty);
    let no_set = found.sets.as_ref().is_ok_and(Vec::is_empty);
    if no_area && no_set && matches!(found.noted, Ok(None)) && found.binding.is_none() {
        verdict.problems.push(neither(found));
    }
    Report {
        cluster: found.cluster.clone(),
        as_of: Time(now),
        version: found.version.clone(),
        problems: verdict.problems,
        notes: verdict.notes,
        leads,
        belongs,
        active_replicas,
        service_exports,
        service_imports,
        offload_peers,
        namespace_offloadings,
        cluster_bindings,
        api_service_bindings,
    }
}

/// What is wrong with a ServiceImport.
fn ready_import(conditions: &[AntreaCondition]) -> Option<Said> {
    objects::unless_true(conditions, &[READY], &[])
}

/// The report while it is made.
struct Verdict<'a> {
    now: Timestamp,
    version: &'a str,
    /// Whether there are ServiceImports that are not ready, which are problems of their own.
    has_import_troubles: bool,
    problems: Vec<Problem>,
    notes: Vec<String>,
}

impl Verdict<'_> {
    fn problem(&mut self, place: impl Into<String>, what: impl Into<String>, next: impl Into<String>) {
        self.problems.push(Problem { place: place.into(), what: what.into(), next: next.into() });
    }

    /// The part, or a problem; `command` installs the CRDs it needs.
    fn part<'p, T>(&mut self, part: &'p Part<T>, command: &str) -> Option<&'p T> {
        match part {
            Ok(part) => Some(part),
            Err(Gap { part, why }) => {
                let (what, next) = match why {
                    Why::NoCrd => (
                        "the API server does not know this kind".to_owned(),
                        format!("run `freeport {command}` again, which installs its CRD"),
                    ),
                    Why::Forbidden(message) => (
                        format!("cannot be listed, since a right is missing: {message}"),
                        "ask for the right to list them".to_owned(),
                    ),
                    Why::Failed(message) => (format!("cannot be listed: {message}"), "try again".to_owned()),
                };
                self.problem(part.clone(), what, next);
                None
            }
        }
    }
}

impl Verdict<'_> {
    /// Writes of the daemon that API servers refuse.
    fn refused(&mut self, set: &ClusterSetView, place: &str) {
        let Some(said) = set.condition(WRITES_ACCEPTED).map(said) else { return };
        if said.status != TRUE {
            self.problem(
                place,
                line(&said),
                "change the quota, policy, webhook or right that the message names; the daemon tries again within a minute",
            );
        }
    }
}

fn neither(found: &Found) -> Problem {
    let set = found.asked.as_deref();
    let name = set.unwrap_or("NAME");
    Problem {
        place: format!("cluster {}", found.cluster),
        what: format!(
            "neither leads nor belongs to {}",
            set.map_or("a ClusterSet".into(), |set| format!("ClusterSet {set}"))
        ),
        next: format!(
            "to lead, `freeport init --clusterset {name} --cluster-id ID`; to belong, `freeport join --clusterset {name} \
             --cluster-id ID --leader-context CONTEXT`"
        ),
    }
}

fn said(condition: &AntreaCondition) -> Said {
    Said {
        type_: condition.type_.clone().unwrap_or_default(),
        status: condition.status.clone().unwrap_or_else(|| "Unknown".into()),
        reason: condition.reason.clone().unwrap_or_default(),
        message: condition.message.clone().unwrap_or_default(),
        since: condition.last_transition_time.clone(),
    }
}

/// A condition as one sentence. Antrea's Failure is there or not, whatever its status says.
fn line(said: &Said) -> String {
    if said.type_ == FAILURE {
        return format!("is not valid: {}", said.why());
    }
    if said.type_ == DELETED {
        return format!("is being deleted {}", said.message);
    }
    match said.why() {
        why if why.is_empty() => format!("{} is {}", said.type_, said.status),
        why => format!("{} is {}: {why}", said.type_, said.status),
    }
}

#[cfg(test)]
mod tests;
