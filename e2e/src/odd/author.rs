//! Who writes which kind, and how: with the rights that they would have, as text that no client of ours has read before.

use api::{ServiceName, cluster_set::ClusterSet, name};
use cli::objects::{SYSTEM, access};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::{
    Api, Client,
    api::{DynamicObject, PostParams},
};
use serde_json::{Value, json};

use super::{Cases, change, random::Random, schema::Schemas};
use crate::{
    fixture::{AREA, SET, World},
    record,
    waiting::eventually,
};

/// A member of which nothing runs: nobody mends or removes its records.
pub const MEMBER: &str = "north";
/// A user with all rights in one Namespace.
const USER: &str = "dev";

/// How often records are among the authors: they go through every daemon.
const RECORDS: usize = 3;
/// Most odd objects are none that an API server takes.
const TRIES: usize = 20;

const ANTREA: &str = "apis/multicluster.crd.antrea.io/v1alpha1";
const MCS: &str = "apis/multicluster.x-k8s.io/v1alpha1";
const DISCOVERY: &str = "apis/discovery.k8s.io/v1";

/// Writes one kind.
struct Author {
    kind: &'static str,
    cluster: &'static str,
    /// Path of the kind's objects, below the API server's address.
    path: String,
    headers: Vec<(&'static str, String)>,
    /// A good one, by its name.
    good: Box<dyn Fn(&str) -> Value>,
    /// The object that is patched, where not a new one is created, as it was.
    there: Option<Value>,
    /// What a new one means something with: its path, and a good one of it by the same name.
    beside: Option<Beside>,
    schemas: Schemas,
}

/// Path of other objects, and a good one by its name.
type Beside = (String, fn(&str) -> Value);

/// All of them.
pub struct Authors<'a> {
    world: &'a World,
    all: Vec<Author>,
}

/// An object that an API server took.
pub struct Taken {
    /// What it is, for messages.
    pub what: String,
    /// What the API server made of it.
    pub object: Value,
    author: usize,
}

impl Taken {
    /// Its name.
    pub fn name(&self) -> &str {
        self.object["metadata"]["name"].as_str().unwrap()
    }

    /// Its kind.
    pub fn kind(&self) -> &str {
        self.object["kind"].as_str().unwrap()
    }
}

impl<'a> Authors<'a> {
    /// Objects of users are in `namespace`, which exists in all clusters.
    pub async fn new(world: &'a World, namespace: &str) -> Self {
        join(world).await;
        for cluster in ["east", "west"] {
            allow(world, cluster, namespace).await;
        }
        let mut all = Vec::new();
        let members = format!("{ANTREA}/namespaces/{AREA}");
        let exported = |kind: fn(&str, &ServiceName) -> Value, namespace: &str| {
            let namespace = namespace.to_owned();
            move |name: &str| kind(MEMBER, &ServiceName::new(&namespace, name))
        };
        let records = format!("{members}/resourceexports");
        for _ in 0..RECORDS {
            all.push(
                by_member("ResourceExport", &records, ANTREA, world, exported(service_record, namespace))
                    .await,
            );
            all.push(
                by_member("ResourceExport", &records, ANTREA, world, exported(slice_record, namespace)).await,
            );
        }
        all.push(by_member("Lease", &leases(), "apis/coordination.k8s.io/v1", world, |_| lease()).await);
        let announces = format!("{members}/memberclusterannounces");
        all.push(by_member("MemberClusterAnnounce", &announces, ANTREA, world, |_| announce()).await);
        let within = |group: &str, plural: &str| format!("{group}/namespaces/{namespace}/{plural}");
        let (exports, services) = (within(MCS, "serviceexports"), within("api/v1", "services"));
        for cluster in ["east", "west"] {
            let user = User { world, cluster };
            let beside = Some((services.clone(), service as fn(&str) -> Value));
            all.push(user.of("ServiceExport", MCS, exports.clone(), export, beside).await);
            let beside = Some((exports.clone(), export as fn(&str) -> Value));
            all.push(user.of("Service", "api/v1", services.clone(), service, beside).await);
            let slices = within(DISCOVERY, "endpointslices");
            all.push(user.of("EndpointSlice", DISCOVERY, slices, endpoint_slice, None).await);
            all.push(user.of("ServiceImport", MCS, within(MCS, "serviceimports"), import, None).await);
        }
        all.push(
            by_administrator(
                world,
                "ClusterSet",
                "apis/multicluster.crd.antrea.io/v1alpha2",
                "clustersets",
                SET,
            )
            .await,
        );
        let secret = secret_of_set(world).await;
        all.push(by_administrator(world, "Secret", "api/v1", "secrets", &secret).await);
        Self { world, all }
    }

