//! Notes the addresses of imports that have ended on ConfigMap `freeport-membership`, which only this member writes: one write for all of
//! five seconds. Without a note an import comes back with another address, so a failed write stops nothing.

use std::{sync::Arc, time::Duration};

use api::{label, membership, view::annotated};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;
use kit::{
    backoff::Backoff,
    boot::Env,
    drive::before,
    index::Shared,
    write::{Error, Writer},
};
use kube::{Resource, ResourceExt, api::ObjectMeta};
use serde::Deserialize;
use serde_json::json;
use tokio::{sync::Notify, time::sleep};
use tokio_util::sync::CancellationToken;

use super::{Addresses, Returning};
use crate::service::index::known::Known;

/// All that end within this time are noted together.
const TOGETHER: Duration = Duration::from_secs(5);
/// Between attempts to write the note.
const RETRY: Backoff = Backoff { first: Duration::from_secs(2), longest: Duration::from_secs(30) };
/// Number of attempts to read the note.
const ATTEMPTS: usize = 3;

/// The ConfigMap, of which only annotations are read.
#[derive(Resource, Clone, Debug, Deserialize)]
#[resource(inherit = ConfigMap)]
struct Note {
    #[serde(deserialize_with = "annotated")]
    metadata: ObjectMeta,
}

/// The addresses of imports that have ended, and how long they are kept. Cloning shares them.
#[derive(Clone, Default)]
pub(crate) struct Kept {
    keep: Duration,
    addresses: Shared<Addresses>,
    is_read: Shared<bool>,
    changed: Arc<Notify>,
}

impl Kept {
    /// Keeps addresses for so long.
    pub(crate) fn new(keep: Duration) -> Self {
        Self { keep, ..Self::default() }
    }

    /// Takes in that the import of which this is known ends.
    pub(crate) fn ends(&self, known: &Known, now: Timestamp) {
        let derived = known.entry.own_derived().filter(|_| !self.keep.is_zero());
        let ips = derived.into_iter().flat_map(|derived| derived.spec.addresses()).cloned().collect();
        if self.addresses.with(|all| all.ends(&known.service, ips, known.namespace.created, now)) {
            self.changed.notify_one();
        }
    }

    /// Returns what the import asks for if it comes back. One that is back notes its address itself: if it loses its Service, the API server
    /// may not have released that address yet, however long ago the import had ended.
    pub(crate) fn returning(&self, known: &Known, now: Timestamp) -> Option<Returning> {
        let spec = known.entry.import.as_deref().and_then(|import| import.spec.0.as_ref().ok());
        if spec.is_some_and(|spec| !spec.ips.is_empty()) {
            return None;
        }
        self.addresses.with(|all| all.returning(&known.service, known.namespace.created, self.keep, now))
    }

    /// Reads what a process before this one has noted, once.
    pub(crate) async fn read(&self, env: &Env) {
        if self.keep.is_zero() || self.is_read.with(|is_read| *is_read) {
            return;
        }
        let writer = writer(env);
        for wait in RETRY.waits().take(ATTEMPTS) {
            match writer.read(&named(env)).await {
                Ok(note) => {
                    let said = note.annotations().get(label::ADDRESSES).map(String::as_str);
                    self.addresses.with(|all| all.read(said.unwrap_or_default()));
                }
                Err(Error::Gone) => {}
                Err(error) => {
                    tracing::warn!(%error, "cannot read which addresses imports had before");
                    sleep(wait).await;
                    continue;
                }
            }
            break;
        }
        self.is_read.with(|is_read| *is_read = true);
    }

    /// Keeps the note up to date until `stop`.
    pub(crate) async fn keep_noted(&self, env: &Env, stop: &CancellationToken) {
        let mut waits = RETRY.waits();
        while before(stop, self.changed.notified()).await {
            // What ended until `stop` is noted as well.
            before(stop, sleep(TOGETHER)).await;
            let Err(error) = self.write(env).await else {
                waits = RETRY.waits();
                continue;
            };
            tracing::warn!(%error, "cannot note which addresses imports had");
            if let Some(wait) = waits.next() {
                before(stop, sleep(wait)).await;
            }
            self.changed.notify_one();
        }
    }

    async fn write(&self, env: &Env) -> Result<(), Error> {
        let said = self.addresses.with(|all| {
            all.forget(self.keep, Timestamp::now());
            all.note()
        });
        let writer = writer(env);
        let note = match writer.read(&named(env)).await {
            // This cluster leaves.
            Err(Error::Gone) => return Ok(()),
            note => note?,
        };
        let patch = json!({"metadata": {"annotations": {label::ADDRESSES: said}}});
        match writer.merge(&note, None, patch).await {
            Ok(_) | Err(Error::Gone) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

fn writer(env: &Env) -> Writer {
    Writer::new(env.client.clone(), label::MEMBER, "local", env.metrics.clone())
}

fn named(env: &Env) -> Note {
    let (name, namespace) = (Some(membership::NAME.to_owned()), Some(env.namespace.clone()));
    Note { metadata: ObjectMeta { name, namespace, ..ObjectMeta::default() } }
}
