//! Makes somebody a consumer: asks the provider for the credential of a contract.

use api::bind::{
    export::{APIServiceExportRequestSpec, Phase},
    offer::{
        APIServiceExportTemplate, BindableResourcesRequest, BindableResourcesRequestSpec,
        BindableResourcesRequestStatus, ClusterIdentity, TemplateRef,
    },
    resource::Resource,
};
use k8s_openapi::{
    api::{authentication::v1::SelfSubjectReview, core::v1::Secret},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, PostParams, Preconditions},
};

use super::{
    answer::Answer,
    consent::more,
    offer::{is_provider, served, templates},
};
use crate::{
    Error, Run,
    cluster::{Cluster, known, list},
    eraser::{Eraser, Say},
    install::MANAGER,
    objects::{self, Object, SYSTEM},
    rollout,
};

/// Who asks for what.
pub(super) struct Ask<'a> {
    /// Name of the APIServiceBinding that is to be.
    pub(super) name: &'a str,
    pub(super) template: &'a str,
    /// The uid of the consumer's Namespace `kube-system`.
    pub(super) identity: &'a str,
    /// What people call the consumer.
    pub(super) called: Option<&'a str>,
}

/// What a template offers, with the versions that the provider serves where it names none.
pub(super) async fn offered(provider: &Cluster, name: &str) -> Result<APIServiceExportRequestSpec, Error> {
    is_provider(provider).await?;
    let all = templates(provider).await?;
    let Some(template) = all.iter().find(|template| template.name_any() == name) else {
        let names: Vec<_> = all.iter().map(ResourceExt::name_any).collect();
        return Err(provider
            .refuse(format!("there is no APIServiceExportTemplate {name} (there are: {})", list(&names))));
    };
    template.isolation().map_err(|why| provider.refuse(why))?;
    let crds: Api<CustomResourceDefinition> = Api::all(provider.client.clone());
    let mut resources = Vec::new();
    for resource in &template.spec.resources {
        let mut resource = resource.clone();
        if resource.versions.is_empty() {
            let (crd, doing) =
                (resource.name(), format!("read CustomResourceDefinition {}", resource.name()));
            let there = provider.request(doing, known(crds.get(&crd))).await?;
            resource.versions = there.as_ref().map(served).unwrap_or_default();
        }
        resources.push(resource);
    }
    Ok(request(template, resources))
}

fn request(template: &APIServiceExportTemplate, resources: Vec<Resource>) -> APIServiceExportRequestSpec {
    let spec = &template.spec;
    APIServiceExportRequestSpec {
        parameters: None,
        resources,
        permission_claims: spec.permission_claims.clone(),
        namespaces: spec.namespaces.clone(),
        schema_update_policy: spec.schema_update_policy,
    }
}

/// Asks, waits for the answer, and takes it along: no copy of the credential stays behind.
pub(super) async fn contract(
    provider: &Cluster,
    ask: &Ask<'_>,
    spec: APIServiceExportRequestSpec,
    run: &Run,
    say: Say<'_>,
) -> Result<Answer, Error> {
    let asked: Api<BindableResourcesRequest> = Api::namespaced(provider.client.clone(), SYSTEM);
    let body = body(ask, author(provider).await?);
    let params = PostParams { field_manager: Some(MANAGER.into()), ..PostParams::default() };
    let create = async || {
        let doing = format!("create a BindableResourcesRequest in {SYSTEM}");
        provider.request(doing, known(asked.create(&params, &body))).await
    };
    let created = match create().await? {
        Some(created) => Some(created),
        // Another backend than ours answers in whatever Namespace it is asked.
        None => {
            Eraser::new(provider, false, &mut *say).create(&objects::system_namespace()).await?;
            create().await?
        }
    };
    let created = created.ok_or_else(|| provider.refuse(format!("it has no Namespace {SYSTEM}")))?;
    let name = created.name_any();
    say(&format!("{}: asked for a contract: BindableResourcesRequest {SYSTEM}/{name}", provider.name));
    let params =
        DeleteParams::default().preconditions(Preconditions { uid: created.uid(), resource_version: None });
    let forget = async || {
        let delete = known(asked.delete(&name, &params));
        provider.request(format!("delete BindableResourcesRequest {SYSTEM}/{name}"), delete).await
    };
    let answered = match wait(provider, &asked, &name, run, say).await {
        Ok(answered) => answered,
        Err(error) => {
            // Nobody else looks at the answer: it has a credential.
            drop(forget().await);
            return Err(error);
        }
    };
    let answer = take(provider, &answered).await?;
    forget().await?;
    let cluster_namespace = answered.namespace.unwrap_or_default();
    say(&format!("{}: the contract is in Namespace {cluster_namespace}", provider.name));
    let request = within(answer.request, spec, ask.template).map_err(|why| provider.refuse(why))?;
    Ok(Answer { request: Some(request), ..answer })
}

/// What the backend answers goes before what the template says, unless it is more.
fn within(
    answered: Option<APIServiceExportRequestSpec>,
    offered: APIServiceExportRequestSpec,
    template: &str,
) -> Result<APIServiceExportRequestSpec, String> {
    let Some(answered) = answered else { return Ok(offered) };
    let more = more(&answered.resources, &offered.resources);
    if more.is_empty() {
        return Ok(answered);
    }
    Err(format!(
        "the provider answers with more than APIServiceExportTemplate {template} has: {}",
        list(&more)
    ))
}

