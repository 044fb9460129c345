//! Which APIs somebody agreed to in a consumer's cluster. RBAC keeps that: an API has a ClusterRole there, which names its APIServiceBindings.
//! What an APIServiceBinding says in its status follows its provider, and is no consent.

use std::collections::BTreeSet;

use api::{
    bind::{binding::APIServiceBinding, resource::Resource},
    label::{FREEPORT, MANAGED_BY},
    view::{Meta, Tolerant},
};
use k8s_openapi::{
    api::rbac::v1::ClusterRole,
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    apimachinery::pkg::apis::meta::v1::OwnerReference,
};
use kube::{Api, Resource as _, ResourceExt};

use crate::{
    Error,
    cluster::{Cluster, known, list},
    objects::bind::{self, BOUND, naming::is_bindable},
};

/// The member's rights on an API.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Right {
    pub(super) api: Resource,
    /// Names of the APIServiceBindings that they are for; none where nobody noted them.
    pub(super) bindings: BTreeSet<String>,
}

/// The rights that are there.
pub(super) async fn rights(cluster: &Cluster) -> Result<Vec<Right>, Error> {
    let roles: Api<Meta<ClusterRole>> = Api::all(cluster.client.clone());
    let roles = cluster.all(&roles, &format!("{MANAGED_BY}={FREEPORT}")).await?;
    let right = |role: &Meta<ClusterRole>| {
        let api = named(role.name_any().strip_prefix(BOUND)?)?;
        Some(Right { api, bindings: bind::bindings_of(role.annotations()) })
    };
    Ok(roles.iter().filter_map(right).collect())
}

/// The CRDs that a binding brought.
pub(super) async fn brought(
    cluster: &Cluster,
    binding: &APIServiceBinding,
) -> Result<Vec<CustomResourceDefinition>, Error> {
    crds(cluster, |crd| is_of(crd, Some(binding))).await
}

/// The CRDs that go and were brought by a binding of this name which is gone.
pub(super) async fn left_by(cluster: &Cluster, name: &str) -> Result<Vec<CustomResourceDefinition>, Error> {
    crds(cluster, |crd| is_left_by(crd, name)).await
}

/// Those of the CRDs that decode.
async fn crds(
    cluster: &Cluster,
    which: impl Fn(&CustomResourceDefinition) -> bool,
) -> Result<Vec<CustomResourceDefinition>, Error> {
    let crds: Api<Tolerant<CustomResourceDefinition>> = Api::all(cluster.client.clone());
    let all = cluster.all(&crds, "").await?;
    Ok(all.into_iter().filter_map(|crd| crd.object.ok()).filter(which).collect())
}

fn is_left_by(crd: &CustomResourceDefinition, name: &str) -> bool {
    let is_binding =
        |owner: &OwnerReference| owner.kind == APIServiceBinding::kind(&()) && owner.name == name;
    crd.metadata.deletion_timestamp.is_some() && crd.owner_references().iter().any(is_binding)
}

fn is_of(crd: &CustomResourceDefinition, binding: Option<&APIServiceBinding>) -> bool {
    let uid = binding.and_then(ResourceExt::uid);
    uid.is_some_and(|uid| crd.owner_references().iter().any(|owner| owner.uid == uid))
}

/// The API that is written `PLURAL.GROUP`.
pub(super) fn named(name: &str) -> Option<Resource> {
    let (plural, group) = name.split_once('.')?;
    Some(Resource { group: group.into(), resource: plural.into(), versions: Vec::new() })
}

pub(super) fn api_of(crd: &CustomResourceDefinition) -> Resource {
    Resource { group: crd.spec.group.clone(), resource: crd.spec.names.plural.clone(), versions: Vec::new() }
}

/// The APIs that a binding's provider exports, as the member says.
pub(super) fn exported(binding: Option<&APIServiceBinding>) -> Vec<Resource> {
    let schemas =
        binding.and_then(|binding| binding.status.as_ref()).map(|status| status.bound_schemas.iter());
    let api = |group: &str, resource: &str| Resource {
        group: group.into(),
        resource: resource.into(),
        versions: Vec::new(),
    };
    schemas.into_iter().flatten().map(|schema| api(&schema.group, &schema.resource)).collect()
}

