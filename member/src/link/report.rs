//! What a link tells of itself.

use std::collections::BTreeMap;

use api::membership::Wire;
use kit::{failure::Failure, watch::Trouble};
use presence::standing::Standing;

/// How it stands with the link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// No answer yet.
    Connecting,
    /// Present at the leader, and everything has been seen once.
    Connected {
        /// Seconds by which the leader's clock is ahead of ours, if that is too much.
        skew: Option<i64>,
        /// Whose leader it is.
        wire: Wire,
        /// The leader's daemon has stopped renewing its Lease, though its API server answers.
        leader_is_silent: bool,
        /// What the CRDs of this cluster do not know of what we write, in words, a kind each.
        lacking: Vec<String>,
    },
    /// Present at the leader, but something cannot be watched, here or there.
    Blind {
        /// What, as far as it is known why.
        troubles: Vec<Trouble>,
        /// Kinds that were never listed.
        unlisted: Vec<&'static str>,
    },
    /// The leader's API server throws away a part of what we write.
    Pruned {
        /// Which, in words.
        what: String,
    },
    /// No answer any more, or a refusal.
    Lost {
        /// Why.
        failure: Failure,
    },
    /// A live cluster has our ID.
    IdTaken {
        /// Who.
        holder: String,
    },
}

/// What a link tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// How it stands with the link.
    pub state: State,
    /// Whose leader it is, once we are present there.
    pub wire: Wire,
    /// How it stands with all members of the set, by cluster ID.
    pub members: BTreeMap<String, Standing>,
}

impl Default for Report {
    fn default() -> Self {
        Self { state: State::Connecting, wire: Wire::Freeport, members: BTreeMap::new() }
    }
}
