//! APIServiceBindings of one credential: their CRDs are installed, and what came of it is said at both sides.
//!
//! Watches APIServiceBindings and CRDs here, exports, requests and BoundSchemas in the cluster namespace. Writes the CRDs and the status of
//! the bindings here, the status of exports and of BoundSchemas there. Deletes, for a binding that goes, its objects, APIServiceNamespaces
//! that no other one needs, and its CRDs. Every pass begins with what is there, so it may run twice.

mod bound;
mod drain;
mod report;
mod verdict;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use api::{
    bind::{
        binding::APIServiceBinding,
        bound_schema::BoundSchema,
        condition::{Answer, Severity},
        export::APIServiceExport,
    },
    label::MEMBER,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kit::{
    boot::Env,
    failure::Failure,
    queue::{Outcome, Queue},
    write::{Error, Writer},
};
use kube::ResourceExt;
use tokio::sync::watch;

use self::bound::bound_of;
pub(crate) use self::bound::leaves_copies;
use super::{
    contract::Contract,
    crd::{Installing, installing},
    credential::Unusable,
    heartbeat::Beating,
    local::Local,
    sync::{Bound, Unsynced},
};

/// Finalizer of ours: what a binding brought goes before it.
const FINALIZER: &str = "multicluster.freeport.dev/bind";
/// How long a key rests between two passes: one write brings several events.
const PACE: Duration = Duration::from_millis(50);

/// What is kept in step, by the name of the API.
pub(crate) type Wanted = BTreeMap<String, Bound>;

/// How it stands with the credential.
#[derive(Clone)]
pub(crate) enum Link {
    Connecting,
    Unusable(Unusable),
    Failing(Failure),
    Up(Box<Contract>, Beating),
}

impl Link {
    /// One word for it.
    pub(crate) fn state(&self) -> &'static str {
        match self {
            Self::Connecting => "Connecting",
            Self::Unusable(_) => "Unusable",
            Self::Failing(_) => "Failing",
            Self::Up(..) => "Connected",
        }
    }
}

/// The bindings of one credential. Cloning shares them.
#[derive(Clone)]
pub(crate) struct Bindings {
    env: Env,
    local: Local,
    secret: String,
    link: watch::Receiver<Link>,
    writer: Writer,
    queue: Queue<String>,
    bound: watch::Sender<Wanted>,
    /// The bindings of which objects are being kept in step, for a moment longer than they are wanted.
    active: watch::Sender<BTreeSet<String>>,
    unsynced: Unsynced,
}

/// What a pass found out of one binding.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Found {
    pub(crate) connected: Answer,
    pub(crate) in_sync: Answer,
    /// By the name of the API.
    pub(crate) bound: BTreeMap<String, Bound>,
}

impl Bindings {
    /// Of the credential in this Secret.
    pub(crate) fn new(env: &Env, local: &Local, secret: &str, link: watch::Receiver<Link>) -> Self {
        Self {
            writer: Writer::new(env.client.clone(), MEMBER, "local", env.metrics.clone()),
            env: env.clone(),
            local: local.clone(),
            secret: secret.to_owned(),
            link,
            queue: Queue::new(PACE),
            bound: watch::Sender::new(Wanted::new()),
            active: watch::Sender::default(),
            unsynced: Unsynced::new(env.metrics.bind().unsynced()),
        }
    }

    pub(crate) fn queue(&self) -> Queue<String> {
        self.queue.clone()
    }

    pub(crate) fn unsynced(&self) -> Unsynced {
        self.unsynced.clone()
    }

    /// The APIs whose objects are to be kept in step.
    pub(crate) fn bound(&self) -> watch::Receiver<Wanted> {
        self.bound.subscribe()
    }

    /// Of these bindings objects are being kept in step.
    pub(crate) fn set_active(&self, bindings: BTreeSet<String>) {
        self.active.send_replace(bindings);
    }

    /// Asks for a pass of every binding, and of every export, since one without a binding says so.
    pub(crate) fn enqueue(&self) {
        let exports = match &*self.link.borrow() {
            Link::Up(contract, _) => {
                contract.known.with(|known| known.exports.iter().map(ResourceExt::name_any).collect())
            }
            _ => Vec::new(),
        };
        self.queue.enqueue(self.local.bindings_of(&self.secret).into_iter().chain(exports));
    }

    /// One pass of the binding, or of the export, of this name.
    pub(crate) async fn reconcile(self, name: String) -> Result<Outcome, Error> {
        let binding = self.local.known.with(|known| known.bindings.get(&name).cloned());
        if binding.as_ref().is_some_and(|binding| binding.spec.kubeconfig_secret_ref.name != self.secret) {
            // Another Secret may lead to the same cluster namespace: what is said of the export there is that one's.
            self.keep_in_step(&name, BTreeMap::new());
            return Ok(Outcome::Done);
        }
        let link = self.link.borrow().clone();
        let Some(binding) = binding else {
            self.keep_in_step(&name, BTreeMap::new());
            if let Link::Up(contract, _) = &link {
                report::on_export(contract, &name, None).await?;
            }
            return Ok(Outcome::Done);
        };
        let Link::Up(contract, beating) = &link else {
            let verdicts = verdict::unconnected(&link, verdict::said(&binding, "InformersSynced"));
            report::on_binding(&self, &binding, None, verdicts).await?;
            return Ok(Outcome::Done);
        };
        if binding.metadata.deletion_timestamp.is_some() {
            return self.end(&binding, contract).await;
        }
        if !binding.finalizers().iter().any(|held| held == FINALIZER) {
            self.writer.hold(&binding, FINALIZER).await?;
            // The watch tells.
            return Ok(Outcome::Done);
        }
        let found = self.install(&binding, contract).await?;
        self.keep_in_step(&name, found.bound.clone());
        let verdicts = verdict::connected(&found, *beating.borrow(), &self.unsynced, &binding);
        report::on_binding(&self, &binding, Some(contract), verdicts).await?;
        report::on_export(contract, &name, Some(&found)).await?;
        report::on_schemas(contract, &name, &self.local).await?;
        Ok(Outcome::Done)
    }