/// What was agreed to for the binding of this name: the APIs whose CRDs it has, which the member can bring only with rights, and those with
/// rights for it. Of rights that nobody noted those count that are on APIs of its provider.
pub(super) fn agreed(
    name: &str,
    exported: &[Resource],
    brought: &[Resource],
    rights: &[Right],
) -> Vec<Resource> {
    let is_for = |right: &&Right| match right.bindings.is_empty() {
        true => has(exported, &right.api),
        false => right.bindings.contains(name),
    };
    let mut all = brought.to_vec();
    for right in rights.iter().filter(is_for) {
        if !has(&all, &right.api) {
            all.push(right.api.clone());
        }
    }
    all
}

/// What of `apis` nobody agreed to, by name. Versions are no matter of rights.
pub(super) fn more(apis: &[Resource], agreed: &[Resource]) -> Vec<String> {
    let is_new = |api: &&Resource| !has(agreed, api);
    apis.iter().filter(is_new).map(|api| format!("{:?} of group {:?}", api.resource, api.group)).collect()
}

pub(super) fn has(all: &[Resource], api: &Resource) -> bool {
    all.iter().any(|other| other.group == api.group && other.resource == api.resource)
}

/// What somebody agrees to can be agreed to: each is the API of a CRD, and nobody else's CRD is there.
pub(super) async fn may_be_bound(
    cluster: &Cluster,
    apis: &[Resource],
    binding: Option<&APIServiceBinding>,
) -> Result<(), Error> {
    let crds: Api<Tolerant<CustomResourceDefinition>> = Api::all(cluster.client.clone());
    for api in apis {
        is_bindable(api).map_err(|unfit| cluster.refuse(unfit.to_string()))?;
        let name = api.name();
        let read = known(crds.get(&name));
        let there = cluster.request(format!("read CustomResourceDefinition {name}"), read).await?;
        let there = there.filter(|there| there.metadata.deletion_timestamp.is_none());
        let is_others = |there: Tolerant<CustomResourceDefinition>| {
            there.object.map_or(true, |crd| !is_of(&crd, binding))
        };
        if there.is_some_and(is_others) {
            return Err(cluster.refuse(format!(
                "CustomResourceDefinition {name} is there already, and is not of this APIServiceBinding: freeport-member gets no rights on \
                 its objects"
            )));
        }
    }
    Ok(())
}

/// What somebody agrees to is there to agree to, or may be mistyped.
///
/// # Errors
/// A sentence.
pub(super) fn is_there(agree: &[Resource], there: &[Resource]) -> Result<(), String> {
    let unknown = more(agree, there);
    if unknown.is_empty() {
        return Ok(());
    }
    let names: Vec<_> = there.iter().map(Resource::name).collect();
    Err(format!(
        "--agree: the provider does not export {}; there is to agree to: {}",
        list(&unknown),
        list(&names)
    ))
}

