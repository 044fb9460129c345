use std::{fs, io::Write};

use http::{Method, Request, StatusCode, header::DATE};
use k8s_openapi::{
    api::core::v1::{ConfigMap, Namespace, Service},
    jiff::SignedDuration,
};
use kube::{
    Api, ResourceExt,
    api::{ListParams, PostParams},
    client::Body,
};
use serde_json::{Value, json};

use super::*;

fn at() -> Timestamp {
    "2026-11-30T10:00:00.5Z".parse().unwrap()
}

/// Answers of the only cluster, by path.
fn files(answers: &[(&str, Value)]) -> Files {
    answers.iter().map(|(path, answer)| (file("west", path), answer.to_string().into_bytes())).collect()
}

fn seen() -> Seen {
    Seen { context: "west".into(), folder: "west".into(), namespace: "shop".into(), ..Seen::default() }
}

fn bundle(cluster: Seen, answers: &[(&str, Value)]) -> Bundle {
    Bundle::of("b.tgz".into(), Manifest::new(at(), vec![cluster]), files(answers))
}

fn client(answers: &[(&str, Value)]) -> Client {
    let bundle = bundle(seen(), answers);
    bundle.client(bundle.cluster(None).unwrap())
}

fn list(kind: &str, items: &[Value]) -> Value {
    json!({"kind": kind, "apiVersion": "v1", "metadata": {}, "items": items})
}

fn service(namespace: &str, name: &str, app: &str) -> Value {
    json!({"metadata": {"namespace": namespace, "name": name, "labels": {"app": app}}})
}

#[tokio::test]
async fn lists_and_objects_are_answered_out_of_the_list_that_holds_them() {
    let services = [service("shop", "web", "a"), service("shop", "db", "b"), service("other", "web", "a")];
    let client = client(&[("/api/v1/services", list("ServiceList", &services))]);
    let names = async |api: Api<Service>, labels: &str| -> Vec<String> {
        let found = api.list(&ListParams::default().labels(labels).limit(50)).await.unwrap();
        found
            .iter()
            .map(|service| format!("{}/{}", service.namespace().unwrap(), service.name_any()))
            .collect()
    };
    let all = Api::<Service>::all(client.clone());
    assert_eq!(names(all.clone(), "").await, ["shop/web", "shop/db", "other/web"]);
    assert_eq!(names(all, "app in (a,c)").await, ["shop/web", "other/web"]);
    let shop = Api::<Service>::namespaced(client.clone(), "shop");
    assert_eq!(names(shop.clone(), "app!=a").await, ["shop/db"]);
    assert_eq!(shop.get("db").await.unwrap().labels()["app"], "b");
    assert!(shop.get_opt("gone").await.unwrap().is_none());
    let error = Api::<ConfigMap>::namespaced(client, "shop").get("x").await.unwrap_err();
    assert!(matches!(&error, kube::Error::Api(status) if status.code == 501), "{error}");
}

#[tokio::test]
async fn refusals_are_answered_as_they_were_and_nothing_is_written() {
    let forbidden = refusal(403, "jane may not");
    let some = list("ConfigMapList", &[json!({"metadata": {"namespace": "shop", "name": "a"}})]);
    let client = client(&[
        ("/api/v1/namespaces", list("NamespaceList", &[json!({"metadata": {"name": "shop"}})])),
        ("/api/v1/services", forbidden.clone()),
        ("/api/v1/configmaps", forbidden),
        ("/api/v1/namespaces/shop/configmaps", some),
    ]);
    let refused = async |namespace| {
        let error = Api::<Service>::namespaced(client.clone(), namespace).get("web").await.unwrap_err();
        matches!(&error, kube::Error::Api(status) if status.code == 403 && status.message == "jane may not")
    };
    assert!(refused("shop").await);
    let config_maps = Api::<ConfigMap>::namespaced(client.clone(), "shop");
    assert_eq!(config_maps.list(&ListParams::default()).await.unwrap().items.len(), 1);
    assert!(Api::<ConfigMap>::all(client.clone()).list(&ListParams::default()).await.is_err());
    let namespaces = Api::<Namespace>::all(client);
    assert_eq!(namespaces.get("shop").await.unwrap().name_any(), "shop");
    let error = namespaces.create(&PostParams::default(), &Namespace::default()).await.unwrap_err();
    assert!(matches!(&error, kube::Error::Api(status) if status.code == 405), "{error}");
}

