//! The state of a session: what the membership reads.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use api::{membership::Wire, ranges::Ranges};
use kit::{failure::Failure, watch::Watches};
use presence::standing::Standing;

use super::{
    credential::Renewal,
    table::{Blind, Table},
};
use crate::feature::{Access, Shortfall};

/// Once a session is present at the leader, the first lists come within seconds, or something is wrong.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// How well a session works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Health {
    /// The leader has not answered yet.
    Connecting,
    /// Present at the leader, and all watches have listed.
    Connected {
        /// Seconds by which the leader's clock is ahead of ours, if that is too much.
        skew: Option<i64>,
        /// Whose leader it is.
        wire: Wire,
        /// The leader's daemon does not renew its Lease, though its API server answers.
        leader_is_silent: bool,
        /// What the CRDs of this cluster lack: a text for each kind.
        lacking: Vec<String>,
        /// Another running cluster waits for our ID: how it would hold our Lease.
        rival: Option<String>,
        /// Who speaks another version of the wire contract, by the names of their Leases.
        foreign: BTreeMap<String, String>,
    },
    /// Present at the leader, but something cannot be watched, in this cluster or in the Common Area.
    Blind(Vec<Blind>),
    /// The leader's API server drops fields that a feature writes.
    Pruned {
        /// Name of the feature.
        feature: &'static str,
        /// Which fields.
        what: String,
    },
    /// The leader does not answer any more, or refuses us.
    Lost {
        /// Why.
        failure: Failure,
    },
    /// Another running cluster has our ID.
    IdTaken {
        /// Holder of our Lease; under a leader of Antrea's the uid of the cluster in our announce.
        holder: String,
        /// Whose leader it is.
        wire: Wire,
    },
}

/// What a session tells the membership.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SessionState {
    /// How well it works.
    pub(crate) health: Health,
    /// Whose leader it is.
    pub(crate) wire: Wire,
    /// All members of the set, by cluster ID.
    pub(crate) members: BTreeMap<String, Standing>,
    /// Which addresses our endpoints may have; none while the leader has not said it.
    pub(crate) ranges: Option<Ranges>,
    /// What is not imported here, though nothing failed; none while that is not known.
    pub(crate) shortfalls: Option<Vec<Shortfall>>,
    /// How it stands with our token; none while that is not known.
    pub(crate) renewal: Option<Renewal>,
}

impl Default for SessionState {
    fn default() -> Self {
        Self {
            health: Health::Connecting,
            wire: Wire::Freeport,
            members: BTreeMap::new(),
            ranges: None,
            shortfalls: None,
            renewal: None,
        }
    }
}

/// What a session has found out itself.
#[derive(Default)]
pub(super) struct Seen {
    /// What the CRDs of this cluster lack.
    pub(super) lacking: Vec<String>,
    /// Who waits for our ID.
    pub(super) rival: Option<String>,
}

/// What a session sees that has been present at the leader for so long. `common` are the watches that all features need.
pub(super) fn seen(
    access: &Access,
    table: &Table,
    common: &Watches,
    found: Seen,
    present_for: Duration,
) -> Health {
    let now = Instant::now();
    let blind: Vec<_> = Blind::of(None, &[common], now).into_iter().chain(table.blind(now)).collect();
    if !blind.is_empty() {
        return if present_for < PATIENCE { Health::Connecting } else { Health::Blind(blind) };
    }
    if let Some((feature, what)) = table.pruned() {
        return Health::Pruned { feature, what };
    }
    access.leases.with(|leases| Health::Connected {
        wire: access.wire,
        skew: leases.skew(),
        leader_is_silent: leases.leader_is_silent(),
        lacking: found.lacking,
        rival: found.rival,
        foreign: leases.foreign(),
    })
}
