//! Twins here that no NamespaceMap of their home names, as the member says in its OffloadPeers, and what is to be done about them: pure.

use api::offload::view::OffloadPeerView;
use kube::ResourceExt;

/// A twin here of which its home says nothing any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unmapped {
    /// Name of the Namespace here.
    pub(crate) twin: String,
    /// ID of its home.
    home: String,
    /// Name of the Namespace at home.
    original: String,
}

impl Unmapped {
    /// Those that these OffloadPeers name.
    pub(crate) fn all<'a>(peers: impl IntoIterator<Item = &'a OffloadPeerView>) -> Vec<Self> {
        let of = |peer: &OffloadPeerView| {
            let home = peer.name_any();
            let twins =
                peer.status.0.as_ref().map(|status| status.unmapped_twins.clone()).unwrap_or_default();
            let twins = twins.into_iter();
            twins.map(move |(twin, original)| Self { twin, home: home.clone(), original })
        };
        peers.into_iter().flat_map(of).collect()
    }

    /// What is wrong with it, and what to do.
    pub(crate) fn trouble(&self) -> (String, String) {
        let Self { twin, home, original } = self;
        let what = format!(
            "is the twin of Namespace {original} of cluster {home}, and no NamespaceMap of {home} names it: it stays, and its Pods run on"
        );
        let next = format!(
            "to delete it, with all that is in it, kubectl delete namespace {twin}; to keep it, freeport offload namespace {original} in {home}"
        );
        (what, next)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_twin_that_nobody_asks_for_is_named_with_the_command_that_removes_it() {
        let peer = json!({"metadata": {"name": "west"}, "spec": {}, "status": {"unmappedTwins": {"evil-west": "evil"}}});
        let all = Unmapped::all(&[serde_json::from_value(peer).unwrap()]);
        let [one] = all.as_slice() else { panic!("{all:?}") };
        let (what, next) = one.trouble();
        assert!(what.contains("Namespace evil of cluster west"), "{what}");
        assert!(next.contains("kubectl delete namespace evil-west;"), "{next}");
    }
}
