//! Whether the API server takes the webhook's answers. It is asked by a Pod that is to be created in an offloaded Namespace, in a dry
//! run: a webhook that runs may serve a certificate that API servers do not trust yet, or may not be asked yet.

use api::{
    label::TRUE,
    offload::label::{NOT_ALLOWED, SCHEDULING_ENABLED},
    view::Meta,
};
use k8s_openapi::api::core::v1::{Container, Namespace, Pod, PodSpec};
use kube::{
    Api, ResourceExt,
    api::{ObjectMeta, PostParams},
};

use super::Answer;
use crate::{Error, cluster::Cluster, objects::offload::webhook};

/// What an API server says of a webhook that it cannot ask.
const FAILED: &str = r#"failed calling webhook "pod.mutate.liqo.io""#;

/// Whether API servers can ask the webhook, as far as that can be known: where no Namespace is offloaded they ask it nothing.
pub(super) async fn answers(cluster: &Cluster) -> Result<Answer, Error> {
    let configuration = cluster.read(&webhook::configuration(None)).await?;
    let trusted = configuration.as_ref().and_then(|it| it.body.pointer("/webhooks/0/clientConfig/caBundle"));
    if trusted.and_then(|bundle| bundle.as_str()).is_none_or(str::is_empty) {
        return Ok(Err("freeport-member has not told the API server yet whom to trust".into()));
    }
    let namespaces: Api<Meta<Namespace>> = Api::all(cluster.client.clone());
    let offloaded = cluster.all(&namespaces, &format!("{SCHEDULING_ENABLED}={TRUE}")).await?;
    // In one that is being deleted no Pod is created, so nobody is asked.
    let Some(one) = offloaded.iter().find(|namespace| namespace.metadata.deletion_timestamp.is_none()) else {
        return Ok(places());
    };
    let pods: Api<Pod> = Api::namespaced(cluster.client.clone(), &one.name_any());
    let params = PostParams { dry_run: true, ..PostParams::default() };
    Ok(told(pods.create(&params, &pod()).await, &one.name_any()))
}

fn places() -> Answer {
    Ok("it places Pods of offloaded Namespaces".into())
}

fn pod() -> Pod {
    let container =
        Container { name: "dry-run".into(), image: Some("dry-run".into()), ..Container::default() };
    Pod {
        metadata: ObjectMeta { generate_name: Some("dry-run-".into()), ..ObjectMeta::default() },
        spec: Some(PodSpec { containers: vec![container], ..PodSpec::default() }),
        status: None,
    }
}

/// What the answer to the dry run says of the webhook.
fn told(answer: kube::Result<Pod>, namespace: &str) -> Answer {
    match answer {
        Ok(pod) if is_placed(&pod) => places(),
        Ok(_) => Err(format!("new Pods of Namespace {namespace} are not placed yet")),
        Err(kube::Error::Api(status)) if status.message.contains(FAILED) => Err(status.message.clone()),
        // Whatever else refuses it does so when the webhook has answered, and its denial is an answer.
        Err(_) => places(),
    }
}

/// Whether it may run in another cluster: every Pod that the webhook places may.
fn is_placed(pod: &Pod) -> bool {
    let tolerations = pod.spec.iter().flat_map(|spec| spec.tolerations.iter().flatten());
    tolerations.into_iter().any(|toleration| toleration.key.as_deref() == Some(NOT_ALLOWED))
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Toleration;
    use kube::core::Status;

    use super::*;

    #[test]
    fn it_is_ready_when_api_servers_take_its_answers() {
        let refused = |code: u16, message: &str| {
            Err(kube::Error::Api(Status::failure(message, "Reason").with_code(code).boxed()))
        };
        let mut placed = pod();
        placed.spec.as_mut().unwrap().tolerations =
            Some(vec![Toleration { key: Some(NOT_ALLOWED.into()), ..Toleration::default() }]);
        assert!(told(Ok(placed), "shop").is_ok());
        assert!(
            told(Ok(pod()), "shop").unwrap_err().contains("Namespace shop"),
            "the API server does not ask it"
        );
        let untrusted = "Internal error occurred: failed calling webhook \"pod.mutate.liqo.io\": failed to call webhook: Post \
                         \"https://freeport-webhook.freeport-system.svc:443/mutate/pod?timeout=3s\": tls: failed to verify \
                         certificate: x509: certificate signed by unknown authority";
        assert_eq!(told(refused(500, untrusted), "shop"), Err(untrusted.into()));
        for (code, message) in [
            (
                400,
                "admission webhook \"pod.mutate.liqo.io\" denied the request: Namespace shop is being unoffloaded",
            ),
            (403, "pods \"dry-run-x\" is forbidden: exceeded quota: q"),
        ] {
            assert!(told(refused(code, message), "shop").is_ok(), "{message}");
        }
    }
}
