//! What a consumer asks for is judged, and exported.
//!
//! Watches APIServiceExportRequests, templates and exported CRDs. Writes BoundSchemas, the APIServiceExport and the APIServiceNamespaces of a
//! request that is granted, and its status. Deletes requests ten minutes after their end. What is there already is left as it is, so a
//! pass may run twice.

use std::{collections::BTreeMap, time::Duration};

use api::bind::{
    bound_schema::BoundSchema,
    carried,
    condition::{Answer, READY, Severity, Verdict, conditions},
    export::{
        APIServiceExport, APIServiceExportRequest, APIServiceExportRequestStatus, APIServiceExportSpec,
        APIServiceNamespace, APIServiceNamespaceSpec, Phase,
    },
    grant::{EXPORTS_READY, Granted, Offered, PERMISSION_CLAIM, Refused, granted},
    label,
    offer::APIServiceExportTemplate,
    resource::{InformerScope, Isolation, Resource},
};
use jiff::Timestamp;
use kit::{
    boot::Env,
    queue::Outcome,
    write::{Error, Writer},
};
use kube::{Resource as _, ResourceExt, core::ObjectMeta};
use serde_json::json;

use super::{
    knowledge::Knowledge,
    known::{Key, Known, granted_templates},
    live::{age, is_behind, looks_again},
};

/// How long a request stays after its end.
const STAYS: Duration = Duration::from_secs(600);

/// The controller. Cloning shares it.
#[derive(Clone)]
pub(super) struct Requests {
    pub(super) env: Env,
    pub(super) knowledge: Knowledge,
    pub(super) writer: Writer,
    pub(super) isolation: Isolation,
    pub(super) scope: InformerScope,
}

/// What a request that is granted comes to.
#[derive(Debug, PartialEq)]
struct Exported {
    schemas: Vec<BoundSchema>,
    export: APIServiceExport,
    namespaces: Vec<APIServiceNamespace>,
    /// What of the APIs is not carried.
    left_out: Vec<String>,
}

/// What is to be there for the request.
fn desired(
    key: &Key,
    request: &APIServiceExportRequest,
    known: &Known,
    (isolation, scope): (Isolation, InformerScope),
) -> Result<Exported, Refused> {
    let (granted, isolation) = judged(key, request, known, (isolation, scope))?;
    let within = |name: String| ObjectMeta {
        name: Some(name),
        namespace: Some(key.cluster_namespace.clone()),
        ..ObjectMeta::default()
    };
    let schemas: Vec<_> = granted.iter().map(|granted| bound_schema(granted, &within)).collect();
    let mut metadata = within(key.name.clone());
    let hash = carried::hash(schemas.iter().map(|schema| &schema.spec));
    metadata.annotations = Some([(label::SOURCE_SPEC_HASH.to_owned(), hash)].into());
    metadata.finalizers = Some(vec![label::BIND_FINALIZER.to_owned()]);
    let spec = APIServiceExportSpec {
        resources: granted.iter().map(|granted| granted.resource.clone()).collect(),
        permission_claims: request.spec.permission_claims.clone(),
        informer_scope: scope,
        isolation,
        cluster_scoped_isolation: None,
    };
    let namespaces = request.spec.namespaces.iter().map(|namespace| {
        let mut metadata = within(namespace.name.clone());
        metadata.labels = Some([(label::OWNER.to_owned(), "provider".to_owned())].into());
        APIServiceNamespace { metadata, spec: APIServiceNamespaceSpec {}, status: None }
    });
    Ok(Exported {
        export: APIServiceExport { metadata, spec, status: None },
        namespaces: namespaces.collect(),
        left_out: granted.into_iter().flat_map(|granted| granted.left_out).collect(),
        schemas,
    })
}

fn bound_schema(granted: &Granted, within: &impl Fn(String) -> ObjectMeta) -> BoundSchema {
    let mut metadata = within(granted.resource.name());
    let hash = carried::hash([&granted.schema]);
    metadata.annotations = Some([(label::SOURCE_SPEC_HASH.to_owned(), hash)].into());
    BoundSchema { metadata, spec: granted.schema.clone(), status: None }
}

