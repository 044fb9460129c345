//! A Namespace of a consumer gets one here.
//!
//! Watches APIServiceNamespaces and the Namespaces that were made for them. Writes the Namespace, the consumer's rights in it and, after that,
//! `status.namespace`. Deletes the Namespace of an APIServiceNamespace that goes, if we made it for that and no other one needs it, or else
//! the consumer's rights in it; one that is missing deletes nothing. A pass begins with what is there, so it may run twice.

use api::bind::{
    condition::{Answer, Severity, Verdict, conditions},
    export::{APIServiceExport, APIServiceNamespace},
    identity::prefixed_namespace,
    label,
    resource::Isolation,
};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Namespace;
use kit::{
    boot::Env,
    queue::Outcome,
    write::{Error, Writer},
};
use kube::{Resource, ResourceExt};
use serde_json::json;

use super::{
    ensure,
    knowledge::Knowledge,
    known::{Key, Known, Place},
    remove, rights,
};

/// The controller. Cloning shares it.
#[derive(Clone)]
pub(super) struct Namespaces {
    pub(super) env: Env,
    pub(super) knowledge: Knowledge,
    pub(super) writer: Writer,
    /// What the names of cluster namespaces begin with.
    pub(super) prefix: String,
}

/// Why a Namespace of a consumer gets none here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum Refused {
    #[error("{0} is a Namespace of the system")]
    SystemNamespace(String),
    #[error("names like {0} are kept for Namespaces of consumers that have a prefix")]
    ReservedName(String),
    #[error(
        "Namespace {0} is there already, and was not made for this; annotation multicluster.freeport.dev/adopt=true on it lets it be used"
    )]
    NotOurs(String),
}

impl Refused {
    fn reason(&self) -> &'static str {
        match self {
            Self::SystemNamespace(_) => "SystemNamespace",
            Self::ReservedName(_) => "ReservedName",
            Self::NotOurs(_) => "NotOurs",
        }
    }
}

/// Name of the Namespace here; nothing as long as nothing is exported that has Namespaces. What was said once stays.
fn assigned(key: &Key, namespace: &APIServiceNamespace, known: &Known) -> Option<String> {
    let said = namespace.status.as_ref().and_then(|status| status.namespace.clone());
    if let Some(said) = said.filter(|said| !said.is_empty()) {
        return Some(said);
    }
    if rights::in_namespaces(&key.cluster_namespace, known, is_live).is_empty() {
        return None;
    }
    let is_none =
        known.exports_of(&key.cluster_namespace).any(|export| export.spec.isolation == Isolation::None);
    Some(if is_none { key.name.clone() } else { prefixed_namespace(&key.cluster_namespace, &key.name) })
}

/// Whether the export is not taken back.
fn is_live(export: &APIServiceExport) -> bool {
    export.metadata.deletion_timestamp.is_none()
}

/// Why no consumer gets this name, whatever is there; `own` is our Namespace. Without the prefix of its cluster namespace a consumer could
/// have the Namespace of another one before that one asks for it.
fn reserved(key: &Key, name: &str, own: &str, prefix: &str) -> Option<Refused> {
    if name == "default" || name == own {
        return Some(Refused::SystemNamespace(name.to_owned()));
    }
    if name == prefixed_namespace(&key.cluster_namespace, &key.name) {
        return None;
    }
    if name.starts_with(prefix) {
        return Some(Refused::ReservedName(name.to_owned()));
    }
    name.starts_with("kube-").then(|| Refused::SystemNamespace(name.to_owned()))
}

/// Whether the Namespace was made for this APIServiceNamespace.
fn is_made_for(place: &Place, key: &Key) -> bool {
    let is_ours = place.labels().get(label::BIND).is_some_and(|value| value == label::OBJECTS);
    is_ours && place.annotations().get(label::API_SERVICE_NAMESPACE) == Some(&key.to_string())
}

/// Whether another APIServiceNamespace has its objects in this Namespace.
fn is_shared(key: &Key, name: &str, known: &Known) -> bool {
    known.namespaces.iter().any(|other| {
        Key::of(other) != *key
            && other.status.as_ref().and_then(|status| status.namespace.as_deref()) == Some(name)
    })
}

