//! One contract, as long as its credential is the same.
//!
//! Watches what is in the cluster namespace. Runs the controllers of the contract and keeps the objects of each bound API in step. Its
//! failure is its own: other contracts, and Services, go on. All of it begins anew when the provider was restored from a backup.

mod syncs;

use std::time::{Duration, Instant};

use api::{bind::holder::Other, view::Meta};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Namespace;
use kit::{
    boot::Env,
    client::kubeconfig::Target,
    drive::{before, drive, resume},
    failure::{Failure, classify},
    metrics::Tally,
    queue::Queue,
    watch::Watches,
    write::Error,
};
use kube::{Api, Resource, ResourceExt};
use tokio::{sync::watch, task::JoinSet};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use self::syncs::Syncs;
use super::{
    absence::{Absence, cluster_uid},
    binding::{Bindings, Link, Untold},
    contract::{Contract, IN_TIME},
    credential::{Unusable, claim, others_contract},
    heartbeat::{Heartbeat, ends_contract},
    holder,
    local::Local,
    namespaces::Namespaces,
};

/// How soon an API server is asked again, ours or the provider's.
const ASK_AGAIN: Duration = Duration::from_secs(5);

/// What a contract can say of itself before anything is known of it.
type Credential = (String, Result<Target, Unusable>);

/// Serves the contract of the credential until `stop`.
pub(crate) async fn run(
    env: Env,
    local: Local,
    (secret, target): Credential,
    absence: Absence,
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
        if let Some(unusable) = claimed((&env, &local), &secret, &link, &stop).await {
            return broken(&link, unusable, &stop).await;
        }
        while let Some(contract) = connect((&env, &local), target.clone(), &link, &stop).await {
            let here = (&local, &*secret, &link);
            let ended = Box::pin(serve(contract, bindings.clone(), here, absence.clone(), &stop)).await;
            match ended {
                _ if stop.is_cancelled() => return,
                Ended::Restored => tell_restored(&env, &local, &secret),
                Ended::Stopped | Ended::Taken => {}
            }
            // It may seem to be restored again and again, and must not be read without a pause.
            before(&stop, tokio::time::sleep(ASK_AGAIN)).await;
        }
    };
    served.await;
    while let Some(ended) = tasks.join_next().await {
        ended.unwrap_or_else(resume);
    }
}

/// Says on the bindings of the credential that the provider was restored.
fn tell_restored(env: &Env, local: &Local, secret: &str) {
    let message = "the provider was restored from a backup: reading everything there again";
    tracing::warn!("{message}");
    let names = local.bindings_of(secret);
    let references: Vec<_> = local.known.with(|known| {
        names.iter().filter_map(|name| Some(known.bindings.get(name)?.object_ref(&()))).collect()
    });
    let tell = |reference| env.events.warn(reference, "Bind", "ProviderRestored", message);
    references.into_iter().for_each(tell);
}

/// A credential that cannot be used is another one before anything changes.
async fn broken(link: &watch::Sender<Link>, unusable: Unusable, stop: &CancellationToken) {
    link.send_replace(Link::Unusable(unusable));
    stop.cancelled().await;
}

/// Notes whose the credential is, as often as that takes; why it cannot be used here, if it cannot.
async fn claimed(
    (env, local): (&Env, &Local),
    secret: &str,
    link: &watch::Sender<Link>,
    stop: &CancellationToken,
) -> Option<Unusable> {
    loop {
        match claim(env, local, secret).await {
            Ok(claimed) => {
                taken_here(link);
                return claimed;
            }
            Err(error) => refused_here(link, &error),
        }
        if !before(stop, tokio::time::sleep(ASK_AGAIN)).await {
            return None;
        }
    }
}

/// Says on the bindings what our own API server refuses. Of one that does not serve nobody can say anything.
fn refused_here(link: &watch::Sender<Link>, error: &Error) {
    tracing::warn!(%error, "cannot find out whose the credential is, trying again");
    if let Some(why) = error.refusal() {
        link.send_replace(Link::Refused(why));
    }
}

