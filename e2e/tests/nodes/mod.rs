//! Fleets with nodes: Pods run and reach each other, and nothing of it stays on this machine. Each test has a fleet of its own.

use tokio::sync::Mutex;

mod end;
mod families;
mod pods;
mod traces;

/// One test at a time: a node takes 650 MB.
static TURN: Mutex<()> = Mutex::const_new(());
