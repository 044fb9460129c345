//! What is known of a whole ClusterSet from listed objects of any number of clusters, and what follows from it: findings with codes.
//!
//! | module | holds |
//! |---|---|
//! | [`step`] | the steps from the exporters of a Service to an importer |
//! | [`view`] | objects as they are read |
//! | [`sign`] | what the last renewal of a Lease shows |
//! | [`age`] | how long ago something was, in words |
//! | [`gap`] | why something is not known |
//! | [`cluster`] | what is known of one cluster, gaps included |
//! | [`member`] | the member of a cluster: whether it runs and is connected |
//! | `said` | codes of what conditions say |
//! | [`dns`] | CoreDNS of a cluster, and whether it gives imports names |
//! | [`code`] | the table of codes: title, cause, what to try |
//! | [`finding`] | one finding: a code, and what is so in these clusters |
//! | [`listing`] | exports, imports and Services as rows |
//! | [`check`](mod@check) | judges whole clusters, and the set that they are |
//! | [`plan`](mod@plan) | predicts what a change of exports does |
//! | [`why`](mod@why) | walks from the exporters of a Service to one importer, and stops where it is broken |
//!
//! No IO and no clock: the time is an argument. What could not be looked at is a [`Gap`](gap::Gap), never an error.

pub mod age;
pub mod check;
pub mod cluster;
pub mod code;
pub mod dns;
pub mod finding;
pub mod gap;
pub mod listing;
pub mod member;
mod near;
pub mod plan;
mod said;
pub mod sign;
pub mod step;
pub mod view;
pub mod why;
