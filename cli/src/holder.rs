//! Who a member's ID was given to: noted on its ServiceAccount in the Common Area when it joined.

use api::{label, view::Meta};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::{Api, ResourceExt, api::ListParams};

use crate::{
    Error,
    cluster::Cluster,
    objects::{access, area},
};

/// uid of the cluster (of its Namespace kube-system) that `id` of `set` was given to, as far as that was noted.
pub(crate) async fn of(leader: &Cluster, set: &str, id: &str) -> Result<Option<String>, Error> {
    let accounts: Api<Meta<ServiceAccount>> = Api::namespaced(leader.client.clone(), &area::name(set));
    let account = access::account(id);
    let found = leader.request(format!("read ServiceAccount {account}"), accounts.get_opt(&account)).await?;
    Ok(found.and_then(|account| account.annotations().get(label::CLUSTER_UID).cloned()))
}

/// Fails unless `id` of `set` was given to `member`, or to nobody that was noted: another leader may have a set and a member
/// of these names.
pub(crate) async fn is(leader: &Cluster, member: &Cluster, set: &str, id: &str) -> Result<(), Error> {
    match of(leader, set, id).await? {
        Some(holder) if holder != member.uid => Err(leader.refuse(format!(
            "member {id:?} of ClusterSet {set:?} here is another cluster (uid of its kube-system: {holder}): is this the \
             leader that {} joined?",
            member.name
        ))),
        _ => Ok(()),
    }
}

/// Sets and IDs with which `member` joined here.
pub(crate) async fn memberships(leader: &Cluster, member: &Cluster) -> Result<Vec<(String, String)>, Error> {
    let accounts: Api<Meta<ServiceAccount>> = Api::all(leader.client.clone());
    let ours = ListParams::default().labels(&format!("{}={}", label::MANAGED_BY, label::FREEPORT));
    let found = leader.request("list the members' ServiceAccounts", accounts.list(&ours)).await?;
    let given = found.items.iter().filter(|a| a.annotations().get(label::CLUSTER_UID) == Some(&member.uid));
    let named = given.filter_map(|account| {
        let set = account.namespace()?.strip_prefix(area::PREFIX)?.to_owned();
        Some((set, account.annotations().get(label::CLUSTER_ID)?.clone()))
    });
    Ok(named.collect())
}
