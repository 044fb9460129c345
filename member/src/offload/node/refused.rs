//! What API servers refuse of that for which the end of a Node waits: condition `WritesAccepted` of the Node, which exists as long as somebody
//! waits for its end. The OffloadPeer may be deleted by then.

use api::{condition::Verdict, offload::names};
use kit::metrics::{Refusals, Request};

/// Returns what is refused of the writes by which the Node of `host` ends, and before it its twins and Pods there.
pub(super) fn refused(refusals: &Refusals, us: &str, host: &str) -> Option<Verdict> {
    refusals.verdict_of(|request| is_about_end(request, us, host))
}

fn is_about_end(request: &Request, us: &str, host: &str) -> bool {
    let name = request.name.as_str();
    match (request.kind.as_str(), request.namespace.as_deref()) {
        ("Node", None) => request.verb == "delete" && names::of_virtual_node(name) == Some(host),
        ("NamespaceMap", Some(_)) => names::of_namespace_map(name) == Some((us, host)),
        ("ShadowPod", Some(_)) => {
            names::of_shadow_pod(name).is_some_and(|(home, to, _)| (home, to) == (us, host))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ends_a_node_is_about_its_host_alone() {
        let is = |kind: &str, namespace: Option<&str>, name: &str| {
            let request = Request {
                area: "".into(),
                part: "",
                cluster: "local",
                verb: "delete".into(),
                group: String::new(),
                kind: kind.into(),
                namespace: namespace.map(str::to_owned),
                name: name.into(),
            };
            is_about_end(&request, "west", "east")
        };
        let area = Some("clusterset-demo");
        assert!(is("Node", None, "freeport-east"));
        assert!(is("NamespaceMap", area, "1.west.east") && is("ShadowPod", area, "1.west.east.u1"));
        assert!(!is("Node", None, "freeport-east-2"), "another host");
        assert!(!is("NamespaceMap", area, "1.east.west"), "its own twins here");
        assert!(!is("ShadowPod", area, "1.west.north.u1") && !is("Namespace", None, "shop-east"));
    }
}
