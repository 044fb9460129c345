//! `freeport-imports`: a ServiceImport is what a controller makes of exports, not what a user of the Namespace writes.
//!
//! Who is a controller is a matter of rights, not of names, so that another implementation beside ours, and the garbage
//! collector, get along: who may write the status of ServiceImports there may write the rest of them.

use super::{Check, Policy, Refused, requests};
use crate::objects::{Object, rights::MCS};

/// Name of the policy and of its binding. Without the binding it is off.
pub(crate) const NAME: &str = "freeport-imports";

const IS_CONTROLLER: &str = "
['patch', 'update'].exists(verb,
    authorizer.group('multicluster.x-k8s.io').resource('serviceimports').subresource('status')
        .namespace(request.namespace).check(verb).allowed())";

/// Deleting stays a matter of rights: the member makes anew what is still imported.
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
