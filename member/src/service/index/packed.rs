//! What of a Service nobody reads, in little room.
//!
//! Most Services of a cluster are neither exported nor imported, and together with their endpoints they are most of what a member is told.
//! As compressed text they take much less room (`docs/performance.md`). Nothing is read again when one of them is exported: an export would wait for that.

use std::{collections::BTreeMap, marker::PhantomData, sync::Arc};

use lz4_flex::block::{compress_with_dict, decompress_with_dict};
use serde::{Serialize, de::DeserializeOwned};

use super::view::{Service, Slice};

/// What most Services and EndpointSlices of a cluster say alike.
const ALIKE: &[u8] = br#"{"metadata":{"creationTimestamp":"2026-01-01T00:00:00Z","generation":1,"labels":{"endpointslice.kubernetes.io/managed-by":"endpointslice-controller.k8s.io","kubernetes.io/service-name":"web"},"name":"web-abcde","namespace":"default","resourceVersion":"1000","uid":"00000000-0000-4000-8000-000000000000"},"addressType":"IPv4","endpoints":[{"addresses":["10.244.0.10"],"conditions":{"ready":true,"serving":true,"terminating":false},"hostname":"web-0","zone":"a","nodeName":"node-1","targetRef":{"kind":"Pod","name":"web-5d4c8b7f9-abcde","namespace":"default","uid":"00000000-0000-4000-8000-000000000000"}},{"addresses":["10.244.0.11"],"conditions":{"ready":true,"serving":true,"terminating":false},"nodeName":"node-1","targetRef":{"kind":"Pod","name":"web-0","namespace":"default","uid":"00000000-0000-4000-8000-000000000000"}}],"ports":[{"name":"http","protocol":"TCP","port":8080}]}"spec":{"type":"ClusterIP","clusterIP":"10.96.0.1","clusterIPs":["10.96.0.1"],"ipFamilies":["IPv4"],"ipFamilyPolicy":"SingleStack","sessionAffinity":"None","internalTrafficPolicy":"Cluster","ports":[{"name":"http","port":80,"protocol":"TCP"}]}}"#;

/// The Service of a name, and its EndpointSlices in the order of their names.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Packed {
    service: Option<Text<Service>>,
    slices: Vec<(Box<str>, Text<Slice>)>,
}

impl Packed {
    /// Takes in what was told since. What cannot be packed stays where it is.
    pub(super) fn pack(
        &mut self,
        service: &mut Option<Arc<Service>>,
        slices: &mut BTreeMap<String, Arc<Slice>>,
    ) {
        if let Some(text) = service.as_deref().and_then(Text::of) {
            (self.service, *service) = (Some(text), None);
        }
        slices.retain(|name, slice| {
            let Some(text) = Text::of(&**slice) else { return true };
            match self.at(name) {
                Ok(at) => self.slices[at].1 = text,
                Err(at) => self.slices.insert(at, (name.as_str().into(), text)),
            }
            false
        });
        self.slices.shrink_to_fit();
    }

    /// All of it, but for what was told since.
    pub(super) fn unpack(
        self,
        service: &mut Option<Arc<Service>>,
        slices: &mut BTreeMap<String, Arc<Slice>>,
    ) {
        if service.is_none() {
            *service = self.service.and_then(|text| text.open());
        }
        for (name, text) in self.slices {
            if let Some(slice) = text.open().filter(|_| !slices.contains_key(&*name)) {
                slices.insert(name.into(), slice);
            }
        }
    }

    /// Forgets the Service.
    pub(super) fn forget_service(&mut self) {
        self.service = None;
    }

    /// Forgets an EndpointSlice.
    pub(super) fn forget_slice(&mut self, name: &str) {
        if let Ok(at) = self.at(name) {
            self.slices.remove(at);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.service.is_none() && self.slices.is_empty()
    }

    fn at(&self, name: &str) -> Result<usize, usize> {
        self.slices.binary_search_by(|(known, _)| (**known).cmp(name))
    }
}

/// An object as compressed JSON.
#[derive(Clone, Debug, PartialEq)]
struct Text<T> {
    bytes: Box<[u8]>,
    /// Of the JSON.
    length: u32,
    of: PhantomData<fn() -> T>,
}

impl<T: Serialize + DeserializeOwned> Text<T> {
    fn of(object: &T) -> Option<Self> {
        let json = serde_json::to_vec(object).ok()?;
        let length = u32::try_from(json.len()).ok()?;
        Some(Self { bytes: compress_with_dict(&json, ALIKE).into(), length, of: PhantomData })
    }

    fn open(&self) -> Option<Arc<T>> {
        let json = decompress_with_dict(&self.bytes, self.length as usize, ALIKE).ok()?;
        serde_json::from_slice(&json).ok().map(Arc::new)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn slice(endpoints: usize) -> Arc<Slice> {
        let endpoint = |n: usize| {
            json!({"addresses": [format!("10.244.{}.{}", n / 200, n % 200)], "nodeName": format!("node-{}", n % 9),
                "conditions": {"ready": !n.is_multiple_of(7), "serving": true, "terminating": false}, "zone": "a",
                "targetRef": {"kind": "Pod", "name": format!("web-5d4c8b7f9-{n:05x}"), "namespace": "shop",
                    "uid": format!("{n:08x}-7d1b-4c1f-9a55-{:012x}", n * 7919)}})
        };
        let endpoints: Vec<Value> = (0..endpoints).map(endpoint).collect();
        let labels = json!({"kubernetes.io/service-name": "web", "app": "web"});
        let metadata = json!({"name": "web-x7k2p", "namespace": "shop", "resourceVersion": "77", "uid": "u", "labels": labels});
        let slice = json!({"metadata": metadata, "addressType": "IPv4", "endpoints": endpoints,
            "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}]});
        Arc::new(serde_json::from_value(slice).unwrap())
    }

    #[test]
    fn what_was_packed_is_as_it_was_and_what_was_told_since_counts() {
        let service = json!({"metadata": {"name": "web", "namespace": "shop", "uid": "s", "labels": {"app": "web"}},
            "spec": {"type": "ClusterIP", "clusterIP": "10.96.0.7", "ports": [{"port": 80}], "selector": {"app": "web"}}});
        let service: Arc<Service> = Arc::new(serde_json::from_value(service).unwrap());
        let (mut packed, mut some, mut slices) = (Packed::default(), Some(service.clone()), BTreeMap::new());
        slices.extend([("web-b".to_owned(), slice(10)), ("web-a".to_owned(), slice(1))]);
        packed.pack(&mut some, &mut slices);
        assert!(some.is_none() && slices.is_empty());
        slices.insert("web-a".to_owned(), slice(3));
        packed.forget_slice("web-c");
        packed.clone().unpack(&mut some, &mut slices);
        assert_eq!(some, Some(service));
        assert_eq!(slices, [("web-a".to_owned(), slice(3)), ("web-b".to_owned(), slice(10))].into());

        packed.forget_service();
        packed.forget_slice("web-a");
        packed.forget_slice("web-b");
        assert!(packed.is_empty());
    }

    #[test]
    fn an_endpoint_takes_less_than_a_hundred_bytes() {
        let bytes = |endpoints| Text::of(&*slice(endpoints)).unwrap().bytes.len();
        assert!(bytes(100) < 100 * 100, "{}", bytes(100));
        assert!(bytes(0) < 150, "{}", bytes(0));
    }
}
