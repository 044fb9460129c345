//! Who may do what, as the API servers of a ClusterSet enforce it: a member with its real token among the records of
//! others, users of a Namespace among ServiceImports. No daemon runs but in the one test that starts them.

#![cfg(test)]

mod account;
mod attempt;
mod common_area;
mod daemons;
mod imports;
mod mistakes;
mod others;
mod own;
mod parties;
mod pods;
mod policies;
mod records;
