//! This member's announce in the Common Area.

use api::{
    announce::{MemberClusterAnnounce, MemberClusterAnnounceFields},
    name,
    view::lean,
};
use kit::write::{Error, Writer};
use kube::{Api, Client, Resource, api::ObjectMeta};
use serde::{Deserialize, Serialize};

use crate::identity::Target;

/// Our announce, as we own it.
#[derive(Resource, Clone, Debug, Serialize, Deserialize)]
#[resource(inherit = MemberClusterAnnounce)]
struct Announce {
    #[serde(deserialize_with = "lean")]
    metadata: ObjectMeta,
    #[serde(flatten)]
    fields: MemberClusterAnnounceFields,
}

/// Announces this member in the Common Area, if it is not announced like this already.
pub(super) async fn announce(target: &Target, leader: &Client, writer: &Writer) -> Result<(), Error> {
    let us = &target.us;
    let announces = Api::<Announce>::namespaced(leader.clone(), &us.common_area);
    let have = announces.get_opt(&name::announce(&us.cluster)).await?;
    // A note does not name the leader. Then the name in the announce stays.
    let named = have.as_ref().and_then(|announce| announce.fields.leader_cluster_id.clone());
    let fields = MemberClusterAnnounceFields {
        cluster_id: Some(us.cluster.clone()),
        cluster_set_id: Some(target.cluster_set.clone()),
        leader_cluster_id: target.leader.clone().or(named),
    };
    let metadata = ObjectMeta {
        name: Some(name::announce(&us.cluster)),
        namespace: Some(us.common_area.clone()),
        ..ObjectMeta::default()
    };
    let want = Announce { metadata, fields };
    writer.put(have.as_ref(), &want).await.map(drop)
}
