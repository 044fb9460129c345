//! What merely vanishes: whatever happens to the leader's cluster, not one import, address or endpoint goes in any member,
//! and everything converges afterwards.

mod kept;

mod crds;
mod records;
mod refused;
mod rejoin;
mod restore;
mod withdrawal;
