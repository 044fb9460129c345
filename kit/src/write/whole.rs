//! Whole objects, as far as they are ours: created, or patched by exactly the difference.

use std::fmt::Debug;

use kube::{
    Resource, ResourceExt,
    api::{Patch, PatchParams, PostParams},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use super::{
    Error, Writer,
    difference::{difference, pruned},
    is_going,
};

impl<D: Send + Sync + 'static> Writer<D> {
    /// Makes `want` so, given that the API server had `have`. The server's answer, or `None` when there was nothing to do.
    pub async fn put<P>(&self, have: Option<&P>, want: &P) -> Result<Option<P>, Error>
    where
        P: Resource<DynamicType = D> + Serialize + DeserializeOwned + Clone + Debug,
    {
        self.send_put(have, want, false).await
    }

    /// Whether the API server would take that, without doing it.
    pub async fn would_take<P>(&self, have: Option<&P>, want: &P) -> Result<bool, Error>
    where
        P: Resource<DynamicType = D> + Serialize + DeserializeOwned + Clone + Debug,
    {
        match self.send_put(have, want, true).await {
            Ok(_) | Err(Error::Pruned { .. }) => Ok(true),
            Err(Error::Refused(_)) => Ok(false),
            Err(error) => Err(error),
        }
    }

    async fn send_put<P>(&self, have: Option<&P>, want: &P, dry_run: bool) -> Result<Option<P>, Error>
    where
        P: Resource<DynamicType = D> + Serialize + DeserializeOwned + Clone + Debug,
    {
        let wanted = serde_json::to_value(want)?;
        let Some(have) = have else {
            let answer = self.create(want, dry_run).await?;
            return self.check(answer, &wanted).map(Some);
        };
        // What did not decode does not encode: then nothing of it is as we want it, and all of it is set.
        let had = serde_json::to_value(have).unwrap_or_else(|_| json!({}));
        let Some(mut patch) = difference(&had, &wanted) else {
            return Ok(None);
        };
        let meta = patch.entry("metadata").or_insert_with(|| json!({}));
        meta["resourceVersion"] = json!(have.resource_version());
        meta["uid"] = json!(have.uid());
        let request = self.request::<P>(want).patch(
            &want.name_any(),
            &PatchParams { field_manager: Some(self.manager.into()), dry_run, ..PatchParams::default() },
            &Patch::Merge(Value::Object(patch)),
        );
        let answer = match dry_run {
            true => self.send_dry::<P, P>("patch", request).await,
            false => self.send::<P, P>(want, "patch", request).await,
        };
        match answer {
            // It was being deleted, and the patch took off what held it.
            Ok(answer) if is_going(&answer) && answer.finalizers().is_empty() => Err(Error::Stale),
            Ok(answer) => self.check(answer, &wanted).map(Some),
            // Not there any more: then it is to be created, once the watch has told us.
            Err(Error::Gone) => Err(Error::Stale),
            Err(error) => Err(error),
        }
    }

    /// Makes `want` so where [`put`](Self::put) was to create it and found one of that name, of which no watch told: somebody has
    /// changed what the watch selects it by, or the watch is behind. Only one that `is_ours`. The object as it is then.
    pub async fn adopt<P>(&self, want: &P, is_ours: impl FnOnce(&P) -> bool) -> Result<P, Error>
    where
        P: Resource<DynamicType = D> + Serialize + DeserializeOwned + Clone + Debug,
    {
        let there = match self.read(want).await {
            Err(Error::Gone) => return Err(Error::Stale),
            read => read?,
        };
        if !is_ours(&there) {
            return Err(Error::NotOurs { kind: P::kind(&self.kind).into_owned(), name: want.name_any() });
        }
        if is_going(&there) && want.meta().finalizers.as_ref().is_some_and(Vec::is_empty) {
            self.put_finalizers::<P, Value>(&there, vec![]).await?;
            return Err(Error::Stale);
        }
        Ok(self.put(Some(&there), want).await?.unwrap_or(there))
    }

    async fn create<P>(&self, want: &P, dry_run: bool) -> Result<P, Error>
    where
        P: Resource<DynamicType = D> + Serialize + DeserializeOwned,
    {
        let mut body = serde_json::to_value(want)?;
        body["apiVersion"] = json!(P::api_version(&self.kind));
        body["kind"] = json!(P::kind(&self.kind));
        let params = PostParams { field_manager: Some(self.manager.into()), dry_run };
        let request = self.request::<P>(want).create(&params, serde_json::to_vec(&body)?);
        match dry_run {
            true => self.send_dry::<P, P>("create", request).await,
            false => self.send::<P, P>(want, "create", request).await,
        }
    }

    /// Whether the API server's answer holds what was wanted.
    pub(super) fn check<P: Resource<DynamicType = D> + Serialize>(
        &self,
        answer: P,
        wanted: &Value,
    ) -> Result<P, Error> {
        match pruned(&answer, wanted) {
            None => {
                self.pruned.with(|pruned| pruned.remove(P::kind(&self.kind).as_ref()));
                Ok(answer)
            }
            Some(field) => {
                let kind = P::kind(&self.kind).into_owned();
                self.metrics.pruned(self.cluster, &kind);
                self.pruned.with(|pruned| pruned.insert(kind.clone(), field.clone()));
                let error = Error::Pruned { kind, field };
                tracing::warn!(cluster = self.cluster, object = answer.name_any(), %error, "the API server dropped fields of an object");
                if self.strict { Err(error) } else { Ok(answer) }
            }
        }
    }
}
