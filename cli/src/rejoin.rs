//! `freeport rejoin`: members of a ClusterSet get another leader, or the same one that was emptied, and keep their imports.

mod failed;

use std::time::Duration;

use kube::{Api, ResourceExt, api::ListParams};

use self::failed::Failed;
use crate::{
    Daemons, Error, KubeContext, Part, Run,
    cluster::{Cluster, known},
    install::Installer,
    join::{Membership, enroll},
    objects::{SYSTEM, member, offload::leader_crds},
    offload, precondition,
    view::ClusterSetView,
    warning,
};

/// Who gets which leader.
#[derive(Clone, Debug)]
pub struct RejoinOptions {
    /// Members of a ClusterSet.
    pub clusters: Vec<KubeContext>,
    /// The cluster that leads it now.
    pub leader: KubeContext,
    /// URL of the leader's API server as the members see it, when the kubeconfig has another.
    pub leader_server: Option<String>,
    /// Wait until each member says that it is connected.
    pub wait: bool,
    /// Limit of each wait.
    pub timeout: Duration,
    /// Prints a line beside the progress.
    pub aside: fn(&str),
}

/// Gives each member access to the Common Area on the leader, and changes the credential and the leader in its ClusterSet. The ranges that
/// limit its endpoints are noted there as under the leader before, and where it offloads, the leader gets the CRDs of the records. Its
/// daemon goes on, and what it imported stays. Safe to run again: it changes only what differs.
///
/// `say` gets one line for each thing done.
///
/// # Errors
/// Those of [`Error`]. All clusters are checked before any of them is changed. What fails in one keeps no other one from its leader; it is said
/// at the end, and [`Error::Refused`] names the clusters.
pub async fn rejoin(options: &RejoinOptions, say: &mut (dyn FnMut(&str) + Send)) -> Result<(), Error> {
    precondition::leader_server(options.leader_server.as_deref())?;
    let run = Run {
        daemons: Daemons::Inside { image: None, replicas: None },
        only: vec![],
        wait: options.wait,
        timeout: options.timeout,
        dry_run: false,
        aside: options.aside,
    };
    let leader = Cluster::open(&options.leader).await?;
    let mut clusters = Vec::new();
    for context in &options.clusters {
        clusters.push(Cluster::open(context).await?);
    }
    let leader = leader.identified().await?;
    let (mut failed, mut found, mut turned) = (Failed::default(), Vec::new(), Vec::new());
    for cluster in clusters {
        let name = cluster.name.clone();
        let member = Member::of(cluster, &leader, options.leader_server.as_deref()).await;
        found.extend(failed.note(&name, member));
    }
    let found = failed.note_namesakes(found);
    if options.leader_server.is_none() {
        found.iter().for_each(|member| warning::is_loopback(&leader, &member.membership.server, &run));
    }
    warning::policy_is_off(&leader, &run).await;
    for member in &found {
        let done = member.turn(&leader, &run, say).await;
        turned.extend(failed.note(&member.cluster.name, done).map(|()| member));
    }
    for Member { cluster, set, id, .. } in turned.iter().filter(|_| options.wait) {
        let connected = Installer::new(cluster, &run, say).member_is_connected(set, id, &leader).await;
        failed.note(&cluster.name, connected);
    }
    failed.end(&leader, options.clusters.len(), say)
}

impl Failed {
    /// Members that have the ID of another one of them do not rejoin: which of them has it by right is not known here, and the first to come
    /// would take it.
    fn note_namesakes(&mut self, found: Vec<Member>) -> Vec<Member> {
        let other = |one: &Member| namesake(one.claim(), found.iter().map(Member::claim)).map(str::to_owned);
        let others: Vec<_> = found.iter().map(other).collect();
        let unique = found.into_iter().zip(others).filter_map(|(member, other)| {
            let Member { cluster, id, .. } = &member;
            let outcome = other.map_or(Ok(()), |other| {
                Err(cluster.refuse(format!("{other} has the ID {id:?}, too; nothing was changed here")))
            });
            self.note(&cluster.name, outcome).map(|()| member)
        });
        unique.collect()
    }
}

/// That a cluster has an ID in a ClusterSet.
#[derive(Clone, Copy)]
struct Claim<'a> {
    /// The name of the cluster here.
    name: &'a str,
    uid: &'a str,
    set: &'a str,
    id: &'a str,
}

/// The name of another cluster among `all` that has the same ID.
fn namesake<'a>(one: Claim<'_>, mut all: impl Iterator<Item = Claim<'a>>) -> Option<&'a str> {
    let other = all.find(|other| (other.set, other.id) == (one.set, one.id) && other.uid != one.uid);
    other.map(|other| other.name)
}

