//! What is measured, the same for both sides.

mod churn;
mod idle;
mod in_and_out;
mod start;
mod unused;

pub(crate) use self::{
    churn::churn,
    idle::idle,
    in_and_out::{bulk, single, withdraw},
    start::{join, member, restart},
    unused::unused,
};
