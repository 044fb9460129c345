//! Services across three real clusters, by the daemons as users run them. One fleet serves all tests; each has a
//! Namespace of its own, and those that stop daemons run alone.

#![cfg(test)]

mod audit;
mod bad_input;
mod drift;
mod export;
mod fixture;
mod merge;
mod namespace;
mod process;
mod restart;
mod seen;
