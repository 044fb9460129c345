//! Fleets with nodes: Pods run and reach each other, and nothing of it stays on this machine. Each test has a fleet of
//! its own; they need root and some packages, and say so where they have not.

#![cfg(test)]

mod end;
mod families;
mod pods;
mod traces;
