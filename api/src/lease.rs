//! Leases: how a member or a leader shows in a Common Area that it is there, and what others read of it.

pub mod digest;

use std::{collections::BTreeSet, time::Duration};

use jiff::Timestamp;
use k8s_openapi::{api::coordination::v1::Lease, apimachinery::pkg::apis::meta::v1::MicroTime};
use kube::{Resource, ResourceExt, core::ObjectMeta};
use serde::Deserialize;

use crate::{
    antrea, label,
    lacking::{Lacking, NAMESPACES},
    quota::Quota,
    ranges::Bounds,
    unwritten::{self, Unwritten},
    view::{Lenient, annotated},
};

/// A Lease that does not say how long it lasts is stale after this long without a renewal.
pub const STALE: Duration = Duration::from_secs(30);
/// The longest that a Lease may say: longer silence always counts.
const LONGEST: i32 = 3600;

/// After how long without a renewal a Lease is stale that says this in `leaseDurationSeconds`, whoever wrote it.
pub fn stale(seconds: Option<i32>) -> Duration {
    let seconds = seconds.filter(|seconds| *seconds > 0);
    seconds.map_or(STALE, |seconds| Duration::from_secs(seconds.min(LONGEST).unsigned_abs().into()))
}

/// The replica that such a holder of the Lease of several replicas is: a Pod, where they run in Pods.
pub fn replica_of(holder: &str) -> &str {
    holder.rsplit_once('_').map_or(holder, |(replica, _)| replica)
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

/// What is read of a Lease, our own included: whoever may write it may put a time there that the API server takes and we cannot
/// hold. Such a field counts as missing, and nothing else does.
#[derive(Resource, Clone, Debug, Deserialize)]
#[resource(inherit = Lease)]
pub struct LeaseView {
    #[serde(deserialize_with = "annotated")]
    metadata: ObjectMeta,
    #[serde(default)]
    spec: Lenient<Spec>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    holder_identity: Lenient<Option<String>>,
    lease_duration_seconds: Lenient<Option<i32>>,
    renew_time: Lenient<Option<MicroTime>>,
}

impl LeaseView {
    /// After how long without a renewal it is stale, as it says itself.
    pub fn stale(&self) -> Duration {
        stale(self.spec().and_then(|spec| spec.lease_duration_seconds.0.clone().ok()?))
    }

    fn spec(&self) -> Option<&Spec> {
        self.spec.0.as_ref().ok()
    }

    /// How far its holder is with what it has to write.
    pub fn settled(&self) -> Settled {
        Settled::said(self.says(label::SETTLED), self.says(label::UNWRITTEN), self.renew_time())
    }

    /// Who holds it; none if nobody does.
    pub fn holder(&self) -> Option<&str> {
        self.spec()?.holder_identity.0.as_ref().ok()?.as_deref().filter(|holder| !holder.is_empty())
    }

    /// uid of the cluster that holds it, where a daemon of ours does.
    pub fn holder_cluster(&self) -> Option<&str> {
        self.holder()?.split_once('/').map(|(uid, _)| uid)
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

    /// Which CRDs of the records its holder found to be whole last, if it says that.
    pub fn schemas(&self) -> Option<&str> {
        self.says(label::SCHEMAS)
    }

    /// What its holder takes in of a member, if it says that.
    pub fn quota(&self) -> Option<Quota> {
        self.says(label::QUOTA).and_then(Quota::said)
    }

    /// Which addresses the endpoints of members may have, if it says that.
    pub fn bounds(&self) -> Option<Bounds> {
        self.says(label::MEMBER_RANGES).map(Bounds::said)
    }

    /// For how long members are silent, as far as its holder has counted, if it says that.
    pub fn silent(&self) -> Option<&str> {
        self.says(label::SILENT)
    }

    /// Clusters without renewals whose endpoints answer its holder, as it said with this renewal.
    pub fn answering(&self) -> impl Iterator<Item = &str> {
        self.says_now(label::ANSWERING).into_iter().flatten()
    }

    /// Namespaces that its holder lacks, if it said that with this renewal.
    pub fn lacks(&self) -> Option<BTreeSet<String>> {
        Some(self.says_now(label::LACKS)?.take(NAMESPACES).map(str::to_owned).collect())
    }

    /// Which members lack Namespaces, if its holder said that with this renewal.
    pub fn lacking(&self) -> Option<Lacking> {
        self.says_now(label::LACKING).map(Lacking::said)
    }

    /// The words of an annotation that begins with the time of the last renewal. A daemon that does not know the annotation leaves it as
    /// it is, with another time.
    fn says_now(&self, annotation: &str) -> Option<impl Iterator<Item = &str>> {
        let mut words = self.says(annotation)?.split_whitespace();
        let renewed = self.renew_time().map(unwritten::time);
        (words.next() == renewed.as_deref()).then_some(words)
    }

    /// What stands for the Lease of a member that has none, with the name, uid and version of `metadata`: it was renewed at `renewed`, and
    /// has nothing left to write.
    pub fn stand_in(metadata: ObjectMeta, renewed: Option<Timestamp>) -> Self {
        let annotations = Some([(label::SETTLED.to_owned(), label::TRUE.to_owned())].into());
        let metadata = ObjectMeta { annotations, ..metadata };
        let spec = Spec { renew_time: Lenient(Ok(renewed.map(MicroTime))), ..Spec::default() };
        Self { metadata, spec: Lenient(Ok(spec)) }
    }

    /// When its holder last renewed it, by the holder's clock: only good for telling renewals apart.
    pub fn renew_time(&self) -> Option<Timestamp> {
        self.spec()?.renew_time.0.as_ref().ok()?.as_ref().map(|time| time.0)
    }

    fn says(&self, annotation: &str) -> Option<&str> {
        self.annotations().get(annotation).map(String::as_str)
    }
}

/// The value of annotation [`ANSWERING`](label::ANSWERING) of a Lease that is renewed at that time: a daemon that does not know the annotation
/// leaves it as it is, so the time says whether it is of this renewal.
pub fn answering(clusters: impl IntoIterator<Item = String>, at: Timestamp) -> String {
    let mut clusters = clusters.into_iter().peekable();
    if clusters.peek().is_none() { String::new() } else { said_now(clusters, at) }
}

/// The value of annotation [`LACKS`](label::LACKS) of a Lease that is renewed at that time.
pub fn lacks(namespaces: BTreeSet<String>, at: Timestamp) -> String {
    said_now(namespaces.into_iter().take(NAMESPACES), at)
}

/// The value of annotation [`LACKING`](label::LACKING) of a leader's Lease that is renewed at that time.
pub fn lacking(said: &Lacking, at: Timestamp) -> String {
    said_now(said.words(), at)
}

fn said_now(words: impl Iterator<Item = String>, at: Timestamp) -> String {
    words.fold(unwritten::time(at), |said, word| said + " " + &word)
}

/// How far the holder of a Lease is with what it has to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Settled {
    /// It cannot see all that it has to: it does not know.
    No,
    /// Its watches are open; this is left to write, perhaps because it is refused again and again.
    Writing(Unwritten),
    /// Its watches are open, and nothing is left to write.
    Yes,
}

impl Settled {
    /// Of a holder whose watches are all open or not, and that has this left to write.
    pub fn of(open: bool, unwritten: Unwritten) -> Self {
        match (open, unwritten.is_nothing()) {
            (false, _) => Self::No,
            (true, false) => Self::Writing(unwritten),
            (true, true) => Self::Yes,
        }
    }

    /// Reads the two annotations of a Lease that was renewed at that time. A word we do not know vouches for nothing.
    fn said(word: Option<&str>, unwritten: Option<&str>, renewed: Option<Timestamp>) -> Self {
        match word {
            Some(label::TRUE) => Self::Yes,
            Some(label::WRITING) => Self::Writing(Unwritten::said(unwritten, renewed)),
            _ => Self::No,
        }
    }

    /// The value of annotation [`SETTLED`](label::SETTLED) that says so.
    pub fn word(&self) -> &'static str {
        match self {
            Self::No => label::FALSE,
            Self::Writing(_) => label::WRITING,
            Self::Yes => label::TRUE,
        }
    }

    /// The value of annotation [`UNWRITTEN`](label::UNWRITTEN) of a Lease that is renewed at that time.
    pub fn unwritten(&self, at: Timestamp) -> String {
        match self {
            Self::Writing(unwritten) => unwritten.annotation(at),
            Self::No | Self::Yes => String::new(),
        }
    }

    /// Whether it says what of its word counts: all of it, or all but what is left to write.
    pub fn is_known(&self) -> bool {
        match self {
            Self::No => false,
            Self::Writing(unwritten) => unwritten.is_known(),
            Self::Yes => true,
        }
    }

    /// Whether nothing is left to write of what has this name ([`named`](crate::unwritten::named)).
    pub fn is_about(&self, name: &str) -> bool {
        match self {
            Self::No => false,
            Self::Writing(unwritten) => !unwritten.has(name),
            Self::Yes => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn decoded(spec: &serde_json::Value) -> LeaseView {
        serde_json::from_value(json!({"metadata": {"name": "l"}, "spec": spec})).unwrap()
    }

    #[test]
    fn a1_what_we_cannot_hold_is_missing_and_hides_nothing_else() {
        for odd in ["9999-12-31T23:59:59Z", "-001-12-31T00:01:00Z", ""] {
            let lease =
                decoded(&json!({"holderIdentity": "u/a", "leaseDurationSeconds": 6, "renewTime": odd}));
            assert_eq!((lease.holder(), lease.renew_time()), (Some("u/a"), None), "{odd}");
            assert_eq!(lease.stale(), Duration::from_secs(6), "{odd}");
        }
        let lease = decoded(&json!({"leaseDurationSeconds": 1e300, "renewTime": "2026-11-01T12:00:00Z"}));
        assert_eq!((lease.stale(), lease.renew_time().is_some()), (STALE, true));
        assert_eq!(decoded(&serde_json::Value::Null).holder(), None);
    }

    proptest! {
        #[test]
        fn a1_no_lease_stops_a_list(
            spec in odd::anything(&["holderIdentity", "leaseDurationSeconds", "renewTime"]),
        ) {
            for lease in odd::everywhere::<LeaseView>(&spec).unwrap() {
                let _ = (lease.holder(), lease.stale(), lease.renew_time(), lease.settled());
            }
        }
    }
}
