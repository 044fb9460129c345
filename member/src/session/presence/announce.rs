//! This member's announce in the Common Area.

use api::{
    announce::{MemberClusterAnnounce, MemberClusterAnnounceFields},
    name,
};
use kit::write::{Error, Writer};
use kube::{Api, Client};

use crate::identity::Target;

/// Announces this member in the Common Area, if it is not announced like this already.
pub(super) async fn announce(target: &Target, leader: &Client, writer: &Writer) -> Result<(), Error> {
    let us = &target.us;
    let announces = Api::<MemberClusterAnnounce>::namespaced(leader.clone(), &us.common_area);
    let have = announces.get_opt(&name::announce(&us.cluster)).await?;
    // A note does not name the leader. Then the name in the announce stays.
    let named = have.as_ref().and_then(|announce| announce.spec.leader_cluster_id.clone());
    let fields = MemberClusterAnnounceFields {
        cluster_id: Some(us.cluster.clone()),
        cluster_set_id: Some(target.cluster_set.clone()),
        leader_cluster_id: target.leader.clone().or(named),
    };
    let mut want = MemberClusterAnnounce::new(&name::announce(&us.cluster), fields);
    want.metadata.namespace = Some(us.common_area.clone());
    writer.put(have.as_ref(), &want).await.map(drop)
}
