//! The certificate of the webhook where kubelets mount it: it is replaced again and again, and no Pod is refused.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use api::offload::{
    label::NOT_ALLOWED,
    namespace::{NAME, NamespaceOffloading},
};
use e2e::{
    cluster::Cluster,
    fixture::SYSTEM,
    say::say,
    waiting::{ROTATED, eventually},
    webhook::SECRET,
};
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{Pod, Secret},
};
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::pods::world::{Pods, SIX};

const NAMESPACE: &str = "rotated";
/// An authority is replaced after 50 seconds. A leaf has at least 20 left when the next one is there, which a kubelet mounts when it syncs
/// the Pod: in these clusters every 5 to 7.5 s (`syncFrequency` in fleet/src/node.rs). An authority of 60 seconds, as
/// a leaf has, would leave 15 of them to a kubelet on a machine that other tests share.
const LIFETIMES: [(&str, &str); 2] =
    [("FREEPORT_WEBHOOK_CA_SECONDS", "75"), ("FREEPORT_WEBHOOK_CERTIFICATE_SECONDS", "60")];
/// How often authority and leaf are replaced by their like.
const ROTATIONS: usize = 3;
/// Between two Pods.
const PAUSE: Duration = Duration::from_millis(250);

/// Creates Pods of an offloaded Namespace of [`SIX`] all the time, without a kubelet's work, while its member replaces certificates.
pub(super) async fn no_pod_is_refused_while_they_change(world: &Pods) {
    let six = world.cluster(SIX);
    six.create_namespace(NAMESPACE).await;
    six.create::<NamespaceOffloading>(NAMESPACE, json!({"metadata": {"name": NAME}, "spec": {}})).await;
    eventually("its Pods are placed", || async {
        let pod = six.try_pod(NAMESPACE).await?;
        if is_placed(&pod) { Ok(()) } else { Err(format!("{:?}", pod.spec)) }
    })
    .await;
    member_has(six, LIFETIMES.map(|(name, value)| json!({"name": name, "value": value}))).await;
    // The first ones are those of the usual lifetimes, the second ones replace these.
    let (mut authorities, mut leaves, mut pods) = (BTreeSet::new(), BTreeSet::new(), 0);
    let begun = Instant::now();
    while authorities.len() < 2 + ROTATIONS || leaves.len() < 2 + ROTATIONS {
        let [authority, leaf] = certificates(six).await;
        authorities.insert(authority);
        leaves.insert(leaf);
        let pod = six.try_pod(NAMESPACE).await;
        let seen =
            format!("after {pods} Pods, {} authorities and {} leaves", authorities.len(), leaves.len());
        let pod = pod.unwrap_or_else(|why| panic!("{seen}: {why}"));
        assert!(is_placed(&pod), "{seen}: {:?}", pod.spec);
        assert!(begun.elapsed() < ROTATED.time, "{seen}");
        pods += 1;
        tokio::time::sleep(PAUSE).await;
    }
    say(&format!(
        "{pods} Pods while {} authorities and {} leaves were used",
        authorities.len(),
        leaves.len()
    ));
    member_has(six, LIFETIMES.map(|(name, _)| json!({"name": name, "$patch": "delete"}))).await;
    world.release(NAMESPACE).await;
}

pub(super) fn is_placed(pod: &Pod) -> bool {
    let tolerations = pod.spec.iter().flat_map(|spec| spec.tolerations.iter().flatten());
    tolerations.into_iter().any(|toleration| toleration.key.as_deref() == Some(NOT_ALLOWED))
}

/// Changes the environment of the member, which starts anew.
async fn member_has(cluster: &Cluster, env: [Value; 2]) {
    let container = json!({"name": "freeport-member", "env": env});
    let patch = Patch::Strategic(json!({"spec": {"template": {"spec": {"containers": [container]}}}}));
    let deployments = cluster.api::<Deployment>(SYSTEM);
    deployments.patch("freeport-member", &PatchParams::default(), &patch).await.unwrap();
}

/// The authority that issues, and the leaf that kubelets are to mount.
async fn certificates(cluster: &Cluster) -> [String; 2] {
    let secret = cluster.api::<Secret>(SYSTEM).get(SECRET).await.unwrap();
    let data = secret.data.unwrap();
    let [authorities, leaf] =
        ["ca.crt", "tls.crt"].map(|key| String::from_utf8(data[key].0.clone()).unwrap());
    let first = authorities.split_inclusive("END CERTIFICATE").next();
    [first.unwrap().to_owned(), leaf]
}
