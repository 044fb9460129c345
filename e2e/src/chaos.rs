//! Users and faults at random, by a seed, and what has to be everywhere when it is over.
//!
//! | module | holds |
//! |---|---|
//! | [`plan`] | what happens, and when: pure |
//! | [`places`] | names of what users have |
//! | [`beginning`] | what there is before |
//! | [`crew`] | daemons as kubelets run them, on links that can be out of order |
//! | [`users`] | what users do, done |
//! | [`disorders`] | faults, made and ended |
//! | [`run`] | a plan, carried out |
//! | [`held`] | what the clusters hold |
//! | `lost` | what a backup may lack: pure |
//! | [`oracle`] | what has to be there, by what users have: pure |
//! | [`vigil`] | imports that nobody takes back, watched all along |
//! | [`trial`] | a run, and everything that has to be right in it |
//! | [`hunt`] | trials of many seeds on the simulated ground |
//! | [`coverage`] | which operations met which faults: pure |
//! | [`shrink`] | fewer steps that fail in the same way |
//! | [`traces`] | what the daemons wrote: pure |

pub mod beginning;
pub mod coverage;
pub mod crew;
pub mod disorders;
pub mod held;
pub mod hunt;
mod lost;
pub mod oracle;
pub mod places;
pub mod plan;
pub mod run;
pub mod shrink;
pub mod traces;
pub mod trial;
pub mod users;
pub mod vigil;
