//! Who tries what: members with nothing but their credentials, at one API server that is the leader's and a member's. No daemon
//! runs.

use std::path::Path;

use api::{
    announce::MemberClusterAnnounce,
    label,
    name::{LEADER_LEASE, announce, member_lease},
    report::ClusterReport,
    resource_export::ResourceExport,
    resource_import::ResourceImport,
};
use cli::objects::access;
use e2e::{
    account::by_token,
    cluster::Cluster,
    fixture::{AREA, SET, SYSTEM},
    shared::{Fixture, Shared},
    waiting::eventually,
    world::World,
};
use fleet::cluster_set::Composition;
use k8s_openapi::api::{coordination::v1::Lease, core::v1::Namespace};
use kube::{
    Api, Client,
    api::{DynamicObject, PostParams},
};
use serde_json::json;

use crate::rights::{
    account::{self, Rights},
    attempt::{Do, EVERYWHERE},
    records::{exports, service, slice},
    samples,
};

/// A Common Area of another ClusterSet that the same cluster leads.
pub(crate) const OTHER_AREA: &str = "clusterset-other";

/// How policy `freeport-records` refuses what is another cluster's.
pub(crate) const NOT_OURS: &str = "may not act as";

static PARTIES: Shared<Parties> = Shared::new("rights", 1, || Box::pin(Parties::up()));

pub(crate) struct Parties {
    pub world: World,
    /// Member `east`, with the rights that `freeport join` gives.
    pub east: Client,
    /// A member `north` whose Role allows whatever one may want to try: what keeps it is the policy alone.
    pub north: Client,
    /// The member's ServiceAccount in its own cluster, with the rights that `freeport join` gives.
    pub member: Client,
}

impl Fixture for Parties {
    fn dir(&self) -> &Path {
        self.world.real().fleet.dir()
    }
}

impl Parties {
    async fn up() -> Self {
        let world = World::bring_up("rights", &["leader"]).await;
        let offloading = Composition { offload: true, ..Composition::of_all(&world.real().fleet, SET) };
        world.set_up(&offloading).await;
        let leader = world.leader();
        let area = json!({"metadata": {"name": OTHER_AREA, "labels": {label::COMMON_AREA: label::TRUE}}});
        let area: Namespace = serde_json::from_value(area).unwrap();
        Api::all(leader.client.clone()).create(&PostParams::default(), &area).await.unwrap();
        south_is_there(leader).await;

        for object in access::objects(SET, "east", None) {
            let body: DynamicObject = serde_json::from_value(object.body.clone()).unwrap();
            let api = Api::<DynamicObject>::namespaced_with(leader.client.clone(), AREA, &object.resource);
            api.create(&PostParams::default(), &body).await.unwrap();
        }
        let east = by_token(&world, "leader", AREA, &access::account("east")).await;
        let rights = Rights::Role(account::any_right("north"));
        let north = account::with(&world, AREA, "freeport-member-north", rights).await;
        for member in [&east, &north] {
            until_refused(member).await;
        }
        let member = by_token(&world, "leader", SYSTEM, label::MEMBER).await;
        until_kept_to_its_own(&member).await;
        until_kept_to_its_twins(&member).await;
        Self { world, east, north, member }
    }
}

/// What others have in the Common Area, for a member to try to change. No daemon runs for cluster `south`.
async fn south_is_there(leader: &Cluster) {
    for record in [service("south", "shop", "web"), slice("south", "shop", "web")] {
        let _: ResourceExport = leader.create(AREA, record).await;
    }
    let import = json!({
        "metadata": {"name": "shop-web-service"},
        "spec": {"namespace": "shop", "name": "web", "kind": "ServiceImport"},
    });
    let _: ResourceImport = leader.create(AREA, import).await;
    let announced = json!({"metadata": {"name": announce("south")}, "clusterID": "south"});
    let _: MemberClusterAnnounce = leader.create(AREA, announced).await;
    for lease in [member_lease("south"), LEADER_LEASE.to_owned()] {
        let held = json!({"metadata": {"name": lease}, "spec": {"holderIdentity": "other/1"}});
        let _: Lease = leader.create(AREA, held).await;
    }
    let _: ClusterReport = leader.create(AREA, json!({"metadata": {"name": "south"}})).await;
}

/// A policy is enforced a moment after it was created.
async fn until_refused(member: &Client) {
    eventually("the policy is enforced", || async {
        let record = service("south", "shop", "probe");
        let tried = Do::DryCreate(record).by(member, AREA, &exports()).await;
        match tried {
            Err(refusal) if refusal.message.contains(NOT_OURS) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
}

/// The same for policy `freeport-member-own`.
async fn until_kept_to_its_own(member: &Client) {
    eventually("the member is kept to its own", || async {
        let nobodys = samples::service(&json!({"name": "antrea-mc-probe"}));
        match Do::DryCreate(nobodys).by(member, "default", &samples::services()).await {
            Err(refusal) if refusal.is_by_policy("must have the label") => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
}

/// The same for policy `freeport-offload`.
async fn until_kept_to_its_twins(member: &Client) {
    eventually("the member is kept to its twins", || async {
        let nobodys = json!({"metadata": {"name": "probe"}});
        match Do::DryCreate(nobodys).by(member, EVERYWHERE, &samples::namespaces()).await {
            Err(refusal) if refusal.is_by_policy("must have the label") => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
}

/// Runs a test beside others.
pub(crate) fn shared<F: Future<Output = ()>>(test: impl FnOnce(&'static Parties) -> F) {
    PARTIES.beside(test);
}

/// Runs a test that changes what others try.
pub(crate) fn alone<F: Future<Output = ()>>(test: impl FnOnce(&'static Parties) -> F) {
    PARTIES.alone(test);
}
