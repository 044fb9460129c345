//! The CRDs of a binding: those of the schemas that its export names.

use std::collections::BTreeMap;

use api::bind::{
    binding::APIServiceBinding,
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

/// Reason: our own API server does not take a CRD.
const NOT_CREATED: &str = "CustomResourceDefinitionCreateFailed";
const NOT_UPDATED: &str = "CustomResourceDefinitionUpdateFailed";

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
        let mut found =
            Found { connected: Answer::Yes, in_sync: Answer::Yes, is_refused: false, bound: BTreeMap::new() };
        for resource in &export.spec.resources {
            let api = resource.name();
            let installed = self.install_one(binding, contract, &api).await?;
            found.is_refused |= matches!(installed, Err((NOT_CREATED | NOT_UPDATED, _)));
            // Also what cannot be installed anew goes on as it is: its statuses come down, and what is deleted goes.
            let bound = self.installed_one(binding, contract, &export, &api, leaves_copies(binding));
            let answer = match (installed, &bound) {
                (Err((reason, message)), _) => Answer::No(Severity::Error, reason, message),
                (Ok(()), Some(_)) if self.is_going(&api) => {
                    let message = format!("CRD {api} is being deleted: its objects go, then it is made anew");
                    verdict::not_yet("CustomResourceDefinitionDeleted", message)
                }
                (Ok(()), Some(_)) => Answer::Yes,
                (Ok(()), None) => {
                    let message = format!("CRD {api} is not established yet");
                    verdict::not_yet("CustomResourceDefinitionNotEstablished", message)
                }
            };
            found.bound.extend(bound.map(|bound| (api, bound)));
            if found.connected == Answer::Yes || matches!(answer, Answer::No(Severity::Error, ..)) {
                found.connected = answer;
            }
        }
        if found.connected == Answer::Yes
            && let Some(crd) = self.unexported(binding, contract).first()
        {
            let message = format!(
                "the provider does not export {} any more: its objects are not kept in step, and those that somebody deletes do not wait for their copies",
                crd.name_any()
            );
            found.connected = Answer::No(Severity::Warning, "NotExported", message);
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
        let apis = export.spec.resources.iter().map(api::bind::resource::Resource::name);
        apis.filter_map(|api| {
            let bound = self.installed_one(binding, contract, &export, &api, orphan)?;
            Some((api, bound))
        })
        .collect()
    }

    fn installed_one(
        &self,
        binding: &APIServiceBinding,
        contract: &Contract,
        export: &APIServiceExport,
        api: &str,
        orphan: bool,
    ) -> Option<Bound> {
        let scope = contract.known.with(|known| Some(known.schemas.get(api)?.spec.informer_scope));
        let crd = self.local.known.with(|known| known.crds.get(api).cloned())?;
        bound_of(binding, export, (&crd, scope), orphan)
    }

    /// Installs the CRD of one API; why it cannot be: a reason and a sentence.
    async fn install_one(
        &self,
        binding: &APIServiceBinding,
        contract: &Contract,
        api: &str,
    ) -> Result<Result<(), (&'static str, String)>, Error> {
        let Some(schema) = contract.known.with(|known| known.schemas.get(api).cloned()) else {
            return Ok(Err(("BoundSchemaFetchFailed", format!("the provider has no BoundSchema {api}"))));
        };
        let have = self.local.known.with(|known| known.crds.get(api).cloned());
        let installing = match installing(api, &schema.spec, binding, have.as_ref()) {
            Ok(installing) => installing,
            Err(error) => return Ok(Err(("BoundSchemaFetchFailed", format!("BoundSchema {api}: {error}")))),
        };
        let (written, reason) = match installing {
            Installing::Stays => (Ok(()), ""),
            Installing::Same(crd) => (self.put_back(&crd, have.as_ref()).await, NOT_UPDATED),
            Installing::Create(crd) => (self.writer.put(None, &crd).await.map(drop), NOT_CREATED),
            Installing::Update(crd) => (self.update(&crd).await, NOT_UPDATED),
            Installing::Foreign => {
                let message = format!("CRD {api} is there already, and not for this APIServiceBinding");
                return Ok(Err(("ForeignCustomResourceDefinition", message)));
            }
        };
        match written {
            Ok(()) => Ok(Ok(())),
            Err(error) => match error.refusal() {
                Some(words) => Ok(Err((reason, format!("in this cluster: {words}")))),
                None => Err(error),
            },
        }
    }

    fn is_going(&self, api: &str) -> bool {
        self.local.known.with(|known| known.crds.get(api).is_some_and(Crd::metadata_is_going))
    }

    pub(super) async fn update(&self, crd: &CustomResourceDefinition) -> Result<(), Error> {
        self.writer.replace(crd, None).await.map(drop)
    }
}

