//! A cluster that leads and is a member, of which an API server of a few lines answers what is asked, and refuses to be written to.

use http::{HeaderValue, Method, Request, Response, StatusCode, header::DATE};
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube::{Client, client::Body};
use picture::check::{check, crds, report::Mark};
use serde_json::{Value, json};

use super::*;

fn ours() -> Value {
    json!({"app.kubernetes.io/managed-by": "freeport"})
}

fn list(items: &[Value]) -> Value {
    json!({"kind": "List", "apiVersion": "v1", "metadata": {}, "items": items})
}

fn lease(name: &str) -> Value {
    let annotations = json!({"multicluster.freeport.dev/version": "0.1.0"});
    let renewed = (Timestamp::now() - SignedDuration::from_secs(5)).to_string();
    let spec = json!({"holderIdentity": "1/pod", "leaseDurationSeconds": 30, "renewTime": renewed});
    json!({"metadata": {"name": name, "annotations": annotations}, "spec": spec})
}

fn deployment(account: &str) -> Value {
    let template = json!({"spec": {"serviceAccountName": account, "containers": []}});
    let spec = json!({"replicas": 1, "selector": {}, "template": template});
    json!({"metadata": {"name": "x"}, "spec": spec, "status": {"readyReplicas": 1, "availableReplicas": 1}})
}

/// What the API server has at a path.
fn at(path: &str) -> Option<Value> {
    let condition = |type_: &str, reason: &str| json!({"type": type_, "status": "True", "reason": reason});
    let set = json!({
        "metadata": {"name": "demo"},
        "spec": {"clusterID": "hub", "leaders": [{"clusterID": "hub", "server": "https://hub:6443"}]},
        "status": {"conditions": [condition("Ready", "Connected")]},
    });
    if let Some(name) = path.strip_prefix("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/") {
        return Some(json!({"metadata": {"name": name, "labels": ours()}}));
    }
    let conditions = [condition("Valid", "Valid"), condition("Ready", "Exported")];
    let web = |conditions: &[Value]| {
        let managed = json!([{"manager": "freeport-member", "operation": "Apply"}]);
        let metadata = json!({"namespace": "shop", "name": "web", "managedFields": managed});
        json!({"metadata": metadata, "status": {"conditions": conditions}})
    };
    Some(match path {
        "/version" => json!({
            "major": "1", "minor": "36+", "gitVersion": "v1.36.3", "gitCommit": "", "gitTreeState": "", "buildDate": "",
            "goVersion": "", "compiler": "", "platform": "",
        }),
        "/api/v1/namespaces/kube-system" => json!({"metadata": {"name": "kube-system", "uid": "1"}}),
        "/api/v1/namespaces" => list(&[json!({"metadata": {"name": "clusterset-demo"}})]),
        "/api/v1/nodes" => {
            list(&[json!({"metadata": {"name": "n"}, "spec": {"podCIDRs": ["10.1.0.0/24", "fd00:1::/64"]}})])
        }
        "/apis/networking.k8s.io/v1/servicecidrs" => {
            list(&[json!({"metadata": {"name": "kubernetes"}, "spec": {"cidrs": ["10.96.0.0/16"]}})])
        }
        "/apis/multicluster.crd.antrea.io/v1alpha2/namespaces/freeport-system/clustersets"
        | "/apis/multicluster.crd.antrea.io/v1alpha2/namespaces/clusterset-demo/clustersets" => list(&[set]),
        "/apis/coordination.k8s.io/v1/namespaces/freeport-system/leases/freeport-member" => {
            lease("freeport-member")
        }
        "/apis/coordination.k8s.io/v1/namespaces/clusterset-demo/leases" => {
            list(&[lease("freeport-leader"), lease("freeport-member-hub")])
        }
        "/apis/apps/v1/namespaces/freeport-system/deployments/freeport-member"
        | "/apis/apps/v1/namespaces/freeport-system/deployments/freeport-leader" => deployment("x"),
        "/api/v1/namespaces/freeport-system/pods" => list(&[]),
        "/apis/multicluster.x-k8s.io/v1alpha1/serviceexports" => list(&[web(&conditions)]),
        "/apis/multicluster.x-k8s.io/v1alpha1/serviceimports" => list(&[web(&conditions[1..])]),
        "/api/v1/namespaces/kube-system/configmaps/coredns" => {
            json!({"metadata": {"name": "coredns"}, "data": {"Corefile": "clusterset.local:53 {\n}\n"}})
        }
        "/apis/apps/v1/namespaces/kube-system/deployments/coredns" => deployment("coredns"),
        "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings" => list(&[json!({
            "metadata": {"name": "b"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "imports"},
            "subjects": [{"kind": "ServiceAccount", "namespace": "kube-system", "name": "coredns"}],
        })]),
        "/apis/rbac.authorization.k8s.io/v1/clusterroles/imports" => {
            let rule = json!({"apiGroups": ["multicluster.x-k8s.io"], "resources": ["serviceimports"], "verbs": ["list", "watch"]});
            json!({"metadata": {"name": "imports"}, "rules": [rule]})
        }
        _ => return None,
    })
}