impl Namespaces {
    /// One pass.
    pub(super) async fn reconcile(self, key: Key) -> Result<Outcome, Error> {
        let found = self.knowledge.known.with(|known| {
            let namespace = known.namespaces.named(&key.pair())?.clone();
            let name = assigned(&key, &namespace, known);
            let has_contract = known.contract(&key.cluster_namespace).is_some();
            Some((namespace, name, has_contract))
        });
        let Some((namespace, name, has_contract)) = found else { return Ok(Outcome::Done) };
        if namespace.metadata.deletion_timestamp.is_some() {
            return self.end(&key, &namespace, name).await;
        }
        let Some(name) = name.filter(|_| has_contract) else { return Ok(Outcome::Done) };
        if let Some(refused) = reserved(&key, &name, &self.env.namespace, &self.prefix) {
            return self.refuse(&namespace, &refused).await;
        }
        if !namespace.finalizers().iter().any(|held| held == label::BIND_FINALIZER) {
            self.writer.hold(&namespace, label::BIND_FINALIZER).await?;
            return Ok(Outcome::Done);
        }
        if let Some(refused) = self.make(&key, &name).await? {
            return self.refuse(&namespace, &refused).await;
        }
        // An export that goes keeps the rights that it has, until it takes them back itself.
        let apis =
            self.knowledge.known.with(|known| rights::in_namespaces(&key.cluster_namespace, known, is_live));
        for api in apis {
            ensure(&self.writer, &rights::within(&name, &key.cluster_namespace, &api)).await?;
        }
        self.say(&namespace, Some(&name), Answer::Yes).await
    }

    /// Makes the Namespace, unless it is there.
    async fn make(&self, key: &Key, name: &str) -> Result<Option<Refused>, Error> {
        let place = self.knowledge.known.with(|known| known.places.get(name).cloned());
        if place.is_some_and(|place| is_made_for(&place, key) && place.metadata.deletion_timestamp.is_none())
        {
            return Ok(None);
        }
        let mut want = Namespace::default();
        want.metadata.name = Some(name.to_owned());
        want.labels_mut().insert(label::BIND.to_owned(), label::OBJECTS.to_owned());
        want.annotations_mut().insert(label::API_SERVICE_NAMESPACE.to_owned(), key.to_string());
        // One that was adopted is in no watch.
        let there = match self.writer.read(&want).await {
            Err(Error::Gone) => match self.writer.put(None, &want).await {
                Ok(_) => return Ok(None),
                Err(Error::Stale) => self.writer.read(&want).await?,
                Err(error) => return Err(error),
            },
            there => there?,
        };
        let says = |key: &str| there.annotations().get(key).map(String::as_str);
        let is_made = says(label::API_SERVICE_NAMESPACE) == Some(key.to_string().as_str());
        let may = is_made || says(label::ADOPT) == Some("true");
        Ok((!may).then(|| Refused::NotOurs(name.to_owned())))
    }

    async fn refuse(&self, namespace: &APIServiceNamespace, refused: &Refused) -> Result<Outcome, Error> {
        let is_news = !namespace
            .status
            .iter()
            .flat_map(|status| &status.conditions)
            .any(|condition| condition.reason.as_deref() == Some(refused.reason()));
        if is_news {
            self.env.events.warn(namespace.object_ref(&()), "Assign", refused.reason(), &refused.to_string());
        }
        self.say(namespace, None, Answer::No(Severity::Error, refused.reason(), refused.to_string())).await
    }

    async fn say(
        &self,
        namespace: &APIServiceNamespace,
        name: Option<&str>,
        answer: Answer,
    ) -> Result<Outcome, Error> {
        let have = namespace.status.clone().unwrap_or_default();
        let all = conditions(&have.conditions, &[Verdict::new("Assigned", answer)], &[], Timestamp::now());
        if all == have.conditions && have.namespace.as_deref() == name {
            return Ok(Outcome::Done);
        }
        let status = json!({"namespace": name, "conditions": all});
        let patch = json!({"metadata": {"resourceVersion": namespace.resource_version()}, "status": status});
        self.writer.merge(namespace, Some("status"), patch).await?;
        Ok(Outcome::Done)
    }

