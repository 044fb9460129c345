//! What must hold before anything is changed: usable names first, then what the clusters already hold.

use api::{label, lease::LeaseView, name, view::Meta};
use k8s_openapi::{api::core::v1::Namespace, jiff::Timestamp};
use kube::{Api, Resource, ResourceExt, api::ListParams};

use crate::{
    Error,
    cluster::{Cluster, known, list},
    holder,
    objects::{SYSTEM, area},
    view::{ClusterSetView, live_holder},
};

/// A ClusterSet's name is a DNS label, and so is its Common Area's.
pub(crate) fn cluster_set_name(set: &str) -> Result<(), Error> {
    let longest = 63 - area::PREFIX.len();
    if !name::is_dns_label(set) {
        return Err(Error::Argument(format!(
            "--clusterset {set:?} must be a DNS label (lower case letters, digits, '-')"
        )));
    }
    if set.len() > longest {
        return Err(Error::Argument(format!(
            "--clusterset {set:?} is longer than {longest} characters, and its Namespace {:?} would be longer than 63",
            area::name(set)
        )));
    }
    Ok(())
}

/// Rule R-1.
pub(crate) fn cluster_id(id: &str) -> Result<(), Error> {
    name::check_cluster_id(id).map_err(|error| Error::Argument(format!("--cluster-id: {error}")))
}

/// An address that was given is one that members' daemons accept.
pub(crate) fn leader_server(given: Option<&str>) -> Result<(), Error> {
    given.map_or(Ok(()), server)
}

/// The address is one that members' daemons accept.
pub(crate) fn server(url: &str) -> Result<(), Error> {
    api::cluster_set::server_uri(url).map(drop).ok_or_else(|| {
        Error::Argument(format!(
            "the leader's server {url:?} must be https://HOST[:PORT][/PATH]; set it with --leader-server"
        ))
    })
}

/// The Common Area is free, or holds this very set with this very leader.
pub(crate) async fn may_lead(cluster: &Cluster, set: &str, id: &str) -> Result<(), Error> {
    let area = area::name(set);
    for found in cluster_sets(cluster, &area).await? {
        if found.name_any() != set {
            return Err(cluster.refuse(format!(
                "Namespace {area} already holds ClusterSet {:?}; a Common Area holds one",
                found.name_any()
            )));
        }
        same_id(cluster, &area, &found, id)?;
    }
    Ok(())
}

/// The cluster belongs to no set, or to this very set under this very ID. `otherwise` ends the message about another set.
///
/// Returns the leader's address that its ClusterSet has, if there is one.
///
/// A set of the same name under another leader is another set: joining it would remove every import.
pub(crate) async fn may_be_member(
    cluster: &Cluster,
    set: &str,
    leader_id: &str,
    id: &str,
    otherwise: &str,
) -> Result<Option<String>, Error> {
    let mut server = None;
    for found in cluster_sets(cluster, SYSTEM).await? {
        let led_by = found.leader_id().unwrap_or(leader_id);
        if found.name_any() != set || led_by != leader_id {
            return Err(cluster.refuse(format!(
                "already a member of ClusterSet {:?}, led by cluster {led_by:?}, and a cluster belongs to one set: leave \
                 it first (freeport leave){otherwise}",
                found.name_any()
            )));
        }
        same_id(cluster, SYSTEM, &found, id)?;
        server = found.server().map(str::to_owned);
    }
    Ok(server)
}

fn same_id(cluster: &Cluster, namespace: &str, found: &ClusterSetView, id: &str) -> Result<(), Error> {
    match found.cluster_id() {
        Some(have) if have != id => Err(cluster.refuse(format!(
            "ClusterSet {namespace}/{} has clusterID {have:?}, which cannot be changed to {id:?}; leave first (freeport \
             leave), if {} is the cluster you mean",
            found.name_any(),
            cluster.name
        ))),
        _ => Ok(()),
    }
}

/// ID of the cluster that leads `set`, as the ClusterSet in the Common Area says.
pub(crate) async fn leader_id(leader: &Cluster, set: &str, next: &str) -> Result<String, Error> {
    let area = area::name(set);
    let found = cluster_sets(leader, &area).await?.into_iter().find(|found| found.name_any() == set);
    match found.as_ref().map(ClusterSetView::cluster_id) {
        Some(Some(id)) => Ok(id.to_owned()),
        Some(None) => Err(leader.refuse(format!("ClusterSet {area}/{set} has no spec.clusterID"))),
        None => Err(leader.refuse(format!(
            "leads no ClusterSet {set:?} (looked for it in Namespace {area}; Common Areas here: {}); {next}",
            common_areas(leader).await?
        ))),
    }
}

