//! Two clusters: an API server of a few lines answers for one of them, and nobody for the other.

use std::io;

use http::{Request, Response, StatusCode};
use kube::{Client, client::Body};
use serde_json::{Value, json};

use super::*;
use crate::bundle::{Bundle, Files, Manifest};

const TOKEN: &str = "opensesame-4711";

fn list(items: &[Value]) -> Value {
    json!({"kind": "List", "apiVersion": "v1", "metadata": {}, "items": items})
}

/// A Pod of a daemon that has restarted.
fn pod() -> Value {
    let ports = json!([{"name": "metrics", "containerPort": 8080}]);
    let status = json!([{"name": "member", "restartCount": 1, "image": "", "imageID": "", "ready": true}]);
    json!({
        "metadata": {"name": "freeport-member-1", "labels": {"app.kubernetes.io/name": "freeport-member"}},
        "spec": {"containers": [{"name": "member", "ports": ports}]},
        "status": {"containerStatuses": status},
    })
}

/// Returns the object at a path.
fn at(path: &str, query: &str) -> Option<String> {
    let secret = json!({"metadata": {"name": "freeport-leader-demo"}, "type": "Opaque", "data": {"token": "b3BlbnNlc2FtZS00NzEx"}});
    let export = json!({"metadata": {"namespace": "shop", "name": "web", "annotations": {"note": format!("it is {TOKEN}")}}});
    let value = match path {
        "/version" => json!({
            "major": "1", "minor": "36", "gitVersion": "v1.36.3", "gitCommit": "", "gitTreeState": "", "buildDate": "",
            "goVersion": "", "compiler": "", "platform": "",
        }),
        "/api/v1/namespaces" if !query.contains("continue") => {
            let mut page = list(&[json!({"metadata": {"name": "kube-system", "uid": "1"}})]);
            page["metadata"]["continue"] = "more".into();
            page
        }
        "/api/v1/namespaces" => list(&[json!({"metadata": {"name": "shop", "labels": {}}})]),
        "/apis/multicluster.x-k8s.io/v1alpha1/serviceexports" => list(&[export]),
        "/api/v1/namespaces/freeport-system/secrets" => list(&[secret]),
        "/api/v1/namespaces/freeport-system/pods" => list(&[pod()]),
        "/api/v1/namespaces/freeport-system/pods/freeport-member-1/log" => {
            let when = if query.contains("previous=true") { "before" } else { "now" };
            return Some(format!("{when}\nAuthorization: Bearer {TOKEN}\n"));
        }
        "/api/v1/namespaces/freeport-system/pods/freeport-member-1:8080/proxy/metrics" => {
            return Some("freeport_up 1\n".into());
        }
        _ => return None,
    };
    Some(value.to_string())
}

fn cluster(name: &str, is_up: bool) -> (Cluster, String) {
    let answer = move |request: Request<Body>| async move {
        let uri = request.uri();
        let failed = |code: StatusCode| {
            let message = "jane may not";
            let body = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "code": code.as_u16()});
            (code, body.to_string())
        };
        let (code, body) = match at(uri.path(), uri.query().unwrap_or_default()) {
            _ if !is_up => return Err(io::Error::from(io::ErrorKind::ConnectionRefused)),
            _ if uri.path() == "/api/v1/nodes" => failed(StatusCode::FORBIDDEN),
            Some(body) => (StatusCode::OK, body),
            None => failed(StatusCode::NOT_FOUND),
        };
        let mut response = Response::new(Body::from(body.into_bytes()));
        *response.status_mut() = code;
        Ok(response)
    };
    let server = format!("https://jane:{TOKEN}@{name}:6443");
    let client = Client::new(tower::service_fn(answer), "default");
    (Cluster { server, ..Cluster::of(name, client) }, "shop".into())
}

async fn gathered() -> (Files, Vec<String>, Vec<String>) {
    let clusters = [cluster("east", false), cluster("west:1", true), cluster("west/1", true)];
    let (mut said, mut missing) = (Vec::new(), Vec::new());
    let mut say = |line: &str| said.push(line.to_owned());
    let mut asked = ask(&clusters, &mut say).await;
    for asked in &mut asked {
        missing.append(&mut asked.missing);
    }
    logs(&clusters, &mut asked, &mut missing, &mut say).await;
    let content = Content::of(asked, Timestamp::now(), &missing);
    let (files, missing, _) = Box::pin(content.finished()).await.unwrap();
    said.sort();
    (files, missing, said)
}

