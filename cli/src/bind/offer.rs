//! `freeport bind offer`: which APIs of a provider others may use.

mod listed;

use std::collections::BTreeSet;

use api::{
    bind::{
        label,
        offer::{APIServiceExportTemplate, Collection, CollectionSpec, TemplateRef},
        resource::{InformerScope, Isolation, Resource},
    },
    name::is_dns_subdomain,
    view::Tolerant,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, ResourceExt,
    api::{Patch, PatchParams},
};
use serde_json::json;

pub use self::listed::{Offer, offer_text, offers};
use super::told::usual;
use crate::{
    Error, KubeContext, Part, Run,
    cluster::{Cluster, list},
    eraser::Say,
    install::{Installer, MANAGER},
    objects::{
        Object,
        bind::{self, naming::is_bindable},
    },
};

/// What is offered, and where.
#[derive(Clone, Debug)]
pub struct OfferOptions {
    /// The provider.
    pub cluster: KubeContext,
    /// Name of the template.
    pub template: String,
    /// The APIs, each as `PLURAL.GROUP`.
    pub resources: Vec<String>,
    /// The collection that the template is to be in.
    pub collection: Option<String>,
    /// How the objects of consumers of this template are kept apart; none: as the provider does it.
    pub isolation: Option<Isolation>,
    /// How it is done.
    pub run: Run,
}

/// Lets consumers ask for APIs by a template. Safe to run again: it changes only what differs.
///
/// # Errors
/// Those of [`Error`]. That the APIs are there, and are alike, is checked before anything is changed.
pub async fn offer(options: &OfferOptions, say: Say<'_>) -> Result<(), Error> {
    are_names(options)?;
    let cluster = Cluster::connect(&options.cluster).await?;
    is_provider(&cluster).await?;
    let mut crds = Vec::new();
    for name in &options.resources {
        crds.push(read_crd(&cluster, name).await?);
    }
    let scope = scope(&crds).map_err(|reason| cluster.refuse(reason))?;
    let apis: Vec<_> = crds.iter().map(api_of).collect();
    for api in &apis {
        is_bindable(api).map_err(|unfit| cluster.refuse(unfit.to_string()))?;
    }
    let there = templates(&cluster).await?;
    let mut here = Installer::new(&cluster, &options.run, say);
    let usual = usual(&here.told(api::label::LEADER).await?).map_err(|why| cluster.refuse(why))?;
    let mine = (options.template.as_str(), options.isolation.unwrap_or(usual));
    has_place(scope, mine.1).map_err(|why| cluster.refuse(why))?;
    let names: Result<Vec<_>, _> = apis.iter().map(|api| names(api, mine, &there, usual)).collect();
    let names = names.map_err(|why| cluster.refuse(why))?;
    let collection = match &options.collection {
        Some(collection) => Some(with_template(&cluster, collection, &options.template).await?),
        None => None,
    };
    for ((crd, api), isolation) in crds.iter().zip(&apis).zip(names) {
        here.mark(crd).await?;
        here.install(Part::Leader, &bind::offer(api, isolation)).await?;
    }
    let isolation = options.isolation.map(Isolation::word);
    here.install(Part::Leader, &[bind::template(&options.template, scope, apis, isolation)]).await?;
    here.install(Part::Leader, collection.as_slice()).await?;
    here.sum_up();
    Ok(())
}

/// Names that no object can have are refused before anything is asked.
fn are_names(options: &OfferOptions) -> Result<(), Error> {
    let wrong =
        |what: &str, name: &str, must: &str| Err(Error::Argument(format!("{what} {name:?} must be {must}")));
    if !is_dns_subdomain(&options.template) {
        return wrong("the template's name", &options.template, "lower case letters, digits, '-' and '.'");
    }
    if let Some(name) = options.collection.as_ref().filter(|name| !is_dns_subdomain(name)) {
        return wrong("--collection", name, "lower case letters, digits, '-' and '.'");
    }
    match options.resources.iter().find(|name| !name.contains('.') || !is_dns_subdomain(name)) {
        Some(name) => wrong("--resource", name, "PLURAL.GROUP, as CRDs are named"),
        None => Ok(()),
    }
}

/// Whether objects of this scope can be kept apart so: no request for them would be granted otherwise.
fn has_place(scope: InformerScope, isolation: Isolation) -> Result<(), String> {
    match (scope, isolation) {
        (InformerScope::Cluster, Isolation::Namespaced) => Err(
            "the APIs are cluster-scoped, and isolation namespaced keeps objects in a Namespace: say --isolation prefixed or none".into(),
        ),
        _ => Ok(()),
    }
}

