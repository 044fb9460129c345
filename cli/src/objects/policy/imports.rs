//! `freeport-imports`: controllers write ServiceImports, users of a Namespace do not.
//!
//! Rights decide who is a controller, not names, so that another implementation and the garbage collector work beside ours: who
//! may write the status of ServiceImports may write the rest of them.

use super::{Check, Policy, Refused, requests};
use crate::objects::{Object, rights::MCS};

/// Name of the policy and of its binding. Without the binding it is off.
pub(crate) const NAME: &str = "freeport-imports";

const IS_CONTROLLER: &str = "
['patch', 'update'].exists(verb,
    authorizer.group('multicluster.x-k8s.io').resource('serviceimports').subresource('status')
        .namespace(request.namespace).check(verb).allowed())";

/// RBAC decides about deletions: the member recreates what is still imported.
pub(crate) fn objects() -> [Object; 2] {
    Policy {
        name: NAME,
        requests: vec![requests(
            MCS,
            &["v1alpha1", "v1beta1"],
            &["serviceimports", "serviceimports/status"],
            &["CREATE", "UPDATE"],
        )],
        conditions: &[],
        namespaces: None,
        variables: &[],
        checks: &[Check {
            holds: IS_CONTROLLER,
            refused: Refused::Forbidden,
            rule: "ServiceImports are written by the member; create a ServiceExport instead",
            says: "
'ServiceImport ' + request.namespace + '/' + object.metadata.name +
' is not for ' + request.userInfo.username +
': ServiceImports are written by the member; create a ServiceExport instead'",
        }],
    }
    .objects()
}
