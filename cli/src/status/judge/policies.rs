//! Whether the admission policies are in force.

use super::Verdict;
use crate::{
    objects::{Object, PolicyDrift, drift, leader, member},
    status::found::{Found, Gap, Part, Why},
};

impl Verdict<'_> {
    pub(super) fn policies(&mut self, found: &Found) {
        let records = found.records_policy.as_ref();
        self.policy(records, &leader::policy(), "any member can write any other's records", "init");
        let imports = found.imports_policy.as_ref();
        self.policy(imports, &member::policy(), "who has rights on ServiceImports can write them", "join");
        let own = found.own_policy.as_ref();
        let means = "what runs as freeport-member can change and delete every Service of this cluster";
        self.policy(own, &member::own_policy(), means, "join");
        for (check, wanted) in found.checks.iter().zip(member::checks()) {
            self.check(check.as_ref(), &wanted, "join");
        }
    }

    /// A policy that only refuses mistakes protects no rights: if it is off, that is a note and no problem.
    pub(super) fn check(
        &mut self,
        part: Option<&Part<[Option<Object>; 2]>>,
        wanted: &[Object; 2],
        command: &str,
    ) {
        match part {
            None => {}
            Some(Err(Gap { part, why: Why::Forbidden(message) })) => {
                self.notes.push(format!("{part} was not checked: {message}"));
            }
            Some(part) => {
                let there = self.part(part, command);
                if let Some(PolicyDrift { place, what }) = there.and_then(|there| drift(wanted, there)) {
                    self.notes.push(format!("{place} {what}: mistakes are not refused"));
                }
            }
        }
    }

    /// `means` says what the drift allows, and `command` corrects it. A policy that may not be read is no problem.
    pub(super) fn policy(
        &mut self,
        part: Option<&Part<[Option<Object>; 2]>>,
        wanted: &[Object; 2],
        means: &str,
        command: &str,
    ) {
        match part {
            None => {}
            Some(Err(Gap { part, why: Why::Forbidden(message) })) => {
                self.notes.push(format!("{part} was not checked: {message}"));
            }
            Some(part) => {
                let there = self.part(part, command);
                if let Some(PolicyDrift { place, what }) = there.and_then(|there| drift(wanted, there)) {
                    self.problem(
                        place,
                        format!("{what}: {means}"),
                        format!("run `freeport {command}` again; if that does not mend it, delete it and run that again"),
                    );
                }
            }
        }
    }
}
