//! The connections on which a contract watches: an API server allows a client about 100 streams on one, and a process has only so many.

use std::sync::Arc;

use kit::client::{Dial, kubeconfig::Target};
use kube::Client;

/// Watches that share a connection.
const WATCHES: usize = 60;
/// Connections of one contract at the most.
const CONNECTIONS: usize = 50;
/// Watches of one contract at the most.
pub(crate) const WATCHES_MAX: usize = WATCHES * CONNECTIONS;

/// Held by a watch for as long as it needs its connection.
pub(crate) struct Stream {
    _held: Arc<()>,
}

/// Those of one contract.
pub(super) struct Connections {
    dial: Dial,
    target: Target,
    open: Vec<(Client, Arc<()>)>,
}

impl Connections {
    pub(super) fn new(dial: Dial, target: Target) -> Self {
        Self { dial, target, open: Vec::new() }
    }

    /// A client for one more watch; nothing where there are too many.
    pub(super) fn one_more(&mut self) -> Option<(Client, Stream)> {
        self.open.retain(|(_, watches)| Arc::strong_count(watches) > 1);
        let has_room = |(_, watches): &&(Client, Arc<()>)| Arc::strong_count(watches) <= WATCHES;
        let found = self.open.iter().find(has_room).cloned();
        let (client, watches) = match found {
            Some(found) => found,
            None if self.open.len() >= CONNECTIONS => return None,
            None => {
                let new = (self.dial.connect(&self.target).ok()?, Arc::new(()));
                self.open.push(new.clone());
                new
            }
        };
        Some((client, Stream { _held: watches }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bind::fixture::kubeconfig;

    #[tokio::test]
    async fn a_contract_has_only_so_many_connections_and_those_of_ended_watches_are_free_again() {
        let target = Target::read(&kubeconfig("kube-bind-37p3oxx6sh4fd", "t")).unwrap();
        let mut connections = Connections::new(Dial::default(), target);
        let mut all: Vec<_> = std::iter::from_fn(|| connections.one_more()).collect();
        assert_eq!((all.len(), connections.open.len()), (WATCHES_MAX, CONNECTIONS));
        all.truncate(WATCHES);
        assert!(connections.one_more().is_some());
        assert_eq!(connections.open.len(), 2, "one is full, and the others are closed but for a new one");
    }
}
