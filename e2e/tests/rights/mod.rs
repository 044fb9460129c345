//! Who may do what, as an API server enforces it that is the leader's and a member's: a member among the records of others, users
//! of a Namespace among ServiceImports. No daemon runs.

mod account;
mod attempt;
mod bind;
mod common_area;
mod fairness;
mod hostile;
mod imports;
mod member;
mod mistakes;
mod offload;
mod others;
mod own;
mod parties;
mod pods;
mod policies;
mod records;
mod samples;
