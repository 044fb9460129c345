//! Somebody with all rights who edits what others made: changes it oddly, takes its labels, deletes it, makes it anew.

use std::{cell::RefCell, collections::BTreeSet};

use api::label::FREEPORT;
use serde_json::{Value, json};

use sim::random::Random;

use super::{Cases, author::request, change, schema::Schemas};
use crate::{cluster::Cluster, fixture::AREA};

/// Objects of one kind in one Namespace.
struct Kind {
    kind: &'static str,
    path: String,
    schemas: Schemas,
}

/// Edits objects in one cluster.
pub struct Editor<'a> {
    cluster: &'a Cluster,
    kinds: Vec<Kind>,
    is_edited: Box<dyn Fn(&Value) -> bool + 'a>,
    /// Paths of what was made anew. Only its labels say that Freeport made it; it keeps them.
    copies: RefCell<BTreeSet<String>>,
}

impl<'a> Editor<'a> {
    /// `kinds` are kind, group and version as in a path, and plural; of their objects in `namespace` those are edited that
    /// `is_edited` selects.
    pub async fn new(
        cluster: &'a Cluster,
        namespace: &str,
        kinds: &[(&'static str, &str, &str)],
        is_edited: impl Fn(&Value) -> bool + 'a,
    ) -> Self {
        let mut all = Vec::new();
        for (kind, group, plural) in kinds {
            let path = format!("{group}/namespaces/{namespace}/{plural}");
            all.push(Kind { kind, path, schemas: Schemas::read(&cluster.client, group).await });
        }
        Self { cluster, kinds: all, is_edited: Box::new(is_edited), copies: RefCell::default() }
    }

    /// Makes the edit of a case, and says which.
    pub async fn edit(&self, cases: Cases, number: u64) {
        let mut random = cases.random(number);
        let kind = random.pick(&self.kinds);
        let listed = self.send("GET", &kind.path, None).await.unwrap();
        let mut objects = listed["items"].as_array().cloned().unwrap_or_default();
        objects.retain(&self.is_edited);
        if objects.is_empty() {
            return;
        }
        let object = random.pick(&objects).clone();
        let path = format!("{}/{}", kind.path, object["metadata"]["name"].as_str().unwrap());
        let (done, what) = match random.below(8) {
            0 => (self.send("DELETE", &path, None).await, "delete".to_owned()),
            1 if is_labelled(&object) || kind.path.contains(AREA) => {
                (self.anew(kind, &path, object).await, "make anew".to_owned())
            }
            2 if !self.is_copy(&path) => self.merge(&path, json!({"metadata": {"labels": null}})).await,
            3 => self.merge(&path, json!({"metadata": {"annotations": null}})).await,
            _ => self.change(&mut random, kind, &path, object).await,
        };
        let shown: String = what.chars().take(400).collect();
        crate::note!("case {number}, {path}: {shown}: {}", if done.is_ok() { "done" } else { "refused" });
    }

    /// Deletes it and creates a copy.
    async fn anew(&self, kind: &Kind, path: &str, mut object: Value) -> Result<Value, kube::Error> {
        self.send("DELETE", path, None).await?;
        self.copies.borrow_mut().insert(path.to_owned());
        for field in ["uid", "resourceVersion", "creationTimestamp", "managedFields"] {
            object["metadata"].as_object_mut().unwrap().remove(field);
        }
        let (api_version, _) = kind.path.split_once("/namespaces").unwrap();
        object["apiVersion"] = json!(api_version.trim_start_matches("apis/").trim_start_matches("api/"));
        object["kind"] = json!(kind.kind);
        self.send("POST", &kind.path, Some(object)).await
    }

    fn is_copy(&self, path: &str) -> bool {
        self.copies.borrow().contains(path)
    }

    async fn change(
        &self,
        random: &mut Random,
        kind: &Kind,
        path: &str,
        mut object: Value,
    ) -> (Result<Value, kube::Error>, String) {
        let before = object.clone();
        let is_copy = self.is_copy(path);
        change::change(random, &kind.schemas, kind.schemas.of(kind.kind), &mut object);
        // Who adds a finalizer keeps the object from going, which is their right.
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.insert("finalizers".into(), before["metadata"]["finalizers"].clone());
            if is_copy {
                metadata.insert("labels".into(), before["metadata"]["labels"].clone());
            }
        }
        // What is said in the Common Area is believed, also that a cluster exports which nobody knows.
        let exporters = |object: &Value| {
            let all = object["spec"]["exporters"].as_array().cloned().unwrap_or_default();
            all.iter().map(|exporter| exporter["clusterID"].clone()).collect::<Vec<_>>()
        };
        let known = exporters(&before);
        if exporters(&object).iter().any(|cluster| !known.contains(cluster)) {
            object["spec"]["exporters"] = before["spec"]["exporters"].clone();
        }
        self.merge(path, difference(&before, &object)).await
    }

    async fn merge(&self, path: &str, patch: Value) -> (Result<Value, kube::Error>, String) {
        let what = patch.to_string();
        (self.send("PATCH", path, Some(patch)).await, what)
    }

    async fn send(&self, method: &str, path: &str, body: Option<Value>) -> Result<Value, kube::Error> {
        request(&self.cluster.client, &[], method, path, body.map(|body| body.to_string())).await
    }
}

/// Whether it says that Freeport made it. Who copies it while it does not makes what is not Freeport's; in the Common Area names say
/// whose an object is.
fn is_labelled(object: &Value) -> bool {
    object["metadata"]["labels"]
        .as_object()
        .is_some_and(|labels| labels.values().any(|value| value == FREEPORT))
}

/// What a merge patch has to say to make `after` of `before`.
fn difference(before: &Value, after: &Value) -> Value {
    let (Some(had), Some(has)) = (before.as_object(), after.as_object()) else { return after.clone() };
    let changed = has.iter().filter(|(key, value)| had.get(*key) != Some(value));
    let changed = changed
        .map(|(key, value)| (key.clone(), had.get(key).map_or(value.clone(), |had| difference(had, value))));
    let gone = had.keys().filter(|key| !has.contains_key(*key)).map(|key| (key.clone(), Value::Null));
    changed.chain(gone).collect()
}
