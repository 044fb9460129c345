//! The note of our membership: a ConfigMap of the daemon's Namespace, so that leaving is known of, and can go on, whatever
//! happens to the ClusterSet and to us.

use std::collections::BTreeMap;

use api::{
    label,
    membership::{self, Membership},
};
use k8s_openapi::api::core::v1::ConfigMap;
use kit::view::lean;
use kube::{Resource, api::ObjectMeta};
use serde::{Deserialize, Serialize};

/// The ConfigMap as we own it.
#[derive(Resource, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[resource(inherit = ConfigMap)]
pub(super) struct Note {
    #[serde(deserialize_with = "lean")]
    pub metadata: ObjectMeta,
    #[serde(default)]
    pub data: BTreeMap<String, String>,
}

/// How to leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// Withdraw at the leader first.
    Withdraw,
    /// The leader is not asked.
    Force,
}

impl Note {
    /// The note of a membership.
    pub fn of(namespace: &str, membership: &Membership) -> Self {
        let metadata = ObjectMeta {
            name: Some(membership::NAME.into()),
            namespace: Some(namespace.into()),
            labels: Some([(label::MANAGED_BY.to_owned(), label::FREEPORT.to_owned())].into()),
            ..ObjectMeta::default()
        };
        Self { metadata, data: membership.data() }
    }

    /// The same note, saying that the membership is to end.
    pub fn leaving(mut self) -> Self {
        self.data.insert(membership::LEAVE_KEY.into(), membership::LEAVE.into());
        self
    }

    /// What is noted, if it can be read.
    pub fn membership(&self) -> Option<Membership> {
        Membership::from_data(&self.data)
    }

    /// Whether and how to leave. A word we do not know is taken for the way that does less harm.
    pub fn order(&self) -> Option<Order> {
        let word = self.data.get(membership::LEAVE_KEY)?;
        Some(if word == membership::LEAVE_FORCED { Order::Force } else { Order::Withdraw })
    }
}
