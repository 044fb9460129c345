//! Copies of what an import consists of: somebody made them out of ours, and they have our labels. They are nobody's: neither counted nor
//! changed nor deleted, and said once. Pure.
//!
//! An object is ours by its name and by who wrote it. A copy under another name is found where the watch tells of it. One under our name is a
//! copy as long as nobody exports the Service: who exports it makes it the import's own ([`Knowledge`](super::knowledge::Knowledge)).

use std::collections::{BTreeMap, BTreeSet};

use api::{ServiceName, label, name, words::first_names};
use k8s_openapi::api::core::v1::ObjectReference;
use kit::objects::{Change, ObjectName, Streamed};
use kube::{Resource, ResourceExt, core::ObjectMeta};

use super::index::{
    entry::ServiceEntry,
    view::{Service, Slice, is_made},
};

/// Number of copies of one kind that are kept.
const MOST: usize = 100;

/// Reason of what is said of copies.
pub(crate) const COPY: &str = "CopyOfImport";
/// What an Event on a copy says.
pub(crate) const SAID: &str = "this object has the labels of an imported Service, but Freeport did not create it: Freeport neither changes nor \
                               deletes it. If you need it, remove its label app.kubernetes.io/managed-by (of an EndpointSlice also \
                               endpointslice.kubernetes.io/managed-by); otherwise delete it. Until then clients of the imported Service are sent to the \
                               endpoints of a copied EndpointSlice";

/// The copies that there are.
#[derive(Debug, Default)]
pub(crate) struct Copies {
    /// Under other names than ours, by kind.
    renamed: BTreeMap<&'static str, Renamed>,
    /// Under our names, by the Service that they look like an import of.
    unmade: BTreeMap<ServiceName, BTreeSet<(String, String)>>,
}

#[derive(Debug, Default)]
struct Renamed {
    all: BTreeSet<ObjectName>,
    /// Those that were told since the list began, while one is read.
    listed: Option<BTreeSet<ObjectName>>,
}

impl Copies {
    /// Takes in what a watch of this kind told, where `is_copy` finds copies under other names. Returns what is said of for the first time.
    pub(crate) fn hear<P: Resource>(
        &mut self,
        kind: &'static str,
        told: &Streamed<P>,
        is_copy: impl Fn(&P) -> bool,
    ) -> bool {
        let Renamed { all, listed } = self.renamed.entry(kind).or_default();
        match told {
            Streamed::ListBegins => *listed = Some(BTreeSet::new()),
            Streamed::ListEnds => {
                if let Some(listed) = listed.take() {
                    all.retain(|name| listed.contains(name));
                }
            }
            Streamed::Change(Change::Apply(object)) if is_copy(object) => {
                let name = named(object.meta());
                if let Some(listed) = listed.as_mut().filter(|listed| listed.len() < MOST) {
                    listed.insert(name.clone());
                }
                return all.len() < MOST && all.insert(name);
            }
            Streamed::Change(Change::Apply(object) | Change::Remove(object)) => {
                all.remove(&named(object.meta()));
            }
            Streamed::Change(Change::Reset(_)) => {}
        }
        false
    }

    /// Takes in which objects here look like parts of an import of this Service. Reports whether there are others than before.
    pub(crate) fn unmade(&mut self, service: &ServiceName, these: &[ObjectReference]) -> bool {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let these: BTreeSet<_> = these.iter().map(|of| (text(&of.kind), text(&of.name))).collect();
        if these.is_empty() {
            self.unmade.remove(service);
            return false;
        }
        if !self.unmade.contains_key(service) && self.unmade.len() >= MOST {
            return false;
        }
        let before = self.unmade.insert(service.clone(), these);
        before.as_ref() != self.unmade.get(service)
    }

    /// Names the first, as in `EndpointSlice shop/x, Service shop/web-native and 2 more`, each once; none if there is no copy.
    pub(crate) fn named(&self) -> Option<String> {
        let renamed = self.renamed.iter().flat_map(|(kind, of)| {
            of.all.iter().map(move |(namespace, name)| format!("{kind} {namespace}/{name}"))
        });
        let unmade = self.unmade.iter().flat_map(|(service, these)| {
            these.iter().map(|(kind, name)| format!("{kind} {}/{name}", service.namespace))
        });
        // What has our name, and the labels of another import, is both.
        let all: BTreeSet<_> = renamed.chain(unmade).collect();
        (!all.is_empty()).then(|| first_names(all))
    }
}

fn named(metadata: &ObjectMeta) -> ObjectName {
    (metadata.namespace.clone().unwrap_or_default(), metadata.name.clone().unwrap_or_default())
}

/// Whether the Service is a copy of that of an import, under another name.
pub(crate) fn is_renamed_service(service: &Service) -> bool {
    let of = service.labels().get(label::MCS_SERVICE_NAME).filter(|_| has(service, label::MANAGED_BY));
    of.is_some_and(|of| !name::realises(&service.name_any(), of))
}

