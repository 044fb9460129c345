//! Everything a cluster holds, of every kind it can list: what is compared before and after.

use std::{cell::RefCell, collections::BTreeMap, time::Duration};

use e2e::waiting::eventually;
use serde_json::Value;

use crate::cli::clusters::Clusters;

/// Kinds that change by themselves.
const RESTLESS: [&str; 3] = ["events", "events.events.k8s.io", "componentstatuses"];

/// Namespaces with Leases of Kubernetes itself, which change all the time.
const RENEWED: [&str; 2] = ["kube-system", "kube-node-lease"];

/// Objects by `apiVersion/Kind namespace/name`, without versions and notes about who wrote which field.
#[derive(Clone, PartialEq)]
pub(crate) struct Contents(pub BTreeMap<String, Value>);

impl Contents {
    pub(crate) async fn of(clusters: &Clusters, cluster: &str) -> Result<Self, String> {
        let kinds =
            clusters.kubectl(&format!("--context {cluster} api-resources --verbs=list -o name")).await;
        let kinds = kinds.succeeded();
        let kinds: Vec<_> = kinds.lines().filter(|kind| !RESTLESS.contains(kind)).collect();
        let got = format!("--context {cluster} get {} --all-namespaces -o json", kinds.join(","));
        let got = clusters.kubectl(&got).await;
        if got.code != Some(0) {
            // A kind may go between the two.
            return Err(got.to_string());
        }
        let list: Value = serde_json::from_str(&got.stdout).map_err(|error| error.to_string())?;
        let objects = list["items"].as_array().unwrap().iter().filter(|object| !is_renewed(object));
        Ok(Self(objects.map(|object| (name(object), settled(object.clone()))).collect()))
    }

    /// Once Kubernetes has made all that it makes by itself in a new cluster.
    pub(crate) async fn at_rest(clusters: &Clusters, cluster: &str) -> Self {
        let before = RefCell::new(Self(BTreeMap::new()));
        eventually(&format!("{cluster} is at rest"), || async {
            let now = Self::of(clusters, cluster).await?;
            let changing = now.same_as(&before.replace(now.clone()));
            // The caller looks again at once, and what changes by itself does so within this.
            tokio::time::sleep(Duration::from_secs(3)).await;
            changing.map(|()| now)
        })
        .await
    }

    /// What is there and was not before, what went, and what is another.
    pub(crate) fn differences(&self, before: &Self) -> Vec<String> {
        let mut differences = Vec::new();
        for (name, object) in &self.0 {
            match before.0.get(name) {
                None => differences.push(format!("new: {name}")),
                Some(was) if was != object => {
                    differences.push(format!("changed: {name}\nwas {was}\nis {object}"));
                }
                Some(_) => {}
            }
        }
        differences
            .extend(before.0.keys().filter(|name| !self.0.contains_key(*name)).map(|n| format!("gone: {n}")));
        differences
    }

    /// Nothing differs, or what does.
    pub(crate) fn same_as(&self, before: &Self) -> Result<(), String> {
        let differences = self.differences(before);
        if differences.is_empty() { Ok(()) } else { Err(differences.join("\n")) }
    }

    /// Objects of one Namespace that say `word` anywhere.
    pub(crate) fn saying(&self, word: &str, namespace: &str) -> Vec<String> {
        let said = |object: &Value| {
            object["metadata"]["namespace"] == namespace && object.to_string().contains(word)
        };
        self.0
            .iter()
            .filter(|(_, object)| said(object))
            .map(|(name, object)| format!("{name}: {object}"))
            .collect()
    }
}

fn is_renewed(object: &Value) -> bool {
    object["kind"] == "Lease" && RENEWED.iter().any(|namespace| object["metadata"]["namespace"] == *namespace)
}

fn name(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let meta = &object["metadata"];
    format!(
        "{}/{} {}/{}",
        text(&object["apiVersion"]),
        text(&object["kind"]),
        text(&meta["namespace"]),
        text(&meta["name"])
    )
}

fn settled(mut object: Value) -> Value {
    if let Some(meta) = object["metadata"].as_object_mut() {
        meta.remove("resourceVersion");
        meta.remove("managedFields");
    }
    object
}
