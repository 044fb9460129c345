//! The holder of a contract: this cluster notes itself at the provider before it reads or writes anything else there. Where another one is
//! noted, nothing is done. When the last binding goes, it is noted that nobody holds the contract.
//!
//! Reads and writes the status of `ClusterBinding/cluster`. May run twice: who is noted stays noted.

use std::{collections::BTreeSet, time::Duration};

use api::bind::{
    binding::{ClusterBinding, SecretName},
    holder::{self, Other},
};
use jiff::Timestamp;
use kit::write::Error;
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};

use super::{
    contract::{CLUSTER, Contract},
    credential::Unusable,
    local::{Local, NAMESPACE},
};

/// How long a contract is held of which no binding is known yet: commands note the holder before they make the binding.
const COMING: Duration = Duration::from_secs(60);
/// How long it is held after its last binding: one may be replaced by another.
const GOING: Duration = Duration::from_secs(1);

/// Whether this cluster holds a contract.
pub(super) enum Hold {
    /// It does, and is noted.
    Ours,
    /// Another one does.
    Others(Other),
    /// The credential or the contract was made for another cluster, and no administrator had this one take it over.
    Unusable(Unusable),
    /// This cluster has released it, and no binding wants it.
    Released,
    /// The provider refuses to note this cluster.
    Refused(String),
}

/// Notes this cluster as the holder, unless it must not be. `not_for_us` tells why the credential or the contract was made for another cluster.
///
/// # Errors
/// [`Error::Stale`] where somebody else wrote it meanwhile, [`Error::Gone`] where there is no ClusterBinding. Another error
/// does not tell who is noted.
pub(super) async fn hold(
    contract: &Contract,
    (local, secret): (&Local, &str),
    not_for_us: Option<Unusable>,
    now: Timestamp,
) -> Result<Hold, Error> {
    let binding = match read(contract).await {
        Err(Error::Gone) => None,
        read => Some(read?),
    };
    let status = binding.as_ref().and_then(|binding| binding.status.clone()).unwrap_or_default();
    // Who is noted tells more than for whom the credential was made.
    match holder::held_by(&status) {
        Some(uid) if uid == &*contract.us => return Ok(Hold::Ours),
        Some(uid) => return Ok(Hold::Others(Other::Cluster(uid.to_owned()))),
        None => {}
    }
    if let Some(unusable) = not_for_us {
        return Ok(Hold::Unusable(unusable));
    }
    let binding = binding.ok_or(Error::Gone)?;
    let has = |secret: &SecretName| {
        secret.namespace == NAMESPACE && local.known.with(|known| known.secrets.get(&secret.name).is_some())
    };
    if let Some(other) = holder::other(&status, &contract.us, now, has) {
        return Ok(Hold::Others(other));
    }
    if holder::is_released(&status) && local.bindings_of(secret).is_empty() {
        return Ok(Hold::Released);
    }
    let conditions = holder::noted(&status.conditions, &contract.us, now);
    match write(contract, &binding, json!({ "conditions": conditions })).await {
        Err(error) => error.refusal().map(Hold::Refused).ok_or(error),
        Ok(()) => Ok(Hold::Ours),
    }
}

/// Notes that no cluster holds the contract any more, and ends its run: the last binding goes. Without a heartbeat another cluster can have
/// it at once. Where that fails the run goes on without heartbeats, until a binding uses the contract.
///
/// # Errors
/// [`Error::Stale`] where somebody else wrote it meanwhile.
pub(super) async fn release(contract: &Contract, now: Timestamp) -> Result<(), Error> {
    contract.releasing.cancel();
    let released = write_released(contract, now).await;
    if released.is_ok() {
        contract.released.cancel();
    }
    released
}

async fn write_released(contract: &Contract, now: Timestamp) -> Result<(), Error> {
    let binding = match read(contract).await {
        Err(Error::Gone) => return Ok(()),
        read => read?,
    };
    let status = binding.status.clone().unwrap_or_default();
    if holder::held_by(&status) != Some(&*contract.us) {
        return Ok(());
    }
    let conditions = holder::released(&status.conditions, now);
    let free = json!({"conditions": conditions, "lastHeartbeatTime": null, "consumerSecretRef": null});
    match write(contract, &binding, free).await {
        Err(Error::Gone) => Ok(()),
        written => written,
    }
}