/// Says that our own API server takes what it refused.
fn taken_here(link: &watch::Sender<Link>) {
    link.send_if_modified(|link| {
        let was_refused = matches!(link, Link::Refused(_));
        if was_refused {
            *link = Link::Connecting;
        }
        was_refused
    });
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
    (env, local): (&Env, &Local),
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
    let mut was_refused = false;
    loop {
        let found = tokio::select! {
            found = tokio::time::timeout(IN_TIME, namespaces.get(&target.namespace)) => found,
            () = stop.cancelled() => return None,
        };
        let failure = match found {
            Err(_) => Failure::Unreachable("no answer in time"),
            Ok(Ok(namespace)) => match cluster_uid(&env.client).await.map_err(Error::from) {
                Ok(us) => {
                    if let Some(unusable) = others_contract(&us, &namespace) {
                        broken(link, unusable, stop).await;
                        return None;
                    }
                    taken_here(link);
                    match held((env, local), &target, (namespace.uid().unwrap_or_default(), &us)).await {
                        Ok(Ok(contract)) => return Some(contract),
                        Ok(Err(other)) => {
                            in_use(link, other);
                            if !before(stop, tokio::time::sleep(ASK_AGAIN)).await {
                                return None;
                            }
                            continue;
                        }
                        Err(failure) => failure,
                    }
                }
                Err(error) => {
                    refused_here(link, &error);
                    if !before(stop, tokio::time::sleep(ASK_AGAIN)).await {
                        return None;
                    }
                    continue;
                }
            },
            Ok(Err(error)) => classify(&error),
        };
        tracing::warn!(%failure, "cannot reach the provider, trying again");
        let has_ended = ends_contract(&failure, was_refused);
        was_refused = failure.is_refusal();
        link.send_replace(if has_ended { Link::Evicted } else { Link::Failing(failure) });
        if !before(stop, tokio::time::sleep(ASK_AGAIN)).await {
            return None;
        }
    }
}

/// The contract, which this cluster holds, or who else does. `uid` is that of the cluster namespace, `us` that of this cluster.
async fn held(
    (env, local): (&Env, &Local),
    target: &Target,
    (uid, us): (String, &str),
) -> Result<Result<Contract, Other>, Failure> {
    let contract = Contract::new(env, target.clone(), uid, us);
    let contract = contract.map_err(|error| Failure::Other(error.to_string()))?;
    let held = tokio::time::timeout(IN_TIME, holder::hold(&contract, local, Timestamp::now()));
    match held.await {
        Err(_) => Err(Failure::Unreachable("no answer in time")),
        Ok(Ok(other)) => Ok(other.map_or(Ok(contract), Err)),
        Ok(Err(Error::Gone)) => {
            let namespace = &contract.cluster_namespace.name;
            Err(Failure::Other(format!(
                "there is no ClusterBinding {namespace}/cluster, which says who uses the contract"
            )))
        }
        Ok(Err(error)) => Err(error.failure()),
    }
}

/// Says on the bindings that another cluster holds the contract.
fn in_use(link: &watch::Sender<Link>, other: Other) {
    let is_said = matches!(&*link.borrow(), Link::InUse(said) if *said == other);
    if !is_said {
        tracing::warn!("the contract is in use by {other}: nothing of it is read or written here");
        link.send_replace(Link::InUse(other));
    }
}

/// Waits until all is known of the cluster namespace; says what is not told in time.
async fn listed(watches: &Watches, link: &watch::Sender<Link>, stop: &CancellationToken, in_time: Duration) {
    loop {
        tokio::select! {
            () = watches.listed() => return,
            () = stop.cancelled() => return,
            () = tokio::time::sleep(in_time) => {}
        }
        let why = watches.troubles(Instant::now()).pop().map(|trouble| trouble.failure);
        let untold = Untold { kinds: watches.unlisted(), why };
        tracing::warn!(%untold, "the provider has not told all of the cluster namespace, waiting for it");
        link.send_replace(Link::Untold(untold));
    }
}

/// Why a contract is served no longer.
enum Ended {
    Stopped,
    /// The provider was restored from a backup: all begins anew.
    Restored,
    /// Another cluster holds it now.
    Taken,
}

