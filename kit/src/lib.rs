//! How a controller runs here. No business: what to write is decided in `leader` and `member`.
//!
//! The way of a change through a daemon: [`watch`] feeds [`index`], which says whose entry is dirty; the entry's key goes
//! into a [`queue`]; [`drive`] takes it out and calls a controller's `reconcile`, which reads the index, asks a pure
//! `desired`, and sends the difference through [`write`](mod@write), whose answer enters the index at once.
//!
//! | module | holds |
//! |---|---|
//! | [`args`] | flags that programs share, and the file they can come from |
//! | [`boot`] | a program's life from flags to exit |
//! | [`holder`] | which process of which cluster this is |
//! | [`election`] | which of several replicas is active |
//! | [`hold`] | whether this process may write |
//! | [`client`] | clients for this cluster and for the leader's |
//! | [`certificate`] | certificates of servers: when they count, and who trusts them |
//! | [`watch`] | a watch whose failures stay its own |
//! | [`quota`] | what is kept of each writer's objects, where many write into one Namespace |
//! | [`list`] | lists that are read once |
//! | [`custom`] | objects of kinds that are known only at run time |
//! | [`objects`] | objects by name, guarded against late news |
//! | [`index`] | everything known, by the key it matters to |
//! | [`store`] | an index and the queues of the controllers that read it |
//! | [`queue`] | which keys to look at, and when (pure) |
//! | [`crowd`] | who lists when many have to |
//! | [`backoff`], [`drive`] | how long to wait after failures; running a controller on a queue |
//! | [`write`](mod@write) | create, patch, delete, status: only differences |
//! | [`failure`] | why a request failed, by what somebody can do about it |
//! | [`events`] | Kubernetes Events |
//! | [`log_limit`] | how many lines of one kind a log gets |
//! | [`metrics`], [`serve`] | what an operator sees |
//! | [`planted`] | defects that a test puts into a daemon |

pub mod args;
pub mod backoff;
pub mod boot;
pub mod certificate;
pub mod client;
pub mod crowd;
pub mod custom;
pub mod drive;
pub mod election;
pub mod events;
pub mod failure;
pub mod hold;
pub mod holder;
pub mod index;
pub mod list;
pub mod log_limit;
pub mod metrics;
pub mod objects;
pub mod planted;
pub mod queue;
pub mod quota;
pub mod serve;
pub mod store;
pub mod watch;
pub mod write;
