//! Releases a contract that no binding uses any more.

use jiff::Timestamp;
use kit::{backoff, drive::before, write::Error};
use tokio_util::sync::CancellationToken;

use crate::bind::{
    contract::{Contract, IN_TIME},
    holder,
    local::Local,
};

/// Releases the contract once no binding uses it, as often as that takes before `stop`. Where the last bindings ended at once, nobody wants its
/// credential any more, which stops it before it is found to be unused: then it is released once, unless `all` contracts are stopped.
pub(super) async fn release_unused(
    (contract, local): (Contract, Local),
    secret: String,
    (stop, all): (CancellationToken, CancellationToken),
) {
    while before(&stop, holder::unused(&contract, &local, &secret)).await {
        let mut waits = backoff::LEADER.waits();
        while holder::users(&contract, &local, &secret).is_empty() {
            if release(&contract).await {
                return;
            }
            if !before(&stop, tokio::time::sleep(waits.wait())).await {
                return;
            }
        }
    }
    let is_unused = holder::users(&contract, &local, &secret).is_empty();
    if is_unused && !all.is_cancelled() && !contract.released.is_cancelled() {
        release(&contract).await;
    }
}

/// Reports whether the contract is released.
async fn release(contract: &Contract) -> bool {
    let released = async {
        match holder::release(contract, Timestamp::now()).await {
            // A heartbeat was faster; there is none after that.
            Err(Error::Stale) => holder::release(contract, Timestamp::now()).await,
            released => released,
        }
    };
    let failure = match tokio::time::timeout(IN_TIME, released).await {
        Ok(Ok(())) => {
            tracing::info!("no binding uses the contract any more: released it");
            return true;
        }
        Ok(Err(error)) => error.to_string(),
        Err(_) => "no answer in time".to_owned(),
    };
    tracing::warn!(failure, "cannot release the contract that no binding uses");
    false
}

#[cfg(test)]
mod tests {
    use std::{
        convert::Infallible,
        sync::{
            Arc,
            atomic::{AtomicUsize, Ordering},
        },
        time::Duration,
    };

    use api::bind::holder::noted;
    use kube::{Client, client::Body, core::Status};
    use serde_json::json;

    use super::*;
    use crate::bind::fixture;

    /// A provider that notes us as the holder, and refuses this many times to note anything else; how often it was asked to.
    fn refusing(times: usize) -> (Contract, Arc<AtomicUsize>) {
        let spec = json!({"kubeconfigSecretRef": {"name": "k", "key": "k"}, "providerPrettyName": "p"});
        let binding = json!({"metadata": {"name": "cluster", "uid": "c", "resourceVersion": "1"}, "spec": spec,
            "status": {"conditions": noted(&[], "us", Timestamp::UNIX_EPOCH)}});
        let asked = Arc::<AtomicUsize>::default();
        let counted = asked.clone();
        let answer = move |request: http::Request<Body>| {
            let is_refused =
                request.method() == http::Method::PATCH && counted.fetch_add(1, Ordering::SeqCst) < times;
            let refused = || json!(Status::failure("denied by policy", "Refused").with_code(403));
            let (code, body) = if is_refused { (403, refused()) } else { (200, binding.clone()) };
            let response = http::Response::builder().status(code);
            let response = response.body(Body::from(body.to_string().into_bytes())).unwrap();
            std::future::ready(Ok::<_, Infallible>(response))
        };
        (fixture::contract().with_client(Client::new(tower::service_fn(answer), "x")), asked)
    }

    #[tokio::test(start_paused = true)]
    async fn a_refused_release_is_tried_again_while_the_contract_is_served() {
        let (contract, asked) = refusing(12);
        let stop = CancellationToken::new();
        let released = release_unused((contract.clone(), Local::new()), "k".into(), (stop.clone(), stop));
        tokio::pin!(released);
        let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
        assert!(tokio::time::timeout(minutes(3), &mut released).await.is_err());
        assert!(!contract.released.is_cancelled(), "nothing is read again");
        assert!((6..12).contains(&asked.load(Ordering::SeqCst)), "{asked:?}");
        tokio::time::timeout(minutes(10), released).await.unwrap();
        assert!(contract.released.is_cancelled());
        assert_eq!(asked.load(Ordering::SeqCst), 13);
    }

    #[tokio::test(start_paused = true)]
    async fn a_contract_that_is_stopped_when_its_last_bindings_end_is_released() {
        let (contract, asked) = refusing(0);
        let (stop, all) = (CancellationToken::new(), CancellationToken::new());
        stop.cancel();
        let released =
            || release_unused((contract.clone(), Local::new()), "k".into(), (stop.clone(), all.clone()));
        released().await;
        assert!(contract.released.is_cancelled());
        assert_eq!(asked.load(Ordering::SeqCst), 1);
        released().await;
        assert_eq!(asked.load(Ordering::SeqCst), 1, "it is released already");
    }

    #[tokio::test(start_paused = true)]
    async fn a_daemon_that_stops_releases_nothing() {
        let (contract, asked) = refusing(0);
        let stop = CancellationToken::new();
        stop.cancel();
        release_unused((contract.clone(), Local::new()), "k".into(), (stop.clone(), stop)).await;
        assert_eq!(asked.load(Ordering::SeqCst), 0);
    }
}
