//! An export: whether its schemas are there, and the rights that come with it.
//!
//! Watches APIServiceExports and BoundSchemas. Writes the rights of the consumer outside of its Namespaces, the hash by which a konnector
//! sees that a schema is another one, and `ProviderInSync`. Deletes, for an export that goes, the rights and the BoundSchemas that no other
//! one needs; it stays, with its rights, until its consumer does not bind it any more or the cluster namespace goes. A pass begins with what is there, so it may run twice.

mod progress;

use std::{collections::BTreeSet, time::Duration};

use api::bind::{
    bound_schema::BoundSchema,
    carried,
    condition::{Answer, READY, Severity, Verdict, conditions},
    export::APIServiceExport,
    label,
};
use jiff::Timestamp;
use kit::{
    boot::Env,
    index::Shared,
    queue::Outcome,
    write::{Error, Writer},
};
use kube::{Resource, ResourceExt};
use serde_json::json;

use self::progress::Progress;
use super::{
    LOOK_AGAIN, REFUSED, ensure,
    key::Key,
    knowledge::Knowledge,
    known::{Known, Place},
    namespace::places,
    refusal, remove,
    request::is_made_here,
    rights::{self, Right, is_of, is_of_everywhere},
};

/// What an export says of its schemas and rights.
const IN_SYNC: &str = "ProviderInSync";

/// The controller. Cloning shares it.
#[derive(Clone)]
pub(super) struct Exports {
    env: Env,
    knowledge: Knowledge,
    writer: Writer,
    progress: Shared<Progress>,
}

/// Whether an export that is deleted may go.
fn may_go(export: &APIServiceExport, contract: Option<&Place>) -> bool {
    let said = export.status.iter().flat_map(|status| &status.conditions);
    let mut in_sync = said.filter(|condition| condition.type_ == "ConsumerInSync");
    // Nobody ever looked at it: then nobody binds it.
    let is_unbound = in_sync.next().is_none_or(|condition| condition.reason.as_deref() == Some("NA"));
    is_unbound || contract.is_none()
}

/// The hash over the schemas, or those that are missing.
fn hash(export: &APIServiceExport, known: &Known) -> Result<String, Vec<String>> {
    let cluster_namespace = export.namespace().unwrap_or_default();
    let apis: Vec<_> = export.spec.resources.iter().map(|resource| resource.name()).collect();
    let missing: Vec<_> =
        apis.iter().filter(|api| known.schema(&cluster_namespace, api).is_none()).cloned().collect();
    if !missing.is_empty() {
        return Err(missing);
    }
    let schemas = apis.iter().filter_map(|api| known.schema(&cluster_namespace, api));
    Ok(carried::hash(schemas.map(|schema| &schema.spec)))
}

/// What an export has and no other one of its cluster namespace. Which schemas there are decides nothing about rights: they may be gone
/// before.
struct Alone {
    apis: Vec<String>,
    /// Namespaces here of the consumer, in which it may have rights.
    within: BTreeSet<String>,
    schemas: Vec<BoundSchema>,
}

fn used_alone(export: &APIServiceExport, known: &Known) -> Alone {
    let cluster_namespace = export.namespace().unwrap_or_default();
    let of_others = known.exports_of(&cluster_namespace).filter(|other| other.uid() != export.uid());
    let of_others: BTreeSet<_> =
        of_others.flat_map(|other| other.spec.resources.iter().map(|resource| resource.name())).collect();
    let apis = export.spec.resources.iter().map(|resource| resource.name());
    let apis: Vec<_> = apis.filter(|api| !of_others.contains(api)).collect();
    let within = known.namespaces.within(&cluster_namespace).flat_map(places).collect();
    let schemas = apis.iter().filter_map(|api| known.schema(&cluster_namespace, api));
    let schemas = schemas.filter(|schema| is_made_here(*schema)).cloned().collect();
    Alone { apis, within, schemas }
}

impl Exports {
    /// The controller.
    pub(super) fn new(env: Env, knowledge: Knowledge, writer: Writer) -> Self {
        Self { env, knowledge, writer, progress: Shared::default() }
    }

