//! The IP families of this cluster's Services: what its API server would give one that takes all there are.

use std::time::Duration;

use api::label;
use k8s_openapi::api::core::v1::{Service, ServicePort, ServiceSpec};
use kit::backoff::Backoff;
use kube::{
    Api,
    api::{ObjectMeta, PostParams},
};
use tokio::sync::watch;

use super::Link;

/// A cluster gets another family once in its life, and nothing tells of it.
const LOOK_AGAIN: Duration = Duration::from_secs(600);
const RETRY: Backoff = Backoff { first: Duration::from_millis(200), longest: Duration::from_secs(30) };

impl Link {
    /// Asks now and then; `known` once there was an answer, of whatever kind: what is known already is not lost for a refusal.
    pub(super) async fn learn_families(self, known: watch::Sender<bool>) {
        let services = Api::<Service>::namespaced(self.env.client.clone(), &self.env.namespace);
        let dry_run = PostParams { dry_run: true, ..PostParams::default() };
        let mut waits = RETRY.waits();
        loop {
            match services.create(&dry_run, &anything()).await {
                Ok(service) => {
                    self.have_families(service.spec.and_then(|spec| spec.ip_families).unwrap_or_default());
                }
                Err(kube::Error::Api(status)) if !matches!(status.code, 429 | 503 | 504) => {
                    let why = status.message;
                    tracing::warn!(
                        why,
                        "cannot find out which IP families this cluster has: imports are tried in all they have"
                    );
                }
                Err(error) => {
                    tracing::debug!(%error, "cannot ask for the IP families of this cluster yet");
                    tokio::time::sleep(waits.next().unwrap_or(LOOK_AGAIN)).await;
                    continue;
                }
            }
            known.send_replace(true);
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    fn have_families(&self, families: Vec<String>) {
        let is_new = self.knowledge.known.with(|known| {
            let before = std::mem::replace(&mut known.local.families, families.clone());
            before != families
        });
        if is_new {
            tracing::info!(?families, "IP families of this cluster");
            self.knowledge.mark_all();
        }
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
