//! The CRDs of a binding: those of the schemas that its export names.

use std::collections::BTreeMap;

use api::bind::{
    binding::APIServiceBinding,
    bound_schema::BoundSchema,
    condition::{Answer, Severity},
    export::APIServiceExport,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kit::write::Error;
use kube::ResourceExt;

use super::{Bindings, Found, bound::bound_of, verdict};
use crate::bind::{
    contract::Contract,
    crd::{Installing, installing},
    local::Crd,
    policy::leaves_copies,
    sync::Bound,
};

impl Bindings {
    /// Installs the CRDs of the export.
    pub(super) async fn install(
        &self,
        binding: &APIServiceBinding,
        contract: &Contract,
    ) -> Result<Found, Error> {
        let name = binding.name_any();
        let export = contract.known.with(|known| known.exports.get(&name).cloned());
        let Some(export) = export else { return Ok(verdict::without_export(contract, &name)) };
        let mut found = Found { connected: Answer::Yes, in_sync: Answer::Yes, bound: BTreeMap::new() };
        for resource in &export.spec.resources {
            let api = resource.name();
            let schema = contract.known.with(|known| known.schemas.get(&api).cloned());
            match self.install_one(binding, &export, &api, schema).await? {
                Ok(Some(bound)) => {
                    if self.is_going(&api) && found.connected == Answer::Yes {
                        let message =
                            format!("CRD {api} is being deleted: its objects go, then it is made anew");
                        found.connected = verdict::not_yet("CustomResourceDefinitionDeleted", message);
                    }
                    found.bound.insert(api, bound);
                }
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
    pub(super) fn installed(
        &self,
        binding: &APIServiceBinding,
        contract: &Contract,
        orphan: bool,
    ) -> BTreeMap<String, Bound> {
        let name = binding.name_any();
        let Some(export) = contract.known.with(|known| known.exports.get(&name).cloned()) else {
            return BTreeMap::new();
        };
        let one = |api: String| {
            let scope = contract.known.with(|known| Some(known.schemas.get(&api)?.spec.informer_scope));
            let crd = self.local.known.with(|known| known.crds.get(&api).cloned())?;
            Some((api, bound_of(binding, &export, (&crd, scope), orphan)?))
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
            Installing::Same(crd) => {
                (self.put_back(&crd, have.as_ref()).await, "CustomResourceDefinitionUpdateFailed")
            }
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
            Ok(()) => {
                let scope = Some(schema.spec.informer_scope);
                let orphan = leaves_copies(binding);
                Ok(Ok(have.and_then(|have| bound_of(binding, export, (&have, scope), orphan))))
            }
            Err(Error::Refused(message)) => Ok(Err((reason, message))),
            Err(error) => Err(error),
        }
    }

    fn is_going(&self, api: &str) -> bool {
        self.local.known.with(|known| known.crds.get(api).is_some_and(Crd::metadata_is_going))
    }

    pub(super) async fn update(&self, crd: &CustomResourceDefinition) -> Result<(), Error> {
        self.writer.replace(crd, None).await.map(drop)
    }
}
