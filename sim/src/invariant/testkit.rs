//! Writes for unit tests.

use std::time::Duration;

use super::{Author, Process, Write};

/// A daemon without replicas.
pub(super) fn by(program: &'static str, cluster: &str) -> Author {
    Author::Daemon(Process { program, cluster: cluster.to_owned(), replica: None })
}

/// A replica of a member.
pub(super) fn replica(cluster: &str, replica: &str) -> Author {
    Author::Daemon(Process {
        program: "freeport-member",
        cluster: cluster.to_owned(),
        replica: Some(replica.to_owned()),
    })
}

/// A write of `shop/web` at the start.
pub(super) fn write<'a>(cluster: &'a str, kind: &'a str, author: &'a Author) -> Write<'a> {
    Write {
        at: Duration::ZERO,
        cluster,
        kind,
        namespace: "shop",
        name: "web",
        before: None,
        after: None,
        author,
    }
}