    /// One pass.
    pub(super) async fn reconcile(self, key: Key) -> Result<Outcome, Error> {
        let found = self.knowledge.known.with(|known| {
            let export = known.exports.named(&key.pair())?.clone();
            let contract = known.contract(&key.cluster_namespace).cloned();
            let (hash, rights) = (hash(&export, known), rights::of_export(&export, known));
            Some((export, contract, hash, rights))
        });
        let Some((export, contract, hash, rights)) = found else {
            self.progress.with(|progress| progress.forget(&key));
            return Ok(Outcome::Done);
        };
        let ended = match export.metadata.deletion_timestamp {
            Some(_) => self.end(&export, contract.as_ref()).await,
            None => self.keep(&export, contract.as_ref(), hash, &rights).await,
        };
        if let Err(Error::Refused(why)) = &ended {
            self.say(&export, Answer::No(Severity::Error, REFUSED, refusal(why))).await?;
        }
        ended
    }

    async fn keep(
        &self,
        export: &APIServiceExport,
        contract: Option<&Place>,
        hash: Result<String, Vec<String>>,
        rights: &[Right],
    ) -> Result<Outcome, Error> {
        let Some(contract) = contract else { return Ok(Outcome::Done) };
        if !export.finalizers().iter().any(|held| held == label::BIND_FINALIZER) {
            self.writer.hold(export, label::BIND_FINALIZER).await?;
            return Ok(Outcome::Done);
        }
        self.give(contract, rights).await?;
        let answer = match hash {
            Ok(hash) if export.annotations().get(label::SOURCE_SPEC_HASH) != Some(&hash) => {
                let patch = json!({"metadata": {"annotations": {label::SOURCE_SPEC_HASH: hash}}});
                self.writer.merge(export, None, patch).await?;
                // The watch tells.
                return Ok(Outcome::Done);
            }
            Ok(_) => Answer::Yes,
            Err(missing) => {
                let message = format!("there is no BoundSchema {}", missing.join(", "));
                Answer::No(Severity::Error, "BoundSchemaMissing", message)
            }
        };
        self.say(export, answer).await?;
        Ok(Outcome::Requeue(LOOK_AGAIN))
    }

    /// Those outside of the consumer's Namespaces.
    async fn give(&self, contract: &Place, rights: &[Right]) -> Result<(), Error> {
        let name = contract.name_any();
        for right in rights {
            match right {
                Right::Within(api) => {
                    drop(ensure(&self.writer, &rights::within(&name, &name, api)).await?);
                    // Its mark may have been taken off.
                    if !rights.contains(&Right::Reading(api.clone())) {
                        let reading = rights::everywhere(contract, api, true);
                        remove(&self.writer, &reading, |there| is_of_everywhere(there, &name)).await?;
                    }
                }
                Right::Everywhere(api) => {
                    drop(ensure(&self.writer, &rights::everywhere(contract, api, false)).await?);
                }
                Right::Reading(api) => {
                    drop(ensure(&self.writer, &rights::everywhere(contract, api, true)).await?);
                }
            }
        }
        Ok(())
    }

    async fn say(&self, export: &APIServiceExport, answer: Answer) -> Result<(), Error> {
        let have = export.status.clone().unwrap_or_default().conditions;
        let all = conditions(&have, &[Verdict::new(IN_SYNC, answer)], &[], Timestamp::now());
        // kube-bind has none on exports.
        let all: Vec<_> = all.into_iter().filter(|condition| condition.type_ != READY).collect();
        if all != have {
            let patch = json!({"metadata": {"resourceVersion": export.resource_version()}, "status": {"conditions": all}});
            self.writer.merge(export, Some("status"), patch).await?;
        }
        Ok(())
    }

    async fn end(&self, export: &APIServiceExport, contract: Option<&Place>) -> Result<Outcome, Error> {
        if !export.finalizers().iter().any(|held| held == label::BIND_FINALIZER) {
            return Ok(Outcome::Done);
        }
        if !may_go(export, contract) {
            let message = "its consumer binds it: it stays until that APIServiceBinding is gone";
            self.env.events.warn(export.object_ref(&()), "Delete", "StillBound", message);
            return Ok(Outcome::Done);
        }
        if !self.take_back(export).await? {
            return Ok(Outcome::Requeue(Duration::ZERO));
        }
        self.writer.release(export, &[label::BIND_FINALIZER]).await?;
        tracing::info!(namespace = export.namespace(), export = export.name_any(), "the export is gone");
        Ok(Outcome::Done)
    }