/// What holds for names of objects of an API: without a prefix if one template is, since all consumers share the names.
fn names(
    api: &Resource,
    mine: (&str, Isolation),
    templates: &[APIServiceExportTemplate],
    usual: Isolation,
) -> Result<Isolation, String> {
    let has = |template: &&APIServiceExportTemplate| {
        template.name_any() != mine.0
            && template.spec.resources.iter().any(|other| other.name() == api.name())
    };
    let mut all = vec![mine.1];
    for template in templates.iter().filter(has) {
        all.push(template.isolation()?.unwrap_or(usual));
    }
    Ok(if all.contains(&Isolation::None) { Isolation::None } else { Isolation::Prefixed })
}

pub(super) async fn is_provider(cluster: &Cluster) -> Result<(), Error> {
    for crd in bind::provider_crds() {
        if cluster.read(&crd).await?.is_none() {
            return Err(
                cluster.refuse(format!("{crd} does not exist: run `freeport bind provide` here first"))
            );
        }
    }
    Ok(())
}

async fn read_crd(cluster: &Cluster, name: &str) -> Result<CustomResourceDefinition, Error> {
    let crds: Api<CustomResourceDefinition> = Api::all(cluster.client.clone());
    let found = cluster.request(format!("read CustomResourceDefinition {name}"), crds.get_opt(name)).await?;
    found.ok_or_else(|| cluster.refuse(format!("there is no CustomResourceDefinition {name}")))
}

fn api_of(crd: &CustomResourceDefinition) -> Resource {
    Resource { group: crd.spec.group.clone(), resource: crd.spec.names.plural.clone(), versions: served(crd) }
}

pub(super) fn served(crd: &CustomResourceDefinition) -> Vec<String> {
    crd.spec.versions.iter().filter(|version| version.served).map(|version| version.name.clone()).collect()
}

/// A request is for APIs of one scope.
fn scope(crds: &[CustomResourceDefinition]) -> Result<InformerScope, String> {
    let scopes: BTreeSet<_> = crds.iter().map(|crd| crd.spec.scope.as_str()).collect();
    match scopes.iter().copied().collect::<Vec<_>>()[..] {
        ["Namespaced"] => Ok(InformerScope::Namespaced),
        ["Cluster"] => Ok(InformerScope::Cluster),
        _ => {
            let each = crds.iter().map(|crd| format!("{} ({})", crd.name_any(), crd.spec.scope));
            Err(format!("a template is of APIs of one scope: {}", list(&each.collect::<Vec<_>>())))
        }
    }
}

/// The collection with this template beside those it has.
async fn with_template(cluster: &Cluster, name: &str, template: &str) -> Result<Object, Error> {
    let collections: Api<Collection> = Api::all(cluster.client.clone());
    let there = cluster.request(format!("read Collection {name}"), collections.get_opt(name)).await?;
    let mut templates = there.map(|there| there.spec.templates).unwrap_or_default();
    if templates.iter().all(|had| had.name != template) {
        templates.push(TemplateRef { name: template.to_owned() });
    }
    Ok(bind::collection(name, CollectionSpec { description: None, templates }))
}

impl Installer<'_> {
    /// Marks a CRD, which is somebody else's, as one whose API may be offered.
    async fn mark(&mut self, crd: &CustomResourceDefinition) -> Result<(), Error> {
        let name = crd.name_any();
        if crd.labels().get(label::EXPORTED).is_some_and(|value| value == api::label::TRUE) {
            return Ok(());
        }
        if self.run.dry_run {
            let command = format!("kubectl label crd {name} {}={}", label::EXPORTED, api::label::TRUE);
            self.say_plainly(&format!("---\n# {command} --overwrite"));
            return Ok(());
        }
        let crds: Api<CustomResourceDefinition> = Api::all(self.cluster.client.clone());
        let params = PatchParams { field_manager: Some(MANAGER.into()), ..PatchParams::default() };
        let patch = Patch::Merge(json!({"metadata": {"labels": {label::EXPORTED: api::label::TRUE}}}));
        let doing = format!("label CustomResourceDefinition {name}");
        self.cluster.request(doing, crds.patch(&name, &params, &patch)).await?;
        self.say(&format!(
            "labelled CustomResourceDefinition {name} {}={}",
            label::EXPORTED,
            api::label::TRUE
        ));
        Ok(())
    }
}

