//! The certificate of the webhook: what its Secret holds, whom its configuration trusts, and whether it answers.
//!
//! | module | holds |
//! |---|---|
//! | [`issue`] | makes certificates |
//! | [`stored`] | what the Secret holds (pure) |
//! | [`before`] | authorities of a moment ago, where somebody else keeps the Secret (pure) |
//! | [`lifecycle`] | which certificates there are to be (pure) |
//! | [`object`] | the configuration, reduced |
//! | [`kept`] | the configuration is put back where it is ours |
//! | [`ask`] | asks the webhook |
//! | [`placement`] | what the answer means for a NamespaceOffloading (pure) |
//!
//! Watches Secret `freeport-webhook-tls` in our Namespace and MutatingWebhookConfiguration `freeport-webhook`. Writes the Secret, if it
//! is ours or not there, and `caBundle` of `pod.mutate.liqo.io`; and puts back a configuration of ours. Nothing where there never was such a
//! configuration. Deletes nothing. Without
//! leader and session it runs as well: a certificate expires whether anybody leads or not. It may run twice: each write is bound to the
//! version that was read, so of two that make an authority one is refused, and reads what the other wrote.

mod ask;
mod before;
mod issue;
mod kept;
mod lifecycle;
mod object;
mod placement;
mod stored;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use api::label;
use jiff::Timestamp;
use k8s_openapi::ByteString;
use kit::{
    backoff::Waits,
    boot::Env,
    drive::{before, drive},
    events::Events,
    index::Shared,
    metrics::Metrics,
    objects::Objects,
    queue::{Outcome, Queue},
    watch::{Guard, Source, Watches},
    write::{Error, Writer},
};
use kube::{Api, Client, Resource, runtime::watcher};
use rcgen::KeyPair;
use rustls::pki_types::ServerName;
use tokio::sync::{Notify, watch};

use self::{
    before::Before,
    kept::Remembered,
    lifecycle::{Now, Trusted},
    object::{Configuration, NAME, SECRET},
    stored::{AUTHORITIES, News, Stored},
};
pub(crate) use self::{
    lifecycle::Lifetimes,
    placement::{Answer, placement},
};
use super::secret::Keys;

/// How often the webhook is asked whether it answers.
const ASK_EVERY: Duration = Duration::from_secs(5);

/// Keeps the certificate of the webhook, and says in `answers` whether it answers, until the daemon shall stop. `home` notices that the
/// API server was restored.
pub(crate) async fn run(
    env: &Env,
    home: Arc<dyn Guard>,
    lifetimes: Lifetimes,
    answers: &watch::Sender<Answer>,
) {
    let keeping = Keeping {
        namespace: env.namespace.clone(),
        lifetimes,
        client: env.client.clone(),
        writer: Writer::new(env.client.clone(), label::MEMBER, "local", env.metrics.clone()),
        installer: Writer::new(env.client.clone(), label::INSTALLER, "local", env.metrics.clone()),
        known: Shared::default(),
        changed: Arc::default(),
        queue: Queue::new(Duration::ZERO),
        events: env.events.clone(),
        metrics: env.metrics.clone(),
    };
    let watches = Watches::guarded(home);
    let keep = async {
        if before(&env.stop, watches.listed()).await {
            keeping.queue.enqueue([NAME]);
            let reconcile = |_| keeping.clone().reconcile();
            let queue = keeping.queue.clone();
            drive("webhook-certificate", queue, env.metrics.clone(), env.stop.clone(), reconcile).await;
        }
    };
    tokio::select! {
        () = keep => {}
        () = keeping.watch(env, &watches) => {}
        () = keeping.ask(&watches, answers) => {}
    }
}

/// What is known of the two objects.
#[derive(Default)]
struct Known {
    secrets: Objects<Keys>,
    configurations: Objects<Configuration>,
    trusted: Trusted,
    before: Before,
    remembered: Remembered,
    /// When the configuration may be put back again, and how long after that.
    put_back: (Option<Instant>, Option<Waits>),
}

