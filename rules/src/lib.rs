//! What Freeport decides about the Services of a ClusterSet, as functions of plain objects: no IO, no clock.
//!
//! | module | holds |
//! |---|---|
//! | [`merged`] | one Service out of all exports, and where they differ |
//!
//! The leader decides with these rules, and `picture` predicts and explains with them.

pub mod merged;
