//! Fleets with nodes: Pods run and reach each other, and nothing of it stays on this machine. Each test has a fleet of its own.

use e2e::{
    schedule::Place,
    turn::{Turn, turn_for_own},
};

mod end;
mod families;
mod pods;
mod traces;

const PLACE: Place = Place { name: "nodes", planes: 4, copies: 1 };

/// One test at a time, since each looks for what the others leave.
async fn in_turn() -> Turn {
    turn_for_own(PLACE).await
}
