//! What is known of each Service name, from this cluster and from the Common Area: objects as they are read, an entry for each
//! name, how each object lies in its entry, and who reads what.

pub(crate) mod cluster;
pub(crate) mod endpoints;
pub(crate) mod entry;
pub(crate) mod known;
pub(crate) mod limits;
pub(crate) mod links;
mod parts;
pub(crate) mod peer;
mod unread;
pub(crate) mod view;

use kit::index::Readers;
pub(crate) use rules::reports;

/// The controller of exports, as a reader of entries.
pub(crate) const EXPORT: Readers = Readers::one(0);
/// The controller of imports.
pub(crate) const IMPORT: Readers = Readers::one(1);
/// The controller of the ServiceExports' status.
pub(crate) const STATUS: Readers = Readers::one(2);
/// The controller that reads what was not kept.
pub(crate) const READ: Readers = Readers::one(3);