impl Known {
    /// Notes what the Secret holds: who is trusted beside that, as PEM, and for how long.
    fn beside(&mut self, held: &Stored, now: Timestamp) -> (String, Option<Duration>) {
        self.before.see(held.authorities().cloned().collect(), now);
        (self.before.bundle(), self.before.wait(now))
    }

    /// The configuration, if it makes API servers ask the webhook.
    fn configuration(&self) -> Option<&Configuration> {
        self.configurations.get(NAME).filter(|configuration| configuration.client_config().is_some())
    }

    /// The configuration, whom it trusts, and since when as far as we have seen.
    fn trusted(&mut self, now: Timestamp) -> Option<(Configuration, Trusted)> {
        let configuration = self.configuration()?.clone();
        let authorities = configuration.authorities();
        if self.trusted.authorities != authorities {
            self.trusted = Trusted { authorities, since: now };
        }
        Some((configuration, self.trusted.clone()))
    }
}

#[derive(Clone)]
struct Keeping {
    namespace: String,
    lifetimes: Lifetimes,
    client: Client,
    writer: Writer,
    /// Writes under the name of what installed the configuration.
    installer: Writer,
    known: Shared<Known>,
    /// By what is watched: the webhook may answer otherwise now.
    changed: Arc<Notify>,
    queue: Queue<&'static str>,
    events: Events,
    metrics: Metrics,
}

impl Keeping {
    async fn watch(&self, env: &Env, watches: &Watches) {
        let named = |name: &str| watcher::Config::default().fields(&format!("metadata.name={name}"));
        let told = self.clone();
        let secrets = watches.watch(
            Api::<Keys>::namespaced(env.client.clone(), &env.namespace),
            named(SECRET),
            Source { cluster: "local", kind: "Secret" },
            env.metrics.clone(),
            move |change| {
                told.known.with(|known| known.secrets.change(change));
                told.queue.enqueue([NAME]);
                told.changed.notify_one();
            },
        );
        let told = self.clone();
        let configurations = watches.watch(
            Api::<Configuration>::all(env.client.clone()),
            named(NAME),
            Source { cluster: "local", kind: "MutatingWebhookConfiguration" },
            env.metrics.clone(),
            move |change| {
                told.known.with(|known| known.configurations.change(change));
                told.queue.enqueue([NAME]);
                told.changed.notify_one();
            },
        );
        tokio::join!(secrets, configurations);
    }

    async fn reconcile(self) -> Result<Outcome, Error> {
        let secret = self.known.with(|known| known.secrets.get(SECRET).cloned());
        let put_back = self.put_back(secret.as_ref()).await;
        // The certificate is renewed also where the API server refuses that.
        let done = self.renew(secret).await?;
        Ok(match (put_back?, done) {
            (Some(wait), Outcome::Requeue(renewal)) => Outcome::Requeue(wait.min(renewal)),
            (Some(wait), Outcome::Done) => Outcome::Requeue(wait),
            (_, done) => done,
        })
    }

    async fn renew(&self, secret: Option<Keys>) -> Result<Outcome, Error> {
        let now = Timestamp::now();
        let (asked, remembered) = self.known.with(|known| (known.trusted(now), known.remembered.data()));
        // Nobody asks the webhook, so it needs no certificate.
        let Some((configuration, trusted)) = asked else {
            self.show(&Stored::default());
            return Ok(Outcome::Done);
        };
        if let Some(theirs) = secret.as_ref().filter(|secret| !secret.is_ours()) {
            let held = Stored::read(&theirs.data);
            self.show(&held);
            let bundle = theirs.data.get(AUTHORITIES).map(|bundle| bundle.0.clone());
            // Without one, who made the Secret may have said in the configuration whom to trust.
            let Some(bundle) = bundle.filter(|bundle| kit::certificate::certificates(bundle).is_ok()) else {
                return Ok(Outcome::Done);
            };
            let (beside, wait) = self.known.with(|known| known.beside(&held, now));
            self.trust(&configuration, &with(bundle, &beside)).await?;
            return Ok(wait.map_or(Outcome::Done, Outcome::Requeue));
        }
        let stored = secret.as_ref().map(|secret| Stored::read(&secret.data)).unwrap_or_default();
        let names = names(&self.namespace, configuration.url());
        let now = Now { at: now, lifetimes: self.lifetimes, names: &names, trusted: &trusted };
        let next = now.next(&stored, KeyPair::generate).map_err(|error| Error::Refused(error.to_string()))?;
        self.store(secret, remembered, (&stored, &next)).await?;
        self.show(&next);
        self.known.with(|known| known.beside(&next, now.at));
        self.trust(&configuration, next.bundle().as_bytes()).await?;
        Ok(Outcome::Requeue(now.wait(&next)))
    }

