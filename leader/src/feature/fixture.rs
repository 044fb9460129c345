//! A Common Area for unit tests.

use std::sync::Arc;

use api::{antrea::Members, label, quota::Quota};
use kit::{
    boot::Env, client::Dial, events, hold::Hold, holder::Holder, index::Shared, metrics::Metrics,
    serve::Readiness,
};
use kube::{Api, Client};
use presence::{heartbeat::Heartbeats, leases::Leases, restore::RestoreDetector};
use tokio_util::sync::CancellationToken;

use super::Access;
use crate::{bounds::Noted, silences::Silences};

/// Common Area `cs` of a cluster that `client` asks.
pub(crate) fn access(client: Client) -> Access {
    let metrics = Metrics::new().unwrap();
    let (events, _) = events::channel(client.clone(), label::LEADER, "test".into(), metrics.clone());
    let pace = api::lease::Pace::default();
    Access {
        leases: Shared::new(Leases::new(pace, Heartbeats::default(), false)),
        silences: Shared::new(Silences::new(pace.stale(), pace.renew())),
        guard: Arc::new(RestoreDetector::new(Api::default_namespaced(client.clone()), "test".into())),
        env: Env {
            client,
            dial: Dial::default(),
            namespace: "freeport-system".into(),
            holder: Holder { cluster_uid: "u".into(), instance: "test".into() },
            hold: Hold::sole(),
            pace,
            metrics,
            events,
            ready: Readiness::default(),
            stop: CancellationToken::new(),
        },
        common_area: "cs".into(),
        quota: Quota::default(),
        antrea: Members::default(),
        noted: Noted::default(),
    }
}
