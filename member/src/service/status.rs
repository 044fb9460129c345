//! The status of exports: watches ServiceExports, Services, and for each our records, the leader's
//! verdict and what other clusters report; writes the `Valid`, `Ready`, `Conflict` and `Imported` conditions of ServiceExports; deletes nothing. Safe to run twice: conditions are
//! applied only when they say something else.

mod imported;
mod pending;
mod unsaid;

use std::time::Instant;

use api::{
    ServiceName,
    condition::{AntreaCondition, Condition, Status, Verdict, already_said, conditions},
    mcs::{CONFLICT, IMPORTED, NO_READY_ENDPOINTS, READY, ServiceExportStatus},
    name,
    resource_import::Exporter,
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kit::{
    events::Events,
    index::Shared,
    planted::Defect,
    queue::Outcome,
    watch::Watches,
    write::{Error, Writer},
};
use kube::Resource;
use rules::{
    reports::Reports,
    status::{
        EXPORTED, PENDING, conflict, exported, imported as imported_by, kept, not_exported,
        refused as refused_by_leader, valid, what,
    },
};

use self::{
    imported::{is_news, keep_imported},
    pending::Pending,
    unsaid::Unsaid,
};
use super::{
    index::{STATUS, known::Known, view::Export},
    knowledge::Knowledge,
    offer::{Offered, offered},
    unanswered::Lasting,
};

/// What there is to say about the ServiceExport: whether the Service can be exported (rules ), and whether the
/// leader has it. Of what cannot be exported as it is, both: what is wrong, and that the last valid export stays.
fn desired(known: &Known) -> Vec<Verdict> {
    let Offered { offer, invalid } = offered(known);
    let valid = match (&offer, invalid) {
        (None, None) => return vec![],
        (Some(_), None) => valid(known.entry.export.as_deref()),
        (Some(_), Some(invalid)) => kept(invalid),
        (None, Some(invalid)) => return not_exported(invalid).into(),
    };
    // A leader of Antrea's knows of no conflicts but those it refuses a record for.
    let verdict = verdict_on(known).filter(|_| !known.antrea_leads());
    let conflict = verdict.map(|verdict| conflict(&verdict.conflicts));
    let ready = ready(known, what(&valid));
    let imported = known.cluster.reports.known().filter(|_| ready.status == Status::True);
    let imported = imported.map(|reported| imported_by(reported, &known.service));
    [valid, ready].into_iter().chain(conflict).chain(imported).collect()
}

/// The leader's verdict on our record as it is; one on an older record says nothing about this one.
fn verdict_on(known: &Known) -> Option<&Exporter> {
    let observed = known.entry.own_service.as_deref()?.version();
    let ours = |exporter: &&Exporter| exporter.cluster_id == known.us() && exporter.observed == observed;
    known.exporters().iter().find(ours)
}

/// `what` is exported.
fn ready(known: &Known, what: &str) -> Verdict {
    let pending = |message: &str| Verdict::new(READY, Status::Unknown, PENDING, message);
    let failed = |message: String| Verdict::new(READY, Status::False, "Failed", message);
    if let Some(rival) = &known.under_antrea.rival {
        return failed(format!(
            "NameTaken: the leader is Antrea's, and its record names are the same for this Service and for {rival}. The export of \
             {rival} is older and keeps the names. Rename one of the two Services"
        ));
    }
    if let Some(why) = &known.entry.refused {
        let message = format!(
            "the leader's API server refuses a record of this export, so other clusters do not get all of it: {why}"
        );
        return Verdict::new(READY, Status::False, "Refused", message);
    }
    let Some(record) = &known.entry.own_service else {
        return pending("this member has not written its record for the leader yet");
    };
    if let Some(failure) = record.failure() {
        return failed(said(failure));
    }
    match verdict_on(known) {
        Some(Exporter { refused: Some(refused), .. }) => refused_by_leader(refused),
        Some(_) => {
            match known.entry.own_slices.iter().find_map(|(name, slice)| Some((name, slice.failure()?))) {
                Some((record, failure)) if failure.reason.as_deref() == Some("TooLarge") => {
                    let slice = sliced(known, record);
                    failed(format!("the leader has merged {what}, but {slice} is too large: split it"))
                }
                Some((record, failure)) => failed(format!(
                    "the leader has merged {what}, but does not take in all endpoints of {}: {}",
                    sliced(known, record),
                    said(failure),
                )),
                None => exported(what, &known.service.namespace, known.cluster.lacking.as_ref()),
            }
        }
        None if Defect::EarlyReady.is_planted() => Verdict::new(READY, Status::True, EXPORTED, "planted"),
        None => pending("the record is written; the leader has not merged it yet"),
    }
}

/// While it is not known which clusters lack the Namespace, what was said of that stands.
fn keep_lack(want: &mut [Condition], have: &[Condition]) {
    let exported = |c: &&Condition| c.type_ == READY && c.reason == EXPORTED;
    if let (Some(want), Some(have)) = (want.iter_mut().find(|c| exported(&&**c)), have.iter().find(exported))
    {
        want.message.clone_from(&have.message);
    }
}

/// The EndpointSlice that a record of ours is made of; the record itself where that is gone.
fn sliced(known: &Known, record: &str) -> String {
    let is_its = |slice: &&String| name::slice_export(known.us(), &known.service, slice) == record;
    match known.entry.slices.keys().find(is_its) {
        Some(slice) => format!("EndpointSlice {slice}"),
        None => format!("an EndpointSlice (ResourceExport {record})"),
    }
}

/// What the leader has against a record.
fn said(failure: &AntreaCondition) -> String {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    format!("{}: {}", text(&failure.reason), text(&failure.message))
}

/// Before the Common Area has been seen nothing is known of the leader's verdict: what was said of it stands.
fn keep_ready(want: &mut [Condition], have: &[Condition]) {
    let ready = |c: &&Condition| c.type_ == READY;
    // But for what followed from an export that was not valid, and is by now.
    let have = have.iter().find(ready).filter(|have| !is_unexported(have));
    if let (Some(want), Some(have)) = (want.iter_mut().find(|c| ready(&&**c)), have) {
        *want = have.clone();
    }
}

/// Until there is a verdict on the record of now, the one before stands: conflicts neither come nor go for that. What is not exported
/// takes no part in any.
fn keep_conflict(want: &mut Vec<Condition>, have: &[Condition]) {
    let is_exported = want.iter().any(|c| c.type_ == READY && !is_unexported(c));
    if is_exported && !want.iter().any(is_conflict) {
        want.extend(have.iter().find(|c| is_conflict(c)).cloned());
    }
}

/// Whether it is not known before the leader is there whether something is exported: something was, and cannot be as it is now.
fn is_unknown(known: &Known, have: &[Condition]) -> bool {
    let Offered { offer, invalid } = offered(known);
    let was_exported = have.iter().any(|c| c.type_ == READY && !is_unexported(c));
    was_exported && offer.is_none() && invalid.is_some_and(|invalid| !invalid.is_end)
}

/// Whether `Ready` says that nothing is exported.
fn is_unexported(ready: &Condition) -> bool {
    ready.reason == PENDING && ready.status == Status::False.as_str()
}

fn is_conflict(condition: &Condition) -> bool {
    condition.type_ == CONFLICT
}

/// Whether there is a condition which is not to be there any more.
fn is_one_over(have: &[Condition], want: &[Condition]) -> bool {
    let is_gone = |type_: &&str| {
        let has = |conditions: &[Condition]| conditions.iter().any(|c| c.type_ == *type_);
        has(have) && !has(want)
    };
    [CONFLICT, NO_READY_ENDPOINTS, IMPORTED].iter().any(is_gone)
}

/// Whether the leader has not answered.
fn is_pending(verdicts: &[Verdict]) -> bool {
    verdicts.iter().any(|verdict| verdict.reason == PENDING && verdict.status == Status::Unknown)
}

/// What this controller knows and whom it asks. Cloning shares it.
#[derive(Clone)]
pub(crate) struct ExportStatus {
    knowledge: Knowledge,
    /// The watches of the Common Area.
    leader_watches: Watches,
    /// Writes to this cluster.
    writer: Writer,
    events: Events,
    pending: Shared<Pending>,
    unsaid: Shared<Unsaid>,
    unanswered: Shared<Lasting>,
}

impl ExportStatus {
    /// `leader_watches` are those of the Common Area; `writer` writes to this cluster.
    pub(crate) fn new(knowledge: Knowledge, leader_watches: Watches, writer: Writer, events: Events) -> Self {
        let (pending, unsaid, unanswered) = (Shared::default(), Shared::default(), Shared::default());
        Self { knowledge, leader_watches, writer, events, pending, unsaid, unanswered }
    }

    /// Brings the conditions of one ServiceExport up to date.
    pub(crate) async fn reconcile(self, service: ServiceName) -> Result<Outcome, Error> {
        let known = self.knowledge.known(&service).filter(|known| known.entry.unread().is_none());
        let export = known.as_ref().and_then(|known| known.entry.export.as_deref());
        let mut verdicts = known.as_ref().map(desired).unwrap_or_default();
        let Some(export) = export.filter(|_| !verdicts.is_empty()) else {
            self.pending.with(|pending| pending.withdrawn(&service));
            self.unsaid.with(|unsaid| unsaid.take(&service));
            self.unanswered.with(|all| all.forget(&service));
            return Ok(Outcome::Done);
        };
        let have = export.status.0.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
        if !self.leader_watches.are_listed() && known.as_ref().is_some_and(|known| is_unknown(known, have)) {
            return Ok(Outcome::Done);
        }
        let offer = known.as_ref().and_then(|known| offered(known).offer);
        let (verdict, lasts) = self.unanswered.with(|all| match &offer {
            Some(offer) => all.verdict(&service, offer.unanswered(), have, Instant::now()),
            None => all.forget(&service),
        });
        verdicts.extend(verdict);
        let done = lasts.map_or(Outcome::Done, Outcome::Requeue);
        let want = self.want(known.as_ref(), export, have, &verdicts)?;
        if already_said(have, &want.conditions) && !is_one_over(have, &want.conditions) {
            if let Some(before) = self.unsaid.with(|unsaid| unsaid.take(&service)) {
                self.publish(&service, export, &before, &verdicts);
            }
            // The next change waits for an answer of its own.
            if !is_pending(&verdicts) {
                self.pending.with(|pending| pending.ended(&service, Instant::now()));
            }
            return Ok(done);
        }
        let wait = || self.pending.with(|pending| pending.wait(&service, Instant::now()));
        if let Some(wait) = is_pending(&verdicts).then(wait).flatten() {
            return Ok(Outcome::Requeue(wait));
        }
        match self.knowledge.services.put_status(&self.writer, STATUS, export, &want).await {
            // Deleted meanwhile: there is no status to write.
            Err(Error::Gone) => Ok(Outcome::Done),
            Err(error) => {
                self.unsaid.with(|unsaid| unsaid.failed(&service, have));
                Err(error)
            }
            Ok(_) => {
                let before = self.unsaid.with(|unsaid| unsaid.take(&service));
                self.publish(&service, export, before.as_deref().unwrap_or(have), &verdicts);
                Ok(done)
            }
        }
    }

    /// The status that says all this, where `have` is said.
    fn want(
        &self,
        known: Option<&Known>,
        export: &Export,
        have: &[Condition],
        verdicts: &[Verdict],
    ) -> Result<ServiceExportStatus, Error> {
        let mut want = conditions(verdicts, have, export.metadata.generation, &Time(Timestamp::now()));
        keep_conflict(&mut want, have);
        keep_imported(&mut want, have, known.map_or(&Reports::Unknown, |known| &known.cluster.reports));
        if !known.is_some_and(|known| known.cluster.lacking.is_some() || known.antrea_leads()) {
            keep_lack(&mut want, have);
        }
        let is_exported = |verdict: &Verdict| verdict.type_ == READY && verdict.status != Status::False;
        if !self.leader_watches.are_listed() && verdicts.iter().any(is_exported) {
            keep_ready(&mut want, have);
        }
        self.writer.known::<Export, _>(&ServiceExportStatus { conditions: want })
    }

    /// An Event where something is bad now, and one where it is not any more: what simply works needs none.
    fn publish(&self, service: &ServiceName, export: &Export, have: &[Condition], verdicts: &[Verdict]) {
        let was_troubled =
            !is_pending(verdicts) && self.pending.with(|pending| pending.ended(service, Instant::now()));
        for verdict in verdicts {
            let before = have.iter().find(|condition| condition.type_ == verdict.type_);
            let was_bad = before.is_some_and(|before| is_bad(verdict.type_, &before.status, &before.reason));
            let is_bad = is_bad(verdict.type_, verdict.status.as_str(), &verdict.reason);
            let is_another = before.is_none_or(|before| before.reason != verdict.reason || !was_bad);
            let reason = event_reason(verdict);
            if is_bad && is_another {
                self.events.warn(export.object_ref(&()), "Export", reason, &verdict.message);
            } else if verdict.reason == PENDING {
                if was_bad {
                    self.pending.with(|pending| pending.was_troubled(service));
                }
            } else if !is_bad
                && (was_bad || is_news(before, verdict) || was_troubled && verdict.type_ == READY)
            {
                self.events.tell(export.object_ref(&()), "Export", reason, &verdict.message);
            }
        }
    }
}

/// Whether a condition says that somebody has to act. An export that is not valid is not ready either, and that is said once.
fn is_bad(type_: &str, status: &str, reason: &str) -> bool {
    let bad = if [CONFLICT, NO_READY_ENDPOINTS].contains(&type_) { Status::True } else { Status::False };
    status == bad.as_str() && reason != PENDING
}

/// The reason of an Event has at most 128 characters; that of a condition is several words where several things conflict.
fn event_reason(verdict: &Verdict) -> &str {
    if verdict.reason.contains(',') { verdict.type_ } else { &verdict.reason }
}

#[cfg(test)]
mod tests;
