//! What is measured, the same for both sides.

mod churn;
mod hollow;
mod idle;
mod in_and_out;
mod start;
mod unused;

pub(crate) use self::{
    churn::churn,
    hollow::hollow,
    idle::idle,
    in_and_out::{bulk, single, withdraw},
    start::{join, member, restart},
    unused::unused,
};