/// Names of the bindings that use the contract, by whatever credential.
pub(super) fn users(contract: &Contract, local: &Local, secret: &str) -> BTreeSet<String> {
    let exports = contract.known.with(|known| known.exports.iter().map(ResourceExt::name_any).collect());
    local.bindings_of(secret).into_iter().chain(local.bound(exports)).collect()
}

/// Reports whether a binding that is not being deleted uses the contract.
pub(super) fn is_wanted(contract: &Contract, local: &Local, secret: &str) -> bool {
    let users = users(contract, local, secret);
    local.known.with(|known| {
        let mut bindings = users.iter().filter_map(|name| known.bindings.get(name));
        bindings.any(|binding| binding.metadata.deletion_timestamp.is_none())
    })
}

/// Returns when no binding uses the contract any more: several that end at once leave it to each other, and one may end without us. A
/// contract that none has used yet may wait for its first one.
pub(super) async fn unused(contract: &Contract, local: &Local, secret: &str) {
    let (mut ours, mut theirs) = (local.changes(), contract.changes());
    let (mut patience, mut since) = (COMING, None);
    loop {
        ours.mark_unchanged();
        theirs.mark_unchanged();
        if users(contract, local, secret).is_empty() {
            since.get_or_insert_with(Instant::now);
        } else {
            (patience, since) = (GOING, None);
        }
        let is_over = async {
            match since {
                Some(since) => sleep_until(since + patience).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = is_over => return,
            Ok(()) = ours.changed() => {}
            Ok(()) = theirs.changed() => {}
        }
    }
}

async fn write(contract: &Contract, binding: &ClusterBinding, status: Value) -> Result<(), Error> {
    let patch = json!({"metadata": {"resourceVersion": binding.resource_version()}, "status": status});
    contract.writer.merge::<ClusterBinding>(binding, Some("status"), patch).await.map(drop)
}

/// Asks the provider whether this cluster holds the contract, before something is deleted that cannot come back.
///
/// # Errors
/// [`Error::Stale`] where it does not.
pub(super) async fn ensure(contract: &Contract) -> Result<(), Error> {
    let status = read(contract).await?.status.unwrap_or_default();
    if holder::held_by(&status) == Some(&*contract.us) { Ok(()) } else { Err(Error::Stale) }
}

async fn read(contract: &Contract) -> Result<ClusterBinding, Error> {
    let bindings = Api::<ClusterBinding>::namespaced(contract.client(), &contract.cluster_namespace.name);
    bindings.get_opt(CLUSTER).await?.ok_or(Error::Gone)
}

/// Returns who else holds the contract as soon as one is noted.
pub(super) async fn taken(contract: &Contract) -> Other {
    let mut changes = contract.changes();
    loop {
        changes.mark_unchanged();
        if let Some(other) = known_other(contract) {
            return other;
        }
        if changes.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// The cluster that is noted, as far as watches tell, if it is not this one.
pub(super) fn known_other(contract: &Contract) -> Option<Other> {
    contract.known.with(|known| {
        let status = known.cluster_bindings.get(CLUSTER)?.status.as_ref()?;
        let uid = holder::held_by(status).filter(|uid| *uid != &*contract.us)?;
        Some(Other::Cluster(uid.to_owned()))
    })
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use api::bind::condition::Condition;
    use kit::objects::Change;
    use kube::{Client, client::Body, core::Status};
    use tokio::sync::mpsc;

    use super::*;
    use crate::bind::{fixture, local::FINALIZER};

    /// The contract with a provider whose ClusterBinding has these conditions, and the statuses that are written there; with a `code` it
    /// refuses them.
    fn provider(conditions: &[Condition], code: Option<u16>) -> (Contract, mpsc::UnboundedReceiver<Value>) {
        let spec = json!({"kubeconfigSecretRef": {"name": "k", "key": "k"}, "providerPrettyName": "p"});
        let binding = json!({"metadata": {"name": "cluster", "uid": "c", "resourceVersion": "1"}, "spec": spec,
            "status": {"conditions": conditions, "lastHeartbeatTime": "2026-11-01T12:00:00Z"}});
        let (wrote, written) = mpsc::unbounded_channel();
        let answer = move |request: http::Request<Body>| {
            let (binding, wrote) = (binding.clone(), wrote.clone());
            async move {
                let is_write = request.method() == http::Method::PATCH;
                let refused = code.filter(|_| is_write);
                if is_write {
                    let bytes = request.into_body().collect_bytes().await.unwrap();
                    wrote.send(serde_json::from_slice(&bytes).unwrap()).unwrap();
                }
                let status = |code| json!(Status::failure("denied by policy", "Refused").with_code(code));
                let answer = refused.map_or(binding, status);
                let response = http::Response::builder().status(refused.unwrap_or(200));
                Ok::<_, Infallible>(response.body(Body::from(answer.to_string().into_bytes())).unwrap())
            }
        };
        (fixture::contract().with_client(Client::new(tower::service_fn(answer), "x")), written)
    }

    fn held_by(uid: &str) -> Vec<Condition> {
        holder::noted(&[], uid, Timestamp::UNIX_EPOCH)
    }

    fn released() -> Vec<Condition> {
        holder::released(&held_by("them"), Timestamp::UNIX_EPOCH)
    }

    #[tokio::test]
    async fn nothing_is_deleted_of_a_contract_that_this_cluster_does_not_hold() {
        let is_ensured = async |conditions: &[Condition]| ensure(&provider(conditions, None).0).await.is_ok();
        assert!(is_ensured(&held_by("us")).await);
        assert!(!is_ensured(&held_by("them")).await);
        assert!(!is_ensured(&[]).await && !is_ensured(&released()).await, "nobody is noted");
        assert!(ensure(&fixture::contract().with_client(fixture::refusing(403, "no"))).await.is_err());
    }

    #[tokio::test]
    async fn who_holds_a_contract_is_noted_and_who_must_not_hold_it_is_not() {
        let local = Local::new();
        let hold = async |conditions: &[Condition], code, not_for_us: Option<Unusable>| {
            let (contract, mut written) = provider(conditions, code);
            let now = Timestamp::UNIX_EPOCH;
            let held = super::hold(&contract, (&local, "k"), not_for_us, now).await.unwrap();
            (held, written.try_recv().ok())
        };
        let another = || Some(Unusable::OfAnotherCluster("them".into()));
        assert!(matches!(hold(&held_by("us"), None, None).await, (Hold::Ours, None)));
        assert!(matches!(hold(&held_by("us"), None, another()).await, (Hold::Ours, None)), "it took it over");
        assert!(matches!(hold(&held_by("them"), None, None).await, (Hold::Others(_), None)));
        assert!(matches!(hold(&[], None, another()).await, (Hold::Unusable(_), None)));
        let (held, written) = hold(&held_by("third"), None, another()).await;
        assert!(matches!(held, Hold::Others(Other::Cluster(uid)) if uid == "third"), "who holds it is said");
        assert!(written.is_none());
        let (held, written) = hold(&[], None, None).await;
        assert!(matches!(held, Hold::Ours));
        let written = written.unwrap();
        assert_eq!(written["status"]["conditions"], json!(held_by("us")));
        assert_eq!(written["metadata"]["resourceVersion"], "1");
        let (held, _) = hold(&[], Some(403), None).await;
        assert!(matches!(held, Hold::Refused(why) if why == "denied by policy"));

        assert!(matches!(hold(&released(), None, None).await, (Hold::Released, None)), "no binding wants it");
        let secret = json!({"namespace": "kube-bind", "name": "k", "key": "kubeconfig"});
        let binding = json!({"metadata": {"name": "mango"}, "spec": {"kubeconfigSecretRef": secret}});
        let change = Change::Apply(serde_json::from_value(binding).unwrap());
        local.known.with(|known| known.bindings.change(change));
        assert!(matches!(hold(&released(), None, None).await, (Hold::Ours, Some(_))));
    }

    #[tokio::test]
    async fn an_api_server_that_does_not_say_who_holds_a_contract_makes_it_nobody_elses() {
        let local = Local::new();
        let hold = async |code| {
            let contract = fixture::contract().with_client(fixture::refusing(code, "no"));
            let another = Unusable::OfAnotherCluster("them".into());
            hold(&contract, (&local, "k"), Some(another), Timestamp::UNIX_EPOCH).await
        };
        for code in [403, 429, 500, 503] {
            assert!(hold(code).await.is_err(), "{code}");
        }
        assert!(matches!(hold(404).await, Ok(Hold::Unusable(_))), "there is nobody to be noted");
    }

    #[tokio::test(start_paused = true)]
    async fn a_contract_is_unused_when_its_last_binding_is_gone_however_they_went() {
        let (contract, local) = (fixture::contract(), Local::new());
        let secret = json!({"namespace": "kube-bind", "name": "k", "key": "kubeconfig"});
        let binding = |name: &str| {
            let binding = json!({"metadata": {"name": name, "uid": name, "resourceVersion": "1"}, "spec": {"kubeconfigSecretRef": secret}});
            serde_json::from_value(binding).unwrap()
        };
        let is_unused =
            async |within| tokio::time::timeout(within, unused(&contract, &local, "k")).await.is_ok();
        assert!(!is_unused(COMING / 2).await, "the first one may come");
        assert!(is_unused(COMING * 2).await);
        local.known.with(|known| {
            ["mango", "cactus"].map(|name| known.bindings.change(Change::Apply(binding(name))))
        });
        let used = unused(&contract, &local, "k");
        tokio::pin!(used);
        for gone in ["mango", "cactus"] {
            assert!(tokio::time::timeout(COMING * 2, &mut used).await.is_err(), "{gone} uses it");
            local.take_in(|known, change| known.bindings.change(change), Change::Remove(binding(gone)));
        }
        assert!(tokio::time::timeout(GOING * 2, &mut used).await.is_ok());
    }

    #[tokio::test]
    async fn a_contract_is_released_by_the_cluster_that_holds_it_alone() {
        let (contract, mut written) = provider(&held_by("us"), None);
        release(&contract, Timestamp::UNIX_EPOCH).await.unwrap();
        let status = &written.try_recv().unwrap()["status"];
        assert_eq!(status["conditions"], json!(released()));
        assert!(status["lastHeartbeatTime"].is_null() && status["consumerSecretRef"].is_null());
        assert!(contract.released.is_cancelled());
        let (contract, mut written) = provider(&held_by("them"), None);
        release(&contract, Timestamp::UNIX_EPOCH).await.unwrap();
        assert!(written.try_recv().is_err());
        let (contract, _written) = provider(&held_by("us"), Some(403));
        assert!(release(&contract, Timestamp::UNIX_EPOCH).await.is_err());
        assert!(contract.releasing.is_cancelled() && !contract.released.is_cancelled(), "refused");
    }

    #[tokio::test]
    async fn a_contract_is_wanted_by_a_binding_that_stays() {
        let (contract, local) = (fixture::contract(), Local::new());
        let is_wanted = || is_wanted(&contract, &local, "k");
        assert!(!is_wanted());
        let secret = json!({"namespace": "kube-bind", "name": "k", "key": "kubeconfig"});
        let put = |metadata: Value| {
            let binding = json!({"metadata": metadata, "spec": {"kubeconfigSecretRef": secret}});
            let change = Change::Apply(serde_json::from_value(binding).unwrap());
            local.known.with(|known| known.bindings.change(change));
        };
        put(json!({"name": "mango", "uid": "b1", "resourceVersion": "1"}));
        assert!(is_wanted());
        put(json!({"name": "mango", "uid": "b1", "resourceVersion": "2", "finalizers": [FINALIZER],
            "deletionTimestamp": "2026-11-01T12:00:00Z"}));
        assert!(!is_wanted());
    }
}
