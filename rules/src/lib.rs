//! What Freeport decides about the Services of a ClusterSet, as functions of plain objects: no IO, no clock.
//!
//! | module | holds |
//! |---|---|
//! | [`view`] | objects as the rules read them |
//! | [`keys`] | exported labels and annotations that Services of imports do not get |
//! | [`unanswered`] | why no endpoint can answer |
//! | [`offer`] | what a cluster offers under one Service name |
//! | [`merged`] | one Service out of all exports, and where they differ |
//! | [`merge`](mod@merge) | the ResourceImport of a Service |
//! | [`import`] | what an importing cluster makes of a merged Service |
//! | [`reports`] | what clusters report of their imports |
//! | [`status`] | conditions of a ServiceExport |
//!
//! Leader and members decide with these rules, and `picture` predicts and explains with them.

pub mod import;
pub mod keys;
pub mod merge;
pub mod merged;
pub mod offer;
pub mod reports;
pub mod status;
pub mod unanswered;
pub mod view;