    /// Writes an object of a case: the first of some that the API server takes. What it made of it.
    pub async fn write(&self, cases: Cases, number: u64) -> Option<Taken> {
        let mut random = cases.random(number);
        let at = random.below(self.all.len());
        for _ in 0..TRIES {
            if let Some(taken) = self.try_to_write(&mut random, at, number).await {
                return Some(taken);
            }
        }
        None
    }

    async fn try_to_write(&self, random: &mut Random, at: usize, number: u64) -> Option<Taken> {
        let (author, name) = (&self.all[at], format!("odd-{number}"));
        let mut object = (author.good)(&name);
        let schema = author.schemas.of(author.kind);
        change::change(random, &author.schemas, schema, &mut object);
        let text = change::text(random, &object);
        let (method, path) = match &author.there {
            Some(there) => ("PATCH", format!("{}/{}", author.path, there["metadata"]["name"].as_str()?)),
            None => ("POST", author.path.clone()),
        };
        let shown: String = text.chars().take(600).collect();
        let what = format!("case {number}, {} in {}: {shown}", author.kind, author.cluster);
        let object = author.send(self.world, method, &path, Some(text)).await.ok()?;
        if let Some((path, good)) = &author.beside {
            drop(author.administrate(self.world, "POST", path, Some(good(&name).to_string())).await);
        }
        Some(Taken { what, object, author: at })
    }

    /// Whether it is one that was there, and was changed.
    pub fn is_patched(&self, taken: &Taken) -> bool {
        self.all[taken.author].there.is_some()
    }

    /// Takes away what was created, and makes again what was patched.
    pub async fn undo(&self, taken: &Taken) {
        let author = &self.all[taken.author];
        let (path, world) = (format!("{}/{}", author.path, taken.name()), self.world);
        let Some(there) = &author.there else {
            // A record that merely vanished would keep its part, since nobody vouches for this member.
            let withdrawn = json!({"spec": {"service": {"withdrawn": true}}}).to_string();
            if author.kind == "ResourceExport" {
                drop(author.administrate(world, "PATCH", &path, Some(withdrawn)).await);
            }
            let free = json!({"metadata": {"finalizers": null}}).to_string();
            drop(author.administrate(world, "PATCH", &path, Some(free)).await);
            drop(author.administrate(world, "DELETE", &path, None).await);
            if let Some((path, _)) = &author.beside {
                drop(author.administrate(world, "DELETE", &format!("{path}/{}", taken.name()), None).await);
            }
            return;
        };
        eventually("it is as it was", || async {
            let now =
                author.administrate(world, "GET", &path, None).await.map_err(|error| error.to_string())?;
            let mut again = there.clone();
            for field in ["uid", "resourceVersion"] {
                again["metadata"][field] = now["metadata"][field].clone();
            }
            let put = author.administrate(world, "PUT", &path, Some(again.to_string())).await;
            let Err(error) = put else { return Ok(()) };
            if matches!(&error, kube::Error::Api(status) if status.code == 422) {
                // Something in it cannot be changed any more.
                drop(author.administrate(world, "DELETE", &path, None).await);
                for field in ["uid", "resourceVersion"] {
                    again["metadata"].as_object_mut().unwrap().remove(field);
                }
                drop(author.administrate(world, "POST", &author.path, Some(again.to_string())).await);
            }
            Err(format!("{error}; now: {now}"))
        })
        .await;
    }
}

