//! Antrea's controllers at the other end: [members](peers) that write as they do, and [a leader](leader) of theirs. Pure.

pub(crate) mod leader;
pub(crate) mod peers;
