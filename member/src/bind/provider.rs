//! One contract, as long as its credential is the same.
//!
//! Watches what is in the cluster namespace. Runs the controllers of the contract and keeps the objects of each bound API in step. Its
//! failure is its own: other contracts, and Services, go on.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use api::{
    label::{self, MEMBER},
    view::Meta,
};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Namespace;
use kit::{
    boot::Env,
    client::kubeconfig::Target,
    drive::{before, drive, resume},
    failure::{Failure, classify},
    metrics::Tally,
    queue::Queue,
    watch::{Guard, Watches},
    write::Writer,
};
use kube::{Api, ResourceExt};
use serde_json::json;
use tokio::{sync::watch, task::JoinSet};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use super::{
    binding::{Bindings, Link},
    contract::Contract,
    credential::Unusable,
    heartbeat::{Beating, Heartbeat},
    local::Local,
    namespaces::Namespaces,
    sync::{Bound, Sync, Unsynced},
};

/// How soon a provider is asked again that did not answer.
const ASK_AGAIN: Duration = Duration::from_secs(5);

/// What a contract can say of itself before anything is known of it.
type Credential = (String, Result<Target, Unusable>);

/// Serves the contract of the credential until `stop`.
pub(crate) async fn run(
    env: Env,
    local: Local,
    (secret, target): Credential,
    guard: Arc<dyn Guard>,
    stop: CancellationToken,
) {
    let link = watch::Sender::new(Link::Connecting);
    let bindings = Bindings::new(&env, &local, &secret, link.subscribe());
    let queue = bindings.queue();
    let mut tasks = JoinSet::new();
    let driven = drive("bind-binding", queue.clone(), env.metrics.clone(), stop.clone(), {
        let bindings = bindings.clone();
        move |name| bindings.clone().reconcile(name)
    });
    tasks.spawn(driven.in_current_span());
    tasks.spawn(wake(local.clone(), secret.clone(), queue.clone(), link.subscribe(), stop.clone()));
    tasks.spawn(counted(env.metrics.bind().contracts(), link.subscribe(), stop.clone()));
    let served = async {
        let target = match target {
            Ok(target) => target,
            Err(unusable) => return broken(&link, unusable, &stop).await,
        };
        if let Some(unusable) = claim(&env, &local, &secret, &stop).await {
            return broken(&link, unusable, &stop).await;
        }
        let Some(contract) = connect(&env, target, &link, &stop).await else { return };
        Box::pin(serve(contract, bindings, (&local, &secret, &link), guard, &stop)).await;
    };
    served.await;
    while let Some(ended) = tasks.join_next().await {
        ended.unwrap_or_else(resume);
    }
}

/// A credential that cannot be used is another one before anything changes.
async fn broken(link: &watch::Sender<Link>, unusable: Unusable, stop: &CancellationToken) {
    link.send_replace(Link::Unusable(unusable));
    stop.cancelled().await;
}

/// Notes beside the credential whose it is; why not, if it is another cluster's: what that one has would seem to be gone here.
async fn claim(env: &Env, local: &Local, secret: &str, stop: &CancellationToken) -> Option<Unusable> {
    let us = &env.holder.cluster_uid;
    let writer = Writer::new(env.client.clone(), MEMBER, "local", env.metrics.clone());
    loop {
        let there = local.known.with(|known| known.secrets.get(secret).cloned())?;
        match there.annotations().get(label::CLUSTER_UID) {
            Some(noted) if noted == us => return None,
            Some(other) => return Some(Unusable::OfAnotherCluster(other.clone())),
            None => {}
        }
        let patch = json!({"metadata": {"annotations": {label::CLUSTER_UID: us}}});
        match writer.merge(&there, None, patch).await {
            Ok(_) => return None,
            Err(error) => tracing::warn!(%error, "cannot note whose the credential is, trying again"),
        }
        if !before(stop, tokio::time::sleep(ASK_AGAIN)).await {
            return None;
        }
    }
}

/// Enqueues the bindings of the credential whenever our cluster, or the link, is another.
async fn wake(
    local: Local,
    secret: String,
    queue: Queue<String>,
    mut link: watch::Receiver<Link>,
    stop: CancellationToken,
) {
    let mut changes = local.changes();
    loop {
        queue.enqueue(local.bindings_of(&secret));
        tokio::select! {
            () = stop.cancelled() => return,
            Ok(()) = changes.changed() => {}
            Ok(()) = link.changed() => {}
        }
    }
}

/// Shows how it stands with the contract as a metric.
async fn counted(tally: Tally, mut link: watch::Receiver<Link>, stop: CancellationToken) {
    loop {
        tally.put("", Some(["consumer", link.borrow_and_update().state()]));
        if !before(&stop, link.changed()).await {
            return;
        }
    }
}

