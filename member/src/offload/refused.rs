//! Pods of this cluster that are refused at virtual nodes, by home or host: what the NamespaceOffloading of their Namespace says of them.

use std::collections::{BTreeMap, BTreeSet};

use api::{
    condition::{Status, Verdict},
    offload::{
        names::virtual_node,
        namespace::{PODS_ACCEPTED, PODS_REFUSED},
        pod_status::{ACCEPTED, PodState},
    },
    view::shortened,
    words::first_names,
};
use kit::index::Shared;

/// Most bytes of why a Pod is refused, of which one is quoted for each Namespace.
const WHY_MAX: usize = 300;

/// A Pod that is refused.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Refusal {
    /// Its Namespace.
    pub(crate) namespace: String,
    /// Its name.
    pub(crate) pod: String,
    /// The cluster whose virtual node it is bound to.
    pub(crate) host: String,
    /// Why, in a sentence.
    pub(crate) why: String,
}

impl Refusal {
    /// Of a Pod that says this; none if it is not refused.
    pub(crate) fn of(state: &PodState, (namespace, pod): (&str, &str), host: &str) -> Option<Self> {
        let refused = |type_: &str, status: &str| type_ == ACCEPTED && status == "False";
        let condition = state.conditions.iter().find(|it| refused(&it.type_, &it.status))?;
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let why = format!("{}: {}", text(&condition.reason), text(&condition.message));
        Some(Self::new((namespace, pod), host, why))
    }

    /// Of a Pod for which an API server refuses a write, in its words.
    pub(crate) fn of_write(words: &str, at: (&str, &str), host: &str) -> Self {
        Self::new(
            at,
            host,
            format!("WriteRefused: an API server refuses what freeport-member writes for it: {words}"),
        )
    }

    fn new((namespace, pod): (&str, &str), host: &str, why: String) -> Self {
        Self {
            namespace: namespace.to_owned(),
            pod: pod.to_owned(),
            host: host.to_owned(),
            why: shortened(why, WHY_MAX),
        }
    }
}

/// All Pods that are refused. Cloning shares it.
#[derive(Clone, Default)]
pub(crate) struct Refused(Shared<Known>);

#[derive(Default)]
struct Known {
    by_uid: BTreeMap<String, Refusal>,
    by_namespace: BTreeMap<String, BTreeSet<String>>,
    /// Hosts all of whose Pods were looked at.
    seen: BTreeSet<String>,
}

impl Known {
    fn note(&mut self, uid: &str, refusal: Option<Refusal>) -> Option<String> {
        let before = self.by_uid.get(uid);
        if before == refusal.as_ref() {
            return None;
        }
        let namespace = before.or(refusal.as_ref())?.namespace.clone();
        let uids = self.by_namespace.entry(namespace.clone()).or_default();
        match refusal {
            Some(refusal) => {
                uids.insert(uid.to_owned());
                self.by_uid.insert(uid.to_owned(), refusal);
            }
            None => {
                uids.remove(uid);
                self.by_uid.remove(uid);
            }
        }
        self.by_namespace.retain(|_, uids| !uids.is_empty());
        Some(namespace)
    }
}

impl Refused {
    /// Notes whether a Pod is refused. The Namespace of which something else is to be said now.
    pub(crate) fn note(&self, uid: &str, refusal: Option<Refusal>) -> Option<String> {
        self.0.with(|known| known.note(uid, refusal))
    }

    /// All Pods at the virtual node of this host were looked at.
    pub(crate) fn saw(&self, host: &str) {
        self.0.with(|known| known.seen.insert(host.to_owned()));
    }

    /// Nobody looks at the Pods of this host any more.
    pub(crate) fn forget(&self, host: &str) -> Vec<String> {
        self.0.with(|known| {
            known.seen.remove(host);
            let all = known.by_uid.iter().filter(|(_, refusal)| refusal.host == host);
            let uids: Vec<_> = all.map(|(uid, _)| uid.clone()).collect();
            uids.iter().filter_map(|uid| known.note(uid, None)).collect()
        })
    }

    /// What there is to say of a Namespace, and whether that is all, given the `hosts` that may have Pods of it.
    pub(crate) fn verdict<'a>(
        &self,
        namespace: &str,
        mut hosts: impl Iterator<Item = &'a String>,
    ) -> (Option<Verdict>, bool) {
        self.0.with(|known| {
            let uids = known.by_namespace.get(namespace).into_iter().flatten();
            let refused: BTreeSet<_> = uids.filter_map(|uid| known.by_uid.get(uid)).collect();
            (said(&refused), hosts.all(|host| known.seen.contains(host)))
        })
    }
}

fn said(refused: &BTreeSet<&Refusal>) -> Option<Verdict> {
    let Refusal { namespace, pod, host, why } = refused.first()?;
    let names: Vec<_> = refused.iter().map(|refusal| &refusal.pod).collect();
    let about = match names.as_slice() {
        [_] => format!("Pod {pod} is refused and does not run"),
        names => format!("Pods {} are refused and do not run; {pod}", first_names(names)),
    };
    let node = virtual_node(host);
    let message =
        format!("{about} at virtual Node {node}: {why}; see `kubectl -n {namespace} describe pod {pod}`");
    Some(Verdict::new(PODS_ACCEPTED, Status::False, PODS_REFUSED, message))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refusal(pod: &str, host: &str) -> Refusal {
        let state = json!({"conditions": [{
            "type": ACCEPTED, "status": "False", "reason": "OffloadingRefused", "message": "spec.volumes[c].configMap",
        }]});
        Refusal::of(&serde_json::from_value(state).unwrap(), ("shop", pod), host).unwrap()
    }

    #[test]
    fn refused_pods_are_named_up_to_three() {
        let (refused, hosts) = (Refused::default(), ["east".to_owned()]);
        let message =
            |refused: &Refused| refused.verdict("shop", hosts.iter()).0.map(|verdict| verdict.message);
        assert_eq!(message(&refused), None);
        for (number, pod) in ["web-2", "web-1", "web-4", "web-3", "web-5"].into_iter().enumerate() {
            let changed = refused.note(pod, Some(refusal(pod, "east")));
            assert_eq!(changed.as_deref(), Some("shop"));
            let said = message(&refused).unwrap();
            match number {
                0 => assert!(said.starts_with("Pod web-2 is refused and does not run at virtual Node freeport-east: Offl"), "{said}"),
                4 => assert!(said.starts_with("Pods web-1, web-2, web-3 and 2 more are refused and do not run; web-1 at virtual Node"), "{said}"),
                _ => {}
            }
        }
        assert_eq!(refused.note("web-1", Some(refusal("web-1", "east"))), None, "nothing new");
        assert_eq!(refused.note("web-1", None).as_deref(), Some("shop"));
        assert!(message(&refused).unwrap().contains("web-2, web-3, web-4 and 1 more"));
        refused.forget("east");
        assert_eq!(message(&refused), None);
        assert_eq!(Refusal::of(&PodState::default(), ("shop", "web"), "east"), None);
    }

    #[test]
    fn what_is_said_is_all_when_the_pods_of_each_host_were_seen() {
        let (refused, hosts) = (Refused::default(), ["east".to_owned(), "north".to_owned()]);
        let is_all = |refused: &Refused| refused.verdict("shop", hosts.iter()).1;
        refused.saw("east");
        assert!(!is_all(&refused));
        refused.saw("north");
        assert!(is_all(&refused));
        refused.forget("north");
        assert!(!is_all(&refused));
    }
}
