//! All who write odd objects, and how what they wrote is taken away again.

use std::collections::BTreeSet;

use api::{ServiceName, cluster_set::ClusterSet};
use cli::objects::{SYSTEM, access};
use fleet::program;
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::{
    Api,
    api::{DynamicObject, PostParams},
};
use serde_json::{Value, json};
use sim::random::Random;

use super::{
    Cases, MEMBER, USER,
    author::{Author, CRD, User, by_administrator, by_installer, by_member, request},
    change,
    crd::Age,
    good::{
        announce, cluster_info, endpoint_slice, endpoints_record, export, import, lease, service,
        service_record, slice_record,
    },
};
use crate::{
    fixture::{AREA, SET, World},
    shell::shell,
    waiting::eventually,
};

/// How often records are among the authors: they go through every daemon.
const RECORDS: usize = 3;
/// Most odd objects are none that an API server takes.
const TRIES: usize = 20;

const ANTREA: &str = "apis/multicluster.crd.antrea.io/v1alpha1";
const MCS: &str = "apis/multicluster.x-k8s.io/v1alpha1";
const DISCOVERY: &str = "apis/discovery.k8s.io/v1";

/// Without fields of records there are no records, so those of the leader are as they are or newer.
const CRDS: [(&str, &str, Age); 5] = [
    ("east", "clustersets.multicluster.crd.antrea.io", Age::Any),
    ("east", "serviceexports.multicluster.x-k8s.io", Age::Any),
    ("east", "serviceimports.multicluster.x-k8s.io", Age::Any),
    ("leader", "resourceexports.multicluster.crd.antrea.io", Age::Newer),
    ("leader", "resourceimports.multicluster.crd.antrea.io", Age::Newer),
];

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
    /// All kinds that they write.
    pub fn kinds(&self) -> BTreeSet<String> {
        self.all.iter().map(|author| author.kind.to_owned()).collect()
    }

    /// Objects of users are in `namespace`, which exists in all clusters.
    pub async fn new(world: &'a World, namespace: &str) -> Self {
        join(world).await;
        for cluster in ["east", "west"] {
            allow(world, cluster, namespace).await;
        }
        let mut all = Vec::new();
        let exported = |kind: fn(&str, &ServiceName) -> Value, namespace: &str| {
            let namespace = namespace.to_owned();
            move |name: &str| kind(MEMBER, &ServiceName::new(&namespace, name))
        };
        let records = format!("{ANTREA}/namespaces/{AREA}/resourceexports");
        let merged = [service_record, slice_record].repeat(RECORDS);
        for record in merged.into_iter().chain([endpoints_record, cluster_info]) {
            let good = exported(record, namespace);
            all.push(by_member("ResourceExport", &records, ANTREA, world, good).await);
        }
        all.push(by_member("Lease", &leases(), "apis/coordination.k8s.io/v1", world, |_| lease()).await);
        all.push(by_member("MemberClusterAnnounce", &announces(), ANTREA, world, |_| announce()).await);
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
        for (cluster, crd, age) in CRDS {
            all.push(by_installer(world, cluster, crd, age).await);
        }
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
        (author.change)(random, &mut object);
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

    /// Takes back what the member was given. What it wrote is undone by then.
    pub async fn leave(&self) {
        leave(self.world).await;
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
        self.restore(author, there).await;
        if author.kind == CRD {
            // Somebody may have written an object without the fields that its CRD did not have.
            for author in self.all.iter().filter(|author| author.kind != CRD) {
                if let Some(there) = &author.there {
                    self.restore(author, there).await;
                }
            }
        }
    }

    /// Makes it what it was.
    async fn restore(&self, author: &Author, there: &Value) {
        let path = format!("{}/{}", author.path, there["metadata"]["name"].as_str().unwrap());
        eventually("it is as it was", || self.restored(author, &path, there)).await;
    }

    async fn restored(&self, author: &Author, path: &str, there: &Value) -> Result<(), String> {
        let mut again = there.clone();
        for field in ["uid", "resourceVersion"] {
            again["metadata"].as_object_mut().unwrap().remove(field);
        }
        let now = match author.administrate(self.world, "GET", path, None).await {
            Ok(now) => now,
            Err(kube::Error::Api(status)) if status.code == 404 => {
                let made = author.administrate(self.world, "POST", &author.path, Some(again.to_string()));
                made.await.map_err(|error| error.to_string())?
            }
            Err(error) => return Err(error.to_string()),
        };
        for field in ["uid", "resourceVersion"] {
            again["metadata"][field] = now["metadata"][field].clone();
        }
        let error = match author.administrate(self.world, "PUT", path, Some(again.to_string())).await {
            // A CRD that was just changed may be in use as it was.
            Ok(now) if now["spec"] != there["spec"] => return Err(format!("{now}")),
            Ok(_) => return Ok(()),
            Err(error) => error,
        };
        if matches!(&error, kube::Error::Api(status) if status.code == 422) {
            // Something in it cannot be changed any more: it is made anew.
            drop(author.administrate(self.world, "DELETE", path, None).await);
        }
        Err(format!("{error}; now: {now}"))
    }
}

/// Gives member [`MEMBER`] the access that `freeport join` gives, its Lease and its announce.
pub async fn join(world: &World) {
    let leader = world.leader();
    for object in access::objects(SET, MEMBER, None) {
        let body: DynamicObject = serde_json::from_value(object.body.clone()).unwrap();
        let api = Api::<DynamicObject>::namespaced_with(leader.client.clone(), AREA, &object.resource);
        drop(api.create(&PostParams::default(), &body).await);
    }
    for (path, object) in [(leases(), lease()), (announces(), announce())] {
        drop(request(&leader.client, &[], "POST", &path, Some(object.to_string())).await);
    }
}

/// Removes the member, as the leader's administrator does: what its records gave to imports goes, too.
pub async fn leave(world: &World) {
    let freeport = program::path("cli", "freeport").await.unwrap();
    let remove = format!(
        "freeport leave --force --even-if-alive --clusterset {SET} --cluster-id {MEMBER} --leader-context leader"
    );
    crate::note!("{}", shell(&world.real().fleet, &[freeport], &remove).await);
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

fn announces() -> String {
    format!("{ANTREA}/namespaces/{AREA}/memberclusterannounces")
}

fn leases() -> String {
    format!("apis/coordination.k8s.io/v1/namespaces/{AREA}/leases")
}

/// The Secret that east's ClusterSet names.
async fn secret_of_set(world: &World) -> String {
    let set = world.cluster("east").api::<ClusterSet>(SYSTEM).get(SET).await.unwrap();
    set.spec.leaders[0].secret.clone().unwrap()
}