#[cfg(test)]
mod tests {
    use api::label::MEMBER;
    use kit::{objects::Change, write::Writer};
    use serde::de::DeserializeOwned;
    use serde_json::{Value, json};
    use tokio::sync::watch;

    use super::*;
    use crate::{
        bind::{binding::Link, fixture, local::Local},
        feature::fixture::access,
    };

    const API: &str = "mangos.example.com";

    fn read<T: DeserializeOwned>(value: Value) -> T {
        serde_json::from_value(value).unwrap()
    }

    #[tokio::test]
    async fn what_is_not_exported_any_more_is_said_and_not_kept_in_step() {
        let (bindings, contract, binding) = bound_to(&["others"]);
        let found = bindings.install(&binding, &contract).await.unwrap();
        let names: Vec<_> = bindings.unexported(&binding, &contract).iter().map(Crd::name_any).collect();
        assert_eq!((names, found.bound.len()), (vec![API.to_owned()], 0));
        let (bindings, contract, binding) = bound_to(&["others", "mangos"]);
        assert_eq!(bindings.unexported(&binding, &contract).len(), 0);
    }

    #[tokio::test]
    async fn what_is_installed_goes_on_without_its_schema() {
        let (bindings, contract, binding) = bound_to(&["mangos"]);
        let found = bindings.install(&binding, &contract).await.unwrap();
        let message = format!("the provider has no BoundSchema {API}");
        assert_eq!(found.connected, Answer::No(Severity::Error, "BoundSchemaFetchFailed", message));
        assert!(found.bound.contains_key(API), "its statuses come down, and what is deleted goes");
    }

    #[tokio::test]
    async fn a_crd_that_is_refused_here_is_said_and_keeps_no_other_api_back() {
        let (mut bindings, contract, binding) = bound_to(&["others", "mangos"]);
        let unasked = "Internal error occurred: failed calling webhook \"x\": no endpoints";
        let (client, metrics) = (fixture::refusing(500, unasked), access().env.metrics);
        bindings.writer = Writer::new(client.clone(), MEMBER, "local", metrics);
        bindings.env.client = client;
        let schema = |api: &str, plural: &str| {
            json!({
                "metadata": {"name": api, "namespace": contract.cluster_namespace.name},
                "spec": {"group": "example.com", "names": {"plural": plural, "kind": "Kind"}, "scope": "Namespaced",
                    "informerScope": "Namespaced",
                    "versions": [{"name": "v1", "served": true, "storage": true,
                        "schema": {"openAPIV3Schema": {"type": "object"}}}]},
            })
        };
        for (api, plural) in [("others.example.com", "others"), (API, "mangos")] {
            contract.known.with(|known| known.schemas.change(Change::Apply(read(schema(api, plural)))));
        }
        let found = bindings.install(&binding, &contract).await.unwrap();
        let message = format!("in this cluster: {unasked}");
        assert!(
            matches!(&found.connected, Answer::No(Severity::Error, _, said) if *said == message),
            "{found:?}"
        );
        assert!(found.is_refused && found.bound.contains_key(API), "{found:?}");
    }

    /// A binding with CRD `mangos`, whose export has these APIs.
    fn bound_to(exported: &[&str]) -> (Bindings, Contract, APIServiceBinding) {
        let (local, contract) = (Local::new(), fixture::contract());
        let link = watch::Sender::new(Link::Connecting);
        let bindings = Bindings::new(&access().env, &local, "k", link.subscribe());
        let owner = json!({"apiVersion": "kube-bind.io/v1alpha2", "kind": "APIServiceBinding", "name": "mango", "uid": "b1"});
        let crd = json!({
            "metadata": {"name": API, "ownerReferences": [owner]},
            "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "mangos", "kind": "Mango"},
                "versions": [{"name": "v1", "served": true}]},
            "status": {"conditions": [{"type": "Established", "status": "True"}]},
        });
        local.known.with(|known| known.crds.change(Change::Apply(read(crd))));
        let of = |api: &&str| json!({"group": "example.com", "resource": api, "versions": ["v1"]});
        let resources: Vec<_> = exported.iter().map(of).collect();
        let export = json!({
            "metadata": {"name": "mango", "namespace": contract.cluster_namespace.name},
            "spec": {"resources": resources, "isolation": "Prefixed", "informerScope": "Namespaced"},
        });
        contract.known.with(|known| known.exports.change(Change::Apply(read(export))));
        let secret = json!({"namespace": "kube-bind", "name": "k", "key": "kubeconfig"});
        let binding =
            json!({"metadata": {"name": "mango", "uid": "b1"}, "spec": {"kubeconfigSecretRef": secret}});
        (bindings, contract, read(binding))
    }
}
