//! The configuration of the webhook is put back where it is ours: where somebody deleted it, or changed it so that API servers do not ask
//! the webhook about every Pod of an offloaded Namespace.
//!
//! Ours is a configuration with our label. Where and how API servers ask the webhook was said to `freeport join`, so it is remembered of the
//! last configuration of ours that was seen, in the Secret, for a process that starts when it is missing. Nothing is put back in a cluster
//! that leaves or has left: `freeport leave` deletes the configuration.

use std::time::{Duration, Instant};

use api::membership;
use k8s_openapi::{ByteString, api::core::v1::ConfigMap};
use kit::{backoff::Backoff, write::Error};
use kube::{Api, Resource};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    Keeping,
    object::{Configuration, NAME, Pairs, SECRET},
};
use crate::offload::secret::Keys;

/// Key of the Secret: what is remembered of the configuration, as JSON.
pub(super) const REMEMBERED: &str = "webhook.json";

/// How soon it is put back again: whoever changes it all the time, as some clouds do, does not make us write all the time.
const PACE: Backoff = Backoff { first: Duration::from_secs(5), longest: Duration::from_secs(120) };

/// The last configuration of ours that was seen, as far as one is known.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Remembered(Option<Seen>);

/// What is remembered of a configuration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Seen {
    /// Where and how API servers ask the webhook.
    webhook: Value,
    /// Labels that others set.
    #[serde(default)]
    labels: Pairs,
    /// Annotations that others set.
    #[serde(default)]
    annotations: Pairs,
}

impl Seen {
    fn of(ours: &Configuration) -> Option<Self> {
        let webhook = ours.asking_about_all()?;
        let (labels, annotations) = ours.set_by_others();
        Some(Self { webhook, labels, annotations })
    }
}

impl Remembered {
    /// What is remembered now, where `secret` says what an earlier process remembered.
    pub(super) fn see(&mut self, there: Option<&Configuration>, secret: Option<&Keys>) {
        match there {
            None => self.0 = self.0.take().or_else(|| read(secret?)),
            Some(theirs) if !theirs.is_ours() => self.0 = None,
            Some(ours) => {
                let before = self.0.take();
                self.0 = Seen::of(ours).or(before).or_else(|| read(secret?));
            }
        }
    }

    /// What the Secret holds of it.
    pub(super) fn data(&self) -> Option<(String, ByteString)> {
        Some((REMEMBERED.to_owned(), ByteString(json!(self.0.as_ref()?).to_string().into_bytes())))
    }

    /// What is to be done about the configuration.
    pub(super) fn repair(&self, there: Option<&Configuration>) -> Repair {
        match (there, &self.0) {
            (None, Some(Seen { webhook, labels, annotations })) => {
                Repair::Install(Configuration::of(webhook, labels.clone(), annotations.clone()))
            }
            (Some(ours), Some(Seen { webhook, .. }))
                if ours.is_ours() && ours.meta().deletion_timestamp.is_none() =>
            {
                match (ours.client_config(), ours.leaves_out()) {
                    (None, _) => Repair::Install(Configuration::of(webhook, Pairs::new(), Pairs::new())),
                    (Some(_), Some(_)) => Repair::Mend(ours.with(webhook)),
                    (Some(_), None) => Repair::Nothing,
                }
            }
            _ => Repair::Nothing,
        }
    }
}

fn read(secret: &Keys) -> Option<Seen> {
    serde_json::from_slice(&secret.data.get(REMEMBERED).filter(|_| secret.is_ours())?.0).ok()
}

/// What is to be done about the configuration.
#[derive(Debug, PartialEq)]
pub(super) enum Repair {
    /// API servers ask the webhook about every Pod, or the configuration is not ours.
    Nothing,
    /// It has to be this.
    Mend(Configuration),
    /// The configuration or the webhook in it is missing, and has to be as in this.
    Install(Configuration),
}

