//! Offloading: installing what it needs, and `freeport offload` and `freeport unoffload`.
//!
//! | module | holds |
//! |---|---|
//! | `install` | what `--offload` of `freeport init` and `freeport join` adds |
//! | `peer` | `freeport offload accept` and `freeport offload use` |
//! | `namespace` | `freeport offload namespace` |
//! | `selector` | what `--selector` says: pure |
//! | `progress` | how far a NamespaceOffloading is: pure |
//! | `away` | why nobody acts for this cluster, where that is so |
//! | `refused` | what API servers refuse of what a command waits for |
//! | `twins` | in which clusters a Namespace has a twin: pure |
//! | `unmapped` | twins here that no NamespaceMap of their home names: pure |
//! | `vanished` | Namespaces that have twins and no NamespaceOffloading any more |
//! | `replacement` | what serves in twins is replaced at home |
//! | `unoffload` | `freeport unoffload namespace` |
//! | [`maps`](mod@maps) | `freeport offload maps` |
//! | [`status`](mod@status) | `freeport offload status` |

mod away;
mod install;
pub(crate) mod maps;
mod namespace;
mod peer;
pub(crate) mod progress;
pub(crate) mod refused;
mod replacement;
mod selector;
pub(crate) mod status;
pub(crate) mod twins;
pub(crate) mod unmapped;
mod unoffload;
pub(crate) mod vanished;

use std::fmt::Debug;

use api::offload::{namespace::NamespaceOffloading, peer::OffloadPeer};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{Api, Resource, api::ListParams};
use serde::de::DeserializeOwned;

pub(crate) use self::install::{check, is_without_liqo, leader_lacks_records, offloads};
pub use self::{
    namespace::{OffloadOptions, offload_namespaces},
    peer::{AcceptOptions, UseOptions, accept, use_peer},
    unoffload::{UnoffloadOptions, unoffload_namespaces},
};
use crate::{
    Error,
    cluster::{Cluster, known},
    objects::SYSTEM,
    view::ClusterSetView,
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
    needs::<OffloadPeer>(cluster).await
}

/// Refuses a cluster where no Namespace can be offloaded.
async fn can_offload(cluster: &Cluster) -> Result<(), Error> {
    is_set_up(cluster).await?;
    needs::<NamespaceOffloading>(cluster).await
}

async fn needs<K>(cluster: &Cluster) -> Result<(), Error>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned,
{
    match lacks::<K>(cluster).await? {
        None => Ok(()),
        Some(crd) => Err(cluster.refuse(format!(
            "offloading is not set up here, CustomResourceDefinition {crd} is missing: run `freeport join --offload` again"
        ))),
    }
}

/// The CRD of a kind, if it is missing.
async fn lacks<K>(cluster: &Cluster) -> Result<Option<String>, Error>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned,
{
    let objects: Api<K> = Api::all(cluster.client.clone());
    let plural = K::plural(&());
    let one = ListParams::default().limit(1);
    let list = known(objects.list_metadata(&one));
    let found = cluster.request(format!("list {plural}"), list).await?;
    Ok(found.is_none().then(|| format!("{plural}.{}", K::group(&()))))
}

/// The ClusterSet that this cluster belongs to, if it belongs to one: that with its ID, if any has it.
async fn own_set(cluster: &Cluster) -> Result<Option<ClusterSetView>, Error> {
    let sets: Api<ClusterSetView> = Api::namespaced(cluster.client.clone(), SYSTEM);
    let sets = cluster.request("list ClusterSets", known(sets.list(&<_>::default()))).await?;
    let mut sets: Vec<_> = sets.into_iter().flatten().collect();
    sets.sort_by_key(|set| set.cluster_id().is_none());
    Ok(sets.into_iter().next())
}

/// The condition of this type.
fn condition<'a>(conditions: &'a [Condition], type_: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == type_)
}
