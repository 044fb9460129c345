//! This member's announce in the Common Area.

use api::{
    announce::{MemberClusterAnnounce, MemberClusterAnnounceFields},
    name,
};
use kit::write::{Error, Writer};
use kube::{Api, Client};

use crate::identity::Identity;

/// Introduces this member in the Common Area, if it has not been introduced like this before.
pub(super) async fn announce(
    us: &Identity,
    cluster_set: &str,
    leader: Option<&str>,
    client: &Client,
    writer: &Writer,
) -> Result<(), Error> {
    let announces = Api::<MemberClusterAnnounce>::namespaced(client.clone(), &us.common_area);
    let have = announces.get_opt(&name::announce(&us.cluster)).await;
    let have = have?;
    // A note does not say who leads; what is announced already stands then.
    let said = have.as_ref().and_then(|announce| announce.spec.leader_cluster_id.clone());
    let fields = MemberClusterAnnounceFields {
        cluster_id: Some(us.cluster.clone()),
        cluster_set_id: Some(cluster_set.to_owned()),
        leader_cluster_id: leader.map(str::to_owned).or(said),
    };
    let mut want = MemberClusterAnnounce::new(&name::announce(&us.cluster), fields);
    want.metadata.namespace = Some(us.common_area.clone());
    writer.put(have.as_ref(), &want).await.map(drop)
}
