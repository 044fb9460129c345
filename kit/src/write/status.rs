//! A status is applied, so that several writers share its list of conditions.
//!
//! An API server refuses an apply as a whole for one field that its CRD does not know. Then the rest is applied: an update instead
//! would make a second owner of what it writes, and later applies could never take that back.

use std::collections::{BTreeMap, BTreeSet};

use kube::{
    Resource, ResourceExt,
    api::{Patch, PatchParams},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use super::{Error, Writer};

/// Paths of fields in statuses that CRDs are known not to have, by kind.
pub(super) type Undeclared = BTreeMap<String, BTreeSet<Vec<String>>>;

/// More unknown fields than any status has: then something else is wrong.
const ATTEMPTS: usize = 8;

impl<D: Send + Sync + 'static> Writer<D> {
    /// Applies `status` to the object `of`; it replaces what we applied before. The server's answer. Fields that the installed
    /// schema does not have are left out.
    pub async fn put_status<P, S>(&self, of: &P, status: &S) -> Result<P, Error>
    where
        P: Resource<DynamicType = D> + DeserializeOwned,
        S: Serialize,
    {
        let mut attempts = 0;
        loop {
            attempts += 1;
            let applied =
                self.apply_status(of, &self.without_undeclared::<P>(serde_json::to_value(status)?)).await;
            let Err(Error::Unreachable(error)) = &applied else { return applied };
            let kube::Error::Api(refusal) = error.as_ref() else { return applied };
            let fields = undeclared(&refusal.message);
            if fields.is_empty() || attempts == ATTEMPTS {
                return applied;
            }
            self.metrics.pruned(self.cluster, &P::kind(&self.kind));
            let object = of.name_any();
            tracing::warn!(cluster = self.cluster, object, %error, "the CRD does not have a field of the status: writing the status without it");
            self.undeclared
                .with(|all| all.entry(P::kind(&self.kind).into_owned()).or_default().extend(fields));
        }
    }

    async fn apply_status<P>(&self, of: &P, status: &Value) -> Result<P, Error>
    where
        P: Resource<DynamicType = D> + DeserializeOwned,
    {
        let patch = json!({
            "apiVersion": P::api_version(&self.kind),
            "kind": P::kind(&self.kind),
            // Bound to what the status says something about, so that the answer holds nothing we do not know but our own write.
            "metadata": {"uid": of.uid(), "resourceVersion": of.resource_version()},
            "status": status,
        });
        let params = PatchParams::apply(self.manager).force();
        let request =
            self.request::<P>(of).patch_subresource("status", &of.name_any(), &params, &Patch::Apply(&patch));
        self.send::<P, P>(of, "status", request).await
    }

    /// The status without the fields that the installed schema is known not to have.
    pub fn known<P, S>(&self, status: &S) -> Result<S, Error>
    where
        P: Resource<DynamicType = D>,
        S: Serialize + DeserializeOwned,
    {
        Ok(serde_json::from_value(self.without_undeclared::<P>(serde_json::to_value(status)?))?)
    }

    /// CRDs have changed: they may have the fields now that they did not have.
    pub fn forget_undeclared(&self) {
        self.undeclared.with(BTreeMap::clear);
    }

    fn without_undeclared<P: Resource<DynamicType = D>>(&self, mut status: Value) -> Value {
        let fields =
            self.undeclared.with(|all| all.get(P::kind(&self.kind).as_ref()).cloned().unwrap_or_default());
        fields.iter().for_each(|path| remove(&mut status, path));
        status
    }
}

/// Paths below `status` of which an API server says that its schema does not have them, as in
/// `.status.conditions[type="Ready"].observedGeneration: field not declared in schema`.
fn undeclared(message: &str) -> BTreeSet<Vec<String>> {
    let before = message.split(": field not declared in schema");
    let path = |text: &str| {
        let (_, path) = text.rsplit_once(".status.")?;
        let steps = path.split('.').map(|step| step.split('[').next().unwrap_or_default().to_owned());
        Some(steps.collect::<Vec<_>>()).filter(|steps| steps.iter().all(|step| !step.is_empty()))
    };
    let mut paths: Vec<_> = before.map(path).collect();
    // What comes after the last one is about no field.
    paths.pop();
    paths.into_iter().flatten().collect()
}

/// Removes a field, in each item where the path leads through a list.
fn remove(value: &mut Value, path: &[String]) {
    match (value, path) {
        (Value::Array(items), path) => items.iter_mut().for_each(|item| remove(item, path)),
        (Value::Object(map), [last]) => drop(map.remove(last)),
        (Value::Object(map), [first, rest @ ..]) => {
            if let Some(inner) = map.get_mut(first) {
                remove(inner, rest);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_declared_is_left_out() {
        let message = "failed to create typed patch object (ns/web; multicluster.x-k8s.io/v1alpha1, Kind=ServiceImport): errors:\n  \
                       .status.endpointSliceObjects: field not declared in schema\n  \
                       .status.conditions[type=\"Ready\"].observedGeneration: field not declared in schema";
        let paths = undeclared(message);
        assert_eq!(paths.len(), 2, "{paths:?}");
        let mut status = json!({
            "clusters": [{"cluster": "east"}], "endpointSliceObjects": "Present",
            "conditions": [{"type": "Ready", "observedGeneration": 1}, {"type": "Other", "observedGeneration": 2}],
        });
        paths.iter().for_each(|path| remove(&mut status, path));
        let conditions = json!([{"type": "Ready"}, {"type": "Other"}]);
        assert_eq!(status, json!({"clusters": [{"cluster": "east"}], "conditions": conditions}));
        assert!(undeclared("etcd is down").is_empty());
    }
}
