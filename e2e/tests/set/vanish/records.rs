//! Somebody deletes records, or the whole Common Area, while a member is down.

use api::{
    announce::MemberClusterAnnounce, resource_export::ResourceExport, resource_import::ResourceImport,
};
use e2e::{
    daemon::End,
    fixture::{AREA, CLUSTERS, World, alone},
};
use k8s_openapi::{NamespaceResourceScope, api::coordination::v1::Lease};
use kube::{
    Resource,
    api::{DeleteParams, ListParams},
};

use super::kept::{Kept, time_goes_by};

async fn delete_all<K>(world: &World)
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
        + Clone
        + std::fmt::Debug
        + serde::de::DeserializeOwned,
{
    let all = ListParams::default();
    world.leader().api::<K>(AREA).delete_collection(&DeleteParams::default(), &all).await.unwrap();
}

#[e2e::test]
fn records_and_then_all_else_deleted_while_a_member_is_down_take_nothing_away() {
    alone(async |world| {
        let kept = Kept::set_up(world, "emptied", &CLUSTERS).await;
        world.end("freeport-member-east", End::Crash).await;
        delete_all::<ResourceExport>(world).await;
        delete_all::<ResourceImport>(world).await;
        time_goes_by(world).await;
        kept.nothing_went("east is down and its records are gone").await;
        delete_all::<ResourceExport>(world).await;
        delete_all::<ResourceImport>(world).await;
        delete_all::<MemberClusterAnnounce>(world).await;
        delete_all::<Lease>(world).await;
        time_goes_by(world).await;
        kept.nothing_went("and nobody has ever heard of it").await;
        // What is kept is kept by a member that starts just now, too.
        world.end("freeport-member-west", End::Crash).await;
        world.start("freeport-member-west").await;
        time_goes_by(world).await;
        kept.nothing_went("west was started anew").await;
        world.start("freeport-member-east").await;
        kept.converges(world).await;
    });
}

#[e2e::test]
fn a_common_area_deleted_and_made_again_takes_nothing_away() {
    alone(async |world| {
        let kept = Kept::set_up(world, "area-deleted", &CLUSTERS).await;
        world.leader().delete_namespace(AREA).await;
        kept.nothing_went("the Common Area is gone").await;
        world.end("freeport-member-east", End::Crash).await;
        world.set_up_again().await;
        time_goes_by(world).await;
        kept.nothing_went("a new Common Area, without east").await;
        world.start("freeport-member-east").await;
        kept.converges(world).await;
    });
}
