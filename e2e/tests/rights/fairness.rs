//! Members wait in queues of their own at the leader's API server (issue 14, floods): which FlowSchema the API server uses for whom.

use e2e::{fixture::AREA, waiting::eventually};
use k8s_openapi::api::flowcontrol::v1::{FlowSchema, PriorityLevelConfiguration};
use kube::{Api, Client, ResourceExt, client::Body};

use crate::rights::parties::shared;

const LEVEL: &str = "freeport-members";

#[test]
fn requests_of_members_and_of_nobody_else_are_on_their_level() {
    shared(async |parties| {
        let admin = &parties.world.leader().client;
        let schema = Api::<FlowSchema>::all(admin.clone()).get(AREA).await.unwrap();
        let level = Api::<PriorityLevelConfiguration>::all(admin.clone()).get(LEVEL).await.unwrap();
        assert_eq!(schema.spec.priority_level_configuration.name, LEVEL);
        let (schema, level) = (schema.uid().unwrap(), level.uid().unwrap());
        eventually("requests of a member are on the level", || async {
            match classified(&parties.east).await {
                found if found == (schema.clone(), level.clone()) => Ok(()),
                other => Err(format!("{other:?}")),
            }
        })
        .await;
        for other in [admin, &parties.member] {
            let (used, on) = classified(other).await;
            assert_ne!(used, schema);
            assert_ne!(on, level);
        }
    });
}

/// The uids of FlowSchema and PriorityLevelConfiguration that the API server used for a request of this client, whatever its answer.
async fn classified(client: &Client) -> (String, String) {
    let path = format!("/api/v1/namespaces/{AREA}/configmaps");
    let request = http::Request::get(path).body(Body::empty()).unwrap();
    let answer = client.send(request).await.unwrap();
    let header = |name: &str| answer.headers()[name].to_str().unwrap().to_owned();
    (header("x-kubernetes-pf-flowschema-uid"), header("x-kubernetes-pf-prioritylevel-uid"))
}
