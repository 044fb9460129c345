//! An export: whether its schemas are there, and the rights that come with it.
//!
//! Watches APIServiceExports and BoundSchemas. Writes the rights of the consumer outside of its Namespaces, the hash by which a konnector
//! sees that a schema is another one, and `ProviderInSync`. An export that is deleted stays, with its rights, until its consumer does not
//! bind it any more or the cluster namespace goes. A pass begins with what is there, so it may run twice.

use api::bind::{
    carried,
    condition::{Answer, READY, Severity, Verdict, conditions},
    export::APIServiceExport,
    label,
};
use jiff::Timestamp;
use k8s_openapi::api::rbac::v1::{ClusterRoleBinding, RoleBinding};
use kit::{
    boot::Env,
    queue::Outcome,
    write::{Error, Writer},
};
use kube::{Resource, ResourceExt};
use serde_json::json;

use super::{
    ensure,
    known::{Key, Knowledge, Known, Place},
    rights::{self, Right},
};

/// The controller. Cloning shares it.
#[derive(Clone)]
pub(super) struct Exports {
    pub(super) env: Env,
    pub(super) knowledge: Knowledge,
    pub(super) writer: Writer,
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

impl Exports {
    /// One pass.
    pub(super) async fn reconcile(self, key: Key) -> Result<Outcome, Error> {
        let found = self.knowledge.known.with(|known| {
            let export = known.exports.named(&key.pair())?.clone();
            let contract = known.contract(&key.cluster_namespace).cloned();
            let (hash, rights) = (hash(&export, known), rights::of_export(&export, known));
            Some((export, contract, hash, rights))
        });
        let Some((export, contract, hash, rights)) = found else { return Ok(Outcome::Done) };
        if export.metadata.deletion_timestamp.is_some() {
            return self.end(&export, contract.as_ref(), rights).await;
        }
        let Some(contract) = contract else { return Ok(Outcome::Done) };
        if !export.finalizers().iter().any(|held| held == label::BIND_FINALIZER) {
            self.writer.hold(&export, label::BIND_FINALIZER).await?;
            return Ok(Outcome::Done);
        }
        for right in &rights {
            match right {
                Right::Within(api) => {
                    let name = contract.name_any();
                    ensure(&self.writer, &rights::within(&name, &name, api)).await?;
                }
                Right::Everywhere(api) => {
                    ensure(&self.writer, &rights::everywhere(&contract, api, false)).await?
                }
                Right::Reading(api) => {
                    ensure(&self.writer, &rights::everywhere(&contract, api, true)).await?
                }
            }
        }
        self.say(&export, hash).await
    }

    async fn say(
        &self,
        export: &APIServiceExport,
        hash: Result<String, Vec<String>>,
    ) -> Result<Outcome, Error> {
        let answer = match hash {
            Ok(hash) => {
                if export.annotations().get(label::SOURCE_SPEC_HASH) != Some(&hash) {
                    let patch = json!({"metadata": {"annotations": {label::SOURCE_SPEC_HASH: hash}}});
                    self.writer.merge(export, None, patch).await?;
                    // The watch tells.
                    return Ok(Outcome::Done);
                }
                Answer::Yes
            }
            Err(missing) => {
                let message = format!("there is no BoundSchema {}", missing.join(", "));
                Answer::No(Severity::Error, "BoundSchemaMissing", message)
            }
        };
        let have = export.status.clone().unwrap_or_default().conditions;
        let all = conditions(&have, &[Verdict::new("ProviderInSync", answer)], &[], Timestamp::now());
        // kube-bind has none on exports.
        let all: Vec<_> = all.into_iter().filter(|condition| condition.type_ != READY).collect();
        if all != have {
            let patch = json!({"metadata": {"resourceVersion": export.resource_version()}, "status": {"conditions": all}});
            self.writer.merge(export, Some("status"), patch).await?;
        }
        Ok(Outcome::Done)
    }

    async fn end(
        &self,
        export: &APIServiceExport,
        contract: Option<&Place>,
        rights: Vec<Right>,
    ) -> Result<Outcome, Error> {
        if !export.finalizers().iter().any(|held| held == label::BIND_FINALIZER) {
            return Ok(Outcome::Done);
        }
        if !may_go(export, contract) {
            let message = "its consumer binds it: it stays until that APIServiceBinding is gone";
            self.env.events.warn(export.object_ref(&()), "Delete", "StillBound", message);
            return Ok(Outcome::Done);
        }
        if let Some(contract) = contract {
            self.take_back(contract, rights).await?;
        }
        self.writer.release(export, &[label::BIND_FINALIZER]).await?;
        tracing::info!(namespace = export.namespace(), export = export.name_any(), "the export is gone");
        Ok(Outcome::Done)
    }

    async fn take_back(&self, contract: &Place, rights: Vec<Right>) -> Result<(), Error> {
        let name = contract.name_any();
        for right in rights {
            match right {
                Right::Within(api) => self.delete::<RoleBinding>(&rights::within(&name, &name, &api)).await?,
                Right::Everywhere(api) | Right::Reading(api) => {
                    self.delete::<ClusterRoleBinding>(&rights::everywhere(contract, &api, false)).await?;
                }
            }
        }
        Ok(())
    }

    async fn delete<P>(&self, object: &P) -> Result<(), Error>
    where
        P: Resource<DynamicType = ()> + serde::de::DeserializeOwned,
    {
        match self.writer.read(object).await {
            Ok(there) => self.writer.delete(&there, false).await,
            Err(Error::Gone) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
