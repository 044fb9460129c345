//! Finds the cluster namespace of a credential and holds its contract. Reports on the bindings why that cannot be, and tries again.

use api::view::Meta;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Namespace;
use kit::{
    boot::Env,
    client::kubeconfig::Target,
    drive::before,
    failure::{Failure, classify},
    write::Error,
};
use kube::{Api, ResourceExt};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::{ASK_AGAIN, broken, refused_here, taken_here};
use crate::bind::{
    absence::cluster_uid,
    binding::Link,
    contract::{Contract, IN_TIME},
    credential::{Unusable, others_contract},
    heartbeat::ends_contract,
    holder::{self, Hold},
    local::Local,
};

/// What came of an attempt to find the contract.
enum Attempt {
    /// It is there, and this cluster holds it.
    Ours(Contract),
    /// Why it is not used, for the bindings.
    Not(Link),
    /// Our own API server does not say who we are.
    Unknown(Error),
    /// The provider does not answer, or in an unusable way.
    Failing(Failure),
    /// No binding wants it, and this cluster has released it.
    Unwanted,
}

impl Attempt {
    /// The same with a credential that was `copied` from another cluster: it is not used, whether the provider answers or not.
    fn of(self, copied: Option<&Unusable>) -> Self {
        match (self, copied) {
            (Self::Failing(_), Some(copied)) => Self::Not(Link::Unusable(copied.clone())),
            (came, _) => came,
        }
    }
}

/// Finds the cluster namespace and holds the contract; reports on the bindings why that cannot be, and tries again. `copied`: the credential
/// was made for another cluster.
pub(super) async fn connect(
    (env, local, secret): (&Env, &Local, &str),
    (target, copied): (&Target, Option<&Unusable>),
    link: &watch::Sender<Link>,
    stop: &CancellationToken,
) -> Option<Contract> {
    let client = match env.dial.connect(target) {
        Ok(client) => client,
        Err(error) => {
            broken(link, Unusable::Kubeconfig(error), stop).await;
            return None;
        }
    };
    let namespaces = Api::<Meta<Namespace>>::all(client);
    let mut was_refused = false;
    loop {
        let asked = async {
            match tokio::time::timeout(IN_TIME, namespaces.get(&target.namespace)).await {
                Err(_) => Attempt::Failing(Failure::Unreachable("no answer in time")),
                Ok(Err(error)) => Attempt::Failing(classify(&error)),
                Ok(Ok(namespace)) => attempt((env, local, secret), (target, copied), &namespace, link).await,
            }
        };
        let came = tokio::select! {
            came = asked => came,
            () = stop.cancelled() => return None,
        };
        let came = came.of(copied);
        let is_refused = matches!(&came, Attempt::Failing(failure) if failure.is_refusal());
        let mut is_wanted = true;
        match came {
            Attempt::Ours(contract) => return Some(contract),
            Attempt::Not(why) => tell(link, why),
            Attempt::Unknown(error) => refused_here(link, &error),
            Attempt::Failing(failure) => {
                tracing::warn!(%failure, "cannot reach the provider, trying again");
                let has_ended = ends_contract(&failure, was_refused);
                link.send_replace(if has_ended { Link::Evicted } else { Link::Failing(failure) });
            }
            Attempt::Unwanted => is_wanted = false,
        }
        was_refused = is_refused;
        let next = async {
            match is_wanted {
                true => tokio::time::sleep(ASK_AGAIN).await,
                false => wanted(local, secret).await,
            }
        };
        if !before(stop, next).await {
            return None;
        }
    }
}

/// Returns when a binding uses the credential in this Secret.
async fn wanted(local: &Local, secret: &str) {
    let mut changes = local.changes();
    while local.bindings_of(secret).is_empty() {
        if changes.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// Holds the contract whose cluster namespace was found.
async fn attempt(
    (env, local, secret): (&Env, &Local, &str),
    (target, copied): (&Target, Option<&Unusable>),
    namespace: &Meta<Namespace>,
    link: &watch::Sender<Link>,
) -> Attempt {
    let us = match cluster_uid(&env.client).await {
        Ok(us) => us,
        Err(error) => return Attempt::Unknown(error.into()),
    };
    taken_here(link);
    let contract = match Contract::new(env, target.clone(), namespace.uid().unwrap_or_default(), &us) {
        Ok(contract) => contract,
        Err(error) => return Attempt::Failing(Failure::Other(error.to_string())),
    };
    let not_for_us = copied.cloned().or_else(|| others_contract(&us, namespace));
    let held = holder::hold(&contract, (local, secret), not_for_us, Timestamp::now());
    match tokio::time::timeout(IN_TIME, held).await {
        Err(_) => Attempt::Failing(Failure::Unreachable("no answer in time")),
        Ok(Ok(Hold::Ours)) => Attempt::Ours(contract),
        Ok(Ok(Hold::Others(other))) => Attempt::Not(Link::InUse(other)),
        Ok(Ok(Hold::Unusable(unusable))) => Attempt::Not(Link::Unusable(unusable)),
        Ok(Ok(Hold::Refused(why))) => Attempt::Not(Link::Unheld(why)),
        Ok(Ok(Hold::Released)) => Attempt::Unwanted,
        Ok(Err(Error::Gone)) => {
            let namespace = &contract.cluster_namespace.name;
            Attempt::Failing(Failure::Other(format!(
                "there is no ClusterBinding {namespace}/cluster, which says who uses the contract"
            )))
        }
        Ok(Err(error)) => Attempt::Failing(error.failure()),
    }
}

/// Reports on the bindings why the contract is not used, unless that is said already.
pub(super) fn tell(link: &watch::Sender<Link>, why: Link) {
    let is_said = match (&*link.borrow(), &why) {
        (Link::InUse(said), Link::InUse(other)) => said == other,
        (Link::Unusable(said), Link::Unusable(unusable)) => said == unusable,
        (Link::Unheld(said), Link::Unheld(words)) => said == words,
        _ => false,
    };
    if is_said {
        return;
    }
    match &why {
        Link::InUse(other) => {
            tracing::warn!("the contract is in use by {other}: nothing of it is read or written here");
        }
        Link::Unheld(why) => {
            tracing::warn!(why, "the provider does not note that this cluster uses the contract")
        }
        Link::Unusable(unusable) => tracing::warn!(%unusable, "the contract is not used"),
        _ => {}
    }
    link.send_replace(why);
}
