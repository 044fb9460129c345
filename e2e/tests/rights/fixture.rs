//! The shared fleet, and accounts in it.

use std::{
    env,
    io::Write,
    panic::{AssertUnwindSafe, resume_unwind},
    sync::LazyLock,
    time::{Duration, Instant},
};

use api::{cluster_set::ClusterSet, name::LEADER_LEASE};
use fleet::{
    Fleet, Lifetime, Options,
    cluster_set::{self, Daemon},
};
use futures::FutureExt;
use k8s_openapi::{
    ByteString,
    api::{
        authentication::v1::{TokenRequest, TokenRequestSpec},
        authorization::v1::SelfSubjectAccessReview,
        coordination::v1::Lease,
        core::v1::{Namespace, Secret, ServiceAccount},
        rbac::v1::{Role, RoleBinding},
    },
};
use kube::{
    Api, Client, Config, Resource,
    api::{DeleteParams, PostParams},
    config::{KubeConfigOptions, Kubeconfig},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use tokio::{
    runtime::Runtime,
    sync::{OnceCell, RwLock},
};

use crate::{attempt::Do, records};

/// Far beyond what anything takes: a test that gets here has failed.
pub const LIMIT: Duration = Duration::from_secs(60);

pub const SET: &str = "demo";
pub const AREA: &str = "clusterset-demo";
/// Namespace of the daemons.
pub const SYSTEM: &str = "freeport-system";
/// A Common Area of another ClusterSet that the same cluster leads.
pub const OTHER_AREA: &str = "clusterset-other";
const CLUSTERS: [&str; 3] = ["leader", "east", "west"];

/// All tests share it, since the clients' connections live on it.
static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().unwrap());
static WORLD: OnceCell<World> = OnceCell::const_new();
/// A test that runs daemons holds it for itself.
static DAEMONS: RwLock<()> = RwLock::const_new(());

/// Three clusters that are a ClusterSet, and who tries what in them. Never dropped: the fleet ends with this process.
pub struct World {
    pub fleet: Fleet,
    pub daemons: Vec<Daemon>,
    /// Administrators.
    pub clusters: Vec<(String, Client)>,
    /// Member `east` at the leader, with the credential the daemon in east uses.
    pub east: Client,
    /// A member `north` whose Role allows whatever one may want to try: what keeps it is the policy alone.
    pub north: Client,
}

impl World {
    async fn up() -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let dir = env::temp_dir().join(format!("freeport-rights-{}", std::process::id()));
        let options = Options {
            dir,
            clusters: CLUSTERS.map(str::to_owned).into(),
            lifetime: Lifetime::Attached { remove: env::var_os("FREEPORT_KEEP").is_none() },
        };
        // Past the test runner's capture: the first time this builds for ten minutes.
        let progress = |line: &str| drop(writeln!(std::io::stderr(), "{line}"));
        let fleet = Fleet::up(options, progress).await.unwrap();
        let daemons = cluster_set::set_up(&fleet, SET, &mut |_: &str| {}).await.unwrap();
        let mut clusters = Vec::new();
        for cluster in fleet.clusters() {
            clusters.push((cluster.name().to_owned(), cluster.client().await.unwrap()));
        }
        let find = |name: &str| clusters.iter().find(|(of, _)| of == name).unwrap().1.clone();

        let leader = find("leader");
        let area = json!({"metadata": {
            "name": OTHER_AREA, "labels": {"multicluster.freeport.dev/common-area": "true"},
        }});
        create(&Api::<Namespace>::all(leader.clone()), area).await;
        records::of_others(&leader).await;

        let east = member(&find("east")).await;
        let north = account(&fleet, "leader", AREA, "freeport-member-north", any_right("north")).await;
        let world = Self { fleet, daemons, clusters, east, north };
        for member in [&world.east, &world.north] {
            until_refused(member).await;
        }
        world
    }

    /// An administrator of the cluster.
    pub fn cluster(&self, name: &str) -> Client {
        self.clusters.iter().find(|(of, _)| of == name).unwrap().1.clone()
    }

    async fn start_daemons(&self) {
        // The one that is there has no holder that could be told to go.
        let leases = Api::<Lease>::namespaced(self.cluster("leader"), AREA);
        leases.delete(LEADER_LEASE, &DeleteParams::default()).await.unwrap();
        for daemon in &self.daemons {
            daemon.start(&self.fleet).await.unwrap();
        }
        cluster_set::ready(&self.fleet, SET, &self.daemons).await.unwrap();
    }

    async fn stop_daemons(&self) {
        for daemon in &self.daemons {
            if let Some(process) = self.fleet.process(&daemon.spec.name).await.unwrap() {
                process.stop().await.unwrap();
            }
        }
    }

    /// A ServiceAccount with a Role of its own, by its token.
    pub async fn account(&self, cluster: &str, namespace: &str, name: &str, rules: Value) -> Client {
        account(&self.fleet, cluster, namespace, name, rules).await
    }
}