    async fn store(
        &self,
        secret: Option<Keys>,
        remembered: Option<(String, ByteString)>,
        (stored, next): (&Stored, &Stored),
    ) -> Result<(), Error> {
        let data = next.write().into_iter().chain(remembered).collect();
        let want = Keys::of(SECRET, &self.namespace, data);
        let lists = self.known.with(|known| known.secrets.lists());
        let Some(answer) = self.writer.put(secret.as_ref(), &want).await? else { return Ok(()) };
        self.known.with(|known| known.secrets.answered(answer, lists));
        for News { reason, message } in next.news(stored) {
            self.events.tell(want.object_ref(&()), "Issue", reason, &message);
        }
        let is_new = |is: bool| if is { "new" } else { "as before" };
        tracing::info!(
            authority = is_new(next.issuer != stored.issuer),
            leaf = is_new(next.leaf != stored.leaf),
            trusted = next.authorities().count(),
            "the certificate of the webhook was written"
        );
        Ok(())
    }

    /// Shows until when the certificates count.
    fn show(&self, stored: &Stored) {
        let issuer = stored.issuer.as_ref().map(|(issuer, _)| issuer);
        let leaf = stored.leaf.as_ref().map(|(leaf, _)| leaf);
        for (which, certificate) in [("authority", issuer), ("leaf", leaf)] {
            let until = certificate.map_or(0, |certificate| certificate.validity.until.as_second());
            self.metrics.offload().expiry(which).set(until);
        }
    }

    /// Makes API servers trust these.
    async fn trust(&self, configuration: &Configuration, bundle: &[u8]) -> Result<(), Error> {
        let lists = self.known.with(|known| known.configurations.lists());
        let want = configuration.trusting(bundle);
        if let Some(answer) = self.writer.put(Some(configuration), &want).await? {
            self.known.with(|known| known.configurations.answered(answer, lists));
            // A leaf may wait for this.
            self.queue.enqueue([NAME]);
        }
        Ok(())
    }

    /// Asks the webhook again and again, and at once when somebody changed what it depends on.
    async fn ask(&self, watches: &Watches, answers: &watch::Sender<Answer>) {
        watches.listed().await;
        let mut ticks = tokio::time::interval(ASK_EVERY);
        loop {
            tokio::select! {
                _ = ticks.tick() => {}
                () = self.changed.notified() => {}
            }
            let configuration = self.known.with(|known| known.configuration().cloned());
            let answer = ask::ask(configuration.as_ref()).await;
            answers.send_if_modified(|known| std::mem::replace(known, answer.clone()) != answer);
        }
    }
}

/// A PEM text with more at its end.
fn with(mut bundle: Vec<u8>, beside: &str) -> Vec<u8> {
    if !beside.is_empty() && bundle.last() != Some(&b'\n') {
        bundle.push(b'\n');
    }
    bundle.extend(beside.as_bytes());
    bundle
}

/// The names under which it is asked: those of its Service, and the host of its URL.
fn names(namespace: &str, url: Option<&str>) -> Vec<String> {
    let service = [
        format!("{NAME}.{namespace}.svc"),
        format!("{NAME}.{namespace}.svc.cluster.local"),
        format!("{NAME}.{namespace}"),
        NAME.to_owned(),
    ];
    let url = url.and_then(|url| url.parse::<http::Uri>().ok());
    let host = url.and_then(|url| url.host().map(|host| host.trim_matches(['[', ']']).to_owned()));
    service.into_iter().chain(host).filter(|name| ServerName::try_from(name.as_str()).is_ok()).collect()
}

#[cfg(test)]
mod tests;
