//! What the leader needs once in its cluster, whatever the number of ClusterSets it leads.

use api::{crd, label, name::MEMBERS_LEVEL};
use k8s_openapi::api::core::v1::EnvVar;
use kube::ResourceExt;

use super::{
    Object, SYSTEM, daemon_account, deployment, fairness, observer, policy,
    rights::{
        Account, CORE, EXTENSIONS, FLOW_CONTROL, READ, elects, everywhere, inside, report, rule, rule_on,
    },
    system_namespace,
};

/// The leader's ServiceAccount.
pub(super) const ACCOUNT: Account<'static> = Account { namespace: SYSTEM, name: label::LEADER };

/// Namespace, ServiceAccount, the right to find Common Areas by their label, the policy that keeps members to their
/// own records in all of them, and how much of the API server they get. Rights in a Common Area come with that
/// area, so that one without them does not stop the others.
pub fn objects() -> Vec<Object> {
    let mut objects = vec![system_namespace(), daemon_account(ACCOUNT.name)];
    let crds: Vec<_> = crd::records().iter().map(ResourceExt::name_any).collect();
    let crds: Vec<_> = crds.iter().map(String::as_str).collect();
    let rights = vec![
        rule(CORE, "namespaces", READ),
        rule_on(EXTENSIONS, "customresourcedefinitions", &crds, READ),
        rule_on(FLOW_CONTROL, "prioritylevelconfigurations", &[MEMBERS_LEVEL], &["get", "patch"]),
    ];
    let own = elects(ACCOUNT.name).into_iter().chain([report()]).collect();
    objects.extend(everywhere(&ACCOUNT, rights));
    objects.extend(inside(SYSTEM, &ACCOUNT, own));
    objects.push(observer::in_cluster());
    objects.extend(policy());
    objects.push(fairness::level());
    objects
}

/// What keeps members to their own records: policy `freeport-records` and its binding.
pub fn policy() -> [Object; 2] {
    policy::records::objects()
}

/// All that runs the leader inside its cluster: so many Pods, and who may reach them. `told` is what it is told of API binding.
pub fn workload(image: &str, replicas: i32, told: &[EnvVar]) -> Vec<Object> {
    deployment::workload(ACCOUNT.name, image, replicas, told)
}