impl Keeping {
    /// Puts the configuration back where it is ours. Returns how long to wait where that is not to be done yet.
    pub(super) async fn put_back(&self, secret: Option<&Keys>) -> Result<Option<Duration>, Error> {
        let (repair, there, lists) = self.known.with(|known| {
            let there = known.configurations.get(NAME).cloned();
            known.remembered.see(there.as_ref(), secret);
            (known.remembered.repair(there.as_ref()), there, known.configurations.lists())
        });
        if repair == Repair::Nothing {
            return Ok(None);
        }
        let waits = |next: Option<Instant>| next?.checked_duration_since(Instant::now());
        if let Some(wait) = self.known.with(|known| waits(known.put_back.0)) {
            return Ok(Some(wait));
        }
        let (answer, what) = match repair {
            Repair::Nothing => return Ok(None),
            Repair::Mend(want) => (self.writer.put(there.as_ref(), &want).await?, "changed"),
            Repair::Install(_) if there.is_none() && !self.is_member().await? => {
                self.forget(secret).await?;
                return Ok(None);
            }
            Repair::Install(want) => {
                let what = if there.is_some() { "changed" } else { "deleted" };
                (Some(self.install(there, &want).await?), what)
            }
        };
        let Some(answer) = answer else { return Ok(None) };
        let message = format!(
            "somebody {what} MutatingWebhookConfiguration {NAME}, so that new Pods were not placed: it is as it was again. To keep it from \
             being put back, remove its label app.kubernetes.io/managed-by first"
        );
        self.events.warn(answer.object_ref(&()), "PutBack", "WebhookPutBack", &message);
        tracing::warn!("{message}");
        self.known.with(|known| {
            let (next, waits) = &mut known.put_back;
            *next = Some(Instant::now() + waits.get_or_insert_with(|| PACE.waits()).wait());
            known.configurations.answered(answer, lists);
        });
        self.changed.notify_one();
        Ok(None)
    }

    /// Applies the webhook as the installer does, which has to be able to change it later, to the configuration that is `there`; if none is, to
    /// one that has what others had set, and was created before. If this process ends in between, the webhook alone is missing and is
    /// installed later.
    async fn install(
        &self,
        there: Option<Configuration>,
        want: &Configuration,
    ) -> Result<Configuration, Error> {
        let there = match there {
            Some(there) => there,
            None => self.create(want).await?,
        };
        self.installer.apply(&there, json!(want.bare())).await
    }

    /// Creates the configuration without the webhook: what others had set is not the installer's, as the next `freeport join` would remove it.
    /// By an apply, because of what is applied RBAC knows the name. That would also change one that is there, so the API server is asked
    /// first.
    async fn create(&self, want: &Configuration) -> Result<Configuration, Error> {
        match self.writer.read(want).await {
            Err(Error::Gone) => self.writer.apply(want, json!({"metadata": want.metadata})).await,
            Ok(_) => Err(Error::Stale),
            Err(error) => Err(error),
        }
    }

    /// Whether this cluster takes part in a ClusterSet, and shall: asked of the API server.
    async fn is_member(&self) -> Result<bool, Error> {
        let notes = Api::<ConfigMap>::namespaced(self.client.clone(), &self.namespace);
        let note = notes.get_opt(membership::NAME).await?;
        Ok(note.is_some_and(|note| !note.data.unwrap_or_default().contains_key(membership::LEAVE_KEY)))
    }

