//! Who holds a contract, as a command asks.

use api::bind::{
    binding::{ClusterBindingStatus, SecretName},
    holder::{self, Other},
};
use k8s_openapi::{api::core::v1::Secret, jiff::Timestamp};
use kube::Api;

use crate::{
    Error,
    cluster::{Cluster, known},
};

/// Who else than the consumer holds the contract whose ClusterBinding has this status.
pub(super) async fn other(consumer: &Cluster, status: &ClusterBindingStatus) -> Result<Option<Other>, Error> {
    let is_here = match &status.consumer_secret_ref {
        Some(secret) => has(consumer, secret).await?,
        None => false,
    };
    Ok(holder::other(status, &consumer.uid, Timestamp::now(), |_| is_here))
}

async fn has(consumer: &Cluster, secret: &SecretName) -> Result<bool, Error> {
    let secrets = Api::<Secret>::namespaced(consumer.client.clone(), &secret.namespace);
    let doing = format!("read Secret {}/{}", secret.namespace, secret.name);
    Ok(consumer.request(doing, known(secrets.get_metadata(&secret.name))).await?.is_some())
}