/// Runs a test while no daemon does.
pub fn shared<F: Future<Output = ()>>(test: impl FnOnce(&'static World) -> F) {
    RUNTIME.block_on(async {
        let world = WORLD.get_or_init(World::up).await;
        let _others = DAEMONS.read().await;
        test(world).await;
    });
}

/// Runs a test while all daemons do; no other test runs meanwhile, and no daemon afterwards.
pub fn with_daemons<F: Future<Output = ()>>(test: impl FnOnce(&'static World) -> F) {
    RUNTIME.block_on(async {
        let world = WORLD.get_or_init(World::up).await;
        let _nobody = DAEMONS.write().await;
        let seen = AssertUnwindSafe(async {
            world.start_daemons().await;
            test(world).await;
        });
        let seen = seen.catch_unwind().await;
        world.stop_daemons().await;
        if let Err(panic) = seen {
            resume_unwind(panic);
        }
    });
}

/// Looks until `look` is content; fails with what it last saw.
pub async fn eventually<T, F>(what: &str, mut look: impl FnMut() -> F) -> T
where
    F: Future<Output = Result<T, String>>,
{
    let begun = Instant::now();
    loop {
        match look().await {
            Ok(seen) => return seen,
            Err(seen) => assert!(begun.elapsed() < LIMIT, "{what}: not within {LIMIT:?}; last seen: {seen}"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

pub async fn create<K>(api: &Api<K>, object: Value) -> K
where
    K: Resource<DynamicType = ()> + Serialize + DeserializeOwned + Clone + std::fmt::Debug,
{
    api.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap()
}

/// A policy is enforced a moment after it was created.
async fn until_refused(member: &Client) {
    eventually("the policy is enforced", || async {
        let record = records::service("south", "shop", "probe");
        let tried = Do::DryCreate(record).by(member, AREA, &records::exports()).await;
        match tried {
            Err(refusal) if refusal.message.contains("may not act as") => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
}

/// What the daemon of this member dials the leader with.
async fn member(cluster: &Client) -> Client {
    let name = format!("freeport-leader-{SET}");
    let secrets = Api::<Secret>::namespaced(cluster.clone(), SYSTEM);
    let data = secrets.get(&name).await.unwrap().data.unwrap();
    let sets = Api::<ClusterSet>::namespaced(cluster.clone(), SYSTEM);
    let set = sets.get(SET).await.unwrap();
    let server = set.spec.leaders[0].server.clone().unwrap();
    let token = String::from_utf8(data["token"].0.clone()).unwrap();
    client(&server, &data["ca.crt"], &token).await
}

async fn client(server: &str, ca: &ByteString, token: &str) -> Client {
    let kubeconfig = json!({
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": server, "certificate-authority-data": ca}}],
        "users": [{"name": "u", "user": {"token": token}}],
    });
    let kubeconfig: Kubeconfig = serde_json::from_value(kubeconfig).unwrap();
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    Client::try_from(config).unwrap()
}

async fn account(fleet: &Fleet, cluster: &str, namespace: &str, name: &str, rules: Value) -> Client {
    let cluster = fleet.clusters().iter().find(|c| c.name() == cluster).unwrap();
    let admin = cluster.client().await.unwrap();
    let metadata = json!({"name": name});
    create(&Api::<ServiceAccount>::namespaced(admin.clone(), namespace), json!({"metadata": metadata})).await;
    let role_ref = if rules.is_array() {
        let role = json!({"metadata": metadata, "rules": rules});
        create(&Api::<Role>::namespaced(admin.clone(), namespace), role).await;
        json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name})
    } else {
        json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": rules})
    };
    let binding = json!({
        "metadata": metadata,
        "roleRef": role_ref,
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
    });
    create(&Api::<RoleBinding>::namespaced(admin.clone(), namespace), binding).await;

    let accounts = Api::<ServiceAccount>::namespaced(admin.clone(), namespace);
    let request = TokenRequest {
        spec: Some(TokenRequestSpec { expiration_seconds: Some(3600), ..TokenRequestSpec::default() }),
        ..TokenRequest::default()
    };
    let granted = accounts.create_token_request(name, &PostParams::default(), &request).await.unwrap();
    let ca = Api::<k8s_openapi::api::core::v1::ConfigMap>::namespaced(admin, "default");
    let ca = eventually("the cluster publishes its authority", || async {
        let found = ca.get_opt("kube-root-ca.crt").await.unwrap();
        found.and_then(|map| map.data?.remove("ca.crt")).ok_or_else(|| "nothing".to_owned())
    })
    .await;
    client(&cluster.server(), &ByteString(ca.into_bytes()), &granted.status.unwrap().token.unwrap()).await
}

/// Waits until the authorizer knows of a right.
pub async fn until_allowed(client: &Client, namespace: &str, group: &str, resource: &str, verb: &str) {
    let reviews = Api::<SelfSubjectAccessReview>::all(client.clone());
    let review = json!({"spec": {"resourceAttributes": {
        "namespace": namespace, "group": group, "resource": resource, "verb": verb,
    }}});
    let review: SelfSubjectAccessReview = serde_json::from_value(review).unwrap();
    eventually(&format!("may {verb} {resource}"), || async {
        let told = reviews.create(&PostParams::default(), &review).await.unwrap().status;
        if told.as_ref().is_some_and(|status| status.allowed) { Ok(()) } else { Err(format!("{told:?}")) }
    })
    .await;
}

/// What no member gets: every verb on everything in the Common Area, but `act-as` for one cluster alone.
fn any_right(cluster: &str) -> Value {
    let verbs = ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"];
    json!([
        {
            "apiGroups": ["multicluster.crd.antrea.io"],
            "resources": [
                "resourceexports", "resourceexports/status", "resourceimports", "memberclusterannounces",
            ],
            "verbs": verbs,
        },
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": verbs},
        {
            "apiGroups": ["multicluster.crd.antrea.io"],
            "resources": ["resourceexports"],
            "resourceNames": [cluster],
            "verbs": ["act-as"],
        },
    ])
}
