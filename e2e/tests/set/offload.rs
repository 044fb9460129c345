//! Offloading of Namespaces, between a home and a host.

mod consent;
mod crowd;
mod guest;
mod hosted;
mod hosts;
mod life;
mod pods;
mod round;
mod vanish;
mod world;