/// The templates that decode.
pub(super) async fn templates(cluster: &Cluster) -> Result<Vec<APIServiceExportTemplate>, Error> {
    let templates: Api<Tolerant<APIServiceExportTemplate>> = Api::all(cluster.client.clone());
    let found = cluster.all(&templates, "").await?;
    Ok(found.into_iter().filter_map(|found| found.object.ok()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_is_of_one_scope() {
        let crd = |plural: &str, scope: &str| -> CustomResourceDefinition {
            serde_json::from_value(json!({"metadata": {"name": format!("{plural}.example.com")}, "spec": {
                "group": "example.com", "scope": scope, "names": {"plural": plural, "kind": "K"}, "versions": [
                    {"name": "v1", "served": true, "storage": true}, {"name": "v0", "served": false, "storage": false}]}}))
            .unwrap()
        };
        let (near, far) = (crd("near", "Namespaced"), crd("far", "Cluster"));
        assert_eq!(scope(std::slice::from_ref(&near)), Ok(InformerScope::Namespaced));
        assert_eq!(scope(std::slice::from_ref(&far)), Ok(InformerScope::Cluster));
        assert!(scope(&[near.clone(), far]).unwrap_err().contains("near.example.com (Namespaced)"));
        assert_eq!(api_of(&near).versions, ["v1"]);
    }

    #[test]
    fn objects_without_a_namespace_are_not_kept_apart_by_one() {
        assert!(has_place(InformerScope::Cluster, Isolation::Namespaced).is_err());
        assert_eq!(has_place(InformerScope::Cluster, Isolation::Prefixed), Ok(()));
        assert_eq!(has_place(InformerScope::Namespaced, Isolation::Namespaced), Ok(()));
    }

    #[test]
    fn names_are_free_if_one_template_or_the_leader_says_so() {
        let api =
            |plural: &str| Resource { group: "g".into(), resource: plural.into(), versions: Vec::new() };
        let template = |name: &str, annotations: serde_json::Value| -> APIServiceExportTemplate {
            serde_json::from_value(json!({"metadata": {"name": name, "annotations": annotations},
                "spec": {"scope": "Cluster", "resources": [{"group": "g", "resource": "a"}]}}))
            .unwrap()
        };
        let there = [template("free", json!({label::ISOLATION: "none"})), template("plain", json!({}))];
        let of = |plural, mine, usual| names(&api(plural), mine, &there, usual).unwrap();
        assert_eq!(of("a", ("new", Isolation::Prefixed), Isolation::Prefixed), Isolation::None);
        assert_eq!(of("a", ("free", Isolation::Prefixed), Isolation::Prefixed), Isolation::Prefixed);
        assert_eq!(of("a", ("free", Isolation::Prefixed), Isolation::None), Isolation::None);
        assert_eq!(of("b", ("new", Isolation::Prefixed), Isolation::None), Isolation::Prefixed);
        assert_eq!(of("b", ("new", Isolation::None), Isolation::Prefixed), Isolation::None);
        let mistyped = [template("typo", json!({label::ISOLATION: "Nonw"}))];
        let of = |plural, mine| names(&api(plural), (mine, Isolation::Prefixed), &mistyped, Isolation::None);
        assert!(of("a", "new").unwrap_err().contains("\"Nonw\""), "it is not what the leader does");
        assert_eq!(of("a", "typo"), Ok(Isolation::Prefixed), "it is mended by offering it again");
        assert_eq!(of("b", "new"), Ok(Isolation::Prefixed), "of another API");
    }

    #[test]
    fn names_that_no_object_can_have_are_refused() {
        let run = Run {
            daemons: crate::Daemons::Inside { image: None, replicas: None },
            only: Vec::new(),
            wait: false,
            timeout: std::time::Duration::ZERO,
            dry_run: false,
            aside: |_| {},
        };
        let refused = |template: &str, collection: Option<&str>, resource: &str| {
            let options = OfferOptions {
                cluster: KubeContext::default(),
                template: template.into(),
                resources: vec![resource.into()],
                collection: collection.map(str::to_owned),
                isolation: None,
                run: run.clone(),
            };
            are_names(&options).err().map(|error| error.to_string())
        };
        assert_eq!(refused("db", Some("all.dbs"), "mangodbs.example.com"), None);
        assert!(refused("D_B", None, "mangodbs.example.com").unwrap().contains("\"D_B\""));
        assert!(refused("db", Some("-"), "mangodbs.example.com").unwrap().contains("--collection"));
        for wrong in ["mangodbs", "Mango.example.com", "a..b"] {
            assert!(refused("db", None, wrong).unwrap().contains("PLURAL.GROUP"), "{wrong}");
        }
    }
}
