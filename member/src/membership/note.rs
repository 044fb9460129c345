//! The note of our membership: a ConfigMap of the daemon's Namespace. By it the member knows what to leave, whatever happens to
//! the ClusterSet and to the daemon.

use std::collections::BTreeMap;

use api::{
    label,
    membership::{self, Membership},
    view::{decodable, lean},
};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Resource, api::ObjectMeta};
use serde::{Deserialize, Serialize};

/// The ConfigMap as we own it.
#[derive(Resource, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[resource(inherit = ConfigMap)]
pub(super) struct Note {
    #[serde(deserialize_with = "lean")]
    pub(super) metadata: ObjectMeta,
    #[serde(default, deserialize_with = "decodable")]
    pub(super) data: BTreeMap<String, String>,
}

/// How to leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// Withdraw the exports at the leader first.
    Withdraw,
    /// Do not contact the leader.
    Force,
}

impl Note {
    /// The note of a membership.
    pub(super) fn of(namespace: &str, membership: &Membership) -> Self {
        let metadata = ObjectMeta {
            name: Some(membership::NAME.into()),
            namespace: Some(namespace.into()),
            labels: Some([(label::MANAGED_BY.to_owned(), label::FREEPORT.to_owned())].into()),
            ..ObjectMeta::default()
        };
        Self { metadata, data: membership.data() }
    }

    /// The same note with the order to leave.
    pub(super) fn leaving(mut self) -> Self {
        self.data.insert(membership::LEAVE_KEY.into(), membership::LEAVE.into());
        self
    }

    /// The membership, if it can be read.
    pub(super) fn membership(&self) -> Option<Membership> {
        Membership::from_data(&self.data)
    }

    /// The order to leave, if there is one. A value that we do not know counts as the order that does less harm.
    pub(super) fn order(&self) -> Option<Order> {
        let order = self.data.get(membership::LEAVE_KEY)?;
        Some(if order == membership::LEAVE_FORCED { Order::Force } else { Order::Withdraw })
    }
}
