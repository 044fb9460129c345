//! Our private key: watches Secret `freeport-offload-key` in our Namespace; writes it where there is none, or where ours holds none;
//! deletes nothing. It may run twice: of two members that make a key one is refused, and reads what the other wrote.
//!
//! Where the Secret is lost while we run, it gets the key that we have. Where it is lost for good, homes seal again for the new one.

use std::{collections::BTreeMap, time::Duration};

use api::offload::seal::{KEY_LENGTH, PrivateKey};
use k8s_openapi::ByteString;
use kit::{
    boot::Env,
    drive::drive,
    index::Shared,
    objects::Objects,
    queue::{Outcome, Queue},
    watch::{Source, Watches},
    write::{Error, Writer},
};
use kube::{Api, runtime::watcher};
use tokio_util::sync::CancellationToken;

use super::{knowledge::Knowledge, local_writer, secret::Keys};

/// Name of the Secret.
pub(super) const SECRET: &str = "freeport-offload-key";
/// Key of the Secret: the private key.
const KEY: &str = "key";

/// What follows from the Secret.
#[derive(Debug)]
enum Plan {
    /// This is the key.
    Use(PrivateKey),
    /// The Secret is to hold the key that we have, or a new one.
    Write,
    /// Somebody else made the Secret, and it holds no key.
    Wait,
}

fn plan(secret: Option<&Keys>) -> Plan {
    let key = secret.and_then(|secret| PrivateKey::read(&secret.data.get(KEY)?.0));
    match (key, secret) {
        (Some(key), _) => Plan::Use(key),
        (None, Some(secret)) if !secret.is_ours() => Plan::Wait,
        (None, _) => Plan::Write,
    }
}

/// Reads and keeps the key. Cloning shares it.
#[derive(Clone)]
pub(super) struct Keeper {
    knowledge: Knowledge,
    namespace: String,
    writer: Writer,
    secrets: Shared<Objects<Keys>>,
    queue: Queue<&'static str>,
}

impl Keeper {
    pub(super) fn new(env: &Env, knowledge: Knowledge) -> Self {
        Self {
            knowledge,
            namespace: env.namespace.clone(),
            writer: local_writer(env),
            secrets: Shared::default(),
            queue: Queue::new(Duration::ZERO),
        }
    }

    /// Watches the Secret.
    pub(super) fn watch(&self, env: &Env, watches: &Watches) -> impl Future<Output = ()> + use<> {
        let (secrets, queue) = (self.secrets.clone(), self.queue.clone());
        watches.watch(
            Api::<Keys>::namespaced(env.client.clone(), &env.namespace),
            watcher::Config::default().fields(&format!("metadata.name={SECRET}")),
            Source { cluster: "local", kind: "Secret" },
            env.metrics.clone(),
            move |change| {
                secrets.with(|secrets| secrets.change(change));
                queue.enqueue([SECRET]);
            },
        )
    }

    /// Keeps the key until `stop`, once the Secret was looked for.
    pub(super) async fn run(&self, env: &Env, stop: &CancellationToken) {
        let reconcile = |_| self.clone().reconcile();
        drive("offload-key", self.queue.clone(), env.metrics.clone(), stop.clone(), reconcile).await;
    }

    async fn reconcile(self) -> Result<Outcome, Error> {
        let (secret, lists) = self.secrets.with(|known| (known.get(SECRET).cloned(), known.lists()));
        match plan(secret.as_ref()) {
            Plan::Use(key) => {
                let have = self.knowledge.key().map(|have| have.public());
                if have != Some(key.public()) {
                    self.knowledge.use_key(key);
                }
            }
            Plan::Write => {
                let key = match self.knowledge.key() {
                    Some(key) => key,
                    None => generated()?,
                };
                let data = BTreeMap::from([(KEY.to_owned(), ByteString(key.bytes()))]);
                let want = Keys::of(SECRET, &self.namespace, data);
                if let Some(answer) = self.writer.put(secret.as_ref(), &want).await? {
                    self.secrets.with(|known| known.answered(answer, lists));
                }
                self.queue.enqueue([SECRET]);
            }
            Plan::Wait => {
                let message = format!(
                    "Secret {SECRET} is somebody else's and has no key of {KEY_LENGTH} bytes under {KEY:?}"
                );
                self.knowledge.refuse_key(&message);
                return Err(Error::Refused(message));
            }
        }
        Ok(Outcome::Done)
    }
}

fn generated() -> Result<PrivateKey, Error> {
    let mut bytes = [0; KEY_LENGTH];
    let random = rustls::crypto::ring::default_provider().secure_random;
    random.fill(&mut bytes).map_err(|_| Error::Refused("there are no random numbers".into()))?;
    PrivateKey::read(&bytes).ok_or_else(|| Error::Refused("no key can be made".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_of_somebody_else_is_used_and_never_written() {
        let secret = |is_ours: bool, bytes: usize| {
            let data = BTreeMap::from([(KEY.to_owned(), ByteString(vec![1; bytes]))]);
            let mut secret = Keys::of(SECRET, "freeport-system", data);
            if !is_ours {
                secret.metadata.labels = None;
            }
            secret
        };
        assert!(matches!(plan(None), Plan::Write));
        assert!(matches!(plan(Some(&secret(true, KEY_LENGTH))), Plan::Use(_)));
        assert!(matches!(plan(Some(&secret(false, KEY_LENGTH))), Plan::Use(_)));
        assert!(matches!(plan(Some(&secret(true, 3))), Plan::Write), "garbled");
        assert!(matches!(plan(Some(&secret(false, 3))), Plan::Wait));
        assert!(generated().unwrap().public() != generated().unwrap().public());
    }
}
