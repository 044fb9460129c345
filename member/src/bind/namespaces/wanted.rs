//! Namespaces of our cluster that the provider wants: it made their APIServiceNamespaces itself, for a request that names them.
//!
//! RBAC says which of them we may make, by their names: that is the consumer's consent. One that is there stays as it is, and none is deleted.

use std::{collections::BTreeSet, time::Instant};

use api::{
    bind::{export::APIServiceNamespace, identity::is_of_system, label},
    view::Meta,
};
use k8s_openapi::api::core::v1::Namespace;
use kit::write::Error;
use kube::{Resource, ResourceExt};
use serde_json::json;

use super::{MAY_BE_LET, Namespaces};
use crate::bind::contract::Contract;

impl Namespaces {
    /// Makes those that are not there (`live`). What is refused is said once on the bindings of the contract, and tried again.
    pub(super) async fn make_wanted(
        &mut self,
        all: &[APIServiceNamespace],
        live: &BTreeSet<String>,
    ) -> Result<(), Error> {
        let own = self.contract.env.namespace.clone();
        let wanted: Vec<_> =
            all.iter().filter(|one| is_wanted(one, live, &own)).map(|one| one.name_any()).collect();
        self.refused.retain(|name, _| wanted.contains(name));
        let was_just_now = |at: &Instant| at.elapsed() < MAY_BE_LET;
        for name in wanted {
            if self.refused.get(&name).is_some_and(was_just_now) {
                continue;
            }
            match self.make(&name).await {
                Ok(()) => drop(self.refused.remove(&name)),
                Err(Error::Refused(why)) => {
                    if self.refused.insert(name.clone(), Instant::now()).is_none() {
                        self.say_refused(&name, &why);
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// An apply, since RBAC knows the name of what is made by no other request. It would put our label on one that is there, so it is looked first.
    async fn make(&self, name: &str) -> Result<(), Error> {
        if self.here.get_opt(name).await?.is_some() {
            return Ok(());
        }
        let labels = json!({"metadata": {"labels": {label::OWNER: "provider"}}});
        self.writer.apply(&Meta::<Namespace>::named(name), labels).await?;
        tracing::info!(namespace = name, "made the Namespace that the provider wants");
        Ok(())
    }

    fn say_refused(&self, name: &str, why: &str) {
        let exports =
            self.contract.known.with(|known| known.exports.iter().map(ResourceExt::name_any).collect());
        let message = format!("the provider wants Namespace {name} here, which is not made: {why}");
        tracing::warn!("{message}");
        for binding in self.local.bound(exports) {
            let reference =
                self.local.known.with(|known| Some(known.bindings.get(&binding)?.object_ref(&())));
            if let Some(reference) = reference {
                self.contract.env.events.warn(reference, "Bind", "NamespaceNotMade", &message);
            }
        }
    }
}

/// None of the system, whatever we may do (Sec5); `own` is the daemon's.
fn is_wanted(namespace: &APIServiceNamespace, live: &BTreeSet<String>, own: &str) -> bool {
    let (is_going, name) = (namespace.metadata.deletion_timestamp.is_some(), namespace.name_any());
    Contract::is_providers(namespace) && !is_going && !is_of_system(&name, own) && !live.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sec5_only_what_the_provider_made_itself_is_wanted_and_no_namespace_of_the_system() {
        let wanted = |name: &str, owner: &str, going: bool| {
            let deleted = going.then_some("2026-01-01T00:00:00Z");
            let metadata =
                json!({"name": name, "labels": {"kube-bind.io/owner": owner}, "deletionTimestamp": deleted});
            let namespace = serde_json::from_value(json!({"metadata": metadata, "spec": {}})).unwrap();
            is_wanted(&namespace, &["there".to_owned()].into(), "freeport-system")
        };
        assert!(wanted("team1", "provider", false));
        assert!(!wanted("there", "provider", false));
        assert!(!wanted("team1", "consumer", false) && !wanted("team1", "", false));
        assert!(!wanted("team1", "provider", true), "it goes");
        for system in ["default", "kube-system", "kube-bind", "freeport-system"] {
            assert!(!wanted(system, "provider", false), "{system}");
        }
    }
}
