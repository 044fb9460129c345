//! What tests start with: a table with the proof's feature, and access to API servers that do not answer.

use std::sync::Arc;

use api::{antrea::Members, lease::Pace, membership::Wire};
use kit::{
    boot::Env, client::Dial, events, hold::Hold, holder::Holder, index::Shared, metrics::Metrics,
    serve::Readiness,
};
use kube::{Client, Config};
use presence::{heartbeat::Heartbeats, leases::Leases};
use tokio_util::sync::CancellationToken;

use super::{Access, Features, proof::Copies};
use crate::{home::Home, identity::Identity};

/// A table: the feature is one line in it.
pub(crate) fn features() -> Features {
    [Box::new(Copies) as _].into()
}

/// Access to API servers that do not answer.
pub(crate) fn access() -> Access {
    let client = || Client::try_from(Config::new("http://127.0.0.1:1".parse().unwrap())).unwrap();
    let metrics = Metrics::new().unwrap();
    let (events, _) = events::channel(client(), "member", "pod".into(), metrics.clone());
    let env = Env {
        client: client(),
        dial: Dial::default(),
        namespace: "freeport-system".into(),
        holder: Holder { cluster_uid: "uid".into(), instance: "pod".into() },
        hold: Hold::sole(),
        pace: Pace::default(),
        metrics,
        events,
        ready: Readiness::default(),
        stop: CancellationToken::new(),
    };
    Access {
        home: Home::of(&env),
        us: Identity { cluster: "east".into(), common_area: "clusterset-demo".into() },
        leader: client(),
        wire: Wire::Freeport,
        antrea: Members::default(),
        leases: Shared::new(Leases::new(env.pace, Heartbeats::new(Members::default()), false)),
        guard: None,
        changed: Arc::default(),
        env,
    }
}