/// Gives member [`MEMBER`] the access that `freeport join` gives, its Lease and its announce.
async fn join(world: &World) {
    let leader = world.leader();
    for object in access::objects(SET, MEMBER, None) {
        let body: DynamicObject = serde_json::from_value(object.body.clone()).unwrap();
        let api = Api::<DynamicObject>::namespaced_with(leader.client.clone(), AREA, &object.resource);
        drop(api.create(&PostParams::default(), &body).await);
    }
    let announces = format!("{ANTREA}/namespaces/{AREA}/memberclusterannounces");
    for (path, object) in [(leases(), lease()), (announces, announce())] {
        drop(request(&leader.client, &[], "POST", &path, Some(object.to_string())).await);
    }
}

/// Gives the user all rights in the Namespace.
async fn allow(world: &World, cluster: &str, namespace: &str) {
    let metadata = json!({"name": USER});
    let rules = json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]);
    let _: Role =
        world.cluster(cluster).create(namespace, json!({"metadata": metadata, "rules": rules})).await;
    let binding = json!({
        "metadata": metadata,
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": USER},
        "subjects": [{"kind": "User", "name": USER}],
    });
    let _: RoleBinding = world.cluster(cluster).create(namespace, binding).await;
}

fn leases() -> String {
    format!("apis/coordination.k8s.io/v1/namespaces/{AREA}/leases")
}

async fn by_member(
    kind: &'static str,
    path: &str,
    group: &str,
    world: &World,
    good: impl Fn(&str) -> Value + 'static,
) -> Author {
    let account = access::account(MEMBER);
    let headers = vec![
        ("Impersonate-User", format!("system:serviceaccount:{AREA}:{account}")),
        ("Impersonate-Group", "system:serviceaccounts".to_owned()),
        ("Impersonate-Group", format!("system:serviceaccounts:{AREA}")),
        ("Impersonate-Group", "system:authenticated".to_owned()),
    ];
    let schemas = Schemas::read(&world.leader().client, group).await;
    let good = Box::new(good);
    let mut author = Author {
        kind,
        cluster: "leader",
        path: path.to_owned(),
        headers,
        good,
        there: None,
        beside: None,
        schemas,
    };
    if let Some(name) = (author.good)("")["metadata"]["name"].as_str().filter(|_| kind != "ResourceExport") {
        author.there = author.administrate(world, "GET", &format!("{path}/{name}"), None).await.ok();
    }
    author
}

/// The user in one cluster.
struct User<'a> {
    world: &'a World,
    cluster: &'static str,
}

impl User<'_> {
    async fn of(
        &self,
        kind: &'static str,
        group: &str,
        path: String,
        good: fn(&str) -> Value,
        beside: Option<Beside>,
    ) -> Author {
        let headers = vec![
            ("Impersonate-User", USER.to_owned()),
            ("Impersonate-Group", "system:authenticated".to_owned()),
        ];
        let schemas = Schemas::read(&self.world.cluster(self.cluster).client, group).await;
        Author {
            kind,
            cluster: self.cluster,
            path,
            headers,
            good: Box::new(good),
            there: None,
            beside,
            schemas,
        }
    }
}

/// Of the object of that name in the Namespace of east's member.
async fn by_administrator(
    world: &World,
    kind: &'static str,
    group: &str,
    plural: &str,
    name: &str,
) -> Author {
    let path = format!("{group}/namespaces/{SYSTEM}/{plural}");
    let schemas = Schemas::read(&world.cluster("east").client, group).await;
    let mut author = Author {
        kind,
        cluster: "east",
        path,
        headers: vec![],
        good: Box::new(|_| Value::Null),
        there: None,
        beside: None,
        schemas,
    };
    let there = author.send(world, "GET", &format!("{}/{name}", author.path), None).await.unwrap();
    let mut good = there.clone();
    let meta = json!({"name": name, "labels": there["metadata"]["labels"]});
    good["metadata"] = meta;
    good.as_object_mut().unwrap().remove("status");
    author.good = Box::new(move |_| good.clone());
    author.there = Some(there);
    author
}

/// The Secret that east's ClusterSet names.
async fn secret_of_set(world: &World) -> String {
    let set = world.cluster("east").api::<ClusterSet>(SYSTEM).get(SET).await.unwrap();
    set.spec.leaders[0].secret.clone().unwrap()
}

