//! The API server itself finds nothing wrong with the policies.

use e2e::waiting::eventually;
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use kube::Api;

use crate::rights::parties::shared;

/// Expressions are checked against every kind a policy looks at, by kube-controller-manager, a moment after it appears.
#[test]
fn every_expression_type_checks() {
    shared(async |parties| {
        let cluster = parties.world.leader();
        let policies = Api::<ValidatingAdmissionPolicy>::all(cluster.client.clone());
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
    });
}
