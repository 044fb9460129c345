//! Writing only differences.
//!
//! The unit is a view that holds just what we own of an object. None there: create. Other than wanted: a JSON merge patch
//! of exactly the difference, bound to the resourceVersion the difference was computed from. Equal: no request.
//!
//! Why not server-side apply for whole objects: a created object's fields belong to an `Update` entry of its manager, a
//! later apply adds an `Apply` entry beside it, and a field the apply leaves out stays, since the first entry still owns
//! it (seen on 1.36.3). Creating by apply costs the API server a third to a half more. Status has no such history, so
//! it is applied, and several writers share its condition list.

mod difference;
mod status;

use std::{collections::BTreeMap, fmt::Debug};

use kube::{
    Client, Resource, ResourceExt,
    api::{DeleteParams, GetParams, Patch, PatchParams, PostParams, Preconditions},
    core::Request,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use self::{
    difference::{difference, pruned},
    status::Undeclared,
};
use crate::{index::Shared, metrics::Metrics};

/// Why a write did not happen, by what the caller can do about it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The object is other than we know: our watch is behind. Its next event enqueues the key again.
    #[error("somebody else changed the object meanwhile")]
    Stale,
    /// The object or its Namespace is not there, or is going.
    #[error("the object or its Namespace is gone")]
    Gone,
    /// Somebody else's object has the name: it stays as it is, and ours cannot be there.
    #[error("{kind} {name} exists and was not created by Freeport; Freeport does not change it")]
    NotOurs {
        /// Of the object.
        kind: String,
        /// Of the object.
        name: String,
    },
    /// The API server refuses it: the same request fails until something changes.
    #[error("refused by the API server: {0}")]
    Refused(String),
    /// The API server dropped a field of it: the CRD there is older than ours and does not have the field.
    #[error(
        "the CRD of {kind} has no field {field}: the CRD is older than this daemon, or another product installed it"
    )]
    Pruned {
        /// Of the object.
        kind: String,
        /// Path of the first field that is not there.
        field: String,
    },
    /// No answer, or not a useful one.
    #[error("the API server cannot serve this: {0}")]
    Unreachable(#[source] Box<kube::Error>),
    /// What we want to send is not a JSON object.
    #[error("the object cannot be encoded as JSON: {0}")]
    Encode(#[from] serde_json::Error),
}

/// Writes to one API server under one name.
#[derive(Clone)]
pub struct Writer {
    client: Client,
    manager: &'static str,
    cluster: &'static str,
    metrics: Metrics,
    strict: bool,
    /// Kinds of which something was thrown away when one was last written, and the field.
    pruned: Shared<BTreeMap<String, String>>,
    undeclared: Shared<Undeclared>,
}

impl Writer {
    /// `manager` is the field manager, `cluster` (`local` or `leader`) names the API server in metrics.
    pub fn new(client: Client, manager: &'static str, cluster: &'static str, metrics: Metrics) -> Self {
        Self {
            client,
            manager,
            cluster,
            metrics,
            strict: false,
            pruned: Shared::default(),
            undeclared: Shared::default(),
        }
    }

    /// Fails with [`Error::Pruned`] where the API server does not keep all that was written; otherwise that is only logged
    /// and counted. For records: what is thrown away there is missed by others.
    pub fn strict(self) -> Self {
        Self { strict: true, ..self }
    }

    /// A kind whose CRD does not know all that we write, as far as the last write of it or of a clone of ours showed.
    pub fn pruned(&self) -> Option<Error> {
        let (kind, field) =
            self.pruned.with(|pruned| pruned.first_key_value().map(|(k, f)| (k.clone(), f.clone())))?;
        Some(Error::Pruned { kind, field })
    }

    /// Makes `want` so, given that the API server had `have`. The server's answer, or `None` when there was nothing to do.
    pub async fn put<P>(&self, have: Option<&P>, want: &P) -> Result<Option<P>, Error>
    where
        P: Resource<DynamicType = ()> + Serialize + DeserializeOwned + Clone + Debug,
    {
        self.send_put(have, want, false).await
    }

    /// Whether the API server would take that, without doing it.
    pub async fn would_take<P>(&self, have: Option<&P>, want: &P) -> Result<bool, Error>
    where
        P: Resource<DynamicType = ()> + Serialize + DeserializeOwned + Clone + Debug,
    {
        match self.send_put(have, want, true).await {
            Ok(_) | Err(Error::Pruned { .. }) => Ok(true),
            Err(Error::Refused(_)) => Ok(false),
            Err(error) => Err(error),
        }
    }

    async fn send_put<P>(&self, have: Option<&P>, want: &P, dry_run: bool) -> Result<Option<P>, Error>
    where
        P: Resource<DynamicType = ()> + Serialize + DeserializeOwned + Clone + Debug,
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
        match self.send::<P, P>("patch", request).await {
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
        P: Resource<DynamicType = ()> + Serialize + DeserializeOwned + Clone + Debug,
    {
        let there = match self.read(want).await {
            Err(Error::Gone) => return Err(Error::Stale),
            read => read?,
        };
        if !is_ours(&there) {
            return Err(Error::NotOurs { kind: P::kind(&()).into_owned(), name: want.name_any() });
        }
        if is_going(&there) && want.meta().finalizers.as_ref().is_some_and(Vec::is_empty) {
            self.put_finalizers::<P, Value>(&there, vec![]).await?;
            return Err(Error::Stale);
        }
        Ok(self.put(Some(&there), want).await?.unwrap_or(there))
    }

    async fn create<P>(&self, want: &P, dry_run: bool) -> Result<P, Error>
    where
        P: Resource<DynamicType = ()> + Serialize + DeserializeOwned,
    {
        let mut body = serde_json::to_value(want)?;
        body["apiVersion"] = json!(P::api_version(&()));
        body["kind"] = json!(P::kind(&()));
        let params = PostParams { field_manager: Some(self.manager.into()), dry_run };
        self.send::<P, P>("create", self.request::<P>(want).create(&params, serde_json::to_vec(&body)?)).await
    }

    /// The object of that name as the API server has it now, whatever a watch selects.
    pub async fn read<P>(&self, of: &P) -> Result<P, Error>
    where
        P: Resource<DynamicType = ()> + DeserializeOwned,
    {
        let request = self.request::<P>(of).get(&of.name_any(), &GetParams::default());
        let request = request.map_err(|error| classify(kube::Error::BuildRequest(error)))?;
        self.client.request(request).await.map_err(classify)
    }

    /// Takes these finalizers off the object, as it is known: others stay. One that is gone already needs none.
    pub async fn release<P>(&self, object: &P, finalizers: &[&str]) -> Result<(), Error>
    where
        P: Resource<DynamicType = ()>,
    {
        let others = object.finalizers().iter().map(String::as_str).filter(|f| !finalizers.contains(f));
        match self.put_finalizers::<P, Value>(object, others.collect()).await {
            Ok(_) | Err(Error::Gone) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Puts this finalizer on the object, as it is known, beside those that it has. The server's answer.
    pub async fn hold<P>(&self, object: &P, finalizer: &str) -> Result<P, Error>
    where
        P: Resource<DynamicType = ()> + DeserializeOwned,
    {
        let all = object.finalizers().iter().map(String::as_str).chain([finalizer]);
        self.put_finalizers(object, all.collect()).await
    }

    async fn put_finalizers<P, A>(&self, object: &P, finalizers: Vec<&str>) -> Result<A, Error>
    where
        P: Resource<DynamicType = ()>,
        A: DeserializeOwned,
    {
        let patch = json!({"metadata": {
            "finalizers": finalizers, "resourceVersion": object.resource_version(), "uid": object.uid(),
        }});
        let params = PatchParams { field_manager: Some(self.manager.into()), ..PatchParams::default() };
        let request = self.request::<P>(object).patch(&object.name_any(), &params, &Patch::Merge(patch));
        self.send::<P, A>("patch", request).await
    }

    /// Sends a merge patch of somebody's own making, bound to the uid only: for single keys of a map, or of labels, that many write
    /// beside each other. The server's answer.
    pub async fn merge<P>(&self, object: &P, subresource: Option<&str>, mut patch: Value) -> Result<P, Error>
    where
        P: Resource<DynamicType = ()> + DeserializeOwned,
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
        self.send::<P, P>(verb, request).await
    }

    /// Deletes the object if it is still the one we know: same uid, and the same version if `unchanged`. One that is gone
    /// already is what we wanted.
    pub async fn delete<P>(&self, object: &P, unchanged: bool) -> Result<(), Error>
    where
        P: Resource<DynamicType = ()>,
    {
        let version = unchanged.then(|| object.resource_version()).flatten();
        self.send_delete(object, version, None).await
    }

    /// Deletes the object if it has the uid that we know, after these seconds; without them, after as many as it says itself.
    pub async fn delete_within<P>(&self, object: &P, grace: Option<u32>) -> Result<(), Error>
    where
        P: Resource<DynamicType = ()>,
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
        P: Resource<DynamicType = ()>,
    {
        let params = DeleteParams {
            grace_period_seconds,
            preconditions: Some(Preconditions { uid: object.uid(), resource_version: version }),
            ..DeleteParams::default()
        };
        let request = self.request::<P>(object).delete(&object.name_any(), &params);
        match self.send::<P, Value>("delete", request).await {
            Ok(_) | Err(Error::Gone) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Whether the API server's answer holds what was wanted.
    fn check<P: Resource<DynamicType = ()> + Serialize>(
        &self,
        answer: P,
        wanted: &Value,
    ) -> Result<P, Error> {
        match pruned(&answer, wanted) {
            None => {
                self.pruned.with(|pruned| pruned.remove(P::kind(&()).as_ref()));
                Ok(answer)
            }
            Some(field) => {
                let kind = P::kind(&()).into_owned();
                self.metrics.pruned(self.cluster, &kind);
                self.pruned.with(|pruned| pruned.insert(kind.clone(), field.clone()));
                let error = Error::Pruned { kind, field };
                tracing::warn!(cluster = self.cluster, object = answer.name_any(), %error, "the API server dropped fields of an object");
                if self.strict { Err(error) } else { Ok(answer) }
            }
        }
    }

    fn request<P: Resource<DynamicType = ()>>(&self, object: &P) -> Request {
        Request::new(P::url_path(&(), object.namespace().as_deref()))
    }
}

impl Writer {
    async fn send<P, A>(
        &self,
        verb: &str,
        request: Result<http::Request<Vec<u8>>, kube::core::request::Error>,
    ) -> Result<A, Error>
    where
        P: Resource<DynamicType = ()>,
        A: DeserializeOwned,
    {
        let answer = match request {
            Ok(request) => self.client.request::<A>(request).await,
            Err(error) => Err(kube::Error::BuildRequest(error)),
        };
        let result = if answer.is_ok() { "ok" } else { "error" };
        self.metrics.wrote(self.cluster, &P::kind(&()), verb, result);
        answer.map_err(classify)
    }
}

fn is_going<P: Resource>(object: &P) -> bool {
    object.meta().deletion_timestamp.is_some()
}

/// Errors of reads are told apart as those of writes.
impl From<kube::Error> for Error {
    fn from(error: kube::Error) -> Self {
        classify(error)
    }
}

fn classify(error: kube::Error) -> Error {
    let kube::Error::Api(status) = &error else {
        return Error::Unreachable(Box::new(error));
    };
    let terminating = || {
        let causes = status.details.as_ref().map(|details| details.causes.as_slice()).unwrap_or_default();
        causes.iter().any(|cause| cause.reason == "NamespaceTerminating")
    };
    match status.code {
        404 => Error::Gone,
        403 if terminating() => Error::Gone,
        409 => Error::Stale,
        429 | 500.. => Error::Unreachable(Box::new(error)),
        _ => Error::Refused(status.message.clone()),
    }
}
