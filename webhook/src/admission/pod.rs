//! What a review looks at of a Pod, and whether the Pod can travel. All else, which is most of it, is not decoded: a text of three megabytes
//! may become hundreds.

use api::{
    offload::travel::{CannotTravel, content, read_spec},
    view::weight,
};
use serde::Deserialize;
use serde_json::{Map, Value, json, value::RawValue};

/// Most memory that what is looked at may take, in bytes.
const LOOKED_AT_MAX: usize = 4 << 20;

/// It takes more.
#[derive(Debug, thiserror::Error)]
#[error(
    "the Pod is too large: shorten its owners, labels, annotations, affinity and tolerations, {0} bytes in memory of at most {LOOKED_AT_MAX}"
)]
pub(crate) struct TooLarge(usize);

#[derive(Deserialize, Default)]
#[serde(default)]
struct Pod<'a> {
    #[serde(borrow)]
    metadata: Option<&'a RawValue>,
    #[serde(borrow)]
    spec: Option<&'a RawValue>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Metadata<'a> {
    #[serde(borrow)]
    annotations: Option<&'a RawValue>,
    #[serde(borrow)]
    labels: Option<&'a RawValue>,
    #[serde(borrow)]
    owner_references: Option<&'a RawValue>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Spec<'a> {
    #[serde(borrow)]
    affinity: Option<&'a RawValue>,
    #[serde(borrow)]
    node_name: Option<&'a RawValue>,
    #[serde(borrow)]
    runtime_class_name: Option<&'a RawValue>,
    #[serde(borrow)]
    tolerations: Option<&'a RawValue>,
}

/// A Pod that is to be created.
#[derive(Debug, PartialEq)]
pub(crate) struct NewPod {
    /// What [`review`](api::offload::review::review) looks at; nothing of what is no Pod.
    pub(crate) looked_at: Value,
    /// Why it cannot run in another cluster, if it cannot.
    pub(crate) cannot_travel: Option<CannotTravel>,
}

/// What there is to know of a new Pod.
pub(super) fn read_pod(object: Option<&RawValue>) -> Result<NewPod, TooLarge> {
    let looked_at = looked_at(object)?;
    let spec = object.and_then(|object| serde_json::from_str::<Pod<'_>>(object.get()).ok()?.spec);
    let travels = |spec: &RawValue| {
        content(&json!({"metadata": looked_at.get("metadata"), "spec": read_spec(spec.get())?}))
    };
    Ok(NewPod { cannot_travel: spec.and_then(|spec| travels(spec).err()), looked_at })
}

fn looked_at(object: Option<&RawValue>) -> Result<Value, TooLarge> {
    let Some((of_metadata, of_spec)) = object.and_then(parts) else { return Ok(Value::Null) };
    let all = of_metadata.iter().chain(&of_spec).filter_map(|(_, part)| *part);
    let weight: usize = all.map(|part| weight(part.get())).sum();
    if weight > LOOKED_AT_MAX {
        return Err(TooLarge(weight));
    }
    let read = read(&of_metadata).zip(read(&of_spec));
    Ok(read.map_or(Value::Null, |(metadata, spec)| json!({"metadata": metadata, "spec": spec})))
}

type Part<'a> = (&'static str, Option<&'a RawValue>);

fn parts(object: &RawValue) -> Option<([Part<'_>; 3], [Part<'_>; 4])> {
    let Pod { metadata, spec } = serde_json::from_str(object.get()).ok()?;
    let metadata: Metadata<'_> =
        metadata.map_or(Some(Metadata::default()), |part| serde_json::from_str(part.get()).ok())?;
    let spec: Spec<'_> = serde_json::from_str(spec.filter(|part| part.get().starts_with('{'))?.get()).ok()?;
    let of_metadata = [
        ("annotations", metadata.annotations),
        ("labels", metadata.labels),
        ("ownerReferences", metadata.owner_references),
    ];
    let of_spec = [
        ("affinity", spec.affinity),
        ("nodeName", spec.node_name),
        ("runtimeClassName", spec.runtime_class_name),
        ("tolerations", spec.tolerations),
    ];
    Some((of_metadata, of_spec))
}

/// The fields that are there; nothing where one nests too deep.
fn read(parts: &[Part<'_>]) -> Option<Map<String, Value>> {
    let there = parts.iter().filter_map(|(field, part)| Some((*field, (*part)?)));
    there.map(|(field, part)| Some((field.to_owned(), serde_json::from_str(part.get()).ok()?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(metadata: &str, spec: &str) -> Result<Value, TooLarge> {
        let object = format!(r#"{{"metadata": {{{metadata}}}, "spec": {{{spec}}}}}"#);
        looked_at(Some(&RawValue::from_string(object).unwrap()))
    }

    /// Issue 14, A4.
    #[test]
    fn a4_of_a_pod_no_more_is_decoded_than_is_looked_at() {
        let dense = format!("[{}{{}}]", r#"{"a":0},"#.repeat(180_000));
        let looked_at = r#""nodeName": "n", "affinity": null, "tolerations": [{"key": "k"}]"#;
        let large = of(r#""uid": "u""#, &format!(r#""containers": [{{"env": {dense}}}], {looked_at}"#));
        let pod = json!({"metadata": {}, "spec": {"nodeName": "n", "tolerations": [{"key": "k"}]}});
        assert_eq!(large.unwrap(), pod);
        for field in ["tolerations", "affinity", "nodeName", "runtimeClassName"] {
            assert!(of("", &format!(r#""{field}": {dense}"#)).is_err(), "{field}");
        }
        for field in ["annotations", "labels", "ownerReferences"] {
            assert!(of(&format!(r#""{field}": {dense}"#), "").is_err(), "{field}");
        }
    }

    #[test]
    fn what_is_no_pod_has_no_spec() {
        for odd in [
            "7",
            "[]",
            r#"{"spec": 7}"#,
            r#"{"spec": []}"#,
            "null",
            r#"{"spec": {"affinity": 1, "affinity": 2}}"#,
        ] {
            let object = RawValue::from_string(odd.to_owned()).unwrap();
            assert_eq!(looked_at(Some(&object)).unwrap(), Value::Null, "{odd}");
        }
    }

    #[test]
    fn what_the_exchange_of_pods_refuses_cannot_travel() {
        let why = |spec: &str| {
            let pod = RawValue::from_string(format!(r#"{{"metadata": {{}}, "spec": {spec}}}"#)).unwrap();
            read_pod(Some(&pod)).unwrap().cannot_travel.map(|why| why.to_string()).unwrap_or_default()
        };
        assert_eq!(
            why(
                r#"{"containers": [{"name": "c", "image": "a"}], "volumes": [{"name": "v", "emptyDir": {}}]}"#
            ),
            ""
        );
        let config = why(r#"{"volumes": [{"name": "web", "configMap": {"name": "web"}}]}"#);
        assert!(config.starts_with("spec.volumes[web].configMap does not travel"), "{config}");
        let from = why(r#"{"containers": [{"name": "c", "envFrom": [{"secretRef": {"name": "s"}}]}]}"#);
        assert!(from.starts_with("spec.containers[c].envFrom"), "{from}");
        // Long texts are not decoded.
        let long = format!(r#"{{"containers": [{{"env": [{}{{}}]}}]}}"#, r#"{"a":0},"#.repeat(180_000));
        assert!(why(&long).starts_with("its spec has"), "{}", why(&long));
    }
}
