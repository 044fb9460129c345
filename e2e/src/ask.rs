//! What a Pod gets to hear when it asks a server over the network.

use std::collections::BTreeSet;

use fleet::agnhost;
pub use fleet::agnhost::Protocol;
use futures::future::try_join_all;

use crate::cluster::Cluster;

/// How many times [`Cluster::answers_to`] asks: that one of a few servers is missed by chance is rare, and then it is asked again.
const TIMES: usize = 32;

impl Cluster {
    /// Asks a server from a Pod of [`Cluster::run_server`], over a connection of its own: `hostname`, `clientip`.
    pub async fn ask_from(
        &self,
        from: (&str, &str),
        protocol: Protocol,
        server: (&str, u16),
        what: &str,
    ) -> Result<String, String> {
        let asked = agnhost::ask(&self.client, from, protocol, server, what).await;
        asked.map_err(|error| error.to_string())?
    }

    /// The names of all servers that answer at an address; an error if any question had none.
    pub async fn answers_to(
        &self,
        from: (&str, &str),
        protocol: Protocol,
        server: (&str, u16),
    ) -> Result<BTreeSet<String>, String> {
        let asked = (0..TIMES).map(|_| self.ask_from(from, protocol, server, "hostname"));
        try_join_all(asked).await.map(BTreeSet::from_iter)
    }
}