/// The leader's cluster joins under the ID it leads with, and no other cluster does. Checked first: whoever forgot `--context`
/// sees that this is the leader's cluster, whatever else is wrong.
pub(crate) fn is_itself(
    leader: &Cluster,
    leader_id: &str,
    member: &Cluster,
    set: &str,
    id: &str,
) -> Result<(), Error> {
    match (leader.uid == member.uid, id == leader_id) {
        (true, false) => {
            return Err(member.refuse(format!(
                "this cluster leads ClusterSet {set:?} under the ID {leader_id:?}, and joins it under the same ID, not {id:?}; another cluster is named with --context"
            )));
        }
        (false, true) => {
            return Err(member.refuse(format!(
                "the ID {id:?} is that of the leader's own cluster; choose another --cluster-id"
            )));
        }
        _ => {}
    }
    Ok(())
}

/// Nobody else uses the ID: no cluster it was given to, no member whose daemon runs.
pub(crate) async fn is_free(leader: &Cluster, member: &Cluster, set: &str, id: &str) -> Result<(), Error> {
    given_to(leader, member, set, id).await?;
    let leases: Api<LeaseView> = Api::namespaced(leader.client.clone(), &area::name(set));
    let lease = leader.request("read the members' Leases", leases.get_opt(&name::member_lease(id))).await?;
    match lease.as_ref().and_then(|lease| live_holder(lease, Timestamp::now())) {
        Some(holder) if !holder.starts_with(&member.uid) => Err(leader.refuse(format!(
            "the ID {id:?} belongs to another cluster, whose member is running (holder {holder:?}); choose another \
             --cluster-id"
        ))),
        _ => Ok(()),
    }
}

/// The ID was given to this very cluster, or to nobody: a member that is down keeps its ID.
async fn given_to(leader: &Cluster, member: &Cluster, set: &str, id: &str) -> Result<(), Error> {
    match holder::of(leader, set, id).await? {
        Some(holder) if holder != member.uid => Err(leader.refuse(format!(
            "the ID {id:?} belongs to another cluster (uid of its kube-system: {holder}); choose another --cluster-id, or \
             if that cluster will not return, run first: freeport leave --force --clusterset {set} --cluster-id {id} \
             --leader-context {}",
            leader.name
        ))),
        _ => Ok(()),
    }
}

/// The ClusterSets of a Namespace; none without the CRD.
async fn cluster_sets(cluster: &Cluster, namespace: &str) -> Result<Vec<ClusterSetView>, Error> {
    let sets: Api<ClusterSetView> = Api::namespaced(cluster.client.clone(), namespace);
    let doing = format!("list {} in {namespace}", ClusterSetView::plural(&()));
    let found = cluster.request(doing, known(sets.list(&ListParams::default()))).await?;
    Ok(found.map(|list| list.items).unwrap_or_default())
}

/// Names of all Common Areas, for a message.
async fn common_areas(cluster: &Cluster) -> Result<String, Error> {
    let namespaces: Api<Meta<Namespace>> = Api::all(cluster.client.clone());
    let wanted = ListParams::default().labels(&format!("{}={}", label::COMMON_AREA, label::TRUE));
    let found = cluster.request("list Namespaces", namespaces.list(&wanted)).await?;
    let names: Vec<String> = found.iter().map(ResourceExt::name_any).collect();
    Ok(list(&names))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_sets_leave_room_for_the_prefix() {
        assert!(cluster_set_name("demo").is_ok());
        assert!(cluster_set_name(&"x".repeat(52)).is_ok());
        for bad in ["", "Demo", "a.b", "-a", &"x".repeat(53), &"x".repeat(64)] {
            assert!(matches!(cluster_set_name(bad), Err(Error::Argument(_))), "{bad:?}");
        }
    }

    #[test]
    fn cluster_ids_follow_rule_r1() {
        assert!(cluster_id("eu-1.prod").is_ok());
        let error = cluster_id("East").unwrap_err().to_string();
        assert!(error.starts_with("--cluster-id: ") && error.contains("East"), "{error}");
    }

    #[test]
    fn a_token_travels_over_https_only() {
        for good in ["https://10.0.0.1:6443", "https://leader.example.org", "https://[::1]:6443"] {
            assert!(server(good).is_ok(), "{good}");
        }
        for bad in ["http://10.0.0.1:6443", "10.0.0.1:6443", "", "https://", "https://a b", "ftp://x"] {
            assert!(server(bad).is_err(), "{bad}");
        }
    }
}
