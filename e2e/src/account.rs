//! Clients that have nothing but the token of a ServiceAccount.

use k8s_openapi::{
    ByteString,
    api::{
        authentication::v1::{TokenRequest, TokenRequestSpec},
        core::v1::{ConfigMap, ServiceAccount},
    },
};
use kube::{
    Client, Config,
    api::PostParams,
    config::{KubeConfigOptions, Kubeconfig},
};
use serde_json::json;
use sim::{invariant::Author, net::Caller};

use crate::{
    fixture::World,
    waiting::eventually,
    world::{Ground, Simulated},
};

/// Who has this token at the API server `server`.
pub async fn client(server: &str, ca: &ByteString, token: &str) -> Client {
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

/// The ServiceAccount `name`, by a new token.
pub async fn by_token(world: &World, cluster: &str, namespace: &str, name: &str) -> Client {
    if let Ground::Simulated(Simulated { world, .. }) = &world.ground {
        let user = format!("system:serviceaccount:{namespace}:{name}");
        return world.client(cluster, Caller { process: name.to_owned(), user, author: Author::Other });
    }
    let server = world.address(cluster);
    let (ca, token) = credential(world, cluster, namespace, name).await;
    client(&server, &ca, &token).await
}

/// The authority of a cluster, and a new token of the ServiceAccount `name` there.
pub async fn credential(world: &World, cluster: &str, namespace: &str, name: &str) -> (ByteString, String) {
    let admin = world.cluster(cluster);
    let accounts = admin.api::<ServiceAccount>(namespace);
    let request = TokenRequest {
        spec: Some(TokenRequestSpec { expiration_seconds: Some(3600), ..TokenRequestSpec::default() }),
        ..TokenRequest::default()
    };
    let granted = accounts.create_token_request(name, &PostParams::default(), &request).await.unwrap();
    let ca = admin.api::<ConfigMap>("default");
    let ca = eventually("the cluster publishes its authority", || async {
        let found = ca.get_opt("kube-root-ca.crt").await.unwrap();
        found.and_then(|map| map.data?.remove("ca.crt")).ok_or_else(|| "nothing".to_owned())
    })
    .await;
    (ByteString(ca.into_bytes()), granted.status.unwrap().token.unwrap())
}
