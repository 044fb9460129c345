//! What is known of one Service name, and whose a record is. Depends on no controller.

pub(super) mod entry;
pub(super) mod gather;
pub(super) mod identity;
pub(super) mod judged;
pub(super) mod ledger;
mod payload;
pub(super) mod record;
pub(super) mod report;
