//! Tests of the whole on clusters with nodes, on which Pods run. They need root and some packages, and say so where they have not.

#![cfg(test)]

mod nodes;
mod pods;
