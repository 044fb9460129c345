//! The IP families of this cluster's Services: what its API server would give one that takes all there are.

use std::time::Duration;

use api::label;
use k8s_openapi::api::core::v1::{Service, ServicePort, ServiceSpec};
use kit::{backoff::Backoff, boot::Env};
use kube::{
    Api,
    api::{ObjectMeta, PostParams},
};
use tokio::{sync::watch, time::timeout};

use super::knowledge::Knowledge;

/// A cluster gets another family once in its life, and no watch shows it.
const ASK_AGAIN: Duration = Duration::from_secs(600);
/// Long enough that a hiccup at the start is over before anything is made of what is not known.
const RETRY: Backoff = Backoff { first: Duration::from_secs(3), longest: Duration::from_secs(60) };
/// Time for an answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Asks now and then. Nothing waits long for the answer: `known` is true once there was one, or none in a while. What is
/// known already is not lost for a refusal.
pub(super) async fn learn(env: Env, knowledge: Knowledge, known: watch::Sender<bool>) {
    let services = Api::<Service>::namespaced(env.client.clone(), &env.namespace);
    let dry_run = PostParams { dry_run: true, ..PostParams::default() };
    let (mut waits, mut warned) = (RETRY.waits(), false);
    loop {
        let asked = timeout(PATIENCE, services.create(&dry_run, &anything())).await;
        let why = match asked {
            Ok(Ok(service)) => {
                let families = service.spec.and_then(|spec| spec.ip_families).unwrap_or_default();
                if knowledge.have_families(&families) {
                    tracing::info!(?families, "IP families of this cluster");
                }
                warned = false;
                known.send_replace(true);
                tokio::time::sleep(ASK_AGAIN).await;
                continue;
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => "no answer".to_owned(),
        };
        if !warned {
            tracing::warn!(
                why,
                "cannot find out which IP families this cluster has: existing imports keep their families, new ones get one"
            );
            warned = true;
        }
        tokio::time::sleep(waits.next().unwrap_or(ASK_AGAIN)).await;
        known.send_replace(true);
    }
}

/// A Service that nobody gets: it is created for the answer alone.
fn anything() -> Service {
    Service {
        metadata: ObjectMeta {
            generate_name: Some("freeport-families-".into()),
            labels: Some([(label::MANAGED_BY.to_owned(), label::FREEPORT.to_owned())].into()),
            ..ObjectMeta::default()
        },
        spec: Some(ServiceSpec {
            ip_family_policy: Some("PreferDualStack".into()),
            ports: Some(vec![ServicePort { port: 80, ..ServicePort::default() }]),
            ..ServiceSpec::default()
        }),
        ..Service::default()
    }
}
