//! Tests of the whole on clusters without nodes. One program, so that tests that wait do so side by side: the test runner starts all
//! of them at once, and how many run is decided by what they share (`e2e::shared`, `e2e::fixture`).

#![cfg(test)]

mod areas;
mod bind;
mod cli;
mod rights;
mod set;
