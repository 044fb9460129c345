//! Leases: how a member or a leader shows in a Common Area that it is there, and what others read of it.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::{
    api::coordination::v1::{Lease, LeaseSpec},
    apimachinery::pkg::apis::meta::v1::MicroTime,
};
use kube::{Resource, ResourceExt, core::ObjectMeta};
use serde::Deserialize;

use crate::{antrea, label, view::annotated};

/// A Lease that does not say how long it lasts is stale after this long without a renewal.
pub const STALE: Duration = Duration::from_secs(30);
/// The longest that a Lease may say: longer silence always counts.
const LONGEST: i32 = 3600;

/// After how long without a renewal a Lease is stale that says this in `leaseDurationSeconds`, whoever wrote it.
pub fn stale(seconds: Option<i32>) -> Duration {
    let seconds = seconds.filter(|seconds| *seconds > 0);
    seconds.map_or(STALE, |seconds| Duration::from_secs(seconds.min(LONGEST).unsigned_abs().into()))
}

/// How often the holder of a Lease renews it: three times before it is stale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    seconds: u16,
}

impl Default for Pace {
    fn default() -> Self {
        Self::lasting(30)
    }
}

impl Pace {
    /// Of a Lease that is stale so many seconds after its last renewal.
    pub const fn lasting(seconds: u16) -> Self {
        Self { seconds }
    }

    /// What a Lease of this pace says in `leaseDurationSeconds`.
    pub fn seconds(self) -> i32 {
        self.seconds.into()
    }

    /// A Lease that was not renewed for this long is stale.
    pub fn stale(self) -> Duration {
        Duration::from_secs(self.seconds.into())
    }

    /// How often a Lease is renewed.
    pub fn renew(self) -> Duration {
        self.stale() / 3
    }
}

/// What others read of a Lease.
#[derive(Resource, Clone, Debug, Deserialize)]
#[resource(inherit = Lease)]
pub struct LeaseView {
    #[serde(deserialize_with = "annotated")]
    metadata: ObjectMeta,
    #[serde(default)]
    spec: LeaseSpec,
}

impl LeaseView {
    /// After how long without a renewal it is stale, as it says itself.
    pub fn stale(&self) -> Duration {
        stale(self.spec.lease_duration_seconds)
    }

    /// How far its holder is with what it has to write. A word we do not know vouches for nothing.
    pub fn settled(&self) -> Settled {
        match self.says(label::SETTLED) {
            Some(label::TRUE) => Settled::Yes,
            Some(label::WRITING) => Settled::Writing,
            _ => Settled::No,
        }
    }

    /// Who holds it; none if nobody does.
    pub fn holder(&self) -> Option<&str> {
        self.spec.holder_identity.as_deref().filter(|holder| !holder.is_empty())
    }

    /// Version of the daemon that holds it.
    pub fn version(&self) -> Option<&str> {
        self.says(label::VERSION)
    }

    /// Version of the wire contract that its holder speaks.
    pub fn wire(&self) -> Option<&str> {
        self.says(label::WIRE)
    }

    /// Whether its cluster was removed from the set for good.
    pub fn has_left(&self) -> bool {
        self.says(label::LEFT) == Some(label::TRUE)
    }

    /// The members that run Antrea's controllers, if its holder says anything about that.
    pub fn antrea_members(&self) -> Option<antrea::Members> {
        self.says(label::ANTREA_MEMBERS).map(antrea::Members::named)
    }

    /// What stands for the Lease `name` of a member that has none: it was renewed at `renewed`, and has nothing left to write.
    pub fn stand_in(name: String, uid: Option<String>, renewed: Option<Timestamp>) -> Self {
        let annotations = [(label::SETTLED.to_owned(), label::TRUE.to_owned())].into();
        let metadata =
            ObjectMeta { name: Some(name), uid, annotations: Some(annotations), ..ObjectMeta::default() };
        Self { metadata, spec: LeaseSpec { renew_time: renewed.map(MicroTime), ..LeaseSpec::default() } }
    }

    /// When its holder last renewed it, by the holder's clock: only good for telling renewals apart.
    pub fn renew_time(&self) -> Option<Timestamp> {
        self.spec.renew_time.as_ref().map(|time| time.0)
    }

    fn says(&self, annotation: &str) -> Option<&str> {
        self.annotations().get(annotation).map(String::as_str)
    }
}

/// How far the holder of a Lease is with what it has to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    /// It cannot see all that it has to: it does not know.
    No,
    /// Its watches are open; something is left to write, perhaps because it is refused again and again.
    Writing,
    /// Its watches are open, and nothing is left to write.
    Yes,
}

impl Settled {
    /// Of a holder whose watches are all open or not, and that has nothing left to write or has.
    pub fn of(open: bool, idle: bool) -> Self {
        match (open, idle) {
            (false, _) => Self::No,
            (true, false) => Self::Writing,
            (true, true) => Self::Yes,
        }
    }

    /// The value of annotation [`SETTLED`](label::SETTLED) that says so.
    pub fn word(self) -> &'static str {
        match self {
            Self::No => label::FALSE,
            Self::Writing => label::WRITING,
            Self::Yes => label::TRUE,
        }
    }
}
