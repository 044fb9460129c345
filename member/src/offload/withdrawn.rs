//! What is not there any more: somebody deleted it, or somebody deleted its CRD, and it along with it. Only the first takes something
//! back.

use api::view::Meta;
use k8s_openapi::{
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    apimachinery::pkg::apis::meta::v1::Time,
};
use kit::write::Error;
use kube::{Api, Client, Resource};

/// Whether an object of kind `K`, from which something was made at that time, went by a decision: its CRD is there, stays, and is older.
pub(super) async fn was_decided<K>(client: &Client, made_at: Option<&Time>) -> Result<bool, Error>
where
    K: Resource<DynamicType = ()>,
{
    let name = format!("{}.{}", K::plural(&()), K::group(&()));
    let crd = Api::<Meta<CustomResourceDefinition>>::all(client.clone()).get_opt(&name).await?;
    Ok(crd.is_some_and(|crd| {
        let created = crd.metadata.creation_timestamp.as_ref();
        let is_younger = created.zip(made_at).is_some_and(|(crd, made)| crd.0 > made.0);
        crd.metadata.deletion_timestamp.is_none() && !is_younger
    }))
}
