//! Writing only differences.
//!
//! The unit is a view that holds just what we own of an object. None there: create. Other than wanted: a JSON merge patch
//! of exactly the difference, bound to the resourceVersion the difference was computed from. Equal: no request.
//!
//! Why not server-side apply for whole objects: a created object's fields belong to an `Update` entry of its manager, a
//! later apply adds an `Apply` entry beside it, and a field the apply leaves out stays, since the first entry still owns
//! it (seen on 1.36.3). Creating by apply costs the API server a third to a half more. Status has no such history, so
//! it is applied, and several writers share its condition list.
//!
//! | module | holds |
//! |---|---|
//! | [`whole`] | objects that are ours |
//! | [`applied`] | objects of which others may have a part, of kinds that are known only at run time |
//! | [`takeover`] | what another program wrote becomes ours |
//! | [`part`] | finalizers and single keys of any object, and deletion |
//! | [`status`] | statuses |
//! | [`difference`] | what is to be sent, and what of it was kept (pure) |
//! | [`error`] | why a write did not happen |

mod applied;
mod difference;
mod error;
mod part;
mod status;
mod takeover;
mod whole;

use std::{collections::BTreeMap, time::Instant};

use kube::{
    Client, Resource, ResourceExt,
    api::{ApiResource, GetParams},
    core::Request,
};
use serde::de::DeserializeOwned;

pub use self::{applied::holds, error::Error, takeover::taken_over};
use self::{error::classify, status::Undeclared};
use crate::{
    index::Shared,
    metrics::{self, Metrics},
};

/// Writes to one API server under one name: objects of kinds that are known when we are compiled, or of one that is known only at run
/// time, which is `D`.
#[derive(Clone)]
pub struct Writer<D = ()> {
    kind: D,
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
            kind: (),
            client,
            manager,
            cluster,
            metrics,
            strict: false,
            pruned: Shared::default(),
            undeclared: Shared::default(),
        }
    }

    /// The same for objects of one kind that is known only at run time.
    pub fn of(self, kind: ApiResource) -> Writer<ApiResource> {
        let Self { kind: (), client, manager, cluster, metrics, strict, pruned, undeclared } = self;
        Writer { kind, client, manager, cluster, metrics, strict, pruned, undeclared }
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
}

impl<D: Send + Sync + 'static> Writer<D> {
    /// The object of that name as the API server has it now, whatever a watch selects.
    pub async fn read<P>(&self, of: &P) -> Result<P, Error>
    where
        P: Resource<DynamicType = D> + DeserializeOwned,
    {
        let request = self.request::<P>(of).get(&of.name_any(), &GetParams::default());
        let request = request.map_err(|error| classify(kube::Error::BuildRequest(error)))?;
        self.client.request(request).await.map_err(classify)
    }

    fn request<P: Resource<DynamicType = D>>(&self, object: &P) -> Request {
        Request::new(P::url_path(&self.kind, object.namespace().as_deref()))
    }

    /// Sends a write of the object `of`, and notes whether the API server refuses it.
    async fn send<P, A>(
        &self,
        of: &P,
        verb: &str,
        request: Result<http::Request<Vec<u8>>, kube::core::request::Error>,
    ) -> Result<A, Error>
    where
        P: Resource<DynamicType = D>,
        A: DeserializeOwned,
    {
        let answer = self.send_dry::<P, A>(verb, request).await;
        self.noted(of, verb, answer)
    }

    /// Notes whether an API server refuses this write of the object `of`.
    fn noted<P, A>(&self, of: &P, verb: &str, answer: Result<A, Error>) -> Result<A, Error>
    where
        P: Resource<DynamicType = D>,
    {
        let refusals = self.metrics.refusals();
        match &answer {
            Ok(_) | Err(Error::Gone) if refusals.is_empty() => {}
            Ok(_) | Err(Error::Gone) => refusals.remove(&self.refused(of, verb)),
            Err(error) => {
                if let Some(words) = error.refusal() {
                    refusals.put(self.refused(of, verb), words, Instant::now());
                }
            }
        }
        answer
    }

    /// Forgets what was refused of the object `of`: in another form that the API server takes it is as it should be.
    pub fn suffices<P: Resource<DynamicType = D>>(&self, of: &P) {
        ["create", "patch"].iter().for_each(|verb| self.metrics.refusals().remove(&self.refused(of, verb)));
    }

    fn refused<P: Resource<DynamicType = D>>(&self, of: &P, verb: &str) -> metrics::Request {
        metrics::Request {
            area: self.metrics.area(),
            part: self.metrics.part(),
            cluster: self.cluster,
            verb: verb.to_owned(),
            group: P::group(&self.kind).into_owned(),
            kind: P::kind(&self.kind).into_owned(),
            namespace: of.namespace(),
            name: of.name_any(),
        }
    }

    /// Sends a request that changes nothing, or one whose answer is noted by the caller.
    async fn send_dry<P, A>(
        &self,
        verb: &str,
        request: Result<http::Request<Vec<u8>>, kube::core::request::Error>,
    ) -> Result<A, Error>
    where
        P: Resource<DynamicType = D>,
        A: DeserializeOwned,
    {
        let answer = match request {
            Ok(request) => self.client.request::<A>(request).await,
            Err(error) => Err(kube::Error::BuildRequest(error)),
        };
        let result = if answer.is_ok() { "ok" } else { "error" };
        self.metrics.wrote(self.cluster, &P::kind(&self.kind), verb, result);
        answer.map_err(classify)
    }
}

fn is_going<P: Resource>(object: &P) -> bool {
    object.meta().deletion_timestamp.is_some()
}