#[tokio::test]
async fn a_cluster_that_gave_no_answer_gives_none_and_its_clock_is_as_it_was() {
    let ask = async |cluster: Seen| {
        let bundle = bundle(cluster, &[("/version", json!({}))]);
        let client = bundle.client(bundle.cluster(None).unwrap());
        client.send(Request::builder().method(Method::GET).uri("/version").body(Body::empty()).unwrap()).await
    };
    let away = |code| Seen { away: Some(Away { code, message: "cable cut".into() }), ..seen() };
    let error = ask(away(None)).await.unwrap_err();
    assert!(
        matches!(&error, kube::Error::Service(cause) if cause.to_string().contains("cable cut")),
        "{error}"
    );
    assert_eq!(ask(away(Some(401))).await.unwrap().status(), StatusCode::UNAUTHORIZED);
    assert!(ask(seen()).await.unwrap().headers().get(DATE).is_none(), "it did not say");
    let ahead = SignedDuration::from_secs(12).as_millis();
    let answer = ask(Seen { clock_ahead: i64::try_from(ahead).ok(), ..seen() }).await.unwrap();
    assert_eq!(answer.headers()[DATE], "Mon, 30 Nov 2026 10:00:12 GMT");
}

fn written(files: &Files) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(&mut bytes, files, at()).unwrap();
    bytes
}

fn read(bytes: &[u8]) -> Result<Bundle, String> {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(bytes).unwrap();
    Bundle::read(file.path()).map_err(|error| {
        assert_eq!(error.exit_code(), 3);
        let said = error.to_string();
        assert!(said.contains("try: ") && said.lines().count() == 1, "{said}");
        said
    })
}

fn whole() -> Files {
    let mut files =
        files(&[("/version", json!({"gitVersion": "v1.36.3"})), ("/api/v1/nodes", list("NodeList", &[]))]);
    let mut manifest = Manifest::new(at(), vec![seen()]);
    manifest.files = files.len();
    files.insert(MANIFEST.into(), serde_json::to_vec(&manifest).unwrap());
    files
}

#[test]
fn what_is_written_is_read_again() {
    let files = whole();
    let bundle = read(&written(&files)).unwrap();
    assert_eq!(bundle.held.files, files);
    assert_eq!(bundle.contexts().collect::<Vec<_>>(), ["west"]);
    assert_eq!((bundle.taken_at(), bundle.cluster(Some("west"))), (at(), Some(&seen())));
    assert!(bundle.cluster(Some("east")).is_none());
}

#[test]
fn a_bundle_that_was_cut_short_is_no_bundle_wherever_that_was() {
    let bytes = written(&whole());
    for length in (1..bytes.len()).rev() {
        let said = read(&bytes[..length]).unwrap_err();
        assert!(said.contains("cut short"), "{length} of {}: {said}", bytes.len());
    }
    let mut fewer = whole();
    fewer.remove(&file("west", "/version"));
    assert!(read(&written(&fewer)).unwrap_err().contains("has 1 of 2 files"));
}

#[test]
fn what_is_no_bundle_of_this_version_is_named() {
    let of = |manifest: Value| {
        let mut files = whole();
        files.insert(MANIFEST.into(), manifest.to_string().into_bytes());
        read(&written(&files)).unwrap_err()
    };
    let later =
        json!({"kind": "Bundle", "apiVersion": "cli.freeport.dev/v2", "freeport": "3.0.0\u{1b}[31m\n"});
    let said = of(later);
    assert!(
        said.contains("\"cli.freeport.dev/v2\"") && said.contains("try: freeport 3.0.0 [31m ,"),
        "{said}"
    );
    assert!(of(json!({"kind": "Check"})).contains("is no Bundle"));
    assert!(
        of(json!({"kind": "Bundle", "apiVersion": "cli.freeport.dev/v1"}))
            .contains("bundle.json: missing field")
    );
    assert!(read(b"PK no gzip").unwrap_err().contains("it is no bundle"));
    assert!(read(&written(&files(&[]))).unwrap_err().contains("has no bundle.json"));
    let dir = tempfile::tempdir().unwrap();
    let missing = Bundle::read(&dir.path().join("b.tgz")).unwrap_err().to_string();
    assert!(missing.contains("b.tgz: No such file") && missing.contains("try: "), "{missing}");
    let path = dir.path().join("c.tgz");
    fs::write(&path, "").unwrap();
    assert!(Bundle::read(&path).is_err());
}
