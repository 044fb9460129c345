//! Whether API binding works, of a provider and of a consumer.

use std::collections::BTreeMap;

use api::{
    bind::{condition::READY, label},
    cluster_set::WRITES_ACCEPTED,
    condition::AntreaCondition,
    words::first_names,
};
use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::SignedDuration};
use picture::age;

use super::{
    DELETED, Verdict,
    objects::{named, tally, unless_true},
    said,
};
use crate::{
    objects::{bind, drift},
    status::{
        found::{Asked, Binding, Contract, Entry, Gap, Left, Offered, Part, Provider, Why},
        report::Tally,
    },
};

/// What sets a provider up again.
const PROVIDE: &str = "bind provide";
/// What sets a consumer up again.
const USE: &str = "bind apiservice";
/// Condition of an APIServiceBinding: its objects are in step with their copies. It is Freeport's.
const SYNCED: &str = "Synced";
/// Condition that stands for the heartbeats of a contract, which has none of its own.
const HEARTBEATING: &str = "Heartbeating";
/// Condition of an APIServiceExport: its schemas and rights are there.
const IN_SYNC: &str = "ProviderInSync";
/// Until when a leader that lives has said something.
const ANSWERED: SignedDuration = SignedDuration::from_mins(1);
/// A consumer that missed so many heartbeats is not heard.
const MISSED: i32 = 2;