/// Whether the EndpointSlice is a copy of an imported one, under another name. Kubernetes gives slices that it makes the labels of their
/// Service, and says that it makes them.
pub(crate) fn is_renamed_slice(slice: &Slice) -> bool {
    has(slice, label::SLICE_MANAGED_BY) && name::service_of_slice(&slice.name_any()).is_none()
}

/// The objects under our names that have our labels and were not made by us.
pub(crate) fn unmade(entry: &ServiceEntry) -> Vec<ObjectReference> {
    let import = entry.own_import().filter(|import| !is_made(*import)).map(|import| import.object_ref(&()));
    let derived =
        entry.own_derived().filter(|derived| !is_made(*derived)).map(|derived| derived.object_ref(&()));
    let endpoints = entry.imported_endpoints.iter().filter(|endpoints| !is_made(&***endpoints));
    let slices = entry.imported_slices.values().filter(|slice| !is_made(&***slice));
    let slices = slices.map(|slice| slice.object_ref(&()));
    let endpoints = endpoints.map(|endpoints| endpoints.object_ref(&()));
    import.into_iter().chain(derived).chain(endpoints).chain(slices).collect()
}

fn has<K: Resource>(object: &K, key: &str) -> bool {
    object.labels().get(key).is_some_and(|by| by == label::FREEPORT)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn service(name: &str, managed_by: &str) -> Service {
        let labels = json!({label::MANAGED_BY: managed_by, label::MCS_SERVICE_NAME: "web"});
        serde_json::from_value(json!({"metadata": {"name": name, "namespace": "shop", "labels": labels}}))
            .unwrap()
    }

    #[test]
    fn a_copy_has_our_labels_and_another_name() {
        assert!(is_renamed_service(&service("web-native", label::FREEPORT)));
        assert!(!is_renamed_service(&service("antrea-mc-web", label::FREEPORT)), "ours");
        assert!(!is_renamed_service(&service("web-native", "helm")), "the user's own");
        let slice = |name: &str, managed_by: &str| {
            let labels = json!({label::SLICE_MANAGED_BY: managed_by, label::MANAGED_BY: label::FREEPORT});
            let slice = json!({"metadata": {"name": name, "namespace": "shop", "labels": labels}, "addressType": "IPv4"});
            is_renamed_slice(&serde_json::from_value(slice).unwrap())
        };
        assert!(slice("copy", label::FREEPORT));
        assert!(!slice("web-x", "endpointslice-controller.k8s.io"), "Kubernetes made it");
        assert!(!slice(&name::imported_slice("web", "east.shop.web.slice.0"), label::FREEPORT), "ours");
    }

    #[test]
    fn a_copy_is_said_once_and_named_while_it_is_there() {
        let mut copies = Copies::default();
        let mut hear = |told| {
            let is_news = copies.hear("Service", &told, is_renamed_service);
            (is_news, copies.named())
        };
        let of_web = |name| service(name, label::FREEPORT);
        let native = || of_web("web-native");
        let said = Some("Service shop/web-native".to_owned());
        assert_eq!(hear(Streamed::ListBegins), (false, None));
        assert_eq!(hear(Streamed::Change(Change::Apply(native()))), (true, said.clone()));
        assert_eq!(hear(Streamed::ListEnds), (false, said.clone()));
        assert_eq!(hear(Streamed::Change(Change::Apply(native()))), (false, said.clone()), "once");
        assert_eq!(hear(Streamed::Change(Change::Apply(service("web-native", "helm")))), (false, None));
        assert_eq!(hear(Streamed::Change(Change::Apply(native()))), (true, said.clone()));
        assert_eq!(hear(Streamed::ListBegins), (false, said));
        assert_eq!(hear(Streamed::ListEnds), (false, None), "it went meanwhile");
        let names = |name: &str| {
            let (kind, name) = (Some("Service".to_owned()), Some(name.to_owned()));
            [ObjectReference { kind, name, ..ObjectReference::default() }]
        };
        let web = ServiceName::new("other", "web");
        assert!(copies.unmade(&web, &names("antrea-mc-web")));
        assert!(!copies.unmade(&web, &names("antrea-mc-web")), "once");
        for n in 0..5 {
            copies.unmade(&ServiceName::new("shop", format!("s{n}")), &names(&format!("antrea-mc-s{n}")));
        }
        // It is also what its labels say: a copy under another name.
        copies.hear("Service", &Streamed::Change(Change::Apply(of_web("antrea-mc-s0"))), is_renamed_service);
        assert_eq!(
            copies.named().as_deref(),
            Some(
                "Service other/antrea-mc-web, Service shop/antrea-mc-s0, Service shop/antrea-mc-s1 and 3 more"
            )
        );
        assert!(!copies.unmade(&web, &[]) && !copies.named().unwrap().contains("other"));
    }
}
