//! No write of a cluster whose contract another one took over while this one was cut off: after a watch of the contract has failed, the provider
//! is asked who holds the contract before the next write. As long as no watch fails, the watch of the holder's note tells.

use std::{
    sync::{Arc, OnceLock},
    time::Instant,
};

use api::bind::{binding::ClusterBinding, holder::held_by};
use http::{Method, Request, Response};
use kube::{
    Api, Client,
    client::Body,
    core::{Status, response::reason},
};
use tokio::sync::{Mutex, watch};

use super::CLUSTER;

/// When a watch failed last.
type Failures = watch::Receiver<Option<Instant>>;

/// Of one contract. Cloning shares it.
#[derive(Clone)]
pub(super) struct Fence(Arc<State>);

struct State {
    /// uid of this cluster.
    us: Arc<str>,
    cluster_namespace: String,
    /// None before the watches begin: the contract has just been held.
    failures: OnceLock<Failures>,
    /// When the provider was asked last, where its answer was no other cluster.
    asked: Mutex<Option<Instant>>,
}

impl Fence {
    pub(super) fn new(us: Arc<str>, cluster_namespace: String) -> Self {
        Self(Arc::new(State { us, cluster_namespace, failures: OnceLock::new(), asked: Mutex::default() }))
    }

    /// From now on these failures are minded. Those of the first watches count.
    pub(super) fn mind(&self, failures: Failures) {
        self.0.failures.get_or_init(|| failures);
    }

    /// The same client, which sends a write only if no watch has failed since the provider was asked.
    pub(super) fn guard(&self, client: Client) -> Client {
        let (fence, namespace) = (self.clone(), client.default_namespace().to_owned());
        let send = move |request: Request<Body>| {
            let (fence, client) = (fence.clone(), client.clone());
            async move { fence.send(client, request).await }
        };
        Client::new(tower::service_fn(send), namespace)
    }

    async fn send(&self, client: Client, request: Request<Body>) -> kube::Result<Response<Body>> {
        if ![Method::GET, Method::HEAD].contains(request.method()) {
            self.pass(&client).await?;
        }
        client.send(request).await
    }

    /// Asks the provider if that is due.
    ///
    /// # Errors
    /// Those of the request. 409, as of an object that somebody else has changed, where another cluster holds the contract.
    async fn pass(&self, client: &Client) -> kube::Result<()> {
        let failed = self.0.failures.get().and_then(|failures| *failures.borrow());
        let Some(failed) = failed else { return Ok(()) };
        let mut asked = self.0.asked.lock().await;
        if asked.is_some_and(|asked| asked > failed) {
            return Ok(());
        }
        let now = Instant::now();
        let bindings = Api::<ClusterBinding>::namespaced(client.clone(), &self.0.cluster_namespace);
        let status = bindings.get_opt(CLUSTER).await?.and_then(|binding| binding.status).unwrap_or_default();
        if held_by(&status).is_some_and(|uid| uid != &*self.0.us) {
            let taken = Status::failure("another cluster holds the contract", reason::CONFLICT);
            return Err(kube::Error::Api(taken.with_code(409).boxed()));
        }
        *asked = Some(now);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::{convert::Infallible, sync::Mutex, time::Duration};

    use api::bind::{condition::Condition, holder::noted};
    use jiff::Timestamp;
    use k8s_openapi::api::core::v1::Secret;
    use kit::write::Error;
    use serde_json::json;

    use super::*;
    use crate::bind::{contract::Contract, fixture};

    /// The contract with a provider whose ClusterBinding has these conditions, and the methods by which it is asked.
    fn provider(conditions: &[Condition]) -> (Contract, Arc<Mutex<Vec<Method>>>) {
        let spec = json!({"kubeconfigSecretRef": {"name": "k", "key": "k"}, "providerPrettyName": "p"});
        let metadata = json!({"name": "cluster", "uid": "c", "resourceVersion": "1"});
        let binding = json!({"metadata": metadata, "spec": spec, "status": {"conditions": conditions}});
        let asked = Arc::new(Mutex::new(Vec::new()));
        let note = asked.clone();
        let answer = move |request: Request<Body>| {
            note.lock().unwrap().push(request.method().clone());
            let body = Body::from(binding.to_string().into_bytes());
            std::future::ready(Ok::<_, Infallible>(Response::new(body)))
        };
        let client = Client::new(tower::service_fn(answer), "x");
        (fixture::contract().with_client(client), asked)
    }

    async fn writes(contract: &Contract) -> Result<(), Error> {
        let mut secret = Secret::default();
        secret.metadata.name = Some("any".into());
        secret.metadata.namespace = Some("x".into());
        contract.writer.merge::<Secret>(&secret, None, json!({})).await.map(drop)
    }

    #[tokio::test]
    async fn after_a_watch_has_failed_the_holder_is_asked_for_before_the_next_write() {
        let held_by = |uid| noted(&[], uid, Timestamp::UNIX_EPOCH);
        let (failed, failures) = watch::channel(None);
        let fails = || failed.send_replace(Some(Instant::now()));
        let (contract, asked) = provider(&held_by("us"));
        let sent = || std::mem::take(&mut *asked.lock().unwrap());
        contract.fence.mind(failures.clone());
        writes(&contract).await.unwrap();
        assert_eq!(sent(), [Method::PATCH], "no watch has failed");
        for _ in 0..2 {
            fails();
            tokio::time::sleep(Duration::from_millis(2)).await;
            writes(&contract).await.unwrap();
            writes(&contract).await.unwrap();
            assert_eq!(sent(), [Method::GET, Method::PATCH, Method::PATCH], "once");
        }

        let (contract, asked) = provider(&held_by("them"));
        contract.fence.mind(failures.clone());
        assert!(matches!(writes(&contract).await, Err(Error::Stale)));
        assert_eq!(*asked.lock().unwrap(), [Method::GET], "another cluster took it over");

        // Who is to note itself anew is not held up.
        let (contract, asked) = provider(&[]);
        contract.fence.mind(failures.clone());
        writes(&contract).await.unwrap();
        assert_eq!(*asked.lock().unwrap(), [Method::GET, Method::PATCH], "nobody is noted");

        let contract = fixture::contract().with_client(fixture::refusing(503, "starting"));
        contract.fence.mind(failures);
        assert!(matches!(writes(&contract).await, Err(Error::Unreachable(_))));
    }
}
