//! The IP families of this cluster's Services: what its API server would give one that takes all there are.

use std::time::Duration;

use api::label;
use k8s_openapi::api::core::v1::{Service, ServicePort, ServiceSpec};
use kit::{backoff::Backoff, index::Readers};
use kube::{
    Api,
    api::{ObjectMeta, PostParams},
};
use tokio::{sync::watch, time::timeout};

use super::Link;

/// A cluster gets another family once in its life, and nothing tells of it.
const LOOK_AGAIN: Duration = Duration::from_secs(600);
/// Long enough that a hiccup at the start is over before anything is made of what is not known.
const RETRY: Backoff = Backoff { first: Duration::from_secs(3), longest: Duration::from_secs(60) };
const PATIENCE: Duration = Duration::from_secs(10);

impl Link {
    /// Asks now and then. Nothing waits long for the answer: `known` is true once there was one, or none in a while. What is
    /// known already is not lost for a refusal.
    pub(super) async fn learn_families(self, known: watch::Sender<bool>) {
        let services = Api::<Service>::namespaced(self.env.client.clone(), &self.env.namespace);
        let dry_run = PostParams { dry_run: true, ..PostParams::default() };
        let (mut waits, mut said) = (RETRY.waits(), false);
        loop {
            let asked = timeout(PATIENCE, services.create(&dry_run, &anything())).await;
            let why = match asked {
                Ok(Ok(service)) => {
                    self.have_families(service.spec.and_then(|spec| spec.ip_families).unwrap_or_default());
                    said = false;
                    known.send_replace(true);
                    tokio::time::sleep(LOOK_AGAIN).await;
                    continue;
                }
                Ok(Err(error)) => error.to_string(),
                Err(_) => "no answer".to_owned(),
            };
            if !said {
                tracing::warn!(
                    why,
                    "cannot find out which IP families this cluster has: imports get one, if it is not known yet"
                );
                said = true;
            }
            tokio::time::sleep(waits.next().unwrap_or(LOOK_AGAIN)).await;
            known.send_replace(true);
        }
    }

    fn have_families(&self, families: Vec<String>) {
        let before = self.knowledge.local.with(|local| local.families.clone());
        if before == families {
            return;
        }
        tracing::info!(?families, "IP families of this cluster");
        self.knowledge.local.with(|local| local.families = families);
        self.knowledge.services.enqueue_all(Readers::ALL);
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