/// Finds the cluster namespace; says on the bindings why it is not found, and tries again.
async fn connect(
    env: &Env,
    target: Target,
    link: &watch::Sender<Link>,
    stop: &CancellationToken,
) -> Option<Contract> {
    let client = match target.connect() {
        Ok(client) => client,
        Err(error) => {
            broken(link, Unusable::Kubeconfig(error), stop).await;
            return None;
        }
    };
    let namespaces = Api::<Meta<Namespace>>::all(client);
    loop {
        let failure = match namespaces.get(&target.namespace).await {
            Ok(namespace) => match Contract::new(env, target.clone(), namespace.uid().unwrap_or_default()) {
                Ok(contract) => return Some(contract),
                Err(error) => Failure::Other(error.to_string()),
            },
            Err(error) => classify(&error),
        };
        tracing::warn!(%failure, "cannot reach the provider, trying again");
        link.send_replace(Link::Failing(failure));
        if !before(stop, tokio::time::sleep(ASK_AGAIN)).await {
            return None;
        }
    }
}

async fn serve(
    contract: Contract,
    bindings: Bindings,
    (local, secret, link): (&Local, &str, &watch::Sender<Link>),
    guard: Arc<dyn Guard>,
    stop: &CancellationToken,
) {
    let (watches, mut tasks) = (Watches::default(), JoinSet::new());
    contract.watch(&watches, &mut tasks);
    let listed = async {
        before(stop, watches.listed()).await;
    };
    tokio::select! {
        () = listed => {}
        Some(Err(error)) = tasks.join_next() => resume(error),
    }
    if stop.is_cancelled() {
        return tasks.shutdown().await;
    }
    tracing::info!(cluster_namespace = contract.cluster_namespace.name, "connected to the provider");
    let heartbeat = Heartbeat::new(&contract, local, secret, Timestamp::now);
    let namespaces = Namespaces::new(&contract, local);
    let beating = heartbeat.beating();
    link.send_replace(Link::Up(Box::new(contract.clone()), beating.clone()));
    let mut parts = JoinSet::new();
    parts.spawn(heartbeat.keep(stop.clone()));
    parts.spawn(namespaces.keep(stop.clone()));
    let unsynced = bindings.unsynced();
    let syncs = Syncs { contract: contract.clone(), guard, unsynced, beating, running: BTreeMap::new() };
    let kept = syncs.keep(bindings, stop);
    tokio::pin!(kept);
    loop {
        tokio::select! {
            () = &mut kept => break,
            Some(Err(error)) = tasks.join_next() => resume(error),
            Some(Err(error)) = parts.join_next() => resume(error),
        }
    }
    while let Some(ended) = parts.join_next().await {
        ended.unwrap_or_else(resume);
    }
    tasks.shutdown().await;
}

/// The APIs whose objects are kept in step.
struct Syncs {
    contract: Contract,
    guard: Arc<dyn Guard>,
    unsynced: Unsynced,
    beating: Beating,
    running: BTreeMap<String, (Bound, CancellationToken)>,
}

impl Syncs {
    /// Starts and ends what the bindings say, until `stop`.
    async fn keep(mut self, bindings: Bindings, stop: &CancellationToken) {
        let (mut wanted, mut tasks) = (bindings.bound(), JoinSet::new());
        let (mut changes, mut unsynced) = (self.contract.changes(), self.unsynced.changes());
        let mut active = BTreeMap::<String, usize>::new();
        loop {
            let now = wanted.borrow_and_update().clone();
            self.running.retain(|api, (bound, ending)| {
                let stays = now.get(api) == Some(bound);
                if !stays {
                    ending.cancel();
                }
                stays
            });
            for (api, bound) in now {
                if self.running.contains_key(&api) {
                    continue;
                }
                tracing::info!(api, binding = bound.binding, "keeping objects in step");
                let ending = stop.child_token();
                let env = &self.contract.env;
                let writer = Writer::new(env.client.clone(), MEMBER, "local", env.metrics.clone());
                let sync = Sync::new(bound.clone(), &self.contract, writer, self.unsynced.clone());
                let span = tracing::info_span!("api", name = api);
                let run = Box::pin(sync.run(self.guard.clone(), ending.clone()).instrument(span));
                *active.entry(bound.binding.clone()).or_default() += 1;
                let binding = bound.binding.clone();
                tasks.spawn(async {
                    run.await;
                    binding
                });
                self.running.insert(api, (bound, ending));
            }
            bindings.set_active(active.keys().cloned().collect());
            bindings.enqueue();
            tokio::select! {
                () = stop.cancelled() => break,
                Ok(()) = wanted.changed() => {}
                Ok(()) = changes.changed() => {}
                Ok(()) = unsynced.changed() => {}
                Ok(()) = self.beating.changed() => {}
                Some(ended) = tasks.join_next() => match ended {
                    Ok(binding) => {
                        let left = active.remove(&binding).unwrap_or_default().saturating_sub(1);
                        active.extend((left > 0).then_some((binding, left)));
                    }
                    Err(error) => resume(error),
                },
            }
        }
        while let Some(ended) = tasks.join_next().await {
            ended.map(drop).unwrap_or_else(resume);
        }
    }
}
