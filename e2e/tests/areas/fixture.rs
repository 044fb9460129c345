//! Two ClusterSets of one fleet, led by one freeport-leader.

use std::{
    ops::Deref,
    panic::{AssertUnwindSafe, resume_unwind},
    path::Path,
};

use api::{condition::AntreaCondition, resource_export::ResourceExport};
use e2e::{
    daemon::LEADER,
    metrics::Metrics,
    seen::imported,
    shared::{Fixture, Shared},
    simulated,
    waiting::eventually,
    world::{Ground, Simulated, World},
};
use fleet::cluster_set::Composition;
use futures::FutureExt;
use k8s_openapi::api::rbac::v1::RoleBinding;
use kube::api::PostParams;
use serde_json::json;
use sim::world::SetPlan;

/// Led by `leader`, which is a member; so is `east`.
pub(crate) const FIRST: &str = "first";
/// Led by `leader`, which is no member; `west` is.
pub(crate) const SECOND: &str = "second";

pub(crate) static AREAS: Shared<Areas> =
    Shared::new("areas", 3, || Box::pin(Areas::up())).simulated(|test| {
        let plan = simulated::plan(&CLUSTERS, &SETS);
        simulated::with(plan, |world| test(Box::leak(Box::new(Areas(world)))));
    });

const CLUSTERS: [&str; 3] = ["leader", "east", "west"];
/// Each with its members.
const SETS: [(&str, &[&str]); 2] = [(FIRST, &["leader", "east"]), (SECOND, &["west"])];

/// The Common Area of a set.
pub(crate) fn area(set: &str) -> String {
    cli::objects::area::name(set)
}

/// The fleet with both sets.
pub(crate) struct Areas(&'static World);

impl Deref for Areas {
    type Target = World;

    fn deref(&self) -> &World {
        self.0
    }
}

impl Fixture for Areas {
    fn dir(&self) -> &Path {
        self.real().fleet.dir()
    }
}

impl Areas {
    async fn up() -> Self {
        let mut world = World::bring_up("areas", &CLUSTERS).await;
        for (set, members) in SETS {
            world.add_set(&composition(set, members)).await;
        }
        Self(Box::leak(Box::new(world)))
    }

    /// One more set, which has no members. Its daemon runs already.
    pub(crate) async fn one_more(&self, set: &str) {
        match &self.ground {
            Ground::Real(_) => drop(self.set_up(&composition(set, &[])).await),
            Ground::Simulated(Simulated { world, .. }) => {
                let members = Vec::new();
                world.install_set(&SetPlan { name: set.to_owned(), members }, "first");
            }
        }
        self.is_served(set, true).await;
    }

    /// What a new Service of `east` exports gets to the leader's cluster: the first set does its work.
    pub(crate) async fn first_goes_on(&self, namespace: &str, service: &str) {
        self.cluster("east").exported(namespace, service, &["10.2.0.1"]).await;
        let what = format!("the first set goes on: {service}");
        eventually(&what, || self.gets_to("leader", namespace, service)).await;
    }

    /// The cluster imports the Service, or what is missing.
    pub(crate) async fn gets_to(&self, cluster: &str, namespace: &str, service: &str) -> Result<(), String> {
        let imported = imported(self.cluster(cluster), namespace, service).await;
        imported.map(drop).map_err(|missing| format!("{missing}; {}", self.log()))
    }

    /// Waits until the leader says that it is present in the set's Common Area, or that it is not.
    pub(crate) async fn is_served(&self, set: &str, present: bool) {
        eventually(&format!("{set} is served: {present}"), || async {
            match self.measured("freeport_present", set).await? {
                Some(value) if value == f64::from(u8::from(present)) => Ok(()),
                other => Err(format!("{other:?}; {}", self.log())),
            }
        })
        .await;
    }

    /// Waits until the leader says nothing about the set's Common Area any more.
    pub(crate) async fn is_forgotten(&self, set: &str) {
        eventually(&format!("{set} is forgotten"), || async {
            if self.of_leader().await?.mentions(&area(set)) { Err(self.log()) } else { Ok(()) }
        })
        .await;
    }

    /// What the leader measures of a set.
    pub(crate) async fn measured(&self, metric: &str, set: &str) -> Result<Option<f64>, String> {
        Ok(self.of_leader().await?.of(metric, "common_area", &area(set)))
    }

    /// What the leader measures.
    pub(crate) async fn of_leader(&self) -> Result<Metrics, String> {
        self.metrics(LEADER).await
    }

    /// Tells one leader process from another.
    pub(crate) async fn leader_process(&self) -> u32 {
        self.process(LEADER).await
    }

    /// Takes the leader's rights in a set's Common Area away while `meanwhile` runs, however that ends.
    pub(crate) async fn without_rights(&self, set: &str, meanwhile: impl AsyncFnOnce()) {
        let bindings = self.leader().api::<RoleBinding>(&area(set));
        let mut binding = bindings.get("freeport-leader").await.unwrap();
        self.leader().delete::<RoleBinding>(&area(set), "freeport-leader").await;
        let outcome = AssertUnwindSafe(Box::pin(meanwhile())).catch_unwind().await;
        (binding.metadata.uid, binding.metadata.resource_version) = (None, None);
        bindings.create(&PostParams::default(), &binding).await.unwrap();
        if let Err(failure) = outcome {
            resume_unwind(failure);
        }
    }

    /// Puts a record that cannot be judged into a set's Common Area.
    pub(crate) async fn bad_record(&self, set: &str, name: &str) {
        let spec = json!({"clusterID": "north", "namespace": "nowhere", "name": name, "kind": "Service"});
        let record = json!({"metadata": {"name": name}, "spec": spec});
        let _: ResourceExport = self.leader().create(&area(set), record).await;
    }

    /// What the leader says about a record.
    pub(crate) async fn said(&self, set: &str, record: &str) -> Vec<AntreaCondition> {
        let record = self.leader().api::<ResourceExport>(&area(set)).get(record).await.unwrap();
        record.status.unwrap_or_default().conditions
    }

    /// The last lines of the leader's log, for failure messages.
    pub(crate) fn log(&self) -> String {
        format!("the leader's log: {}", self.log_tail(LEADER))
    }
}

fn composition(set: &str, members: &[&str]) -> Composition {
    Composition {
        set: set.to_owned(),
        leader: "leader".to_owned(),
        members: members.iter().map(|&member| member.to_owned()).collect(),
        offload: false,
    }
}
