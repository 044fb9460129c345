//! How a controller runs here. No business: what to write is decided in `leader` and `member`.
//!
//! The way of a change through a daemon: [`watch`] feeds [`index`], which says whose entry is dirty; the entry's key goes
//! into a [`queue`]; [`drive`] takes it out and calls a controller's `reconcile`, which reads the index, asks a pure
//! `desired`, and sends the difference through [`write`](mod@write), whose answer enters the index at once.
//!
//! | module | holds |
//! |---|---|
//! | [`args`] | flags both daemons share, and the file they can come from |
//! | [`boot`] | a daemon's life from flags to exit |
//! | [`client`] | clients for this cluster and for the leader's |
//! | [`view`] | decoding only what is used, and surviving what does not decode |
//! | [`watch`] | a watch whose failures stay its own |
//! | [`index`] | everything known, by the key it matters to |
//! | [`queue`] | which keys to look at, and when (pure) |
//! | [`backoff`], [`drive`] | how long to wait after failures; running a controller on a queue |
//! | [`write`](mod@write) | create, patch, delete, status: only differences |
//! | [`lease`] | presence in the Common Area |
//! | [`anchor`] | noticing that a Common Area was restored from a backup |
//! | [`heartbeat`] | presence of members that run Antrea's controllers |
//! | [`roster`] | which members are there |
//! | [`vouch`] | when an absence may be believed |
//! | [`failure`] | why a request failed, by what somebody can do about it |
//! | [`events`] | Kubernetes Events |
//! | [`brevity`] | how many lines of one kind a log gets |
//! | [`metrics`], [`serve`] | what an operator sees |

pub mod anchor;
pub mod args;
pub mod backoff;
pub mod boot;
pub mod brevity;
pub mod client;
pub mod drive;
pub mod events;
pub mod failure;
pub mod heartbeat;
pub mod index;
pub mod lease;
pub mod metrics;
pub mod queue;
pub mod roster;
pub mod serve;
pub mod view;
pub mod vouch;
pub mod watch;
pub mod write;
