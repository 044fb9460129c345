//! The leader is killed after each of its writes about a contract, from the first request to the end: each of its lives adds one.

use std::cell::RefCell;

use api::bind::{
    bound_schema::BoundSchema,
    export::{APIServiceExport, APIServiceExportRequest, APIServiceNamespace, Phase},
    identity::cluster_namespace,
    offer::BindableResourcesRequest,
};
use cli::objects::SYSTEM;
use e2e::{
    binding::{BINDING, Offered, provider::offer},
    daemon::LEADER,
    life::Fall,
    trap::{Side, Trap},
    victim::Victim,
    waiting::{VOUCHED, within},
};
use k8s_openapi::api::rbac::v1::RoleBinding;
use kube::{
    Api, Resource,
    api::{DeleteParams, ListParams},
};
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::bind::evicted::left;

const IDENTITY: &str = "mortal-leader";

/// The leader, of which no life is longer than to its next write about the contract.
struct Mortal {
    victim: Victim,
    cns: String,
    falls: RefCell<Vec<String>>,
    /// What it was killed at since somebody wanted something else. Who begins anew may do once more what was done.
    spared: RefCell<Vec<String>>,
}

impl Mortal {
    fn of(victim: Victim, cns: String) -> Self {
        Self { victim, cns, falls: RefCell::default(), spared: RefCell::default() }
    }

    fn set_trap(&self) {
        let spared = self.spared.borrow().clone();
        self.victim.set(Trap { spared, ..Trap::at(1, Side::After).about(&self.cns) });
    }

    async fn rises(&self, fall: Fall) {
        e2e::note!("{fall}");
        self.falls.borrow_mut().push(fall.to_string());
        self.spared.borrow_mut().push(fall.write);
        self.set_trap();
        self.victim.launch().await;
    }

    /// Waits until it is so, and starts the leader again whenever it was killed.
    async fn until(&self, what: &str, is_so: impl AsyncFn() -> Result<(), String>) {
        self.spared.borrow_mut().clear();
        self.set_trap();
        within(VOUCHED, what, || async {
            if let Some(fall) = self.victim.fell() {
                self.rises(fall).await;
            }
            is_so().await
        })
        .await;
    }

    /// Somebody deletes it, and it goes.
    async fn goes<K>(&self, api: &Api<K>, name: &str)
    where
        K: Resource + Clone + DeserializeOwned + std::fmt::Debug,
    {
        api.delete(name, &DeleteParams::default()).await.unwrap();
        self.until(&format!("{name} is gone"), async || {
            let there = api.get_opt(name).await.map_err(|error| error.to_string())?;
            there.map_or(Ok(()), |there| Err(format!("{:?}", there.meta())))
        })
        .await;
    }
}

fn is_succeeded(phase: Phase) -> Result<(), String> {
    if phase == Phase::Succeeded { Ok(()) } else { Err(format!("{phase:?}")) }
}

#[e2e::test(real)]
fn a_leader_that_is_killed_after_every_write_ends_what_it_began() {
    BINDING.alone(async |world| {
        let leader = world.leader();
        let cns = cluster_namespace("kube-bind-", IDENTITY);
        let mortal = Mortal::of(Victim::of(world, LEADER).await, cns.clone());
        let (near, far) = (Offered::new("mortalnears", "Namespaced"), Offered::new("mortalfars", "Cluster"));
        for offered in [&near, &far] {
            offer(leader, offered, json!({})).await;
        }
        mortal.set_trap();
        let (asks, ask_of) = (leader.api::<BindableResourcesRequest>(SYSTEM), |offered: &Offered| {
            format!("{cns}-{}", offered.plural)
        });
        let (requests, exports) =
            (leader.api::<APIServiceExportRequest>(&cns), leader.api::<APIServiceExport>(&cns));
        for offered in [&near, &far] {
            let spec = json!({"clusterIdentity": {"identity": IDENTITY}, "author": "me", "templateRef": {"name": offered.plural}});
            let ask = json!({"metadata": {"name": ask_of(offered)}, "spec": spec});
            let _: BindableResourcesRequest = leader.create(SYSTEM, ask).await;
            mortal.until("somebody is a consumer", async || {
                let ask = asks.get(&ask_of(offered)).await.map_err(|error| error.to_string())?;
                is_succeeded(ask.status.unwrap_or_default().phase)
            })
            .await;
            let resource = json!({"group": offered.resource().group, "resource": offered.plural});
            let request = json!({"metadata": {"name": offered.plural}, "spec": {"resources": [resource]}});
            let _: APIServiceExportRequest = leader.create(&cns, request).await;
            mortal.until("the request is granted", async || {
                let request = requests.get(&offered.plural).await.map_err(|error| error.to_string())?;
                is_succeeded(request.status.unwrap_or_default().phase)
            })
            .await;
            mortal.until("the export has its schema and rights", async || {
                let export = exports.get(&offered.plural).await.map_err(|error| error.to_string())?;
                let said = export.status.unwrap_or_default().conditions;
                let is_so = said.iter().any(|c| c.type_ == "ProviderInSync" && c.status == "True");
                is_so.then_some(()).ok_or_else(|| format!("{said:?}"))
            })
            .await;
        }
        let asked = leader.api::<APIServiceNamespace>(&cns);
        let given = leader.api::<RoleBinding>(&format!("{cns}-team"));
        let gets_a_namespace = async || {
            let team = json!({"metadata": {"name": "team"}, "spec": {}});
            let _: APIServiceNamespace = leader.create(&cns, team).await;
            mortal.until("the consumer has a Namespace, and rights in it", async || {
                let team = asked.get("team").await.map_err(|error| error.to_string())?.status;
                let rights = given.list(&ListParams::default()).await.map_err(|error| error.to_string())?;
                let is_there = team.as_ref().is_some_and(|status| status.namespace.is_some());
                let is_so = is_there && !rights.items.is_empty();
                is_so.then_some(()).ok_or_else(|| format!("{team:?} {:?}", rights.items))
            })
            .await;
        };
        gets_a_namespace().await;
        mortal.goes(&asked, "team").await;
        mortal.until("the Namespace is gone", async || {
            let there = left(leader, &cns).await;
            let is_gone = !there.contains(&format!("{cns}-team"));
            is_gone.then_some(()).ok_or_else(|| format!("{there:?}"))
        })
        .await;
        gets_a_namespace().await;
        mortal.goes(&exports, &far.plural).await;
        let schemas = leader.api::<BoundSchema>(&cns);
        assert!(schemas.get_opt(&far.name()).await.unwrap().is_none(), "it goes before its export");
        assert!(schemas.get_opt(&near.name()).await.unwrap().is_some());

        leader.release_namespace(&cns).await;
        mortal.until("nothing is left of the consumer", async || {
            let left = left(leader, &cns).await;
            if left.is_empty() { Ok(()) } else { Err(format!("{left:?}")) }
        })
        .await;
        if let Some(fall) = mortal.victim.disarm().await {
            mortal.rises(fall).await;
        }
        mortal.victim.free().await;
        let falls = mortal.falls.into_inner();
        assert!(falls.len() > 30, "the trap springs at every write: {falls:#?}");
        for offered in [&near, &far] {
            leader.delete::<BindableResourcesRequest>(SYSTEM, &ask_of(offered)).await;
            leader.take_crd(&offered.name()).await;
        }
    });
}
