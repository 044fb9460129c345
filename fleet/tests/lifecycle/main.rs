//! Fleets on this machine, with the real programs. The first run ever builds them, which takes minutes.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod cluster;
mod command;
mod failure;
mod owner;
mod programs;
