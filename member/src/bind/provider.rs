//! One contract, as long as its credential is the same.
//!
//! Watches what is in the cluster namespace. Runs the controllers of the contract and keeps the objects of each bound API in step. Its
//! failure is its own: other contracts, and Services, go on. All of it begins anew when the provider was restored from a backup.

mod connect;
mod syncs;
mod unused;

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use jiff::Timestamp;
use kit::{
    boot::Env,
    client::kubeconfig::Target,
    drive::{before, drive, resume},
    metrics::{Refusals, Tally},
    queue::Queue,
    watch::Watches,
    write::Error,
};
use kube::Resource;
use tokio::{sync::watch, task::JoinSet};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use self::{
    connect::{connect, tell},
    syncs::Syncs,
    unused::release_unused,
};
use super::{
    absence::Absence,
    binding::{Bindings, Link, Untold},
    contract::{Contract, IN_TIME},
    credential::{Unusable, claim},
    heartbeat::Heartbeat,
    holder,
    local::Local,
    namespaces::Namespaces,
};

/// How soon an API server is asked again, ours or the provider's.
const ASK_AGAIN: Duration = Duration::from_secs(5);

/// What a contract can say of itself before anything is known of it.
type Credential = (String, Result<Target, Unusable>);

/// Serves the contract of the credential until `stop`, which is also when `all` contracts are stopped.
pub(crate) async fn run(
    env: Env,
    local: Local,
    (secret, target): Credential,
    absence: Absence,
    (stop, all): (CancellationToken, CancellationToken),
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
    let refusals = env.metrics.refusals().clone();
    tasks.spawn(wake(
        (local.clone(), secret.clone()),
        refusals,
        queue.clone(),
        link.subscribe(),
        stop.clone(),
    ));
    tasks.spawn(counted(env.metrics.bind().contracts(), link.subscribe(), stop.clone()));
    let served = async {
        let target = match target {
            Ok(target) => target,
            Err(unusable) => return broken(&link, unusable, &stop).await,
        };
        let copied = claimed((&env, &local), &secret, &link, &stop).await;
        let credential = (&target, copied.as_ref());
        while let Some(contract) = connect((&env, &local, &secret), credential, &link, &stop).await {
            let here = (&local, &*secret, &link);
            let ended =
                Box::pin(serve(contract, bindings.clone(), here, absence.clone(), (&stop, &all))).await;
            match ended {
                _ if stop.is_cancelled() => return,
                Ended::Restored => tell_restored(&env, &local, &secret),
                Ended::Stopped | Ended::Taken | Ended::Released => {}
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

/// Notes whose the credential is, as often as that takes; returns another cluster's, which was copied here.
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

/// Enqueues the bindings of the credential whenever our cluster, the link, or what API servers refuse is another.
async fn wake(
    (local, secret): (Local, String),
    refusals: Refusals,
    queue: Queue<String>,
    mut link: watch::Receiver<Link>,
    stop: CancellationToken,
) {
    let (mut changes, mut refused) = (local.changes(), refusals.changes());
    let mut had = BTreeSet::new();
    loop {
        let now = local.bindings_of(&secret);
        // Also those that are gone: nothing of theirs is kept in step.
        queue.enqueue(now.union(&had).cloned());
        had = now;
        tokio::select! {
            () = stop.cancelled() => return,
            Ok(()) = changes.changed() => {}
            Ok(()) = link.changed() => {}
            () = refusals.news(&mut refused) => {}
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
#[derive(Debug, PartialEq, Eq)]
enum Ended {
    Stopped,
    /// The provider was restored from a backup: all begins anew.
    Restored,
    /// Another cluster holds it now.
    Taken,
    /// No binding wants it any more.
    Released,
}

/// Serves the contract until `stop`, or until it has [ended](Ended) for another reason.
async fn serve(
    contract: Contract,
    bindings: Bindings,
    (local, secret, link): (&Local, &str, &watch::Sender<Link>),
    absence: Absence,
    (stop, all): (&CancellationToken, &CancellationToken),
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
    let stops = (work.clone(), all.clone());
    parts.spawn(release_unused((contract.clone(), local.clone()), secret.to_owned(), stops));
    let syncs = Syncs::new((&contract, local), absence, bindings.unsynced(), beating);
    let kept = syncs.keep(bindings, &work);
    tokio::pin!(kept);
    let mut ended = Ended::Stopped;
    loop {
        tokio::select! {
            () = &mut kept => break,
            (how, says) = ends(&contract, &watches), if !work.is_cancelled() => {
                tell(link, says);
                ended = how;
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

/// Returns why the contract is to be served no longer, and what is said of that on its bindings.
async fn ends(contract: &Contract, watches: &Watches) -> (Ended, Link) {
    tokio::select! {
        () = contract.restored.cancelled() => (Ended::Restored, Link::Connecting),
        () = watches.restored() => (Ended::Restored, Link::Connecting),
        other = holder::taken(contract) => (Ended::Taken, Link::InUse(other)),
        () = contract.released.cancelled() => (Ended::Released, Link::Connecting),
    }
}

#[cfg(test)]
mod tests {
    use api::bind::holder::Other;
    use k8s_openapi::api::core::v1::Secret;
    use kit::{metrics::Metrics, objects::Change, watch::Source};
    use kube::{Api, Client, client::Body, core::Status, runtime::watcher};
    use serde_json::json;

    use super::*;
    use crate::bind::fixture;

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
    async fn a_contract_ends_when_another_cluster_is_noted_or_none_any_more() {
        let watches = Watches::default();
        let noted = |contract: &Contract, uid: &str, version: &str| {
            let held = json!({"type": "Held", "status": "True", "message": uid, "lastTransitionTime": null});
            let spec = json!({"kubeconfigSecretRef": {"name": "k", "key": "k"}, "providerPrettyName": "p"});
            let metadata = json!({"name": "cluster", "uid": "c", "resourceVersion": version});
            let binding = json!({"metadata": metadata, "spec": spec, "status": {"conditions": [held]}});
            let change = Change::Apply(serde_json::from_value(binding).unwrap());
            contract.known.with(|known| known.cluster_bindings.change(change));
        };
        let contract = fixture::contract();
        noted(&contract, "us", "1");
        let pause = tokio::time::timeout(Duration::from_millis(20), ends(&contract, &watches));
        assert!(pause.await.is_err(), "this cluster is noted");
        noted(&contract, "them", "2");
        let (ended, says) = ends(&contract, &watches).await;
        assert_eq!(ended, Ended::Taken);
        assert!(matches!(says, Link::InUse(Other::Cluster(uid)) if uid == "them"));

        let contract = fixture::contract();
        contract.released.cancel();
        let (ended, says) = ends(&contract, &watches).await;
        assert!(ended == Ended::Released && matches!(says, Link::Connecting));
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
