//! What can be wrong with a link to an API server: a proxy for one daemon that does it on demand. It has the API server's own certificate, and
//! passes the daemon's own token on.
//!
//! | module | does |
//! |---|---|
//! | [`wire`] | to bytes: a link that is cut, half open, far or narrow |
//! | [`requests`] | to requests and answers: resets, refusals, GOAWAY |

mod requests;
mod wire;

use std::{sync::Arc, time::Duration};

use fleet::Cluster;
use sim::net;

use self::{requests::Requests, wire::Wire};

/// What a link far away, or a narrow one, takes in each direction.
const FAR: Duration = Duration::from_millis(300);
const NARROW: Duration = Duration::from_secs(2);

/// What is wrong with a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Connections break, and new ones are reset.
    Cut,
    /// On connections nothing comes through any more, and nobody ends them. New ones work.
    HalfOpen,
    /// What is sent takes 300 ms in each direction.
    Far,
    /// 64 kbit/s and 300 ms in each direction of a connection.
    Narrow,
    /// Watches begin anew, and lists break off in the middle.
    ResetInList,
    /// Watches break off in the middle of an event.
    ResetInEvent,
    /// Watches are told again and again that their version is too old.
    Expired,
    /// 429, with Retry-After.
    TooMany,
    /// 503.
    Unavailable,
    /// Each connection is told again and again that it shall end.
    GoAway,
}

impl Fault {
    pub const ALL: [Self; 10] = [
        Self::Cut,
        Self::HalfOpen,
        Self::Far,
        Self::Narrow,
        Self::ResetInList,
        Self::ResetInEvent,
        Self::Expired,
        Self::TooMany,
        Self::Unavailable,
        Self::GoAway,
    ];

    /// The same on a simulated network, as far as there is the same.
    pub(crate) fn of_network(self) -> net::Fault {
        match self {
            Self::Cut => net::Fault::Cut,
            Self::HalfOpen => net::Fault::Silent,
            Self::Far => net::Fault::Slow(FAR),
            Self::Narrow => net::Fault::Slow(NARROW),
            Self::TooMany => net::Fault::Refused(429),
            Self::Unavailable => net::Fault::Refused(503),
            Self::ResetInList | Self::ResetInEvent | Self::Expired | Self::GoAway => net::Fault::NoWatches,
        }
    }
}

/// A link on which something can be wrong, until it is dropped.
pub struct Link {
    /// Where a daemon finds the API server.
    pub server: String,
    wire: Arc<Wire>,
    requests: Arc<Requests>,
}

impl Link {
    /// To the cluster's API server.
    pub async fn to(cluster: &Cluster) -> Self {
        let requests = Requests::to(cluster).await;
        let wire = Wire::to(requests.address).await;
        Self { server: format!("https://{}", wire.address), wire, requests }
    }

    /// From now on this is wrong; nothing else, or nothing.
    pub fn set(&self, fault: Option<Fault>) {
        self.requests.set(fault);
        self.wire.set(fault);
    }
}
