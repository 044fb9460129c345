//! Whether a consumer may have what it asks for: pure.
//!
//! All is judged before anything is made. A consumer may ask for whatever it likes in its cluster namespace; it gets what lies within
//! the templates that were granted to it.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinitionSpec;

use super::{
    bound_schema::BoundSchemaSpec,
    carried::bound,
    export::APIServiceExportRequestSpec,
    offer::APIServiceExportTemplateSpec,
    resource::{InformerScope, Isolation, PermissionClaim, Resource},
};

/// APIs whose objects can go along with those that are bound, all of Kubernetes' own group.
const CLAIMABLE: [&str; 3] = ["configmaps", "secrets", "serviceaccounts"];

/// What there is to judge by.
pub struct Offered<'a> {
    /// Templates that were granted to this consumer.
    pub templates: &'a [APIServiceExportTemplateSpec],
    /// CRDs that may be exported, by `<plural>.<group>`.
    pub crds: &'a BTreeMap<String, &'a CustomResourceDefinitionSpec>,
    /// Under which export this consumer has an API already, by `<plural>.<group>`.
    pub bound: &'a BTreeMap<String, String>,
    /// Those of these exports that are being deleted.
    pub going: &'a BTreeSet<String>,
    /// How objects of consumers are kept apart.
    pub isolation: Isolation,
    /// How much of the provider konnectors watch.
    pub scope: InformerScope,
}

/// Why a request fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The condition that says so.
    pub condition: &'static str,
    /// One CamelCase word for machines.
    pub reason: &'static str,
    /// A sentence for people.
    pub message: String,
}

/// Reason: no template that was granted has all that is asked for.
pub const NOT_GRANTED: &str = "NotGranted";
/// Reason: an export that is being deleted has what is asked for, until its end.
pub const EXPORT_IS_GOING: &str = "ExportIsGoing";
/// Most APIs in one request.
pub const APIS_MAX: usize = 100;
/// Condition of a request: what it asks for can be exported.
pub const EXPORTS_READY: &str = "ExportsReady";
/// Condition of a request: its claims are in order.
pub const PERMISSION_CLAIM: &str = "PermissionClaim";

fn no(reason: &'static str, message: String) -> Refused {
    Refused { condition: EXPORTS_READY, reason, message }
}

/// An API that a consumer may have.
#[derive(Clone, Debug, PartialEq)]
pub struct Granted {
    /// With the versions that it asked for, or all that are served.
    pub resource: Resource,
    /// Its CRD, as it is to be at the consumer.
    pub schema: BoundSchemaSpec,
    /// What of the CRD does not arrive.
    pub left_out: Vec<String>,
}

/// What a request of this name gets.
///
/// # Errors
/// [`Refused`], for the first thing that is not as it has to be.
pub fn granted(
    name: &str,
    request: &APIServiceExportRequestSpec,
    offered: &Offered<'_>,
) -> Result<Vec<Granted>, Refused> {
    let apis = request.resources.len();
    if apis > APIS_MAX {
        return Err(no("TooManyAPIs", format!("the request has {apis} APIs; the limit is {APIS_MAX}")));
    }
    check_claims(&request.permission_claims)?;
    let mut seen = BTreeSet::new();
    for resource in &request.resources {
        if !seen.insert(resource.name()) {
            return Err(no(NOT_GRANTED, format!("{} is asked for twice", resource.name())));
        }
    }
    // Who names no versions asks for those that are served: a template may name the same.
    let resources: Vec<_> = request.resources.iter().map(|asked| in_versions(asked, offered)).collect();
    within_a_template(&resources, request, offered.templates)?;
    let all: Result<Vec<_>, _> = resources.iter().map(|resource| one(name, resource, offered)).collect();
    let all = all?;
    let scopes: BTreeSet<_> = request.resources.iter().filter_map(|r| scope_of(r, offered)).collect();
    if scopes.len() > 1 {
        return Err(no("DifferentScopes", "all APIs of one request must have the same scope".into()));
    }
    Ok(all)
}

fn scope_of<'a>(resource: &Resource, offered: &Offered<'a>) -> Option<&'a str> {
    offered.crds.get(&resource.name()).map(|crd| crd.scope.as_str())
}

fn in_versions(asked: &Resource, offered: &Offered<'_>) -> Resource {
    let crd = offered.crds.get(&asked.name()).filter(|_| asked.versions.is_empty());
    let versions = crd.map_or_else(|| asked.versions.clone(), |crd| served(crd));
    Resource { versions, ..asked.clone() }
}

