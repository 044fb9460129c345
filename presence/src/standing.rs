//! How it stands with the holder of a Lease.

use api::{
    cluster_set::READY,
    condition::{Status, Verdict},
};
use jiff::Timestamp;

/// How it stands with a member, or with the leader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Its Lease was there when we started, and was not renewed since: what was known before stays.
    Unheard,
    /// It renews its Lease.
    Present,
    /// It does not renew its Lease.
    Silent {
        /// When it last did, by its own clock.
        since: Option<Timestamp>,
    },
}

impl Standing {
    /// What a ClusterSet says about such a member; `None` while nothing is known.
    pub fn verdict(&self) -> Option<Verdict> {
        match self {
            Standing::Unheard => None,
            Standing::Present => Some(Verdict::new(READY, Status::True, "Connected", "Member Connected")),
            Standing::Silent { since } => {
                let since = since.map_or_else(
                    || "it joined".to_owned(),
                    |at| at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
                );
                let message = format!("no renewal of its Lease since {since}");
                Some(Verdict::new(READY, Status::False, "Disconnected", message))
            }
        }
    }
}
