//! API binding, as a provider: kube-bind's backend, in Rust. Objects of consumers do not pass through it; it makes identities, rights,
//! schemas and Namespaces.
//!
//! | module | holds |
//! |---|---|
//! | [`args`] | flags |
//! | [`known`] | what is known |
//! | [`knowledge`] | the watches, and the queues of the controllers |
//! | [`concerns`] | whom a change concerns: pure |
//! | [`lean`] | what is kept of what consumers write: pure |
//! | [`live`] | whether what is known is what is there |
//! | [`contract`] | who asks to be a consumer gets a cluster namespace |
//! | [`credential`] | account, rights and kubeconfig in a cluster namespace |
//! | [`request`] | what a consumer asks for is judged, and exported |
//! | [`export`] | whether the schemas of an export are there; its rights |
//! | [`namespace`] | a Namespace here for one of a consumer |
//! | [`turns`] | one request of a consumer after the other |
//! | [`rights`] | what a consumer may do: pure |
//!
//! It needs no Common Area, and its failures are its own.

mod args;
mod concerns;
mod contract;
mod credential;
mod export;
mod key;
mod knowledge;
mod known;
mod lean;
mod live;
mod namespace;
mod request;
mod rights;
mod turns;

use std::{fmt::Debug, time::Duration};

use api::{label::LEADER, view::shortened};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kit::{
    boot::Env,
    drive::{before, drive, resume},
    watch::Watches,
    write::{Error, Writer},
};
use kube::{Resource, ResourceExt};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::json;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

pub use self::args::BindArgs;
use self::{
    contract::Contracts,
    credential::{Credentials, Reached},
    export::Exports,
    knowledge::Knowledge,
    known::Place,
    namespace::Namespaces,
    request::Requests,
};
use crate::restored::restored;

/// How often it is looked whether accounts, credentials and rights are still there: they are in no watch.
const LOOK_AGAIN: Duration = Duration::from_secs(600);

/// How often all is listed again at the most for what was left out.
const LIST_AGAIN: Duration = Duration::from_secs(30);

/// The pause before everything is read again after a restore of this cluster, which may seem to be restored again and again.
const BEGIN_AGAIN: Duration = Duration::from_secs(5);

/// Reason of what an API server refuses to us. It is tried again.
const REFUSED: &str = "Refused";

/// Most bytes of what an API server says that are passed on: it may quote a whole object.
const WORDS_MAX: usize = 500;

/// What is said of what an API server refuses.
fn refusal(why: &str) -> String {
    shortened(format!("the provider's API server refuses it: {why}"), WORDS_MAX)
}

/// Serves consumers until the daemon shall stop, if it was told to and is the active replica; from the beginning again whenever this
/// cluster was restored from a backup.
pub(crate) async fn run(env: Env, args: BindArgs) {
    let Some(reached) = args.bind.then(|| reached(&args)).flatten() else {
        return env.stop.cancelled().await;
    };
    if !before(&env.stop, env.hold.active()).await {
        return;
    }
    tracing::info!(address = reached.address, "offering APIs");
    while !env.stop.is_cancelled() {
        let stop = env.stop.child_token();
        Box::pin(serve(&Env { stop, ..env.clone() }, &args, reached.clone())).await;
        before(&env.stop, tokio::time::sleep(BEGIN_AGAIN)).await;
    }
}

/// Serves consumers until `env.stop`, or until this cluster turns out to be restored.
async fn serve(env: &Env, args: &BindArgs, reached: Reached) {
    let (knowledge, watches, mut watching) =
        (Knowledge::new(env.metrics.bind().contracts()), Watches::default(), JoinSet::new());
    knowledge.watch(env, &watches, &mut watching);
    let driven = async {
        if before(&env.stop, watches.listed()).await {
            tokio::join!(
                controllers(env, args, &knowledge, reached),
                list_again(&env.stop, &knowledge, &watches)
            );
        }
    };
    let restored = async {
        tokio::select! {
            () = restored(env) => {}
            () = watches.restored() => {}
        }
    };
    tokio::pin!(driven, restored);
    loop {
        tokio::select! {
            () = &mut driven => break,
            () = &mut restored, if !env.stop.is_cancelled() => {
                tracing::warn!("this cluster was restored from a backup: reading everything about consumers again");
                env.metrics.restored("");
                env.stop.cancel();
            }
            Some(Err(error)) = watching.join_next() => resume(error),
        }
    }
    watching.shutdown().await;
}