/// What a contract is asked for with, as YAML.
pub(super) async fn preview(provider: &Cluster, ask: &Ask<'_>) -> Result<String, Error> {
    let mut request = Object::new(&body(ask, author(provider).await?));
    request.namespace = Some(SYSTEM.into());
    request.body["metadata"]["namespace"] = SYSTEM.into();
    let yaml = request.yaml().map_err(|source| Error::Yaml { object: request.to_string(), source })?;
    Ok(format!(
        "---\n# cluster: {} (kubectl create; the answer has the credential, and is printed without --dry-run)\n{}",
        provider.name,
        yaml.trim_end()
    ))
}

fn body(ask: &Ask<'_>, author: String) -> BindableResourcesRequest {
    let spec = BindableResourcesRequestSpec {
        template_ref: Some(TemplateRef { name: ask.template.to_owned() }),
        cluster_identity: ClusterIdentity {
            identity: Some(ask.identity.to_owned()),
            pretty_name: ask.called.map(str::to_owned),
        },
        author,
        kubeconfig_secret_ref: None,
        ttl_after_finished: "10m".parse().ok(),
    };
    let mut body = BindableResourcesRequest::new("", spec);
    body.metadata.name = None;
    body.metadata.generate_name = Some(format!("{}-", ask.name));
    body
}

/// As the provider knows whoever runs the command.
async fn author(provider: &Cluster) -> Result<String, Error> {
    let reviews: Api<SelfSubjectReview> = Api::all(provider.client.clone());
    let (params, review) = (PostParams::default(), SelfSubjectReview::default());
    let review = provider.request("ask who we are", reviews.create(&params, &review)).await?;
    let user = review.status.and_then(|status| status.user_info?.username);
    Ok(user.unwrap_or_else(|| "freeport".to_owned()))
}

async fn wait(
    provider: &Cluster,
    asked: &Api<BindableResourcesRequest>,
    name: &str,
    run: &Run,
    say: Say<'_>,
) -> Result<BindableResourcesRequestStatus, Error> {
    let probe = async || {
        let doing = format!("read BindableResourcesRequest {SYSTEM}/{name}");
        let status = provider.request(doing, asked.get(name)).await?.status.unwrap_or_default();
        let message = status.conditions.first().map(|condition| condition.message.clone());
        match status.phase {
            Phase::Succeeded => Ok(Ok(status)),
            Phase::Failed => Err(provider.refuse(format!(
                "BindableResourcesRequest {SYSTEM}/{name}: {}",
                message.unwrap_or_else(|| "it failed".to_owned())
            ))),
            Phase::Pending => {
                Ok(Err(message.unwrap_or_else(|| "freeport-leader has not answered yet".to_owned())))
            }
        }
    };
    let waiting = |message: &str| say(&format!("{}: waiting for the contract: {message}", provider.name));
    rollout::wait(run.timeout, probe, waiting).await?.map_err(|message| Error::Timeout {
        cluster: provider.name.clone(),
        missing: format!(
            "BindableResourcesRequest {SYSTEM}/{name}: {message}; does a leader run here with --bind? (freeport bind provide)"
        ),
        limit: run.timeout,
    })
}

/// Reads the answer and deletes it.
async fn take(provider: &Cluster, status: &BindableResourcesRequestStatus) -> Result<Answer, Error> {
    let Some(at) = &status.kubeconfig_secret_ref else {
        return Err(provider.refuse("the provider does not say where its answer is".into()));
    };
    let secrets: Api<Secret> = Api::namespaced(provider.client.clone(), SYSTEM);
    let place = format!("Secret {SYSTEM}/{}", at.name);
    let secret = provider.request(format!("read {place}"), secrets.get(&at.name)).await?;
    let bytes = secret.data.as_ref().and_then(|data| data.get(&at.key));
    let bytes = bytes.ok_or_else(|| provider.refuse(format!("{place} has no key {}", at.key)))?;
    let answer = Answer::read(&bytes.0).map_err(|why| provider.refuse(format!("{place}: {why}")))?;
    let only = Preconditions { uid: secret.uid(), resource_version: None };
    let params = DeleteParams::default().preconditions(only);
    let delete = known(secrets.delete(&at.name, &params));
    provider.request(format!("delete {place}"), delete).await?;
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_provider_answers_with_no_more_than_its_template_has() {
        let spec = |names: &[&str]| {
            let api = |name: &&str| Resource {
                group: "example.com".into(),
                resource: (*name).into(),
                versions: vec![],
            };
            APIServiceExportRequestSpec { resources: names.iter().map(api).collect(), ..Default::default() }
        };
        let offered = || spec(&["mangodbs", "cacti"]);
        assert_eq!(within(None, offered(), "db"), Ok(offered()));
        assert_eq!(within(Some(spec(&["cacti"])), offered(), "db"), Ok(spec(&["cacti"])));
        let refused = within(Some(spec(&["cacti", "secrets"])), offered(), "db").unwrap_err();
        assert!(refused.contains("\"secrets\"") && !refused.contains("cacti"), "{refused}");
    }
}