    /// What no other export of the cluster namespace needs. Whether nothing of it is left.
    async fn take_back(&self, export: &APIServiceExport) -> Result<bool, Error> {
        let (key, uid) = (Key::of(export), export.uid());
        let giving = self.knowledge.giving.of(&key.cluster_namespace);
        let _nobody_gives = giving.write().await;
        let alone = self.knowledge.known.with(|known| used_alone(export, known));
        let (next, goes_on) = self.progress.with(|progress| progress.next(&key, uid.as_deref(), &alone));
        for within in &next {
            for api in &alone.apis {
                let right = rights::within(within, &key.cluster_namespace, api);
                remove(&self.writer, &right, |there| is_of(there, &key.cluster_namespace)).await?;
            }
            self.progress.with(|progress| progress.done(&key, uid.clone(), &alone, within));
        }
        if goes_on {
            return Ok(false);
        }
        for api in &alone.apis {
            let (within, everywhere) = rights::outside(&key.cluster_namespace, api);
            let consumer = &key.cluster_namespace;
            remove(&self.writer, &everywhere, |there| is_of_everywhere(there, consumer)).await?;
            remove(&self.writer, &within, |there| is_of(there, consumer)).await?;
        }
        for schema in &alone.schemas {
            self.writer.delete(schema, false).await?;
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use kit::objects::Change;

    use super::*;

    #[test]
    fn what_another_export_needs_stays() {
        let mut known = Known::default();
        let export = |name: &str, apis: &[&str]| -> APIServiceExport {
            let of = |api: &&str| json!({"group": "g", "resource": api});
            serde_json::from_value(json!({"metadata": {"name": name, "namespace": "cns", "uid": name},
                "spec": {"resources": apis.iter().map(of).collect::<Vec<_>>(), "informerScope": "Namespaced", "isolation": "None"}}))
            .unwrap()
        };
        for export in [export("x", &["m", "n"]), export("y", &["n"])] {
            known.exports.change(Change::Apply(serde_json::from_value(json!(export)).unwrap()));
        }
        for (namespace, within) in [("team1", "cns"), ("other", "another")] {
            let object = json!({"metadata": {"name": namespace, "namespace": within}, "spec": {}, "status": {"namespace": format!("{within}-{namespace}")}});
            known.namespaces.change(Change::Apply(serde_json::from_value(object).unwrap()));
        }
        for api in ["m", "n"] {
            let version =
                json!({"name": "v1", "served": true, "storage": true, "schema": {"type": "object"}});
            let annotations = json!({label::SOURCE_SPEC_HASH: "h"});
            let schema = json!({"metadata": {"name": format!("{api}.g"), "namespace": "cns", "annotations": annotations}, "spec": {"informerScope": "Namespaced",
                "group": "g", "names": {"plural": api, "kind": "M"}, "scope": "Namespaced", "versions": [version]}});
            known.schemas.change(Change::Apply(serde_json::from_value(schema).unwrap()));
        }
        let alone = used_alone(&export("x", &["m", "n"]), &known);
        assert_eq!(
            (&alone.apis[..], &alone.within),
            (&["m.g".to_owned()][..], &["cns-team1".to_owned()].into())
        );
        assert_eq!(alone.schemas.iter().map(ResourceExt::name_any).collect::<Vec<_>>(), ["m.g"]);
        // Its rights were given, and that was not said yet.
        let space = json!({"metadata": {"name": "team2", "namespace": "cns", "finalizers": [label::BIND_FINALIZER]}, "spec": {}});
        known.namespaces.change(Change::Apply(serde_json::from_value(space).unwrap()));
        known.schemas.change(Change::Reset(vec![]));
        let alone = used_alone(&export("x", &["m", "n"]), &known);
        assert_eq!(alone.apis, ["m.g"], "of which the schema is gone");
        let within: Vec<_> = alone.within.iter().map(String::as_str).collect();
        assert_eq!(within, ["cns-team1", "cns-team2", "team2"]);
    }

    #[test]
    fn b11_an_export_stays_until_nobody_binds_it_or_its_cluster_namespace_goes() {
        let export = |reason: Option<&str>| -> APIServiceExport {
            let conditions: Vec<_> = reason
                .map(|reason| json!({"type": "ConsumerInSync", "status": "False", "reason": reason, "lastTransitionTime": null}))
                .into_iter()
                .collect();
            serde_json::from_value(json!({"metadata": {"name": "x"}, "status": {"conditions": conditions},
                "spec": {"resources": [], "informerScope": "Namespaced", "isolation": "None"}}))
            .unwrap()
        };
        let contract: Place = serde_json::from_value(json!({"metadata": {"name": "cns"}})).unwrap();
        assert!(!may_go(&export(Some("")), Some(&contract)));
        assert!(may_go(&export(Some("NA")), Some(&contract)));
        assert!(may_go(&export(Some("")), None));
        assert!(may_go(&export(None), Some(&contract)));
    }
}
