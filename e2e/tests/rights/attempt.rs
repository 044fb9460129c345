//! One request and what became of it.

use kube::{
    Api, Client, Error,
    api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

/// Where kinds are that are outside of Namespaces.
pub(crate) const EVERYWHERE: &str = "";

/// Objects of a kind in a Namespace, or [`EVERYWHERE`].
pub(crate) fn within(client: &Client, namespace: &str, kind: &ApiResource) -> Api<DynamicObject> {
    match namespace {
        EVERYWHERE => Api::all_with(client.clone(), kind),
        namespace => Api::namespaced_with(client.clone(), namespace, kind),
    }
}

/// A request in a Namespace, or [`EVERYWHERE`].
#[derive(Clone, Debug)]
pub(crate) enum Do {
    Create(Value),
    /// Create, as this field manager.
    CreateAs(&'static str, Value),
    /// Create, but nothing stays.
    DryCreate(Value),
    /// Server-side apply, but nothing stays. Unlike a create, it is a right by name.
    DryApply(Value),
    /// Creates nothing but an answer: a token.
    Ask {
        name: String,
        subresource: String,
    },
    /// Replaces what is there by it, changed so.
    Replace(String, Value),
    Patch(String, Value),
    PatchStatus(String, Value),
    /// Patch of the object or of a subresource, but nothing stays.
    DryPatch {
        name: String,
        subresource: Option<String>,
        change: Value,
    },
    Delete(String),
    DryDelete(String),
    /// Deletes all with these labels.
    DeleteAll(String),
    Get(String),
    List,
}

/// Why the API server did not do it.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub code: u16,
    pub message: String,
}

impl Refusal {
    /// By rights or by a policy; not because there is nothing to do it to, or because it makes no sense.
    pub(crate) fn is_deliberate(&self) -> bool {
        self.code == 403 || self.is_by_policy("")
    }

    /// Whether our policy refused it, with these words.
    pub(crate) fn is_by_policy(&self, says: &str) -> bool {
        matches!(self.code, 403 | 422)
            && self.message.contains("ValidatingAdmissionPolicy 'freeport-")
            && self.message.contains(says)
    }
}

impl Do {
    pub(crate) async fn by(
        &self,
        client: &Client,
        namespace: &str,
        kind: &ApiResource,
    ) -> Result<(), Refusal> {
        match self.send(&within(client, namespace, kind), kind).await {
            Ok(()) => Ok(()),
            Err(Error::Api(status)) => Err(Refusal { code: status.code, message: status.message }),
            Err(error) => panic!("{self:?}: no answer: {error}"),
        }
    }

    async fn send(&self, api: &Api<DynamicObject>, kind: &ApiResource) -> Result<(), Error> {
        let (post, patch, delete) = (PostParams::default(), PatchParams::default(), DeleteParams::default());
        match self {
            Self::Create(object) => drop(api.create(&post, &typed(object, kind)).await?),
            Self::CreateAs(manager, object) => {
                let by = PostParams { field_manager: Some((*manager).into()), ..post };
                drop(api.create(&by, &typed(object, kind)).await?);
            }
            Self::DryCreate(object) => {
                let dry = PostParams { dry_run: true, ..post };
                drop(api.create(&dry, &typed(object, kind)).await?);
            }
            Self::DryApply(object) => {
                let dry = PatchParams { dry_run: true, ..PatchParams::apply("freeport-e2e").force() };
                let object = typed(object, kind);
                let name = object.metadata.name.clone().unwrap_or_default();
                drop(api.patch(&name, &dry, &Patch::Apply(&object)).await?);
            }
            Self::Ask { name, subresource } => {
                let asked =
                    json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
                drop(api.create_subresource::<_, Value>(subresource, name, &post, &asked).await?);
            }
            Self::Replace(name, change) => {
                let mut object = serde_json::to_value(api.get(name).await?).unwrap();
                merge(&mut object, change);
                drop(api.replace(name, &post, &typed(&object, kind)).await?);
            }
            Self::Patch(name, change) => drop(api.patch(name, &patch, &Patch::Merge(change)).await?),
            Self::PatchStatus(name, change) => {
                drop(api.patch_status(name, &patch, &Patch::Merge(change)).await?);
            }
            Self::DryPatch { name, subresource, change } => {
                let dry = PatchParams { dry_run: true, ..patch };
                let change = Patch::Merge(change);
                match subresource {
                    Some(sub) => drop(api.patch_subresource(sub, name, &dry, &change).await?),
                    None => drop(api.patch(name, &dry, &change).await?),
                }
            }
            Self::Delete(name) => drop(api.delete(name, &delete).await?),
            Self::DryDelete(name) => drop(api.delete(name, &DeleteParams { dry_run: true, ..delete }).await?),
            Self::DeleteAll(labels) => {
                drop(api.delete_collection(&delete, &ListParams::default().labels(labels)).await?);
            }
            Self::Get(name) => drop(api.get(name).await?),
            Self::List => drop(api.list(&ListParams::default()).await?),
        }
        Ok(())
    }
}

fn typed(object: &Value, kind: &ApiResource) -> DynamicObject {
    let mut object = object.clone();
    object["apiVersion"] = json!(kind.api_version);
    object["kind"] = json!(kind.kind);
    serde_json::from_value(object).unwrap()
}

fn merge(object: &mut Value, change: &Value) {
    match change {
        Value::Object(fields) => {
            for (field, value) in fields {
                merge(&mut object[field.as_str()], value);
            }
        }
        value => *object = value.clone(),
    }
}

/// A request that must be refused.
#[derive(Clone)]
pub(crate) struct Attempt {
    /// What it would do.
    pub what: &'static str,
    pub kind: ApiResource,
    pub todo: Do,
    /// Words of our policy's sentence.
    pub says: &'static str,
}

/// Tries them all in the Namespace, and fails with those that `wrong` objects to.
pub(crate) async fn try_all(
    client: &Client,
    namespace: &str,
    attempts: &[Attempt],
    wrong: impl Fn(&Attempt, &Refusal) -> bool,
) {
    let mut seen = Vec::new();
    for attempt in attempts {
        match attempt.todo.by(client, namespace, &attempt.kind).await {
            Ok(()) => seen.push(format!("{}: was done", attempt.what)),
            Err(refusal) if wrong(attempt, &refusal) => {
                seen.push(format!("{}: {} {}", attempt.what, refusal.code, refusal.message));
            }
            Err(refusal) => e2e::note!("{}: {} {}", attempt.what, refusal.code, refusal.message),
        }
    }
    assert!(seen.is_empty(), "not refused as it should be:\n{}", seen.join("\n"));
}
