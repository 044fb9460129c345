//! What is kept of objects that consumers write: pure. There may be many, and each as large as an API server takes it.

use std::collections::BTreeMap;

use api::{
    bind::export::{APIServiceExportRequest, APIServiceNamespace},
    view::Tolerant,
};
use kit::objects::{Change, Decoded};
use kube::{Resource, core::ObjectMeta};
use serde::Serialize;

/// What is looked at of one kind.
#[derive(Clone, Copy)]
struct Bounds {
    /// Largest object, without what nobody reads here.
    bytes: usize,
    /// Of one cluster namespace.
    objects: usize,
}

const REQUESTS: Bounds = Bounds { bytes: 64 << 10, objects: 200 };
const NAMESPACES: Bounds = Bounds { bytes: 4 << 10, objects: 5000 };

/// Without parameters, which may be anything.
pub(super) fn requests(
    known: &Decoded<APIServiceExportRequest>,
    change: Change<Tolerant<APIServiceExportRequest>>,
) -> Change<Tolerant<APIServiceExportRequest>> {
    let without_parameters = |mut request: Tolerant<APIServiceExportRequest>| {
        if let Ok(request) = &mut request.object {
            request.spec.parameters = None;
        }
        request
    };
    lean(known, change.map(without_parameters), REQUESTS)
}

pub(super) fn namespaces(
    known: &Decoded<APIServiceNamespace>,
    change: Change<Tolerant<APIServiceNamespace>>,
) -> Change<Tolerant<APIServiceNamespace>> {
    lean(known, change, NAMESPACES)
}

/// The change, with what is kept of its objects.
fn lean<K: Resource + Serialize>(
    known: &Decoded<K>,
    change: Change<Tolerant<K>>,
    bounds: Bounds,
) -> Change<Tolerant<K>> {
    match change {
        Change::Apply(object) => {
            let of = object.metadata.namespace.clone();
            let others = known.iter().filter(|other| other.meta().namespace == of);
            let others = others.filter(|other| other.meta().name != object.metadata.name).count();
            Change::Apply(kept(object, others, bounds))
        }
        Change::Remove(object) => Change::Remove(object),
        Change::Reset(objects) => {
            let mut counts = BTreeMap::<_, usize>::new();
            let kept = objects.into_iter().map(|object| {
                let count = counts.entry(object.metadata.namespace.clone()).or_default();
                let object = kept(object, *count, bounds);
                *count += usize::from(object.object.is_ok());
                object
            });
            Change::Reset(kept.collect())
        }
    }
}

/// Without labels and annotations; nothing of it where it is too large, or there are too many others.
fn kept<K: Resource + Serialize>(object: Tolerant<K>, others: usize, bounds: Bounds) -> Tolerant<K> {
    let within = |mut content: K| {
        let metadata = content.meta_mut();
        (metadata.labels, metadata.annotations) = (None, None);
        let bytes = serde_json::to_vec(&content).map_err(|error| error.to_string())?.len();
        if bytes > bounds.bytes {
            return Err(format!("it has {bytes} bytes, and more than {} are not looked at", bounds.bytes));
        }
        if others >= bounds.objects {
            return Err(format!("its cluster namespace has more than {} of its kind", bounds.objects));
        }
        Ok(content)
    };
    let content = object.object.and_then(within);
    if let Err(why) = &content {
        let (namespace, name) = (object.metadata.namespace.as_deref(), object.metadata.name.as_deref());
        tracing::warn!(namespace, name, why, "not looked at");
    }
    let ObjectMeta { name, namespace, uid, resource_version, .. } = object.metadata;
    let metadata = ObjectMeta { name, namespace, uid, resource_version, ..ObjectMeta::default() };
    Tolerant { metadata, object: content }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn request(name: &str, spec: &Value) -> Tolerant<APIServiceExportRequest> {
        let notes = json!({"note": "x".repeat(100_000)});
        let metadata = json!({"name": name, "namespace": "cns", "uid": name, "resourceVersion": "3", "annotations": notes});
        serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap()
    }

    fn applied(known: &Decoded<APIServiceExportRequest>, spec: &Value) -> Tolerant<APIServiceExportRequest> {
        match requests(known, Change::Apply(request("mango", spec))) {
            Change::Apply(kept) => kept,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_nobody_reads_is_not_kept_and_what_is_too_large_is_not_looked_at() {
        let (known, api) = (Decoded::default(), json!([{"group": "g", "resource": "mm"}]));
        let kept = applied(&known, &json!({"parameters": {"x": "y".repeat(100_000)}, "resources": api}));
        assert!(kept.metadata.annotations.is_none());
        let kept = kept.object.unwrap();
        assert_eq!((kept.spec.parameters, kept.metadata.annotations), (None, None));
        assert_eq!((kept.metadata.uid.as_deref(), kept.spec.resources.len()), (Some("mango"), 1));
        let many: Vec<_> = (0..5000).map(|n| json!({"group": "g", "resource": format!("m{n}")})).collect();
        let kept = applied(&known, &json!({ "resources": many }));
        assert!(kept.object.unwrap_err().contains("65536"));
        assert_eq!(kept.metadata.name.as_deref(), Some("mango"));
    }

    #[test]
    fn of_many_those_that_came_first_are_looked_at() {
        let spec = json!({"resources": []});
        let all = |of: std::ops::Range<usize>| of.map(|n| request(&format!("r{n:03}"), &spec)).collect();
        let mut known = Decoded::default();
        let change = requests(&known, Change::Reset(all(0..REQUESTS.objects + 5)));
        known.change(change);
        assert_eq!(known.iter().count(), REQUESTS.objects);
        assert!(applied(&known, &spec).object.is_err(), "one more");
        let Change::Apply(again) = requests(&known, Change::Apply(request("r000", &spec))) else { panic!() };
        assert!(again.object.is_ok(), "one of them");
        let change = requests(&known, Change::Remove(request("r000", &spec)));
        known.change(change);
        assert!(applied(&known, &spec).object.is_ok(), "there is room");
    }
}
