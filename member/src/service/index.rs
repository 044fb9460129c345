//! What is known of each Service name, from this cluster and from the Common Area: objects as they are read, an entry for each
//! name, how each object lies in its entry, and who reads what.

pub(crate) mod cluster;
pub(crate) mod endpoints;
pub(crate) mod entry;
pub(crate) mod known;
mod packed;
mod parts;
pub(crate) mod peer;
pub(crate) mod view;

use kit::index::Readers;

/// The controller of exports, as a reader of entries.
pub(crate) const EXPORT: Readers = Readers::one(0);
/// The controller of imports.
pub(crate) const IMPORT: Readers = Readers::one(1);
/// The controller of the ServiceExports' status.
pub(crate) const STATUS: Readers = Readers::one(2);