/// By the first template that grants all of it, in the isolation of that template.
fn judged(
    key: &Key,
    request: &APIServiceExportRequest,
    known: &Known,
    (isolation, scope): (Isolation, InformerScope),
) -> Result<(Vec<Granted>, Isolation), Refused> {
    let names = known.contract(&key.cluster_namespace).map(granted_templates).unwrap_or_default();
    let templates = names.iter().filter_map(|name| known.templates.get(name));
    let crds: BTreeMap<_, _> = known.crds.iter().map(|crd| (crd.name_any(), crd.spec.clone())).collect();
    let bound = known.bound(&key.cluster_namespace);
    let judge = |templates: &[_], isolation| {
        let offered = Offered { templates, crds: &crds, bound: &bound, isolation, scope };
        granted(&key.name, &request.spec, &offered).map(|granted| (granted, isolation))
    };
    let mut refused = None;
    for template in templates {
        match judge(std::slice::from_ref(&template.spec), isolation_of(template).unwrap_or(isolation)) {
            Ok(granted) => return Ok(granted),
            Err(error) => refused = refused.or(Some(error)),
        }
    }
    match refused {
        Some(refused) => Err(refused),
        None => judge(&[], isolation),
    }
}

fn isolation_of(template: &APIServiceExportTemplate) -> Option<Isolation> {
    let value = template.annotations().get(label::ISOLATION)?.to_ascii_lowercase();
    match value.as_str() {
        "prefixed" => Some(Isolation::Prefixed),
        "namespaced" => Some(Isolation::Namespaced),
        "none" => Some(Isolation::None),
        _ => None,
    }
}

impl Requests {
    /// One pass.
    pub(super) async fn reconcile(self, key: Key) -> Result<Outcome, Error> {
        let request = self.knowledge.known.with(|known| {
            known.contract(&key.cluster_namespace)?;
            known.requests.named(&key.pair()).cloned()
        });
        let Some(request) = request else { return Ok(Outcome::Done) };
        let status = request.status.clone().unwrap_or_default();
        if status.phase != Phase::Pending {
            return self.over(&request, &status, Timestamp::now()).await;
        }
        let choices = (self.isolation, self.scope);
        match self.knowledge.known.with(|known| desired(&key, &request, known, choices)) {
            Ok(exported) => self.export(&request, exported).await,
            Err(refused) => {
                let age = age(&request.metadata, Timestamp::now());
                match looks_again(age, is_behind(&request, &self.knowledge, &self.writer)).await? {
                    Some(left) => Ok(Outcome::Requeue(left)),
                    None => self.fail(&request, &refused).await,
                }
            }
        }
    }

    async fn export(&self, request: &APIServiceExportRequest, exported: Exported) -> Result<Outcome, Error> {
        for schema in &exported.schemas {
            self.create(schema).await?;
        }
        let key = Key::of(&exported.export).pair();
        let there = self.knowledge.known.with(|known| known.exports.named(&key).cloned());
        match there {
            Some(there) if !is_same(&there.spec.resources, &exported.export.spec.resources) => {
                let message =
                    format!("APIServiceExport {} is there already, for other APIs", there.name_any());
                let refused = Refused { condition: EXPORTS_READY, reason: "AlreadyBound", message };
                return self.fail(request, &refused).await;
            }
            Some(_) => {}
            None => self.create(&exported.export).await?,
        }
        for namespace in &exported.namespaces {
            self.create(namespace).await?;
        }
        if !exported.left_out.is_empty() {
            let message = format!("not carried to the consumer: {}", exported.left_out.join(", "));
            self.env.events.tell(request.object_ref(&()), "Export", "LeftOut", &message);
        }
        tracing::info!(namespace = request.namespace(), request = request.name_any(), "exported");
        let verdicts =
            [Verdict::new(EXPORTS_READY, Answer::Yes), Verdict::new(PERMISSION_CLAIM, Answer::Yes)];
        self.say(request, Phase::Succeeded, &verdicts, None).await
    }

