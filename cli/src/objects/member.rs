//! What the member needs in its own cluster.

use api::{
    about,
    cluster_set::{ClusterSet, ClusterSetSpec, LeaderCluster},
    label, membership,
};
use k8s_openapi::api::core::v1::{EnvVar, Secret};

use super::{
    Object, SYSTEM, area, daemon_account,
    deployment::{self, tells},
    observer, policy,
    rights::{
        ABOUT, ALL, ANTREA, Account, CHANGE, COORDINATION, CORE, DISCOVERY, EXTENSIONS, MCS, NETWORKING, OWN,
        READ, READ_AND_CREATE, aggregated, elects, everywhere, inside, inside_as, report, rule, rule_on,
    },
    system_namespace, within,
};

/// CRDs of what a member reads and writes: it looks at them before it acts on the absence of their objects, reports which fields they
/// lack, and reads their objects again when they change.
const CRDS: [&str; 4] = [
    "clusterclaims.multicluster.crd.antrea.io",
    "clustersets.multicluster.crd.antrea.io",
    "serviceexports.multicluster.x-k8s.io",
    "serviceimports.multicluster.x-k8s.io",
];

/// The member's ServiceAccount.
pub(super) const ACCOUNT: Account<'static> = Account { namespace: SYSTEM, name: label::MEMBER };

/// Namespace, ServiceAccount, rights on Services and their slices everywhere, on Secrets in its own Namespace only; what
/// users of a Namespace may do there, and the policies for the member, ServiceImports and ServiceExports.
pub fn objects() -> Vec<Object> {
    let cluster = vec![
        rule(CORE, "namespaces", READ),
        rule(CORE, "services", OWN),
        rule(DISCOVERY, "endpointslices", OWN),
        // For --endpoints-objects, and to remove what is left when the flag goes.
        rule(CORE, "endpoints", OWN),
        // Their addresses are no other cluster's.
        rule(CORE, "nodes", &["list", "watch"]),
        rule(NETWORKING, "servicecidrs", &["list"]),
        rule(MCS, "serviceexports", READ),
        rule(MCS, "serviceexports/status", &["patch"]),
        rule(MCS, "serviceimports", OWN),
        rule(MCS, "serviceimports/status", &["patch"]),
        // What this cluster says about itself; creating cannot be limited to names, so a policy does.
        rule(ABOUT, "clusterproperties", READ_AND_CREATE),
        rule_on(ABOUT, "clusterproperties", &[about::CLUSTER_ID, about::CLUSTER_SET], CHANGE),
        rule_on(EXTENSIONS, "customresourcedefinitions", &CRDS, READ),
        report(),
    ];
    let mut own = vec![
        rule(ANTREA, "clustersets", READ),
        rule(ANTREA, "clustersets/status", &["patch"]),
        rule(ANTREA, "clusterclaims", READ),
        rule(CORE, "secrets", READ),
        rule(CORE, "configmaps", &["create"]),
        rule_on(CORE, "configmaps", &[membership::NAME], OWN),
        rule_on(COORDINATION, "leases", &[label::MEMBER], &["get", "patch"]),
    ];
    own.extend(elects(ACCOUNT.name));
    let mut objects = vec![system_namespace(), daemon_account(ACCOUNT.name)];
    objects.extend(everywhere(&ACCOUNT, cluster));
    objects.extend(inside(SYSTEM, &ACCOUNT, own));
    objects.extend(users());
    objects.push(observer::in_cluster());
    objects.extend(policy());
    objects.extend(own_policy());
    objects.extend(checks().into_iter().flatten());
    objects
}

/// What keeps users from writing ServiceImports: policy `freeport-imports` and its binding.
pub fn policy() -> [Object; 2] {
    policy::imports::objects()
}

/// What keeps the member to what Freeport makes: policy `freeport-member-own` and its binding.
pub fn own_policy() -> [Object; 2] {
    policy::member_own::objects()
}

/// What refuses ServiceImports and ServiceExports that can only be a mistake: policies `freeport-import-content` and
/// `freeport-exports`, each with its binding.
pub fn checks() -> [[Object; 2]; 2] {
    [policy::import_content::objects(), policy::exports::objects()]
}

/// Who may edit a Namespace exports its Services; who may view it sees exports and imports.
fn users() -> [Object; 2] {
    [
        aggregated("freeport-edit", &["admin", "edit"], vec![rule(MCS, "serviceexports", ALL)]),
        aggregated(
            "freeport-view",
            &["view"],
            vec![rule(MCS, "serviceexports", READ), rule(MCS, "serviceimports", READ)],
        ),
    ]
}

/// What tells a member to take part in offloading.
const OFFLOAD: &str = "FREEPORT_OFFLOAD";
/// What tells a member whether to connect to endpoints of other clusters.
pub(crate) const PROBE: &str = "FREEPORT_PROBE";

/// All that runs the member inside its cluster: so many Pods, and who may reach them. `told` is what else it is told.
pub fn workload(image: &str, replicas: i32, offload: bool, told: &[EnvVar]) -> Vec<Object> {
    let offload = offload.then(|| tells(OFFLOAD, label::TRUE));
    let told: Vec<_> = offload.into_iter().chain(told.iter().cloned()).collect();
    deployment::workload(ACCOUNT.name, image, replicas, &told)
}

/// What authenticates a member at the leader's API server, and that server to the member.
#[derive(Clone, PartialEq, Default)]
pub struct Credential {
    /// Certificate authorities of the leader's API server, PEM.
    pub ca: Vec<u8>,
    /// Those that the leader's cluster publishes, PEM, if that is known: see [`NAMED_CA`](kit::client::NAMED_CA).
    pub named: Option<Vec<u8>>,
    /// Token of the member's ServiceAccount in the Common Area.
    pub token: Vec<u8>,
}

/// Name of the Secret with the credential for ClusterSet `set`.
pub fn secret_name(set: &str) -> String {
    format!("{}-{set}", label::LEADER)
}

/// Name of the Role that lets the member replace its credential, and of its binding.
pub const CREDENTIAL_ROLE: &str = "freeport-member-credential";

/// Secret for `ca.crt` and `token`, as Antrea's members read it, and the member's right to replace what is in it. The data is not applied, so
/// that no file has it; see `freeport join`.
pub fn credential(set: &str) -> Vec<Object> {
    let name = secret_name(set);
    let secret = Object::new(&Secret {
        metadata: within(SYSTEM, &name),
        type_: Some("Opaque".into()),
        ..Secret::default()
    });
    let right = vec![rule_on(CORE, "secrets", &[&name], &["patch"])];
    [secret].into_iter().chain(inside_as(CREDENTIAL_ROLE, SYSTEM, &ACCOUNT, right)).collect()
}

/// The member's ClusterSet: its own ID, and where the leader is.
pub fn cluster_set(set: &str, id: &str, leader_id: &str, server: &str) -> Object {
    Object::new(&ClusterSet {
        metadata: within(SYSTEM, set),
        spec: ClusterSetSpec {
            cluster_id: id.into(),
            leaders: vec![LeaderCluster {
                cluster_id: Some(leader_id.into()),
                server: Some(server.into()),
                secret: Some(secret_name(set)),
            }],
            namespace: Some(area::name(set)),
        },
        status: None,
    })
}