    /// What was made for it goes, then it may go.
    async fn end(
        &self,
        key: &Key,
        namespace: &APIServiceNamespace,
        name: Option<String>,
    ) -> Result<Outcome, Error> {
        if !namespace.finalizers().iter().any(|held| held == label::BIND_FINALIZER) {
            return Ok(Outcome::Done);
        }
        let made = self.knowledge.known.with(|known| {
            let name = name.as_deref()?;
            let place = known.places.get(name).filter(|place| is_made_for(place, key))?;
            (!is_shared(key, name, known)).then(|| place.clone())
        });
        match made {
            Some(place) if place.metadata.deletion_timestamp.is_some() => Ok(Outcome::Done),
            Some(place) => {
                self.writer.delete(&place, false).await?;
                tracing::info!(namespace = place.name_any(), "the consumer's Namespace is gone: so is ours");
                Ok(Outcome::Done)
            }
            None => {
                // One that was there before stays, without the rights in it.
                let apis = self
                    .knowledge
                    .known
                    .with(|known| rights::in_namespaces(&key.cluster_namespace, known, |_| true));
                for api in apis {
                    let within = name.as_deref().unwrap_or_default();
                    remove(&self.writer, &rights::within(within, &key.cluster_namespace, &api)).await?;
                }
                self.writer.release(namespace, &[label::BIND_FINALIZER]).await?;
                Ok(Outcome::Done)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use kit::objects::Change;

    use super::*;

    fn key() -> Key {
        Key { cluster_namespace: "cns".into(), name: "team1".into() }
    }

    fn namespace(status: &str) -> APIServiceNamespace {
        let status = json!({"namespace": status});
        serde_json::from_value(
            json!({"metadata": {"name": "team1", "namespace": "cns"}, "spec": {}, "status": status}),
        )
        .unwrap()
    }

    fn known(isolation: &str) -> Known {
        let mut known = Known::default();
        let version = json!({"name": "v1", "served": true, "storage": true, "schema": {"type": "object"}});
        let schema = json!({"metadata": {"name": "m.g", "namespace": "cns"}, "spec": {"informerScope": "Namespaced", "group": "g",
            "names": {"plural": "m", "kind": "M"}, "scope": "Namespaced", "versions": [version]}});
        known.schemas.change(Change::Apply(serde_json::from_value(schema).unwrap()));
        let export = json!({"metadata": {"name": "x", "namespace": "cns"}, "spec": {"informerScope": "Namespaced",
            "isolation": isolation, "resources": [{"group": "g", "resource": "m"}]}});
        known.exports.change(Change::Apply(serde_json::from_value(export).unwrap()));
        known
    }

    #[test]
    fn m5_where_objects_go() {
        let of = |status: &str, known: &Known| assigned(&key(), &namespace(status), known);
        assert_eq!(of("", &known("Prefixed")).as_deref(), Some("cns-team1"));
        assert_eq!(of("", &known("None")).as_deref(), Some("team1"));
        assert_eq!(of("said", &known("None")).as_deref(), Some("said"), "what was said once stays");
        assert_eq!(of("", &Known::default()), None);
    }

    #[test]
    fn sec8_a_namespace_of_the_system_or_of_another_consumer_is_nobodys() {
        let why = |name: &str, prefix: &str| reserved(&key(), name, "freeport-system", prefix);
        for name in ["kube-system", "kube-public", "default", "freeport-system"] {
            assert_eq!(why(name, "kube-bind-"), Some(Refused::SystemNamespace(name.into())));
        }
        for (name, prefix) in [("kube-bind-x-team1", "kube-bind-"), ("c", "c"), ("cns-other", "cn")] {
            assert_eq!(why(name, prefix), Some(Refused::ReservedName(name.into())));
        }
        assert_eq!(why("cns-team1", "cn"), None, "it is its own");
        assert_eq!(why("team1", "kube-bind-"), None);
    }

    #[test]
    fn d7_only_what_was_made_for_it_goes_and_only_with_the_last() {
        let place = |made_for: &str, value: &str| -> Place {
            serde_json::from_value(json!({"metadata": {"name": "team1", "labels": {label::BIND: value},
                "annotations": {label::API_SERVICE_NAMESPACE: made_for}}}))
            .unwrap()
        };
        assert!(is_made_for(&place("cns/team1", label::OBJECTS), &key()));
        assert!(!is_made_for(&place("cns/other", label::OBJECTS), &key()));
        assert!(!is_made_for(&place("cns/team1", "adopted"), &key()));
        let mut known = known("None");
        assert!(!is_shared(&key(), "team1", &known));
        let mut other = namespace("team1");
        other.metadata.namespace = Some("other".into());
        known.namespaces.change(Change::Apply(serde_json::from_value(json!(other)).unwrap()));
        assert!(is_shared(&key(), "team1", &known));
    }
}
