//! Whether API binding works, of a provider and of a consumer.

use api::{bind::condition::READY, condition::AntreaCondition};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::{
    DELETED, Verdict,
    objects::{named, tally, unless_true},
};
use crate::{
    objects::{bind, drift},
    status::{
        age,
        found::{Binding, Contract, Entry, Gap, Going, Offered, Why},
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
            provider.going.iter().for_each(|going| self.going(going));
            let contracts = self.part(&provider.contracts, PROVIDE)?;
            let entries: Vec<_> = contracts.iter().map(|contract| self.heard(contract)).collect();
            Some(self.if_said("ClusterBinding", &entries, &[], &[HEARTBEATING, READY]))
        });
        let bindings = found.consumer.as_ref().and_then(|consumer| {
            let means = "what runs as freeport-member can install and change every CRD of this cluster";
            self.policy(Some(&consumer.policy), &bind::consumer_policy(), means, USE);
            let bindings = self.part(&consumer.bindings, USE)?;
            Some(self.if_said("APIServiceBinding", bindings, &[READY], &[SYNCED]))
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

    /// What goes by itself is a problem only until then.
    fn going(&mut self, going: &Going) {
        let Some(entries) = self.part(&going.objects, PROVIDE) else { return };
        self.if_said(going.kind, entries, &[], &[]);
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
