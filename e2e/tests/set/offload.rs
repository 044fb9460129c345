//! Offloading of Namespaces, between a home and a host.

mod consent;
mod round;
mod world;
