//! The ServiceAccounts of a Common Area, by whose annotations an administrator says what is different about a member.

use api::view::annotated;
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::{Resource, api::ObjectMeta};
use serde::Deserialize;

/// A ServiceAccount of the Common Area, which a member uses.
#[derive(Resource, Clone, Debug, Deserialize)]
#[resource(inherit = ServiceAccount)]
pub(crate) struct Account {
    #[serde(deserialize_with = "annotated")]
    metadata: ObjectMeta,
}
