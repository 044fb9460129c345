//! Who takes part in a Common Area, and whose word counts there. No business: what depends on it is decided in `leader` and
//! `member`.
//!
//! | module | holds |
//! |---|---|
//! | [`lease`] | keeping our own Lease |
//! | [`kin`] | other processes with our cluster's uid: newer ones, and copies of the cluster |
//! | [`restore`] | noticing that an API server was restored from a backup |
//! | `contact` | when something was heard, so that silence counts |
//! | [`leases`] | the table of all Leases, into which every change is folded once |
//! | [`roster`] | which members are there, by that table |
//! | [`standing`] | how it stands with one of them |
//! | [`vouch`] | when an absence may be believed, by that table |
//! | [`wire`] | who speaks another version of the wire contract, by that table |
//! | [`heartbeat`] | members that run Antrea's controllers, whose heartbeats stand for Leases |
//! | [`claim`] | which cluster an announce belongs to, where there are no Leases |

pub mod claim;
mod contact;
pub mod heartbeat;
pub mod kin;
pub mod lease;
pub mod leases;
pub mod restore;
pub mod roster;
mod skew;
pub mod standing;
pub mod vouch;
pub mod wire;