/// A member that gets another leader.
struct Member {
    cluster: Cluster,
    set: String,
    id: String,
    leader_id: String,
    /// Whether it takes part in offloading.
    offloads: bool,
    membership: Membership,
}

impl Member {
    /// The cluster, if it is a member of a set that `leader` leads now, and nobody else there has its ID.
    async fn of(cluster: Cluster, leader: &Cluster, server: Option<&str>) -> Result<Self, Error> {
        let cluster = cluster.identified().await?;
        let sets: Api<ClusterSetView> = Api::namespaced(cluster.client.clone(), SYSTEM);
        let found = cluster.request("list ClusterSets", known(sets.list(&ListParams::default()))).await?;
        let [found] = found.map(|list| list.items).unwrap_or_default().try_into().map_err(|found: Vec<_>| {
            cluster.refuse(format!(
                "Namespace {SYSTEM} has {} ClusterSets, and a member that gets another leader has one; to make this cluster a member, \
                 freeport join",
                found.len()
            ))
        })?;
        let set = ResourceExt::name_any(&found);
        let Some(id) = found.cluster_id().map(str::to_owned) else {
            return Err(cluster.refuse(format!(
                "ClusterSet {SYSTEM}/{set} has no spec.clusterID, so that its ID is not known here; say it there first"
            )));
        };
        let leader_id = precondition::leader_id(leader, &set, "run `freeport init` there first").await?;
        precondition::is_itself(leader, &leader_id, &cluster, &set, &id)?;
        precondition::is_free(leader, &cluster, &set, &id).await?;
        if server.is_none()
            && found.leader_id() == Some(leader_id.as_str())
            && let Some(known) = found.server()
        {
            is_meant(known, &leader.server).map_err(|reason| cluster.refuse(reason))?;
        }
        let offloads = offload::offloads(&cluster).await?;
        if offloads {
            offload::is_without_liqo(leader).await?;
        }
        let membership = Membership::new(&set, &id, &leader_id, leader, server)?;
        Ok(Self { cluster, set, id, leader_id, offloads, membership })
    }

    fn claim(&self) -> Claim<'_> {
        let Self { cluster, set, id, .. } = self;
        Claim { name: &cluster.name, uid: &cluster.uid, set, id }
    }

    /// Turns it to the leader.
    async fn turn(
        &self,
        leader: &Cluster,
        run: &Run,
        say: &mut (dyn FnMut(&str) + Send),
    ) -> Result<(), Error> {
        let Self { cluster, set, id, leader_id, offloads, membership } = self;
        let mut there = Installer::new(leader, run, say);
        if *offloads {
            there.install_crds(&leader_crds()).await?;
        }
        let credential = enroll(&mut there, membership, cluster).await?;
        there.sum_up();
        let mut here = Installer::new(cluster, run, say);
        here.install(Part::Member, &member::credential(set)).await?;
        if let Some(credential) = credential {
            here.hand_over(set, &credential).await?;
        }
        let turned = member::cluster_set(set, id, leader_id, &membership.server);
        here.install(Part::Member, &[turned]).await?;
        here.sum_up();
        here.retire_token(leader, set, id).await
    }
}

/// Refuses to guess under which of two addresses a member reaches its leader: `known` to the member may have been given to it, as one that
/// others than we use, or be that of a cluster which was replaced.
fn is_meant(known: &str, ours: &str) -> Result<(), String> {
    let text = |url: &str| url.trim_end_matches('/').to_owned();
    match text(known) == text(ours) {
        true => Ok(()),
        false => Err(format!(
            "the member reaches its leader at {known}, and the kubeconfig has {ours}: say with --leader-server which it is from now on; nothing \
             was changed here"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_the_id_of_another_cluster_is_known_and_one_that_is_named_twice_is_one() {
        let claim = |name, uid, id| Claim { name, uid, set: "demo", id };
        let all = [
            claim("a", "u1", "east"),
            claim("again", "u1", "east"),
            claim("b", "u2", "east"),
            claim("c", "u3", "west"),
        ];
        let namesakes: Vec<_> = all.iter().map(|one| namesake(*one, all.iter().copied())).collect();
        assert_eq!(namesakes, [Some("b"), Some("b"), Some("a"), None]);
    }

    #[test]
    fn an_address_that_a_member_was_given_is_not_replaced_by_that_of_a_kubeconfig() {
        assert_eq!(is_meant("https://hub:6443", "https://hub:6443/"), Ok(()));
        let why = is_meant("https://hub.example.com", "https://10.0.0.1:6443").unwrap_err();
        for said in ["https://hub.example.com", "https://10.0.0.1:6443", "--leader-server"] {
            assert!(why.contains(said), "{why}");
        }
    }
}