    /// Remembers nothing any more: who joins later says where the webhook is asked.
    async fn forget(&self, secret: Option<&Keys>) -> Result<(), Error> {
        let lists = self.known.with(|known| {
            known.remembered = Remembered::default();
            known.secrets.lists()
        });
        let Some(ours) = secret.filter(|secret| secret.is_ours()) else { return Ok(()) };
        let mut data = ours.data.clone();
        data.remove(REMEMBERED);
        let want = Keys::of(SECRET, &self.namespace, data);
        if let Some(answer) = self.writer.put(secret, &want).await? {
            self.known.with(|known| known.secrets.answered(answer, lists));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use kube::ResourceExt;

    use super::*;

    const URL: &str = "https://127.0.0.1:8443/mutate/pod";

    fn configuration(labels: &Value, webhooks: &Value) -> Configuration {
        serde_json::from_value(json!({"metadata": {"name": NAME, "labels": labels}, "webhooks": webhooks}))
            .unwrap()
    }

    fn ours(webhooks: &Value) -> Configuration {
        configuration(&json!({"app.kubernetes.io/managed-by": "freeport"}), webhooks)
    }

    /// As `freeport join` installs it, and as an administrator chose that it may be away.
    fn webhook() -> Value {
        json!({
            "name": "pod.mutate.liqo.io", "failurePolicy": "Ignore", "objectSelector": {},
            "clientConfig": {"url": URL, "caBundle": "b2xk"},
            "rules": api::offload::webhook::rules(), "namespaceSelector": api::offload::webhook::namespaces(),
        })
    }

    fn remembering(there: &Configuration) -> Remembered {
        let mut remembered = Remembered::default();
        remembered.see(Some(there), None);
        remembered
    }

    #[test]
    fn one_that_was_ours_is_made_again_as_it_was() {
        let installed = ours(&json!([webhook()]));
        let mut remembered = remembering(&installed);
        assert_eq!(remembered.repair(Some(&installed)), Repair::Nothing);
        remembered.see(None, None);
        let Repair::Install(again) = remembered.repair(None) else { panic!() };
        assert!(again.is_ours() && again.leaves_out().is_none());
        assert_eq!((again.url(), again.ignores_failures()), (Some(URL), true));
        assert_eq!(again.bundle(), b"", "who is trusted by then is another matter");

        // A process that starts when it is missing.
        let data = BTreeMap::from_iter(remembered.data());
        let secret = Keys::of(SECRET, "freeport-system", data.clone());
        let mut later = Remembered::default();
        later.see(None, Some(&secret));
        assert_eq!(later, remembered);
        let mut theirs = secret;
        theirs.metadata.labels = None;
        let mut later = Remembered::default();
        later.see(None, Some(&theirs));
        assert_eq!(later.repair(None), Repair::Nothing, "what somebody else's Secret says is nobody's word");
    }

    #[test]
    fn labels_and_annotations_of_others_come_back_with_it() {
        let mut installed = ours(&json!([webhook()]));
        installed.labels_mut().insert("team".to_owned(), "platform".to_owned());
        let set = [("owner", "ops"), ("kubectl.kubernetes.io/last-applied-configuration", "{}")];
        let set = set.map(|(key, value)| (key.to_owned(), value.to_owned()));
        installed.metadata.annotations = Some(set.into());
        let remembered = remembering(&installed);
        let secret = Keys::of(SECRET, "freeport-system", BTreeMap::from_iter(remembered.data()));
        let mut later = Remembered::default();
        later.see(None, Some(&secret));
        let Repair::Install(again) = later.repair(None) else { panic!() };
        assert!(again.is_ours());
        assert_eq!(again.labels()["team"], "platform");
        assert_eq!(json!(again.annotations()), json!({"owner": "ops"}));
    }

    #[test]
    fn one_of_ours_asks_about_every_pod_again() {
        let other = json!({"name": "other.example.com", "rules": []});
        let remembered = remembering(&ours(&json!([webhook()])));
        for (field, value) in [
            ("rules", json!([])),
            ("namespaceSelector", json!({"matchLabels": {"team": "a"}})),
            ("objectSelector", json!({"matchLabels": {"app": "web"}})),
            ("matchConditions", json!([{"name": "none", "expression": "false"}])),
        ] {
            let mut altered = webhook();
            altered[field] = value;
            let altered = ours(&json!([other, altered]));
            let mut seen = remembered.clone();
            seen.see(Some(&altered), None);
            assert_eq!(seen, remembered, "what is remembered asks about every Pod");
            let Repair::Mend(mended) = seen.repair(Some(&altered)) else { panic!("{field}") };
            assert_eq!(json!(mended)["webhooks"], json!([other, webhook()]), "{field}");
        }
    }

    #[test]
    fn a_webhook_that_is_missing_in_one_of_ours_is_installed_beside_what_others_set() {
        let mut installed = ours(&json!([webhook()]));
        installed.labels_mut().insert("team".to_owned(), "platform".to_owned());
        let remembered = remembering(&installed);
        // As it is where a process ended after it had created the configuration, or somebody emptied it.
        let other = json!({"name": "other.example.com", "rules": []});
        for webhooks in [json!([]), json!([other])] {
            let mut emptied = ours(&webhooks);
            emptied.labels_mut().insert("team".to_owned(), "platform".to_owned());
            let mut seen = remembered.clone();
            seen.see(Some(&emptied), None);
            assert_eq!(seen, remembered, "what was there before is remembered");
            let Repair::Install(again) = seen.repair(Some(&emptied)) else { panic!("{webhooks}") };
            assert_eq!(json!(again)["webhooks"], json!([again.asking_about_all().unwrap()]));
            assert_eq!(again.url(), Some(URL));
            assert!(!again.labels().contains_key("team"), "the installer owns what it applies");
        }
    }

    #[test]
    fn what_is_not_ours_is_left_alone_and_forgotten() {
        let mut narrow = webhook();
        narrow["rules"] = json!([]);
        let theirs = configuration(&json!({}), &json!([narrow]));
        let mut remembered = remembering(&ours(&json!([webhook()])));
        assert_eq!(remembered.repair(Some(&theirs)), Repair::Nothing);
        remembered.see(Some(&theirs), None);
        remembered.see(None, None);
        assert_eq!(
            remembered.repair(None),
            Repair::Nothing,
            "whoever took our label off has it gone for good"
        );
        assert_eq!(Remembered::default().repair(None), Repair::Nothing, "there never was one");
    }

    #[test]
    fn the_administrator_chooses_where_it_is_asked() {
        let mut moved = webhook();
        moved["clientConfig"]["url"] = json!("https://127.0.0.1:9443/mutate/pod");
        let (moved, mut remembered) = (ours(&json!([moved])), remembering(&ours(&json!([webhook()]))));
        assert_eq!(remembered.repair(Some(&moved)), Repair::Nothing);
        remembered.see(Some(&moved), None);
        let Repair::Install(again) = remembered.repair(None) else { panic!() };
        assert_eq!(again.url(), moved.url());
    }
}
