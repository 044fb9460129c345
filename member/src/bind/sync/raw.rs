//! Objects at the provider, before it is known whether they concern us: in a place that consumers share, others may have put more there than
//! we have memory for. Only what is ours, or would be in our way, is decoded.

use api::{bind::label::CLUSTER_NAMESPACE, view::annotated};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kit::custom::Unkept;
use kube::ResourceExt;
use serde::{Deserialize, Deserializer, de::Error};
use serde_json::{Map, value::RawValue};

use super::entry::{At, There};

/// An object as it came.
#[derive(Clone)]
pub(super) struct Raw {
    metadata: ObjectMeta,
    /// All of it; nothing where it is another consumer's.
    text: Option<Box<RawValue>>,
}

/// Says nothing of the content, which may be secret.
impl std::fmt::Debug for Raw {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Raw").field("name", &self.metadata.name).finish_non_exhaustive()
    }
}

impl Raw {
    /// Without what is of no use to the consumer of this cluster namespace.
    pub(super) fn lightened(self, cluster_namespace: &str) -> Self {
        let is_anothers = |says: &String| says != cluster_namespace;
        match self.annotations().get(CLUSTER_NAMESPACE).is_some_and(is_anothers) {
            true => {
                let says = self.metadata.annotations.unwrap_or_default();
                let says = says.into_iter().filter(|(key, _)| key == CLUSTER_NAMESPACE).collect();
                let metadata = ObjectMeta { annotations: Some(says), labels: None, ..self.metadata };
                Self { metadata, text: None }
            }
            false => self,
        }
    }

    /// What it says.
    pub(super) fn opened(self, at: At) -> There {
        let closed = |metadata, error| There { metadata, content: Map::new(), error, side: At::default() };
        let there = match &self.text {
            Some(text) => serde_json::from_str::<There>(text.get())
                .unwrap_or_else(|error| closed(self.metadata, Some(Unkept::Undecodable(error.to_string())))),
            None => closed(self.metadata, None),
        };
        there.with(at)
    }
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Head {
            #[serde(deserialize_with = "annotated")]
            metadata: ObjectMeta,
        }
        let text = Box::<RawValue>::deserialize(deserializer)?;
        let head: Head = serde_json::from_str(text.get()).map_err(D::Error::custom)?;
        Ok(Self { metadata: head.metadata, text: Some(text) })
    }
}

kit::resource_of_any_kind!(Raw);

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn opened(cluster_namespace: &str) -> There {
        let annotations = json!({CLUSTER_NAMESPACE: cluster_namespace, "note": "n"});
        let metadata = json!({"name": "foo", "uid": "p1", "resourceVersion": "7", "annotations": annotations,
            "managedFields": [{"manager": "kube-bind.io", "operation": "Apply", "time": "99999-01-01T00:00:00Z"}]});
        let object = json!({"metadata": metadata, "spec": {"big": 9_007_199_254_740_993_i64}}).to_string();
        let raw: Raw = serde_json::from_str(&object).unwrap();
        raw.lightened("ours").opened(At::default())
    }

    #[test]
    fn ours_is_as_it_came() {
        let there = opened("ours");
        assert_eq!(there.content["spec"], json!({"big": 9_007_199_254_740_993_i64}));
        assert_eq!(there.annotations()["note"], "n");
        assert_eq!(there.managed_fields()[0].manager.as_deref(), Some("kube-bind.io"));
    }

    #[test]
    fn of_what_is_anothers_only_whose_it_is_is_kept() {
        let there = opened("anothers");
        assert!(there.content.is_empty() && there.managed_fields().is_empty() && there.error.is_none());
        assert_eq!((there.name_any(), there.uid()), ("foo".into(), Some("p1".into())));
        assert_eq!(json!(there.annotations()), json!({CLUSTER_NAMESPACE: "anothers"}));
    }

    proptest::proptest! {
        #[test]
        fn nothing_stops_a_list(odd in odd::anything(&["metadata", "annotations", "managedFields", "spec"])) {
            odd::everywhere::<Raw>(&odd).unwrap();
        }
    }
}
