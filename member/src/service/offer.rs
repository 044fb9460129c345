//! What this cluster offers under one Service name: pure. What that is, decides [`rules::offer`].
//!
//! What cannot be exported as it is keeps its last valid export, which its record in the Common Area says: nothing else remembers it.

mod kept;
pub(crate) mod record;

use rules::offer::asked_for;
pub(crate) use rules::offer::{Offer, Offered};

use self::kept::last_valid;
pub(crate) use self::kept::still_exported;
use crate::service::index::known::Known;

/// What this cluster offers under that name: nothing without a ServiceExport, and not everything can be exported.
pub(crate) fn offered(known: &Known) -> Offered<'_> {
    let entry = &known.entry;
    let asked = match entry.export.as_deref() {
        Some(export) => Some(asked_for(export)),
        None => still_exported(known.us(), entry).map(Ok),
    };
    rules::offer::offered(known.local(), asked, || last_valid(known))
}

/// What this cluster exports under that name.
pub(crate) fn offer(known: &Known) -> Option<Offer<'_>> {
    offered(known).offer
}

/// Whether this cluster offers something under that name.
pub(crate) fn is_offered(known: &Known) -> bool {
    offer(known).is_some()
}

#[cfg(test)]
pub(crate) mod fixture;
#[cfg(test)]
mod tests;
