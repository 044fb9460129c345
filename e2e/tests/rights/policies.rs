//! The API server itself finds nothing wrong with the policies.

use e2e::{cluster::Cluster, waiting::eventually};
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use kube::Api;

use crate::rights::parties::shared;

/// Waits until the policy was checked, and fails with what is wrong with it.
pub(super) async fn type_check(cluster: &Cluster, name: &str) {
    let policies = Api::<ValidatingAdmissionPolicy>::all(cluster.client.clone());
    let checked = eventually(&format!("{name} is type-checked"), || async {
        let policy = policies.get(name).await.unwrap();
        let status = policy.status.unwrap_or_default();
        match status.type_checking {
            Some(checked) if status.observed_generation == policy.metadata.generation => Ok(checked),
            _ => Err("no status for this generation".to_owned()),
        }
    })
    .await;
    let warnings = checked.expression_warnings.unwrap_or_default();
    assert!(warnings.is_empty(), "{name}: {warnings:#?}");
}

/// Expressions are checked against every kind a policy looks at, by kube-controller-manager, a moment after it appears.
#[e2e::test]
fn every_expression_type_checks() {
    shared(async |parties| {
        for name in [
            "freeport-records",
            "freeport-imports",
            "freeport-member-own",
            "freeport-import-content",
            "freeport-exports",
            "freeport-offload",
            "freeport-offload-content",
            "freeport-offload-change",
        ] {
            type_check(parties.world.leader(), name).await;
        }
    });
}