    async fn create<P>(&self, want: &P) -> Result<(), Error>
    where
        P: kube::Resource<DynamicType = ()>
            + serde::Serialize
            + serde::de::DeserializeOwned
            + Clone
            + std::fmt::Debug,
    {
        match self.writer.put(None, want).await {
            Ok(_) | Err(Error::Stale) => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn fail(&self, request: &APIServiceExportRequest, refused: &Refused) -> Result<Outcome, Error> {
        self.env.events.warn(request.object_ref(&()), "Export", refused.reason, &refused.message);
        let answer = Answer::No(Severity::Error, refused.reason, refused.message.clone());
        let message = Some(refused.message.clone());
        self.say(request, Phase::Failed, &[Verdict::new(refused.condition, answer)], message).await
    }

    async fn say(
        &self,
        request: &APIServiceExportRequest,
        phase: Phase,
        verdicts: &[Verdict],
        terminal_message: Option<String>,
    ) -> Result<Outcome, Error> {
        let have = request.status.clone().unwrap_or_default();
        let conditions = conditions(&have.conditions, verdicts, &[], Timestamp::now());
        let status = APIServiceExportRequestStatus { phase, terminal_message, conditions };
        let patch = json!({"metadata": {"resourceVersion": request.resource_version()}, "status": status});
        self.writer.merge(request, Some("status"), patch).await?;
        Ok(Outcome::Done)
    }

    /// A finished request goes when its time is over.
    async fn over(
        &self,
        request: &APIServiceExportRequest,
        status: &APIServiceExportRequestStatus,
        now: Timestamp,
    ) -> Result<Outcome, Error> {
        let ready = status.conditions.iter().find(|condition| condition.type_ == READY);
        let ended = ready.and_then(|ready| Some(ready.last_transition_time.as_ref()?.0)).unwrap_or(now);
        let since = Duration::try_from(now.duration_since(ended)).unwrap_or_default();
        match STAYS.checked_sub(since) {
            Some(left) if !left.is_zero() => Ok(Outcome::Requeue(left)),
            _ => self.writer.delete(request, false).await.map(|()| Outcome::Done),
        }
    }
}

fn is_same(have: &[Resource], want: &[Resource]) -> bool {
    have.len() == want.len() && have.iter().zip(want).all(|(have, want)| have.name() == want.name())
}

#[cfg(test)]
mod tests {
    use kit::objects::Change;
    use serde_json::Value;

    use super::*;

    const CNS: &str = "kube-bind-x";

    fn known(templates: &[(&str, Value)], granted: &str) -> Known {
        let mut known = Known::default();
        let version = json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}});
        let crd = json!({
            "metadata": {"name": "mangodbs.example.com"},
            "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "mangodbs", "kind": "MangoDB"}, "versions": [version]},
        });
        known.crds.change(Change::Apply(serde_json::from_value(crd).unwrap()));
        for (name, annotations) in templates {
            let spec = json!({"scope": "Namespaced", "resources": [{"group": "example.com", "resource": "mangodbs"}]});
            let template = json!({"metadata": {"name": name, "annotations": annotations}, "spec": spec});
            known.templates.change(Change::Apply(serde_json::from_value(template).unwrap()));
        }
        let place = json!({"metadata": {"name": CNS, "labels": {label::BIND: label::CONTRACT},
            "annotations": {label::GRANTED_TEMPLATES: granted}}});
        known.places.change(Change::Apply(serde_json::from_value(place).unwrap()));
        known
    }

    fn of(known: &Known) -> Result<Exported, &'static str> {
        let request = json!({"metadata": {"name": "mango", "namespace": CNS},
            "spec": {"resources": [{"group": "example.com", "resource": "mangodbs"}]}});
        let request: APIServiceExportRequest = serde_json::from_value(request).unwrap();
        let choices = (Isolation::Prefixed, InformerScope::Namespaced);
        desired(&Key::of(&request), &request, known, choices).map_err(|refused| refused.reason)
    }

    #[test]
    fn b1_b9_what_is_granted_is_exported_in_the_versions_that_are_served() {
        let exported = of(&known(&[("small", json!({}))], "small")).unwrap();
        assert_eq!(exported.schemas[0].name_any(), "mangodbs.example.com");
        assert_eq!(exported.export.spec.resources[0].versions, ["v1"]);
        assert_eq!(exported.export.spec.isolation, Isolation::Prefixed);
        assert_eq!(exported.export.finalizers(), [label::BIND_FINALIZER]);
    }

    #[test]
    fn a_template_that_was_not_granted_grants_nothing() {
        assert_eq!(of(&known(&[("small", json!({}))], "")).unwrap_err(), "NotGranted");
        assert_eq!(of(&known(&[("small", json!({}))], "gone")).unwrap_err(), "NotGranted");
    }

    #[test]
    fn a_template_can_say_how_its_objects_are_kept_apart() {
        let known = known(&[("converted", json!({label::ISOLATION: "Namespaced"}))], "converted");
        let exported = of(&known).unwrap();
        assert_eq!(exported.export.spec.isolation, Isolation::Namespaced);
        assert_eq!(exported.schemas[0].spec.scope, InformerScope::Cluster);
    }
}