/// An error if the provider exports more than was agreed to.
pub(super) fn is_within(
    cluster: &Cluster,
    name: &str,
    apis: &[Resource],
    agreed: &[Resource],
) -> Result<(), Error> {
    let more = more(apis, agreed);
    if more.is_empty() {
        return Ok(());
    }
    Err(cluster.refuse(format!(
        "APIServiceExport {name} has APIs that nobody agreed to in this cluster: {}. freeport-member gets no rights on them; to allow \
         them, run this again with --agree PLURAL.GROUP for each",
        list(&more)
    )))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn apis(names: &[&str]) -> Vec<Resource> {
        names.iter().filter_map(|name| named(name)).collect()
    }

    #[test]
    fn what_a_binding_that_is_gone_has_left_is_found_by_its_name() {
        let crd = |owner: &str, going: bool| -> CustomResourceDefinition {
            let at = going.then_some("2026-11-01T12:00:00Z");
            let owners = json!([{"apiVersion": "kube-bind.io/v1alpha2", "kind": "APIServiceBinding", "name": owner, "uid": "u"}]);
            let spec = json!({"group": "g", "scope": "Cluster", "names": {"plural": "p", "kind": "P"}, "versions": []});
            serde_json::from_value(json!({
                "metadata": {"name": "p.g", "ownerReferences": owners, "deletionTimestamp": at}, "spec": spec,
            }))
            .unwrap()
        };
        assert!(is_left_by(&crd("mango", true), "mango"));
        assert!(!is_left_by(&crd("mango", false), "mango"), "it may be another one's by now");
        assert!(!is_left_by(&crd("melon", true), "mango"));
    }

    fn right(api: &str, bindings: &[&str]) -> Right {
        Right { api: named(api).unwrap(), bindings: bindings.iter().map(|name| (*name).to_owned()).collect() }
    }

    #[test]
    fn what_an_export_has_is_no_consent() {
        let exported = apis(&["mangodbs.example.com", "secrets.example.com", "old.example.com"]);
        let brought = apis(&["mangodbs.example.com"]);
        let rights = [right("mangodbs.example.com", &["mango"]), right("secrets.example.com", &["other"])];
        assert_eq!(agreed("mango", &exported, &brought, &rights), brought);
        assert_eq!(agreed("mango", &exported, &[], &rights), brought, "its CRD is not there yet");
        assert_eq!(agreed("mango", &exported, &[], &[]), []);
        let unnoted = [right("old.example.com", &[]), right("elsewhere.example.com", &[])];
        assert_eq!(
            agreed("mango", &exported, &brought, &unnoted),
            apis(&["mangodbs.example.com", "old.example.com"])
        );
    }

    #[test]
    fn what_is_more_is_said_by_name_and_versions_do_not_matter() {
        let mut wanted = apis(&["mangodbs.example.com"]);
        wanted[0].versions = vec!["v1".into()];
        let everything = Resource { group: "*".into(), resource: "*".into(), versions: Vec::new() };
        let secrets = Resource { resource: "secrets".into(), ..Resource::default() };
        let export = [wanted.clone(), vec![secrets, everything]].concat();
        assert_eq!(
            more(&export, &apis(&["mangodbs.example.com"])),
            ["\"secrets\" of group \"\"", "\"*\" of group \"*\""]
        );
        assert_eq!(more(&apis(&["mangodbs.example.com"]), &wanted), [""; 0]);
        assert_eq!(more(&apis(&["mangodbs.example.org"]), &wanted).len(), 1);
    }

    #[test]
    fn a_name_that_nobody_exports_is_not_agreed_to() {
        let there = apis(&["mangodbs.example.com", "cacti.example.com"]);
        assert_eq!(is_there(&[], &there), Ok(()));
        assert_eq!(is_there(&apis(&["cacti.example.com"]), &there), Ok(()));
        let why = is_there(&apis(&["bogus.example.com"]), &there).unwrap_err();
        assert!(
            why.contains("\"bogus\"") && why.ends_with("mangodbs.example.com, cacti.example.com"),
            "{why}"
        );
    }

    #[test]
    fn a_crd_is_of_a_binding_by_its_uid() {
        let binding = |uid: &str| -> APIServiceBinding {
            serde_json::from_value(json!({"metadata": {"name": "mango", "uid": uid},
                "spec": {"kubeconfigSecretRef": {"namespace": "n", "name": "s", "key": "k"}}}))
            .unwrap()
        };
        let owner = json!({"apiVersion": "kube-bind.io/v1alpha2", "kind": "APIServiceBinding", "name": "mango", "uid": "b1"});
        let crd = |owners: serde_json::Value| -> CustomResourceDefinition {
            serde_json::from_value(json!({"metadata": {"name": "m.example.com", "ownerReferences": owners},
                "spec": {"group": "example.com", "scope": "Cluster", "names": {"plural": "m", "kind": "M"}, "versions": []}}))
            .unwrap()
        };
        assert!(is_of(&crd(json!([owner])), Some(&binding("b1"))));
        assert!(
            !is_of(&crd(json!([owner])), Some(&binding("b2"))),
            "one that was there before under this name"
        );
        assert!(!is_of(&crd(json!([owner])), None) && !is_of(&crd(json!([])), Some(&binding("b1"))));
    }
}
