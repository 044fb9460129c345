//! Parts of objects that have other writers: finalizers, single keys; and the end of objects.

use kube::{
    Resource, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, Preconditions},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use super::{Error, Writer, difference::without_nulls};

/// What is noted of a refused change of finalizers.
const FINALIZERS: &str = "finalizers";

impl<D: Send + Sync + 'static> Writer<D> {
    /// Takes these finalizers off the object, as it is known: others stay. One that is gone already needs none.
    pub async fn release<P>(&self, object: &P, finalizers: &[&str]) -> Result<(), Error>
    where
        P: Resource<DynamicType = D>,
    {
        let others = object.finalizers().iter().map(String::as_str).filter(|f| !finalizers.contains(f));
        let answer = self.put_finalizers::<P, Value>(object, others.collect()).await;
        match self.noted(object, FINALIZERS, answer) {
            Ok(_) | Err(Error::Gone) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Puts this finalizer on the object, as it is known, beside those that it has. The server's answer.
    ///
    /// # Errors
    /// [`Error::Refused`] also where admission takes it off again, which no event would tell.
    pub async fn hold<P>(&self, object: &P, finalizer: &str) -> Result<P, Error>
    where
        P: Resource<DynamicType = D> + DeserializeOwned,
    {
        let all = object.finalizers().iter().map(String::as_str).chain([finalizer]);
        let answer: Result<P, Error> = self.put_finalizers(object, all.collect()).await;
        let stays = |answer: P| match answer.finalizers().iter().any(|held| held == finalizer) {
            true => Ok(answer),
            false => Err(Error::Refused(format!(
                "finalizer {finalizer} does not stay: an admission webhook or policy removes it"
            ))),
        };
        self.noted(object, FINALIZERS, answer.and_then(stays))
    }

    pub(super) async fn put_finalizers<P, A>(&self, object: &P, finalizers: Vec<&str>) -> Result<A, Error>
    where
        P: Resource<DynamicType = D>,
        A: DeserializeOwned,
    {
        let patch = json!({"metadata": {
            "finalizers": finalizers, "resourceVersion": object.resource_version(), "uid": object.uid(),
        }});
        let params = PatchParams { field_manager: Some(self.manager.into()), ..PatchParams::default() };
        let request = self.request::<P>(object).patch(&object.name_any(), &params, &Patch::Merge(patch));
        self.send_dry::<P, A>("patch", request).await
    }

    /// Sends a merge patch of somebody's own making, bound to the uid only: for single keys of a map, or of labels, that many write
    /// beside each other. The server's answer.
    pub async fn merge<P>(&self, object: &P, subresource: Option<&str>, mut patch: Value) -> Result<P, Error>
    where
        P: Resource<DynamicType = D> + DeserializeOwned,
    {
        patch["metadata"]["uid"] = json!(object.uid());
        let params = PatchParams { field_manager: Some(self.manager.into()), ..PatchParams::default() };
        let (request, name) = (self.request::<P>(object), object.name_any());
        let patch = Patch::Merge(patch);
        let (verb, request) = match subresource {
            Some(subresource) => {
                (subresource, request.patch_subresource(subresource, &name, &params, &patch))
            }
            None => ("patch", request.patch(&name, &params, &patch)),
        };
        self.send::<P, P>(object, verb, request).await
    }

    /// [`merge`](Self::merge) of a patch of `spec`, whose answer has to have all that the patch sets.
    ///
    /// # Errors
    /// [`Error::Pruned`] where it does not, if this writer is [`strict`](Writer::strict).
    pub async fn merge_kept<P>(&self, object: &P, patch: Value) -> Result<P, Error>
    where
        P: Resource<DynamicType = D> + Serialize + DeserializeOwned,
    {
        let set = without_nulls(&patch);
        let answer = self.merge(object, None, patch).await?;
        self.check(answer, &set)
    }

    /// Deletes the object if it is still the one we know: same uid, and the same version if `unchanged`. One that is gone
    /// already is what we wanted.
    pub async fn delete<P>(&self, object: &P, unchanged: bool) -> Result<(), Error>
    where
        P: Resource<DynamicType = D>,
    {
        let version = unchanged.then(|| object.resource_version()).flatten();
        self.send_delete(object, version, None).await
    }

    /// Deletes the object if it has the uid that we know, after these seconds; without them, after as many as it says itself.
    pub async fn delete_within<P>(&self, object: &P, grace: Option<u32>) -> Result<(), Error>
    where
        P: Resource<DynamicType = D>,
    {
        self.send_delete(object, None, grace).await
    }

    async fn send_delete<P>(
        &self,
        object: &P,
        version: Option<String>,
        grace_period_seconds: Option<u32>,
    ) -> Result<(), Error>
    where
        P: Resource<DynamicType = D>,
    {
        let params = DeleteParams {
            grace_period_seconds,
            preconditions: Some(Preconditions { uid: object.uid(), resource_version: version }),
            ..DeleteParams::default()
        };
        let request = self.request::<P>(object).delete(&object.name_any(), &params);
        match self.send::<P, Value>(object, "delete", request).await {
            Ok(_) | Err(Error::Gone) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::{Client, client::Body};

    use super::*;
    use crate::metrics::Metrics;

    #[tokio::test]
    async fn a_finalizer_that_admission_takes_off_is_refused() {
        let holds = async |answered: &[&str]| {
            let object = json!({"metadata": {"name": "m", "uid": "u", "resourceVersion": "1", "finalizers": answered}});
            let answer = move |_: http::Request<Body>| {
                let body = Body::from(object.to_string().into_bytes());
                std::future::ready(Ok::<_, std::convert::Infallible>(http::Response::new(body)))
            };
            let client = Client::new(tower::service_fn(answer), "n");
            let metrics = Metrics::new().unwrap();
            let writer = Writer::new(client, "m", "local", metrics.clone());
            let known: ConfigMap =
                serde_json::from_value(json!({"metadata": {"name": "m", "namespace": "n"}})).unwrap();
            let held = writer.hold(&known, "ours/f").await.map(drop);
            assert_eq!(metrics.refusals().is_empty(), held.is_ok());
            held
        };
        assert!(holds(&["theirs/f", "ours/f"]).await.is_ok());
        let refused = holds(&["theirs/f"]).await;
        assert!(matches!(refused, Err(Error::Refused(why)) if why.contains("ours/f")));
    }
}