impl Author {
    /// Sends a request of this author.
    async fn send(
        &self,
        world: &World,
        method: &str,
        path: &str,
        body: Option<String>,
    ) -> Result<Value, kube::Error> {
        request(&world.cluster(self.cluster).client, &self.headers, method, path, body).await
    }

    /// Sends a request of an administrator, to the same cluster.
    async fn administrate(
        &self,
        world: &World,
        method: &str,
        path: &str,
        body: Option<String>,
    ) -> Result<Value, kube::Error> {
        request(&world.cluster(self.cluster).client, &[], method, path, body).await
    }
}

pub(crate) async fn request(
    client: &Client,
    headers: &[(&str, String)],
    method: &str,
    path: &str,
    body: Option<String>,
) -> Result<Value, kube::Error> {
    let content = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
    let mut request =
        http::Request::builder().method(method).uri(format!("/{path}")).header("Content-Type", content);
    for (name, value) in headers {
        request = request.header(*name, value);
    }
    client.request(request.body(body.unwrap_or_default().into_bytes()).unwrap()).await
}

/// With everything that such a record can say.
fn service_record(cluster: &str, service: &ServiceName) -> Value {
    let mut record = record::service(cluster, service);
    record["spec"]["service"] = json!({
        "serviceSpec": {
            "ports": [{"name": "http", "port": 80, "protocol": "TCP", "appProtocol": "http"}],
            "ipFamilies": ["IPv4"], "sessionAffinity": "ClientIP",
            "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 60}},
            "internalTrafficPolicy": "Cluster", "trafficDistribution": "PreferClose",
        },
        "exportedAt": "2026-11-01T12:00:00Z",
        "exportedLabels": {"team": "shop"}, "exportedAnnotations": {"note": "a"},
    });
    record
}

fn slice_record(cluster: &str, service: &ServiceName) -> Value {
    let mut record = record::slice(cluster, service, "10.9.0.1");
    record["spec"]["endpointSlice"]["endpoints"] = json!([{
        "addresses": ["10.9.0.1"], "zone": "a", "hostname": "one",
        "conditions": {"ready": true, "serving": true, "terminating": false},
    }]);
    record
}

fn lease() -> Value {
    json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name::member_lease(MEMBER), "annotations": {api::label::SETTLED: "true", api::label::WIRE: "1"}},
        "spec": {
            "holderIdentity": "uid-of-north/1", "leaseDurationSeconds": 30, "leaseTransitions": 1,
            "acquireTime": "2026-11-01T12:00:00.000000Z", "renewTime": "2026-11-01T12:00:00.000000Z",
        },
    })
}

fn announce() -> Value {
    json!({
        "apiVersion": "multicluster.crd.antrea.io/v1alpha1",
        "kind": "MemberClusterAnnounce",
        "metadata": {"name": name::announce(MEMBER)},
        "clusterID": MEMBER, "clusterSetID": SET, "leaderClusterID": "leader",
    })
}

fn export(name: &str) -> Value {
    json!({
        "apiVersion": "multicluster.x-k8s.io/v1alpha1", "kind": "ServiceExport", "metadata": {"name": name},
        "spec": {"exportedLabels": {"team": "shop"}, "exportedAnnotations": {"note": "a"}},
    })
}

/// Exported by the ServiceExport that is there for all of them.
fn service(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "labels": {"app": "odd"}},
        "spec": {"ports": [{"name": "http", "port": 80, "protocol": "TCP", "appProtocol": "http"}]},
    })
}

fn endpoint_slice(name: &str) -> Value {
    json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": {"name": name, "labels": {api::label::SERVICE_NAME: TARGET}},
        "addressType": "IPv4",
        "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
        "endpoints": [{"addresses": ["10.1.0.9"], "zone": "a", "nodeName": "n1", "conditions": {"ready": true}}],
    })
}

fn import(name: &str) -> Value {
    json!({
        "apiVersion": "multicluster.x-k8s.io/v1alpha1", "kind": "ServiceImport", "metadata": {"name": name},
        "spec": {"type": "ClusterSetIP", "ips": ["10.0.0.1"], "ports": [{"name": "http", "port": 80, "protocol": "TCP"}]},
    })
}

/// The exported Service whose EndpointSlices users write oddly.
pub const TARGET: &str = "target";
