//! Who writes a kind, and how: with the rights that they would have, as text that no client of ours has read before.

use cli::objects::{SYSTEM, access};
use kube::Client;
use serde_json::{Value, json};
use sim::random::Random;

use super::{
    MEMBER, USER, change,
    crd::{self, Age},
    schema::Schemas,
};
use crate::fixture::{AREA, World};

pub(super) const CRD: &str = "CustomResourceDefinition";
const CRDS: &str = "apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Writes one kind.
pub(super) struct Author {
    pub(super) kind: &'static str,
    pub(super) cluster: &'static str,
    /// Path of the kind's objects, below the API server's address.
    pub(super) path: String,
    headers: Vec<(&'static str, String)>,
    /// A good one, by its name.
    pub(super) good: Box<dyn Fn(&str) -> Value>,
    /// The object that is patched, where not a new one is created, as it was.
    pub(super) there: Option<Value>,
    /// What a new one means something with: its path, and a good one of it by the same name.
    pub(super) beside: Option<Beside>,
    /// Makes it odd.
    pub(super) change: Change,
}

type Change = Box<dyn Fn(&mut Random, &mut Value)>;

/// Path of other objects, and a good one by its name.
pub(super) type Beside = (String, fn(&str) -> Value);

/// Odd values anywhere in an object of this kind, of which the API server publishes the schema.
async fn anywhere(client: &Client, kind: &'static str, group: &str) -> Change {
    let schemas = Schemas::read(client, group).await;
    Box::new(move |random, object| change::change(random, &schemas, schemas.of(kind), object))
}

pub(super) async fn by_member(
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
    let good = Box::new(good);
    let mut author = Author {
        kind,
        cluster: "leader",
        path: path.to_owned(),
        headers,
        good,
        there: None,
        beside: None,
        change: anywhere(&world.leader().client, kind, group).await,
    };
    if let Some(name) = (author.good)("")["metadata"]["name"].as_str().filter(|_| kind != "ResourceExport") {
        author.there = author.administrate(world, "GET", &format!("{path}/{name}"), None).await.ok();
    }
    author
}

/// The user in one cluster.
pub(super) struct User<'a> {
    pub(super) world: &'a World,
    pub(super) cluster: &'static str,
}

impl User<'_> {
    pub(super) async fn of(
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
        let change = anywhere(&self.world.cluster(self.cluster).client, kind, group).await;
        Author {
            kind,
            cluster: self.cluster,
            path,
            headers,
            good: Box::new(good),
            there: None,
            beside,
            change,
        }
    }
}

/// Of the object of that name in the Namespace of east's member.
pub(super) async fn by_administrator(
    world: &World,
    kind: &'static str,
    group: &str,
    plural: &str,
    name: &str,
) -> Author {
    let change = anywhere(&world.cluster("east").client, kind, group).await;
    there(world, "east", kind, (format!("{group}/namespaces/{SYSTEM}/{plural}"), name), change).await
}

/// Of a CRD: who installs other releases.
pub(super) async fn by_installer(world: &World, cluster: &'static str, name: &str, age: Age) -> Author {
    let change: Change = Box::new(move |random, crd| crd::change(random, age, crd));
    there(world, cluster, CRD, (CRDS.to_owned(), name), change).await
}

/// Of an object that is there, by an administrator.
async fn there(
    world: &World,
    cluster: &'static str,
    kind: &'static str,
    (path, name): (String, &str),
    change: Change,
) -> Author {
    let of = format!("{path}/{name}");
    let there = request(&world.cluster(cluster).client, &[], "GET", &of, None).await.unwrap();
    let mut good = there.clone();
    good["metadata"] = json!({"name": name, "labels": there["metadata"]["labels"]});
    good.as_object_mut().unwrap().remove("status");
    Author {
        kind,
        cluster,
        path,
        headers: vec![],
        good: Box::new(move |_| good.clone()),
        there: Some(there),
        beside: None,
        change,
    }
}

impl Author {
    /// Sends a request of this author.
    pub(super) async fn send(
        &self,
        world: &World,
        method: &str,
        path: &str,
        body: Option<String>,
    ) -> Result<Value, kube::Error> {
        request(&world.cluster(self.cluster).client, &self.headers, method, path, body).await
    }

    /// Sends a request of an administrator, to the same cluster.
    pub(super) async fn administrate(
        &self,
        world: &World,
        method: &str,
        path: &str,
        body: Option<String>,
    ) -> Result<Value, kube::Error> {
        request(&world.cluster(self.cluster).client, &[], method, path, body).await
    }
}

pub(super) async fn request(
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
