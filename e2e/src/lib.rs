//! What tests of the whole system share: a ClusterSet on a real fleet, what users do there and what they see.
//!
//! | module | holds |
//! |---|---|
//! | `accept` | accepts connections for proxies |
//! | [`account`] | clients by the token of a ServiceAccount |
//! | [`answering`] | a server that can fall silent |
//! | [`antrea`] | plays a member that runs Antrea's controllers |
//! | [`antrea_leader`] | plays a leader of Antrea |
//! | [`binding`](mod@binding) | a provider of APIs and its consumers |
//! | [`shared`] | what several tests use, made once |
//! | [`world`] | a fleet, its administrators and its daemons |
//! | [`fixture`] | ClusterSet `demo`: for tests that get along, and for a test alone |
//! | [`forbidden`] | what an administrator forbids by a policy |
//! | [`chaos`] | users and faults at random, and what has to be there when it is over |
//! | [`cluster`] | an administrator in one cluster, and what users do there |
//! | [`cluster_set`] | the status of a ClusterSet |
//! | [`bring_up`](mod@bring_up) | a fleet of a test program's own |
//! | [`crds`] | CRDs that are deleted and come back |
//! | [`daemon`] | starts and ends daemons, waits for their Leases |
//! | `detour` | how a daemon finds proxies in place of API servers |
//! | [`disturbed`] | a member whose links are out of order |
//! | [`dns`] | what a cluster's DNS server answers, and what it has to |
//! | [`faults`] | what can be wrong with a link to an API server |
//! | [`figures`] | how what was measured is said |
//! | [`ground`] | whether a test is on real programs or simulated |
//! | [`harness`] | runs tests, those of the gate or all, and keeps what fails |
//! | [`life`] | a daemon's processes one after the other, and what ends them |
//! | [`manifests`] | `manifests/`, applied |
//! | [`metrics`] | what they measure |
//! | [`odd`] | objects as nobody would write them, by a seed |
//! | [`promised`](mod@promised) | times that the documentation promises |
//! | [`proxy`] | a proxy in front of an API server, for one daemon |
//! | [`restore`] | the leader's cluster restored from a backup, or replaced by an empty one |
//! | [`pod`] | Pods on a fleet's nodes |
//! | [`pool`] | worlds that tests have for themselves, one after the other |
//! | [`shell`](mod@shell) | commands as users type them |
//! | [`say`](mod@say) | lines that are shown of tests that pass, too |
//! | [`schedule`] | which test starts next |
//! | [`seen`] | what a user sees of an import or an export |
//! | [`simulated`](mod@simulated) | a simulated ClusterSet for one test |
//! | [`tunnel`] | a proxy that makes tunnels to an API server |
//! | [`trap`] | at which of its writes a daemon is killed |
//! | [`turn`](mod@turn) | where tests wait for that |
//! | [`victim`] | a daemon that is killed at its writes |
//! | [`waiting`] | waits for conditions |
//! | [`watched`] | the events of a watch, for what must never happen |
//! | [`webhook`](mod@webhook) | a cluster whose new Pods a webhook places |
//! | [`audit`] | requests that wrote, from the audit logs |
//! | [`ask`] | what a Pod is answered over the network |
//!
//! Everything here fails by panicking, as tests do.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "used by tests alone"
)]

pub use e2e_attribute::test;

mod accept;
pub mod account;
pub mod answering;
pub mod antrea;
pub mod antrea_leader;
pub mod ask;
pub mod audit;
pub mod binding;
pub mod bring_up;
pub mod chaos;
pub mod cluster;
pub mod cluster_set;
pub mod crds;
pub mod daemon;
mod detour;
pub mod disturbed;
pub mod dns;
pub mod faults;
pub mod figures;
pub mod fixture;
pub mod forbidden;
pub mod ground;
pub mod harness;
pub mod life;
pub mod manifests;
pub mod metrics;
pub mod odd;
pub mod pod;
pub mod pool;
pub mod promised;
pub mod proxy;
pub mod record;
pub mod restore;
pub mod say;
pub mod schedule;
pub mod seen;
pub mod shared;
pub mod shell;
pub mod simulated;
pub mod trap;
pub mod tunnel;
pub mod turn;
pub mod victim;
pub mod waiting;
pub mod walk;
pub mod watched;
pub mod webhook;
pub mod world;