fn served(crd: &CustomResourceDefinitionSpec) -> Vec<String> {
    crd.versions.iter().filter(|version| version.served).map(|version| version.name.clone()).collect()
}

/// One template has to have all of it: what two offer, each for itself, was never offered together.
fn within_a_template(
    resources: &[Resource],
    request: &APIServiceExportRequestSpec,
    templates: &[APIServiceExportTemplateSpec],
) -> Result<(), Refused> {
    if templates.is_empty() {
        return Err(no(NOT_GRANTED, "no template was granted to this consumer".into()));
    }
    let lacking = templates.iter().map(|template| beyond(resources, request, template));
    // The template that comes nearest says what is too much.
    let nearest = lacking.min_by_key(Vec::len).unwrap_or_default();
    match nearest.is_empty() {
        true => Ok(()),
        false => Err(no(
            NOT_GRANTED,
            format!("the templates that were granted do not have {}", nearest.join(", ")),
        )),
    }
}

/// What of a request a template does not have. A request that names no versions may get others by naming them.
fn beyond(
    resources: &[Resource],
    request: &APIServiceExportRequestSpec,
    template: &APIServiceExportTemplateSpec,
) -> Vec<String> {
    let offers = |asked: &Resource| {
        template.resources.iter().filter(|offered| offered.name() == asked.name()).any(|offered| {
            offered.versions.is_empty()
                || !asked.versions.is_empty() && asked.versions.iter().all(|v| offered.versions.contains(v))
        })
    };
    let resources = resources.iter().filter(|asked| !offers(asked)).map(|asked| {
        let offered = template.resources.iter().find(|offered| offered.name() == asked.name());
        let only = offered.map(|offered| format!(" (only in {})", offered.versions.join(", ")));
        let only = only.unwrap_or_default();
        match asked.versions.is_empty() {
            true => format!("{}{only}", asked.name()),
            false => format!("{} in {}{only}", asked.name(), asked.versions.join(", ")),
        }
    });
    let claims = request.permission_claims.iter().filter(|claim| !template.permission_claims.contains(claim));
    let claims = claims.map(|claim| format!("the claim on {}", claim.resource));
    let namespaces = request.namespaces.iter().filter(|namespace| !template.namespaces.contains(namespace));
    let namespaces = namespaces.map(|namespace| format!("Namespace {}", namespace.name));
    resources.chain(claims).chain(namespaces).collect()
}

fn one(name: &str, asked: &Resource, offered: &Offered<'_>) -> Result<Granted, Refused> {
    let api = asked.name();
    let crd = offered.crds.get(&api).ok_or_else(|| {
        no("SchemaNotFound", format!("no CRD {api} is labelled kube-bind.io/exported=true at the provider"))
    })?;
    if let Some(export) = offered.bound.get(&api).filter(|export| *export != name) {
        return Err(match offered.going.contains(export) {
            true => no(EXPORT_IS_GOING, format!("{api} is bound by {export}, which is being deleted")),
            false => no(
                "AlreadyBound",
                format!(
                    "{api} is bound already, by {export}: the consumer ends that (freeport bind remove {export}), or whoever provides deletes \
                 APIServiceExport {export}, and it is asked for again"
                ),
            ),
        });
    }
    let served = served(crd);
    if let Some(unserved) = asked.versions.iter().find(|version| !served.contains(version)) {
        return Err(no("SchemaNotFound", format!("the provider does not serve version {unserved} of {api}")));
    }
    let (schema, left_out) = bound(crd, offered.isolation, offered.scope)
        .map_err(|error| no("NotCarried", format!("{api} cannot be exported: {error}")))?;
    Ok(Granted { resource: asked.clone(), schema, left_out })
}

fn check_claims(claims: &[PermissionClaim]) -> Result<(), Refused> {
    let refused = |reason, message| Err(Refused { condition: PERMISSION_CLAIM, reason, message });
    let mut seen = BTreeSet::new();
    for claim in claims {
        if !claim.group.is_empty() || !CLAIMABLE.contains(&claim.resource.as_str()) {
            let message = format!(
                "{}.{} cannot be claimed: only {}",
                claim.resource,
                claim.group,
                CLAIMABLE.join(", ")
            );
            return refused("InvalidPermissionClaim", message);
        }
        if !seen.insert(&claim.resource) {
            return refused("DuplicatePermissionClaim", format!("{} is claimed twice", claim.resource));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