    /// Of this binding exactly these APIs are kept in step.
    fn keep_in_step(&self, name: &str, bound: BTreeMap<String, Bound>) {
        self.bound.send_if_modified(|all| {
            let others = all.iter().filter(|(_, had)| had.binding != name);
            let mut now: Wanted = others.map(|(api, had)| (api.clone(), had.clone())).collect();
            now.extend(bound);
            let is_news = *all != now;
            *all = now;
            is_news
        });
    }

    /// Installs the CRDs of the export.
    async fn install(&self, binding: &APIServiceBinding, contract: &Contract) -> Result<Found, Error> {
        let name = binding.name_any();
        let export = contract.known.with(|known| known.exports.get(&name).cloned());
        let Some(export) = export else { return Ok(verdict::without_export(contract, &name)) };
        let mut found = Found { connected: Answer::Yes, in_sync: Answer::Yes, bound: BTreeMap::new() };
        for resource in &export.spec.resources {
            let api = resource.name();
            let schema = contract.known.with(|known| known.schemas.get(&api).cloned());
            match self.install_one(binding, &export, &api, schema).await? {
                Ok(Some(bound)) => drop(found.bound.insert(api, bound)),
                Ok(None) if found.connected == Answer::Yes => {
                    let message = format!("CRD {api} is not established yet");
                    found.connected = verdict::not_yet("CustomResourceDefinitionNotEstablished", message);
                }
                Ok(None) => {}
                Err((reason, message)) => {
                    found.connected = Answer::No(Severity::Error, reason, message);
                }
            }
        }
        if export.metadata.deletion_timestamp.is_some() && found.connected == Answer::Yes {
            let message = "the provider takes the API back: nothing new goes up, deletions do".to_owned();
            found.connected = Answer::No(Severity::Warning, "APIServiceExportDeleted", message);
        }
        if let Answer::No(severity, reason, message) = &found.connected {
            found.in_sync = Answer::No(*severity, reason, message.clone());
        }
        Ok(found)
    }

    /// What can be kept in step as it is, without anything being installed.
    fn installed(&self, binding: &APIServiceBinding, contract: &Contract) -> BTreeMap<String, Bound> {
        let name = binding.name_any();
        let Some(export) = contract.known.with(|known| known.exports.get(&name).cloned()) else {
            return BTreeMap::new();
        };
        let one = |api: String| {
            let schema = contract.known.with(|known| known.schemas.get(&api).cloned())?;
            let crd = self.local.known.with(|known| known.crds.get(&api).cloned())?;
            Some((api, bound_of(binding, &export, &schema, &crd)?))
        };
        export.spec.resources.iter().filter_map(|resource| one(resource.name())).collect()
    }

    /// What is kept in step of one API, once its CRD is established; or a reason and a sentence.
    async fn install_one(
        &self,
        binding: &APIServiceBinding,
        export: &APIServiceExport,
        api: &str,
        schema: Option<BoundSchema>,
    ) -> Result<Result<Option<Bound>, (&'static str, String)>, Error> {
        let Some(schema) = schema else {
            return Ok(Err(("BoundSchemaFetchFailed", format!("the provider has no BoundSchema {api}"))));
        };
        let have = self.local.known.with(|known| known.crds.get(api).cloned());
        let installing = match installing(&schema.spec, binding, have.as_ref()) {
            Ok(installing) => installing,
            Err(error) => return Ok(Err(("BoundSchemaFetchFailed", format!("BoundSchema {api}: {error}")))),
        };
        let (written, reason) = match installing {
            Installing::Stays => (Ok(()), ""),
            Installing::Create(crd) => {
                (self.writer.put(None, &crd).await.map(drop), "CustomResourceDefinitionCreateFailed")
            }
            Installing::Update(crd) => (self.update(&crd).await, "CustomResourceDefinitionUpdateFailed"),
            Installing::Foreign => {
                let message = format!("CRD {api} is there already, and not for this APIServiceBinding");
                return Ok(Err(("ForeignCustomResourceDefinition", message)));
            }
        };
        match written {
            Ok(()) => Ok(Ok(have.and_then(|have| bound_of(binding, export, &schema, &have)))),
            Err(Error::Refused(message)) => Ok(Err((reason, message))),
            Err(error) => Err(error),
        }
    }

    async fn update(&self, crd: &CustomResourceDefinition) -> Result<(), Error> {
        self.writer.replace(crd, None).await.map(drop)
    }
}
