//! Controllers of Kubernetes that every cluster has: contents of Namespaces, garbage collection.

mod garbage;
mod namespaces;

use crate::api::Server;

impl Server {
    /// Runs all controllers once, and sends the bookmarks of watches that are due.
    pub fn tick(&self) {
        let mut state = self.lock();
        namespaces::fill(&mut state);
        namespaces::empty(&mut state);
        garbage::collect(&mut state);
        state.send_bookmarks();
    }
}
