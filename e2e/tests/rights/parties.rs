//! Who tries what: members of the shared ClusterSet with nothing but their credentials, while no daemon runs.

use std::panic::{AssertUnwindSafe, resume_unwind};

use e2e::{
    daemon::{DAEMONS, End},
    fixture::{self, AREA, World},
};
use futures::FutureExt;
use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, Client, api::PostParams};
use serde_json::json;
use tokio::sync::{OnceCell, RwLock};

use crate::{
    account::{self, Rights},
    others,
};

/// A Common Area of another ClusterSet that the same cluster leads.
pub const OTHER_AREA: &str = "clusterset-other";

static PARTIES: OnceCell<Parties> = OnceCell::const_new();
/// A test that runs daemons holds it for itself.
static RUNNING: RwLock<()> = RwLock::const_new(());

pub struct Parties {
    pub world: &'static World,
    /// Member `east` at the leader, with the credential the daemon in east uses.
    pub east: Client,
    /// A member `north` whose Role allows whatever one may want to try: what keeps it is the policy alone.
    pub north: Client,
}

impl Parties {
    async fn of(world: &'static World) -> Self {
        stop_daemons(world).await;
        let leader = world.leader();
        let area = json!({"metadata": {
            "name": OTHER_AREA, "labels": {"multicluster.freeport.dev/common-area": "true"},
        }});
        let area: Namespace = serde_json::from_value(area).unwrap();
        Api::all(leader.client.clone()).create(&PostParams::default(), &area).await.unwrap();
        others::of_others(leader).await;

        let east = account::member(world.cluster("east")).await;
        let rights = Rights::Role(account::any_right("north"));
        let north = account::with(world, "leader", AREA, "freeport-member-north", rights).await;
        for member in [&east, &north] {
            others::until_refused(member).await;
        }
        Self { world, east, north }
    }
}

async fn stop_daemons(world: &World) {
    for daemon in DAEMONS {
        world.end(daemon, End::Stop).await;
    }
}

/// Runs a test while no daemon does.
pub fn without_daemons<F: Future<Output = ()>>(test: impl FnOnce(&'static Parties) -> F) {
    fixture::shared(async |world| {
        let parties = PARTIES.get_or_init(|| Parties::of(world)).await;
        let _others = RUNNING.read().await;
        test(parties).await;
    });
}

/// Runs a test while all daemons do; no other test runs meanwhile, and no daemon afterwards.
pub fn with_daemons<F: Future<Output = ()>>(test: impl FnOnce(&'static World) -> F) {
    fixture::shared(async |world| {
        PARTIES.get_or_init(|| Parties::of(world)).await;
        let _nobody = RUNNING.write().await;
        let seen = AssertUnwindSafe(async {
            for daemon in DAEMONS {
                world.start(daemon).await;
            }
            test(world).await;
        });
        let seen = seen.catch_unwind().await;
        stop_daemons(world).await;
        if let Err(failure) = seen {
            resume_unwind(failure);
        }
    });
}