fn text(files: &Files, path: &str) -> String {
    let found = files.get(path).unwrap_or_else(|| panic!("{path}: {:#?}", files.keys().collect::<Vec<_>>()));
    String::from_utf8(found.clone()).unwrap()
}

#[tokio::test]
async fn everything_is_there_but_credentials_and_what_is_missing_is_named() {
    let (files, missing, said) = gathered().await;
    assert_eq!(
        said,
        [
            "east: no answer",
            "west/1: 3 logs and metrics",
            "west/1: 3 objects",
            "west:1: 3 logs and metrics",
            "west:1: 3 objects",
        ]
    );
    for (path, content) in &files {
        let content = String::from_utf8(content.clone()).unwrap();
        assert!(!content.contains(TOKEN) && !content.contains("b3BlbnNlc2FtZ"), "{path}: {content}");
    }
    let log = "clusters/west_1/logs/freeport-member-1/member";
    assert_eq!(text(&files, &format!("{log}.log")), "now\nAuthorization: [cut: Authorization]\n");
    assert!(text(&files, &format!("{log}.previous.log")).starts_with("before\n"));
    assert_eq!(text(&files, "clusters/west_1-2/metrics/freeport-member-1.txt"), "freeport_up 1\n");
    let api = "clusters/west_1/api-server/api/v1/namespaces";
    assert!(text(&files, &format!("{api}.json")).contains("\"shop\""), "the second page");
    let cut = text(&files, "cut.txt");
    for line in [
        format!("{log}.log: line 2: Authorization"),
        "clusters/west_1/api-server/apis/multicluster.x-k8s.io/v1alpha1/serviceexports.json: \
         items.[shop/web].metadata.annotations.note: value of a Secret"
            .to_owned(),
    ] {
        assert!(cut.lines().any(|cut| cut == line), "{line}: {cut}");
    }
    assert_eq!(missing.len(), 3, "{missing:#?}");
    assert!(missing[0].starts_with("east: cannot ask for the version: no answer: "), "{missing:#?}");
    assert!(missing[1].starts_with("west:1: cannot list nodes: jane may not"), "{missing:#?}");
    assert_eq!(text(&files, "missing.txt").lines().collect::<Vec<_>>(), missing);
    assert!(files.contains_key("clusters/west_1/status.txt"));
    assert!(text(&files, "clusters/west_1/status.json").contains("\"cluster\": \"west:1\""));
    assert!(text(&files, "check.txt").contains("FP001"));
    let versions = text(&files, "version.json");
    assert_eq!(versions.matches("v1.36.3").count(), 1, "two contexts of one cluster: {versions}");
    assert!(versions.contains("contexts west:1 and west/1 are of one cluster"), "{versions}");
}

#[tokio::test]
async fn commands_answer_from_it() {
    let (files, ..) = gathered().await;
    let manifest: Manifest = serde_json::from_str(&text(&files, "bundle.json")).unwrap();
    let taken_at = manifest.taken_at;
    let contexts =
        KubeContext { bundle: Some(Bundle::of("b.tgz".into(), manifest, files)), ..KubeContext::default() };
    assert_eq!(contexts.namespace().unwrap(), "shop");
    let contexts = contexts.all().unwrap();
    let names: Vec<_> = contexts.iter().flat_map(|context| &context.name).collect();
    assert_eq!(names, ["east", "west:1", "west/1"]);
    let options = crate::GetOptions {
        listed: crate::Listed::Exports,
        contexts,
        namespace: Some("shop".into()),
        labels: String::new(),
    };
    let listing = crate::get(&options).await.unwrap();
    let crate::Rows::Exports(rows) = &listing.items else { panic!("{listing:?}") };
    assert_eq!((listing.now, rows.len(), &*rows[0].name), (taken_at, 1, "web"), "{listing:?}");
    let away = "east was not looked at: east: cannot list clustersets in freeport-system: no answer: connection refused";
    assert!(listing.not_looked_at.iter().any(|line| line == away), "{listing:?}");
    let east = KubeContext { name: Some("north".into()), ..options.contexts[0].clone() };
    let said = Cluster::open(&east).await.err().unwrap().to_string();
    assert!(said.contains("b.tgz has no context \"north\" (contexts: east, west:1, west/1)"), "{said}");
}
