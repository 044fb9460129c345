//! Offloading of Namespaces, between a home and a host.

mod commands;
mod consent;
mod crowd;
mod deserted;
mod foreign;
mod guest;
mod hosted;
mod hosts;
mod left_behind;
mod life;
mod lists;
mod missing;
mod node;
mod pods;
mod refused_writes;
mod restored;
mod rogue;
mod round;
mod silence;
mod vanish;
mod withdrawal;
mod world;
