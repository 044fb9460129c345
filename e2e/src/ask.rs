//! What a Pod gets to hear when it asks a server over the network.

use std::collections::BTreeSet;

use fleet::agnhost;
pub use fleet::agnhost::Protocol;
use futures::future::try_join_all;

use crate::cluster::Cluster;

/// How many times [`Cluster::answers_to`] asks: that one of a few servers is missed by chance is rare, and then it is asked again.
const TIMES: usize = 32;

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Silence {
    /// The Pod has asked, and this is what came of it.
    NoAnswer(String),
    /// The Pod could not be told to ask.
    NotAsked(String),
}

impl Cluster {
    /// Asks a server from a Pod of [`Cluster::run_server`], over a connection of its own: `hostname`, `clientip`.
    pub async fn ask_from(
        &self,
        from: (&str, &str),
        protocol: Protocol,
        server: (&str, u16),
        what: &str,
    ) -> Result<String, Silence> {
        let asked = agnhost::ask(&self.client, from, protocol, server, what).await;
        asked.map_err(|error| Silence::NotAsked(error.to_string()))?.map_err(Silence::NoAnswer)
    }

    /// The names of all servers that answer at an address; an error if any question had none.
    pub async fn answers_to(
        &self,
        from: (&str, &str),
        protocol: Protocol,
        server: (&str, u16),
    ) -> Result<BTreeSet<String>, Silence> {
        let asked = (0..TIMES).map(|_| self.ask_from(from, protocol, server, "hostname"));
        try_join_all(asked).await.map(BTreeSet::from_iter)
    }
}