/// The cluster. What `is_refused` says of a path is forbidden.
fn cluster(is_refused: fn(&str) -> bool) -> Cluster {
    let answer = move |request: Request<Body>| async move {
        assert_eq!(request.method(), Method::GET, "{}", request.uri());
        let path = request.uri().path();
        let failed = |code: StatusCode, message: &str| {
            let body = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "code": code.as_u16()});
            (code, body)
        };
        let (code, body) = match at(path) {
            _ if is_refused(path) => failed(StatusCode::FORBIDDEN, "jane may not"),
            Some(body) => (StatusCode::OK, body),
            None => failed(StatusCode::NOT_FOUND, "there is none"),
        };
        let now = Timestamp::now().strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
        let mut response = Response::new(Body::from(body.to_string().into_bytes()));
        *response.status_mut() = code;
        response.headers_mut().extend(now.parse::<HeaderValue>().ok().map(|now| (DATE, now)));
        Ok::<_, std::convert::Infallible>(response)
    };
    Cluster::of("hub", Client::new(tower::service_fn(answer), "default"))
}

#[tokio::test]
async fn all_is_read_and_nothing_is_written() {
    let known = look(&cluster(|_| false), &crds::names()).await;
    let ahead = known.server.as_ref().unwrap().ahead;
    assert_eq!((ahead, known.server.as_ref().unwrap().release), (Some(SignedDuration::ZERO), Some((1, 36))));
    assert_eq!(known.pod_ranges.as_ref().unwrap().to_string(), "10.1.0.0/24,fd00:1::/64");
    let report = check(&[known], Timestamp::now());
    assert!(report.lines.iter().all(|line| line.mark == Mark::Ok), "{:#?}", report.lines);
    let said: Vec<_> = report.lines.iter().map(|line| line.text.as_str()).collect();
    for part in [
        "Kubernetes v1.36.3, clock as here",
        "freeport-leader 0.1.0 runs",
        "well: 1 of 1",
        "CoreDNS gives imports names",
    ] {
        assert!(said.contains(&part), "{part}: {said:#?}");
    }
}

#[tokio::test]
async fn what_is_forbidden_is_skipped_and_the_rest_is_shown() {
    let is_refused =
        |path: &str| path.contains("nodes") || path.contains("rbac") || path.ends_with("serviceexports");
    let report = check(&[look(&cluster(is_refused), &crds::names()).await], Timestamp::now());
    assert!(report.is_well(), "{:#?}", report.lines);
    let skipped = report.lines.iter().filter(|line| line.mark == Mark::Skipped);
    let said: Vec<_> = skipped.map(|line| line.text.as_str()).collect();
    assert_eq!(said.len(), 3, "{said:#?}");
    assert!(said.iter().all(|text| text.ends_with("forbidden: jane may not")), "{said:#?}");
}
