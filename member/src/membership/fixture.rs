//! What tests start with.

use api::{
    membership::{Membership, Via, Wire},
    ranges::Ranges,
};
use kit::objects::Change;
use serde_json::{Value, json};

use super::state::MembershipState;
use crate::identity::Target;

/// The state of a member with this ClusterSet, changed by `change`, and its Secret.
pub(super) fn state(change: impl FnOnce(&mut Value)) -> MembershipState {
    let mut set: Value =
        serde_json::from_str(include_str!("../../../api/tests/golden/cluster-set-member.json")).unwrap();
    set["metadata"]["creationTimestamp"] = json!("2026-01-02T00:00:00Z");
    change(&mut set);
    let mut state = MembershipState::default();
    put_set(&mut state, set);
    let secret = json!({"metadata": {"name": "freeport-leader-token"}, "data": {"token": "c2VjcmV0"}});
    state.secrets.change(Change::Apply(serde_json::from_value(secret).unwrap()));
    state
}

pub(super) fn put_set(state: &mut MembershipState, set: Value) {
    state.cluster_sets.change(Change::Apply(serde_json::from_value(set).unwrap()));
}

/// The note of a membership in that ClusterSet.
pub(super) fn noted() -> Membership {
    Membership {
        cluster_set: "demo".into(),
        created: "2026-01-02T00:00:00Z".into(),
        cluster_id: "east".into(),
        common_area: "clusterset-demo".into(),
        server: "https://10.0.0.1:6443".into(),
        secret: "freeport-leader-token".into(),
        via: Via::default(),
        wire: Wire::Freeport,
        ranges: Ranges::default(),
    }
}

/// The leader of that ClusterSet.
pub(super) fn target() -> Target {
    state(|_| {}).noted_target(&noted()).unwrap()
}
