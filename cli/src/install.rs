//! Applies objects to a cluster, one by one, and says what changed.

mod binding;
mod crds;
mod credential;
mod daemon;

use std::{
    collections::HashSet,
    time::{Duration, Instant},
};

use api::label;
use kube::{
    Api, ResourceExt,
    api::{Patch, PatchParams},
};
use serde_json::Value;

use crate::{
    Daemons, Error,
    cluster::Cluster,
    dynamic::Dynamic,
    objects::Object,
    run::{Part, Run},
};

/// Field manager of everything the command line writes.
pub(crate) const MANAGER: &str = label::INSTALLER;

/// Pause between two reads of something that is waited for.
const PAUSE: Duration = Duration::from_millis(200);

/// Installs into one cluster.
pub(crate) struct Installer<'a> {
    pub(crate) cluster: &'a Cluster,
    /// How it is done.
    pub(crate) run: &'a Run,
    say: &'a mut (dyn FnMut(&str) + Send),
    /// Objects that this run has applied: the lists of leader and member overlap.
    done: HashSet<String>,
    /// Number of objects that were as they should be, and are not reported yet.
    unchanged: usize,
}

impl<'a> Installer<'a> {
    pub(crate) fn new(cluster: &'a Cluster, run: &'a Run, say: &'a mut (dyn FnMut(&str) + Send)) -> Self {
        Self { cluster, run, say, done: HashSet::new(), unchanged: 0 }
    }

    /// Reports one thing done in this cluster.
    pub(crate) fn say(&mut self, line: &str) {
        (self.say)(&format!("{}: {line}", self.cluster.name));
    }

    /// Reports an object that was applied, now if that changed something, else with [`sum_up`](Self::sum_up).
    fn applied(&mut self, outcome: Option<String>, object: &Object) {
        match outcome {
            Some(outcome) => self.say(&format!("{outcome} {object}")),
            None => self.unchanged += 1,
        }
    }

    /// Reports how many objects were as they should be: in one line, before what takes time or at the end.
    pub(crate) fn sum_up(&mut self) {
        match std::mem::take(&mut self.unchanged) {
            0 => {}
            1 => self.say("1 object was already as it should be"),
            several => self.say(&format!("{several} objects were already as they should be")),
        }
    }

    /// Passes text on as it is: a document, or a comment between documents.
    pub(crate) fn say_plainly(&mut self, text: &str) {
        (self.say)(text);
    }

    /// Whether to wait for the daemon of a part.
    pub(crate) fn is_to_wait(&self, part: Part) -> bool {
        let inside = matches!(self.run.daemons, Daemons::Inside { .. });
        inside && self.run.wait && !self.run.dry_run && self.run.does(part)
    }

    /// Applies the `objects` of a part in their order, each once in this run, if the part is wanted.
    pub(crate) async fn install(&mut self, part: Part, objects: &[Object]) -> Result<(), Error> {
        if !self.run.does(part) {
            return Ok(());
        }
        for object in objects {
            if !self.is_first(object) {
                continue;
            }
            if self.run.dry_run {
                self.print(object)?;
            } else {
                let outcome = self.apply(object).await?;
                self.applied(outcome, object);
            }
        }
        Ok(())
    }

    /// Whether this run has not applied the object yet. Notes it as applied.
    fn is_first(&mut self, object: &Object) -> bool {
        self.done.insert(object.to_string())
    }

    /// Passes the object on as a YAML document.
    fn print(&mut self, object: &Object) -> Result<(), Error> {
        let yaml = object.yaml().map_err(|source| Error::Yaml { object: object.to_string(), source })?;
        (self.say)(&format!("---\n# cluster: {}\n{}", self.cluster.name, yaml.trim_end()));
        Ok(())
    }

    /// Calls `probe` until it has an answer. `missing` is the message of the error when the time is up.
    pub(crate) async fn until<T>(
        &self,
        missing: &str,
        probe: impl AsyncFn(&Cluster) -> Result<Option<T>, Error>,
    ) -> Result<T, Error> {
        let start = Instant::now();
        loop {
            if let Some(answer) = probe(self.cluster).await? {
                return Ok(answer);
            }
            if start.elapsed() >= self.run.timeout {
                return Err(Error::Timeout {
                    cluster: self.cluster.name.clone(),
                    missing: missing.into(),
                    limit: self.run.timeout,
                });
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Server-side apply, forced only on what is ours. An object that somebody else made gets our fields but not our
    /// label, and a field with another value is an error. What the administrator chose is kept: see
    /// `binding`. Returns what was done; none if the object was as it should be.
    pub(crate) async fn apply(&self, object: &Object) -> Result<Option<String>, Error> {
        let api = self.api(object);
        let before = self.cluster.request(format!("read {object}"), api.get_opt(&object.name)).await?;
        let foreign = before.as_ref().is_some_and(|found| !is_labelled(found.labels()));

        let (mut body, params) = if foreign {
            (without_label(&object.body), PatchParams::apply(MANAGER))
        } else {
            (object.body.clone(), PatchParams::apply(MANAGER).force())
        };
        if let Some(there) = &before {
            binding::keep_raised(&mut body, there);
        }
        let kept = before.as_ref().and_then(|there| binding::keep_choice(&mut body, there));
        let doing = if foreign {
            format!("change {object}, which somebody else made")
        } else {
            format!("apply {object}")
        };
        let after =
            self.cluster.request(doing, api.patch(&object.name, &params, &Patch::Apply(&body))).await?;

        Ok(match (before.map(content), kept) {
            (None, _) => Some("created".into()),
            (Some(_), Some(choice)) => Some(format!("kept {choice} of")),
            (Some(before), None) if before == content(after) => None,
            (Some(_), None) => Some("changed".into()),
        })
    }

    fn api(&self, object: &Object) -> Api<Dynamic> {
        self.cluster.api(&object.resource, object.namespace.as_deref())
    }
}

/// The object without status and without the bookkeeping of the API server.
fn content(mut object: Dynamic) -> Dynamic {
    object.0.metadata.resource_version = None;
    if let Some(fields) = object.0.data.as_object_mut() {
        fields.remove("status");
    }
    object
}

fn is_labelled(labels: &std::collections::BTreeMap<String, String>) -> bool {
    labels.get(label::MANAGED_BY).is_some_and(|value| value == label::FREEPORT)
}

fn without_label(body: &Value) -> Value {
    let mut body = body.clone();
    if let Some(labels) = body.pointer_mut("/metadata/labels").and_then(Value::as_object_mut) {
        labels.remove(label::MANAGED_BY);
    }
    body
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn who_owns_a_field_is_not_what_an_object_says() {
        let object = |version: &str, manager: &str, label: &str, status: i32| -> Dynamic {
            serde_json::from_value(json!({
                "apiVersion": "v1",
                "kind": "Namespace",
                "metadata": {
                    "name": "demo",
                    "resourceVersion": version,
                    "managedFields": [{"manager": manager}],
                    "labels": {"l": label},
                },
                "status": status,
            }))
            .unwrap()
        };
        let ours = content(object("2", MANAGER, "x", 2));
        assert_eq!(content(object("1", "kubectl-client-side-apply", "x", 1)), ours);
        assert_ne!(content(object("1", "kubectl-client-side-apply", "y", 1)), ours);
    }
}