/// Has all listed again, now and then, while there is room for objects of consumers of which nothing is known.
async fn list_again(stop: &CancellationToken, knowledge: &Knowledge, watches: &Watches) {
    while before(stop, tokio::time::sleep(LIST_AGAIN)).await {
        if knowledge.wants_list() {
            watches.list_again();
        }
    }
}

async fn controllers(env: &Env, args: &BindArgs, knowledge: &Knowledge, reached: Reached) {
    let (metrics, stop, queues) = (&env.metrics, &env.stop, &knowledge.queues);
    let writer = Writer::new(env.client.clone(), LEADER, "local", env.metrics.clone());
    let with = || (env.clone(), knowledge.clone(), writer.clone());
    let (e, k, w) = with();
    let contracts = Contracts { env: e, knowledge: k, writer: w, prefix: args.bind_namespace_prefix.clone() };
    let (e, k, w) = with();
    let credentials = Credentials { env: e, knowledge: k, writer: w, reached };
    let (e, k, w) = with();
    let requests =
        Requests { env: e, knowledge: k, writer: w, isolation: args.isolation(), scope: args.scope() };
    let (e, k, w) = with();
    let exports = Exports::new(e, k, w);
    let (e, k, w) = with();
    let namespaces = Namespaces::new(e, k, w, args.bind_namespace_prefix.clone());
    let (m, s) = (|| metrics.clone(), || stop.clone());
    tokio::join!(
        drive("bind-contract", queues.asks.clone(), m(), s(), |name| contracts.clone().reconcile(name)),
        drive("bind-credential", queues.credentials.clone(), m(), s(), |name| credentials
            .clone()
            .reconcile(name)),
        drive("bind-request", queues.requests.clone(), m(), s(), |key| requests.clone().reconcile(key)),
        drive("bind-export", queues.exports.clone(), m(), s(), |key| exports.clone().reconcile(key)),
        drive("bind-namespace", queues.namespaces.clone(), m(), s(), |key| namespaces.clone().reconcile(key)),
    );
}

/// Nothing without an address, which the flags demand.
fn reached(args: &BindArgs) -> Option<Reached> {
    Some(Reached {
        address: args.bind_address.clone()?,
        server_name: args.bind_server_name.clone(),
        authorities: args.bind_ca_file.clone().map(|authorities| authorities.0),
        pretty_name: args.bind_pretty_name.clone(),
        lifetime: args.bind_token_lifetime.0,
    })
}

/// Makes it where it is not there; what is there then.
async fn ensure<P>(writer: &Writer, want: &P) -> Result<P, Error>
where
    P: Resource<DynamicType = ()> + Serialize + DeserializeOwned + Clone + Debug,
{
    match writer.read(want).await {
        Err(Error::Gone) => match writer.put(None, want).await {
            Ok(Some(made)) => Ok(made),
            Ok(None) | Err(Error::Stale) => writer.read(want).await,
            Err(error) => Err(error),
        },
        there => there,
    }
}

/// Deletes the object of this name if it is one that `is_ours`.
async fn remove<P>(writer: &Writer, object: &P, is_ours: impl FnOnce(&P) -> bool) -> Result<(), Error>
where
    P: Resource<DynamicType = ()> + DeserializeOwned,
{
    match writer.read(object).await {
        Ok(there) if is_ours(&there) => writer.delete(&there, false).await,
        Ok(_) | Err(Error::Gone) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Takes all finalizers off an object that goes with its cluster namespace: its consumer may have put some on that nobody takes off. None
/// can be put on an object any more that is going.
async fn free<P>(writer: &Writer, object: &P) -> Result<(), Error>
where
    P: Resource<DynamicType = ()> + DeserializeOwned,
{
    match writer.merge(object, None, json!({"metadata": {"finalizers": null}})).await {
        Ok(_) | Err(Error::Gone) => Ok(()),
        Err(error) => Err(error),
    }
}

/// What goes with a cluster namespace.
fn namespace_owner(contract: &Place) -> OwnerReference {
    OwnerReference {
        api_version: "v1".to_owned(),
        kind: "Namespace".to_owned(),
        name: contract.name_any(),
        uid: contract.uid().unwrap_or_default(),
        ..OwnerReference::default()
    }
}