impl Verdict<'_> {
    /// Contracts of a provider and APIServiceBindings of a consumer, counted.
    pub(super) fn binding(&mut self, found: &Binding) -> (Option<Tally>, Option<Tally>) {
        let contracts = found.provider.as_ref().and_then(|provider| {
            let means = "what runs as freeport-leader can give rights in every Namespace of this cluster";
            self.policy(Some(&provider.policy), &bind::provider_policy(), means, PROVIDE);
            let means = "a consumer can keep its cluster namespace from going";
            self.policy(Some(&provider.requests), &bind::requests_policy(), means, PROVIDE);
            provider.offers.iter().for_each(|offered| self.offered(offered));
            self.marked(provider);
            self.exports(provider);
            provider.asked.iter().for_each(|asked| self.asked(asked));
            for (kind, refused) in &provider.refused {
                if let Some(refused) = self.part(refused, PROVIDE) {
                    self.troubles(kind, &tally(refused, |conditions| conditions.first().map(said)));
                }
            }
            if let Some(going) = self.part(&provider.going, PROVIDE) {
                self.if_said("Namespace", going, &[], &[]);
            }
            self.left(&provider.left);
            let contracts = self.part(&provider.contracts, PROVIDE)?;
            let entries: Vec<_> = contracts.iter().map(|contract| self.heard(contract)).collect();
            Some(self.if_said("ClusterBinding", &entries, &[], &[HEARTBEATING, READY]))
        });
        let bindings = found.consumer.as_ref().and_then(|consumer| {
            let means = "what runs as freeport-member can install and change every CRD of this cluster";
            self.policy(Some(&consumer.policy), &bind::consumer_policy(), means, USE);
            let bindings = self.part(&consumer.bindings, USE)?;
            Some(self.if_said("APIServiceBinding", bindings, &[READY], &[SYNCED, WRITES_ACCEPTED]))
        });
        (contracts, bindings)
    }

    /// Counts those that are being deleted, and those of which one of `always` is not True or is missing, or one of `said` is there and not
    /// True.
    fn if_said(&mut self, kind: &str, entries: &[Entry], always: &[&str], said: &[&str]) -> Tally {
        let entries: Vec<_> = entries.iter().map(|entry| self.deleted(kind, entry)).collect();
        let tally = tally(&entries, |conditions| {
            let there = said.iter().filter(|type_| named(conditions, type_).is_some());
            let wanted: Vec<_> = always.iter().chain(there).copied().collect();
            named(conditions, DELETED).or_else(|| unless_true(conditions, &wanted, &[]))
        });
        self.troubles(kind, &tally);
        tally
    }

    /// Whether what is exported is there, and what the leader says of it. What goes by itself is a problem only until then.
    fn exports(&mut self, provider: &Provider) {
        let Some(exports) = self.part(&provider.exports, PROVIDE) else { return };
        let entries: Vec<_> = exports.iter().map(|export| export.entry.clone()).collect();
        self.if_said("APIServiceExport", &entries, &[], &[IN_SYNC]);
        let Some(crds) = self.part(&provider.crds, PROVIDE) else { return };
        let mut missing = BTreeMap::<&str, Vec<String>>::new();
        for export in exports {
            let of = format!("{}/{}", export.entry.namespace, export.entry.name);
            for api in export.apis.iter().filter(|api| !crds.contains(*api)) {
                missing.entry(api).or_default().push(of.clone());
            }
        }
        for (api, exports) in missing {
            self.problem(
                format!("CustomResourceDefinition {api}"),
                format!(
                    "does not exist, and APIServiceExport {} has it: its consumers get nothing of it",
                    first_names(exports)
                ),
                "install it again, or delete the APIServiceExports",
            );
        }
    }

    /// Who waits for an answer for so long asks nobody.
    fn asked(&mut self, asked: &Asked) {
        let Some(unanswered) = self.part(&asked.unanswered, PROVIDE) else { return };
        let late = unanswered.iter().filter(|(_, made)| self.now.duration_since(*made) > ANSWERED);
        let late: Vec<_> = late.collect();
        let Some((entry, made)) = late.first() else { return };
        let age = age::text(self.now.duration_since(*made));
        self.problem(
            format!("{} {}/{}", asked.kind, entry.namespace, entry.name),
            match late.len() {
                1 => format!("has no answer for {age}"),
                several => format!("has no answer for {age}, nor have {} others", several - 1),
            },
            "start freeport-leader with --bind for this cluster, or read its log",
        );
    }

    /// Namespaces that go with nothing. What is young may have come while the others were counted.
    fn left(&mut self, left: &Part<Vec<Left>>) {
        let Some(left) = self.part(left, PROVIDE) else { return };
        let now = self.now;
        for left in left.iter().filter(|left| now.duration_since(left.made) > ANSWERED) {
            self.problem(
                format!("Namespace {}", left.name),
                format!(
                    "was made for APIServiceNamespace {}, which does not exist, so nothing deletes it",
                    left.made_for
                ),
                "delete it, if nothing in it is needed",
            );
        }
    }

    /// The object, with a condition about its deletion if somebody deletes it.
    fn deleted(&self, kind: &str, entry: &Entry) -> Entry {
        let mut entry = entry.clone();
        if let Some(deletion) = &entry.deletion {
            let age = age::text(self.now.duration_since(deletion.since));
            entry.conditions.push(AntreaCondition {
                type_: Some(DELETED.into()),
                status: Some("True".into()),
                reason: None,
                message: Some(format!("for {age}, held by {}", deletion.held_by(kind))),
                last_transition_time: Some(Time(deletion.since)),
            });
        }
        entry
    }

    /// The contract, with a condition about its heartbeats. Of one that was never heard nothing is said: its consumer may not have begun.
    fn heard(&self, contract: &Contract) -> Entry {
        let mut entry = contract.entry.clone();
        let Some(last) = contract.last_heartbeat else { return entry };
        let silent = self.now.duration_since(last);
        if silent > contract.interval * MISSED {
            let message = format!("its konnector sent no heartbeat for {} seconds", silent.as_secs());
            entry.conditions.push(AntreaCondition {
                type_: Some(HEARTBEATING.into()),
                status: Some("False".into()),
                reason: Some("HeartbeatTimeout".into()),
                message: Some(message),
                last_transition_time: Some(Time(last)),
            });
        }
        entry
    }

    /// Whether what templates have can be had.
    fn marked(&mut self, provider: &Provider) {
        let Some(marked) = self.part(&provider.marked, PROVIDE) else { return };
        for api in provider.offers.iter().map(|offered| offered.api.name()) {
            if !marked.contains(&api) {
                self.problem(
                    format!("CustomResourceDefinition {api}"),
                    format!(
                        "a template offers it, but none of that name is here with label {}=true: no request for it is granted",
                        label::EXPORTED
                    ),
                    format!("run `freeport bind offer TEMPLATE --resource {api}` again, or take it out of the template"),
                );
            }
        }
    }

    /// Whether consumers are kept to their own objects of an API.
    fn offered(&mut self, offered: &Offered) {
        let api = offered.api.name();
        if let Err(Gap { part, why: Why::Forbidden(message) }) = &offered.policy {
            return self.notes.push(format!("{part} was not checked: {message}"));
        }
        let Some(there) = self.part(&offered.policy, PROVIDE) else { return };
        // As it was offered: prefixed or not.
        let all = [bind::objects_policy(&offered.api, true), bind::objects_policy(&offered.api, false)];
        let drifts: Vec<_> = all.iter().filter_map(|wanted| drift(wanted, there)).collect();
        if let Some(drift) = drifts.into_iter().nth(1) {
            self.problem(
                drift.place,
                format!("{}: a consumer of {api} can write objects of others", drift.what),
                format!("run `freeport bind offer TEMPLATE --resource {api}` again"),
            );
        }
    }
}
