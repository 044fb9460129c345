//! What Go's konnector does with an object and its copy (reference 2.6).

use kube::{
    Api, ResourceExt,
    api::{DeleteParams, DynamicObject, ObjectMeta, Patch, PatchParams, PostParams},
};
use serde_json::Value;

const FINALIZER: &str = "kubebind.io/syncer";

/// Objects of an API here and at the provider.
pub(super) struct Sides<'a> {
    pub(super) ours: &'a Api<DynamicObject>,
    pub(super) theirs: &'a Api<DynamicObject>,
    /// The cluster namespace.
    pub(super) cns: &'a str,
    /// Owner references of copies.
    pub(super) owner: &'a Value,
}

impl Sides<'_> {
    pub(super) async fn spec_up(
        &self,
        mut object: DynamicObject,
        copy: Option<DynamicObject>,
        name: String,
    ) -> Result<(), String> {
        let is_held = object.finalizers().iter().any(|held| held == FINALIZER);
        match (object.metadata.deletion_timestamp.is_some(), copy) {
            (true, copy) => {
                if let Some(copy) = copy {
                    delete(self.theirs, &copy).await?;
                }
                object.finalizers_mut().retain(|held| held != FINALIZER);
                self.put(&object).await
            }
            (false, Some(mut copy)) if copy.data["spec"] != object.data["spec"] => {
                copy.data["spec"] = object.data["spec"].clone();
                copy.metadata.managed_fields = None;
                let apply = PatchParams::apply("kube-bind.io").force();
                self.theirs.patch(&name, &apply, &Patch::Apply(&copy)).await.map(drop).map_err(text)
            }
            (false, Some(_)) => Ok(()),
            (false, None) if !is_held => {
                object.finalizers_mut().push(FINALIZER.to_owned());
                self.put(&object).await
            }
            (false, None) => {
                self.theirs.create(&by(), &self.copy(&object, name)).await.map(drop).map_err(text)
            }
        }
    }

    async fn put(&self, object: &DynamicObject) -> Result<(), String> {
        self.ours.replace(&object.name_any(), &by(), object).await.map(drop).map_err(text)
    }

    /// What it creates.
    fn copy(&self, object: &DynamicObject, name: String) -> DynamicObject {
        let (types, data) = (object.types.clone(), object.data.clone());
        let mut copy = DynamicObject { types, data, metadata: ObjectMeta::default() };
        copy.data.as_object_mut().unwrap().remove("status");
        copy.metadata.labels.clone_from(&object.metadata.labels);
        copy.metadata.annotations.clone_from(&object.metadata.annotations);
        let marks = [
            ("cluster-namespace", self.cns.to_owned()),
            ("consumer-namespace", object.namespace().unwrap_or_default()),
            ("consumer-uid", object.uid().unwrap_or_default()),
        ];
        let marks = marks.into_iter().map(|(key, value)| (format!("kube-bind.io/{key}"), value));
        copy.annotations_mut().extend(marks);
        copy.metadata.owner_references = serde_json::from_value(self.owner.clone()).unwrap();
        copy.metadata.name = Some(name);
        copy
    }
}

/// It writes the whole object for its annotations, and then the status.
pub(super) async fn status_down(
    ours: &Api<DynamicObject>,
    mut object: DynamicObject,
    copy: &DynamicObject,
) -> Result<(), String> {
    let name = object.name_any();
    let marks = [
        ("kube-bind.io/provider-namespace", copy.namespace().unwrap_or_default()),
        ("kube-bind.io/provider-uid", copy.uid().unwrap_or_default()),
    ];
    if marks.iter().any(|(key, value)| object.annotations().get(*key) != Some(value)) {
        object.annotations_mut().extend(marks.map(|(key, value)| (key.to_owned(), value)));
        object = ours.replace(&name, &by(), &object).await.map_err(text)?;
    }
    if object.data.get("status") != copy.data.get("status") {
        object.data["status"] = copy.data["status"].clone();
        ours.replace_status(&name, &by(), &object).await.map_err(text)?;
    }
    Ok(())
}

/// Without preconditions.
pub(super) async fn delete(api: &Api<DynamicObject>, object: &DynamicObject) -> Result<(), String> {
    let deleted = api.delete(&object.name_any(), &DeleteParams::default()).await;
    deleted.map(drop).map_err(text)
}

/// An error in words: the next pass begins again, as Go's does.
pub(super) fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

pub(super) fn by() -> PostParams {
    PostParams { field_manager: Some("konnector".to_owned()), dry_run: false }
}
