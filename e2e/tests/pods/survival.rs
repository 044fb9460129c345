//! A client that asks all the time while daemons are replaced and killed, a cluster is cut off, and the leader's cluster is lost to another one.
//!
//! The client asks in `west` by the ClusterIP of the import; servers are in `east` and in `west` itself. That the leader is replaced means here:
//! its cluster is off the network for good, so that nobody can tell it anything; `west`, whose API server has another address and another
//! authority, becomes the leader by `freeport init`, and all members are turned to it by `freeport rejoin`. What goes on in each phase ends with
//! another server of `east` that answers the client: so the daemons do what they are for.

mod replicas;
mod set;
mod trail;

use std::{collections::BTreeSet, net::SocketAddr, time::Duration};

use api::{
    label,
    lease::LeaseView,
    mcs::{CLUSTERS_REACHABLE, ServiceImport},
    name,
};
use e2e::{
    audit,
    cluster_set::says,
    fixture::{AREA, SYSTEM},
    promised::{DEMOTED, TAKEOVER, promised},
    say::say,
    seen::{Imported, imported, right},
    waiting::{VOUCHED, eventually, within},
};
use fleet::agnhost::SERVICE_PORT;
use futures::future::join_all;
use k8s_openapi::api::apps::v1::Deployment;
use kube::ResourceExt;
use serde_json::json;

use self::{
    replicas::Replicas,
    set::{LEADER, MEMBERS, Set, alone},
    trail::Trail,
};
use crate::pods::client::{Client, PATIENCE};

const NS: &str = "survival";
const SERVICE: &str = "web";
/// The phase in which requests may fail, since nobody knows yet that there is no way to `east`.
const CUT: &str = "a cluster is cut off, until its endpoints are demoted";
/// How long it goes on like that. Who is sent to `east` meanwhile must fail before it is back.
const A_WHILE: Duration = Duration::from_secs(PATIENCE.as_secs() + 2);

#[e2e::test]
fn a_client_is_answered_whatever_becomes_of_daemons_links_and_the_leader() {
    alone(async |set| {
        let mut survival = Survival::begin(set).await;
        let mark = audit::mark(set);
        survival.one_replica_becomes_two().await;
        survival.all_daemons_restart().await;
        survival.all_leaders_crash().await;
        survival.active_replicas_are_lost().await;
        survival.a_cluster_is_cut_off_and_comes_back().await;
        survival.another_leader_takes_over().await;
        let trail = Trail::of(set, &mark);
        assert_eq!(trail.by_the_one_before(), Vec::<String>::new(), "one became two");
        assert_eq!(trail.by_deposed(), Vec::<String>::new(), "two replicas were active");
        survival.end().await;
    });
}

/// The import as it was in `west`, and who asks for it.
struct Survival {
    set: &'static Set,
    import: Imported,
    client: Client,
    /// How many servers there are in `east`.
    servers: usize,
}

impl Survival {
    async fn begin(set: &'static Set) -> Self {
        set.namespace(NS, &MEMBERS).await;
        let [east, west] = MEMBERS.map(|member| set.cluster(member));
        tokio::join!(east.run_service(NS, SERVICE, 1), west.run_service(NS, SERVICE, 1));
        join_all([east, west].map(|cluster| cluster.export(NS, SERVICE))).await;
        let import = eventually("west imports from both", || async {
            right(imported(west, NS, SERVICE).await, |seen| seen.endpoints.len() == 2)
        })
        .await;
        let server = SocketAddr::new(import.vip.parse().unwrap(), SERVICE_PORT);
        let client = Client::start(set, "west", server).await;
        Self { set, import, client, servers: 1 }
    }

    async fn one_replica_becomes_two(&mut self) {
        self.client.enter("one replica of each daemon becomes two").await;
        tokio::join!(self.set.lead(LEADER, 2), join_all(MEMBERS.map(|member| self.set.join(member, 2))));
        self.another_server_answers().await;
    }

    async fn all_daemons_restart(&mut self) {
        self.client.enter("all daemons restart, one replica after the other").await;
        join_all(self.daemons().iter().map(Replicas::restart)).await;
        self.another_server_answers().await;
    }

    async fn all_leaders_crash(&mut self) {
        self.client.enter("both leaders are killed (SIGKILL)").await;
        self.daemons()[0].crash().await;
        self.another_server_answers().await;
    }

    async fn active_replicas_are_lost(&mut self) {
        self.client.enter("the active replicas are killed with their Pods").await;
        let daemons = self.daemons();
        let took = join_all(daemons.iter().map(Replicas::take_over)).await;
        for (daemon, took) in daemons.iter().zip(took) {
            promised(&format!("killed with its Pod: another replica is active: {daemon}"), took, TAKEOVER);
        }
        self.another_server_answers().await;
    }

