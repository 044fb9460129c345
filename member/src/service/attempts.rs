//! For tests of what is done all the same: an API server that fails at one request.

use std::convert::Infallible;

use api::label;
use http::{Method, Request, Response, StatusCode, request::Parts};
use kit::index::Shared;
use kube::{Client, client::Body};
use serde_json::{Value, json};

/// What was tried: verb, resource and name of each request, in their order.
pub(crate) type Tried = Shared<Vec<String>>;

/// An API server that has nothing and takes everything, but breaks at this request.
pub(crate) fn breaks_at(broken: Option<&str>) -> (Client, Tried) {
    let (tried, broken) = (Tried::default(), broken.map(str::to_owned));
    let heard = tried.clone();
    let answer = move |request: Request<Body>| {
        let (heard, broken) = (heard.clone(), broken.clone());
        async move {
            let (head, body) = request.into_parts();
            let mut object: Value =
                serde_json::from_slice(&body.collect_bytes().await.unwrap()).unwrap_or_default();
            let path = path(&head, &object);
            let request = format!("{} {}", head.method, path.join("/"));
            let (status, answer) = if broken.as_ref() == Some(&request) {
                let answer =
                    json!({"status": "Failure", "code": 500, "reason": "InternalError", "message": "broken"});
                (StatusCode::INTERNAL_SERVER_ERROR, answer)
            } else {
                object["metadata"]["name"] = json!(path[1]);
                object["metadata"]["managedFields"] = json!([{"manager": label::MEMBER}]);
                if path[0] == "services" {
                    object["spec"]["clusterIP"] = json!("10.0.0.1");
                    object["spec"]["clusterIPs"] = json!(["10.0.0.1"]);
                }
                (StatusCode::OK, object)
            };
            heard.with(|heard| heard.push(request));
            let answer = Response::builder().status(status).body(Body::from(answer.to_string().into_bytes()));
            Ok::<_, Infallible>(answer.unwrap())
        }
    };
    (Client::new(tower::service_fn(answer), "x"), tried)
}

/// Resource and name of what a request is about, and the subresource.
fn path(head: &Parts, object: &Value) -> Vec<String> {
    let path = head.uri.path().split('/').skip_while(|part| *part != "namespaces").skip(2);
    let mut path: Vec<_> = path.map(str::to_owned).collect();
    if head.method == Method::POST {
        path.push(object["metadata"]["name"].as_str().unwrap().to_owned());
    }
    path
}