/// Serves the contract until `stop`, or until it has [ended](Ended) for another reason.
async fn serve(
    contract: Contract,
    bindings: Bindings,
    (local, secret, link): (&Local, &str, &watch::Sender<Link>),
    absence: Absence,
    stop: &CancellationToken,
) -> Ended {
    let (watches, mut tasks) = (Watches::default(), JoinSet::new());
    contract.watch(&watches, &mut tasks);
    tokio::select! {
        () = listed(&watches, link, stop, IN_TIME) => {}
        Some(Err(error)) = tasks.join_next() => resume(error),
    }
    if stop.is_cancelled() {
        tasks.shutdown().await;
        return Ended::Stopped;
    }
    tracing::info!(cluster_namespace = contract.cluster_namespace.name, "connected to the provider");
    let heartbeat = Heartbeat::new((&contract, local), secret, Timestamp::now, &watches);
    let namespaces = Namespaces::new(&contract, local, absence.clone());
    let beating = heartbeat.beating();
    link.send_replace(Link::Up(Box::new(contract.clone()), beating.clone()));
    let (mut parts, work) = (JoinSet::new(), stop.child_token());
    parts.spawn(heartbeat.keep(work.clone()));
    parts.spawn(namespaces.keep(work.clone()));
    let syncs = Syncs::new((&contract, local), absence, bindings.unsynced(), beating);
    let kept = syncs.keep(bindings, &work);
    tokio::pin!(kept);
    let mut ended = Ended::Stopped;
    loop {
        tokio::select! {
            () = &mut kept => break,
            () = restored(&contract, &watches), if !work.is_cancelled() => {
                link.send_replace(Link::Connecting);
                ended = Ended::Restored;
                work.cancel();
            }
            other = holder::taken(&contract), if !work.is_cancelled() => {
                in_use(link, other);
                ended = Ended::Taken;
                work.cancel();
            }
            Some(Err(error)) = tasks.join_next() => resume(error),
            Some(Err(error)) = parts.join_next() => resume(error),
        }
    }
    while let Some(ended) = parts.join_next().await {
        ended.unwrap_or_else(resume);
    }
    tasks.shutdown().await;
    ended
}

/// Returns when a watch, or the heartbeat, has found that the provider was restored.
async fn restored(contract: &Contract, watches: &Watches) {
    tokio::select! {
        () = contract.restored.cancelled() => {}
        () = watches.restored() => {}
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Secret;
    use kit::{metrics::Metrics, watch::Source};
    use kube::{Client, client::Body, core::Status, runtime::watcher};

    use super::*;

    #[test]
    fn what_our_own_api_server_refuses_is_said_and_its_silence_is_not() {
        let link = watch::Sender::new(Link::Connecting);
        let answered =
            |code| Error::from(kube::Error::Api(Status::failure("no", "No").with_code(code).boxed()));
        refused_here(&link, &answered(503));
        refused_here(&link, &answered(409));
        assert!(matches!(&*link.borrow(), Link::Connecting));
        refused_here(&link, &answered(403));
        assert!(matches!(&*link.borrow(), Link::Refused(why) if why == "no"));
        taken_here(&link);
        assert!(matches!(&*link.borrow(), Link::Connecting), "the provider is asked now");
        link.send_replace(Link::Evicted);
        taken_here(&link);
        assert!(matches!(&*link.borrow(), Link::Evicted));
    }

    #[tokio::test]
    async fn c14_a_watch_that_tells_nothing_is_said() {
        let never =
            |_: http::Request<Body>| std::future::pending::<Result<http::Response<Body>, std::io::Error>>();
        let api = Api::<Secret>::namespaced(Client::new(tower::service_fn(never), "x"), "x");
        let (watches, link) = (Watches::default(), watch::Sender::new(Link::Connecting));
        let source = Source { cluster: "provider", kind: "Secret" };
        let silent = watches.watch(api, watcher::Config::default(), source, Metrics::new().unwrap(), |_| {});
        let (mut said, stop) = (link.subscribe(), CancellationToken::new());
        let is_said =
            said.wait_for(|link| matches!(link, Link::Untold(untold) if untold.kinds == ["Secret"]));
        let heard = tokio::select! {
            () = silent => false,
            () = listed(&watches, &link, &stop, Duration::from_millis(5)) => false,
            heard = tokio::time::timeout(Duration::from_secs(60), is_said) => heard.is_ok(),
        };
        assert!(heard);
    }
}