    async fn a_cluster_is_cut_off_and_comes_back(&mut self) {
        self.client.enter(CUT).await;
        self.set.unplug("east").await;
        self.import_says("ClustersDemoted").await;
        let last = self.client.is_served_again().await;
        say(&format!("the last request that failed began {:.1} s after the cut", last.as_secs_f64()));
        // Requests to the cluster that is cut off may fail until it is demoted, and not later; this machine is shared.
        assert!(last <= 2 * DEMOTED, "{last:?} after the cut");

        self.client.enter("it stays cut off").await;
        tokio::time::sleep(A_WHILE).await;

        self.client.enter("it is back").await;
        self.set.plug("east").await;
        self.client.hears(&self.servers_of_east().await).await;
        self.another_server_answers().await;
    }

    async fn another_leader_takes_over(&mut self) {
        self.client.enter("the leader's cluster is lost, and another one leads").await;
        self.set.unplug(LEADER).await;
        for member in MEMBERS {
            eventually(&format!("{member} misses the leader"), || async {
                says(self.set.cluster(member), SYSTEM, ("False", "LeaderUnreachable")).await
            })
            .await;
        }
        self.set.lead("west", 2).await;
        self.set.follow("west").await;
        within(VOUCHED, "the import is compared with what the new leader says", || self.is_bound()).await;
        self.another_server_answers().await;
    }

    /// Nothing failed but what was asked before anybody could know, and the import is the one that it was.
    async fn end(self) {
        let import = imported(self.set.cluster("west"), NS, SERVICE).await.unwrap();
        assert_eq!((&import.vip, &import.import_uid), (&self.import.vip, &self.import.import_uid));
        let mut failures = self.client.end();
        failures
            .iter_mut()
            .filter(|of| of.phase == CUT)
            .for_each(|of| of.why.retain(|why| !is_of_the_cut(why)));
        let failures = failures.into_iter().filter(|of| !of.why.is_empty());
        let failures: Vec<_> = failures.map(|of| format!("{}: {:?}", of.phase, of.why)).collect();
        assert!(failures.is_empty(), "{failures:#?}");
    }

    /// The daemons of all clusters, that of the leader first.
    fn daemons(&self) -> [Replicas<'static>; 3] {
        let of = |cluster, daemon| Replicas { cluster: self.set.cluster(cluster), daemon };
        [of(LEADER, label::LEADER), of(MEMBERS[0], label::MEMBER), of(MEMBERS[1], label::MEMBER)]
    }

    /// Starts another server in `east`, and waits until the client hears all that are there.
    async fn another_server_answers(&mut self) {
        self.servers += 1;
        let more = json!({"spec": {"replicas": self.servers}});
        let _: Deployment = self.set.cluster("east").patch(NS, SERVICE, &more).await;
        self.client.hears(&self.servers_of_east().await).await;
    }

    async fn servers_of_east(&self) -> BTreeSet<String> {
        self.set.cluster("east").servers(NS, SERVICE, self.servers).await
    }

    async fn import_says(&self, reason: &str) {
        eventually(&format!("the import says {reason}"), || async {
            let imports = self.set.cluster("west").api::<ServiceImport>(NS);
            let import = imports.get(SERVICE).await.map_err(|error| error.to_string())?;
            let said = import.status.unwrap_or_default().conditions.into_iter();
            match said.into_iter().find(|condition| condition.type_ == CLUSTERS_REACHABLE) {
                Some(said) if said.reason == reason => Ok(()),
                other => Err(format!("{other:?}")),
            }
        })
        .await;
    }

    async fn is_bound(&self) -> Result<(), String> {
        let west = self.set.cluster("west");
        let lease = west.api::<LeaseView>(AREA).get(name::LEADER_LEASE).await;
        let hub = lease.map_err(|error| error.to_string())?.uid();
        let import = west.api::<ServiceImport>(NS).get(SERVICE).await.map_err(|error| error.to_string())?;
        let bound = import.annotations().get(label::HUB);
        if bound == hub.as_ref() { Ok(()) } else { Err(format!("{bound:?}, not {hub:?}")) }
    }
}

/// Whether a request failed like one to a cluster that is off the network. One that is refused has found no endpoint, or one that is gone.
fn is_of_the_cut(why: &str) -> bool {
    ["no answer in time", "No route to host", "Network is unreachable"].iter().any(|of| why.contains(of))
}
