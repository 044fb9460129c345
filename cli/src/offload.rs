//! Offloading: installing what it needs, and `freeport offload` and `freeport unoffload`.
//!
//! | module | holds |
//! |---|---|
//! | `install` | what `--offload` of `freeport init` and `freeport join` adds |
//! | `peer` | `freeport offload accept` and `freeport offload use` |
//! | `namespace` | `freeport offload namespace` |
//! | `selector` | what `--selector` says: pure |
//! | `progress` | how far a NamespaceOffloading is: pure |
//! | `twins` | in which clusters a Namespace has a twin: pure |
//! | `unoffload` | `freeport unoffload namespace` |
//! | [`status`](mod@status) | `freeport offload status` |

mod install;
mod namespace;
mod peer;
pub(crate) mod progress;
mod selector;
pub(crate) mod status;
mod twins;
mod unoffload;

use api::offload::peer::OffloadPeer;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{Api, api::ListParams};

pub(crate) use self::install::{check, is_without_liqo, leader_lacks_records};
pub use self::{
    namespace::{OffloadOptions, offload_namespaces},
    peer::{AcceptOptions, UseOptions, accept, use_peer},
    unoffload::{UnoffloadOptions, unoffload_namespaces},
};
use crate::{
    Error,
    cluster::{Cluster, known},
};

/// How offloading is set up, where it is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Offloading {
    /// URL of `freeport-webhook` as the API server reaches it, where the daemons run outside of the cluster. Without it nothing asks the
    /// webhook there.
    pub webhook_url: Option<String>,
}

/// Refuses a cluster where offloading is not set up.
async fn is_set_up(cluster: &Cluster) -> Result<(), Error> {
    let peers: Api<OffloadPeer> = Api::all(cluster.client.clone());
    let one = ListParams::default().limit(1);
    let list = known(peers.list_metadata(&one));
    match cluster.request("list offloadpeers", list).await? {
        Some(_) => Ok(()),
        None => {
            Err(cluster.refuse("offloading is not set up here: run `freeport join --offload` again".into()))
        }
    }
}

/// The condition of this type.
fn condition<'a>(conditions: &'a [Condition], type_: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == type_)
}
