//! A record whose status has something to say.

use api::{condition::AntreaCondition, resource_export::FAILURE, resource_import::Objection};
use kit::{
    index::{Entry, Part, Readers},
    queue::Party,
};
use kube::{ResourceExt, api::ObjectMeta};

use super::judged::{Judged, Judgement};

/// What there is to do about one record.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Report(pub(crate) Option<Reported>);

/// The record, and what is wrong with it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Reported {
    pub(crate) metadata: ObjectMeta,
    /// Whose it is.
    pub(crate) cluster: String,
    pub(crate) objection: Option<Objection>,
    /// It takes part in nothing.
    pub(crate) is_refused: bool,
    /// What its status says.
    pub(crate) conditions: Vec<AntreaCondition>,
    /// It waits for us to take the finalizer off.
    pub(crate) is_to_release: bool,
    /// Its content is to be read again.
    pub(crate) is_to_read: bool,
}

impl Entry for Report {
    fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// A member may turn thousands of its records at once.
    fn party(&self) -> Party {
        self.0.as_ref().map_or(Party::NOBODY, |reported| Party::of([&reported.cluster]))
    }
}

impl Part<String, Report> for Judged {
    fn key(&self) -> Option<String> {
        let has_failed = self.conditions.iter().any(|c| c.type_.as_deref() == Some(FAILURE));
        let is_due = self.remark.is_some()
            || matches!(self.judgement, Judgement::Refused { .. } | Judgement::Unread { .. });
        (has_failed || is_due || self.is_to_release()).then(|| self.name_any())
    }

    fn put(self, report: &mut Report) -> Readers {
        let (is_to_release, is_to_read) =
            (self.is_to_release(), matches!(self.judgement, Judgement::Unread { .. }));
        let (objection, is_refused) = match self.judgement {
            Judgement::Refused { objection, .. } => (Some(objection), true),
            _ => (self.remark, false),
        };
        let Self { metadata, cluster, conditions, .. } = self;
        let new = Some(Reported {
            metadata,
            cluster,
            objection,
            is_refused,
            conditions,
            is_to_release,
            is_to_read,
        });
        Readers::ALL.when(std::mem::replace(&mut report.0, new.clone()) != new)
    }

    fn take(report: &mut Report, _: &str) -> Readers {
        Readers::ALL.when(report.0.take().is_some())
    }
}
