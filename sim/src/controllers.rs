//! Controllers of Kubernetes that every cluster has.
//!
//! | module | does |
//! |---|---|
//! | `namespaces` | fills new Namespaces, empties terminating ones |
//! | `garbage` | deletes what has lost all owners |
//! | `deployments` | keeps as many Pods as a Deployment wants |
//! | `nodes` | finds Nodes that are not ready, and tells their Pods |
//! | `pods` | deletes Pods that a Node does not take, or that have lost theirs |

mod deployments;
mod garbage;
mod namespaces;
mod nodes;
mod pods;

use crate::api::Server;

impl Server {
    /// Runs all controllers once, and sends the bookmarks of watches that are due.
    pub fn tick(&self) {
        let mut state = self.lock();
        namespaces::fill(&mut state);
        namespaces::empty(&mut state);
        garbage::release(&mut state);
        garbage::collect(&mut state);
        deployments::scale(&mut state);
        nodes::check(&mut state);
        pods::evict(&mut state);
        pods::collect(&mut state);
        state.send_bookmarks();
    }
}
