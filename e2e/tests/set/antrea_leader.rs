//! A member of ours under a leader of Antrea's. What the leader does is what Antrea's does; its webhooks' demands are asserted.

use api::{
    ServiceName,
    announce::MemberClusterAnnounce,
    antrea::{RECORD_FINALIZERS, TOUCHED, endpoints_export, service_export, service_import},
    cluster_set::ClusterSet,
    label, membership, name,
    resource_export::ResourceExport,
    resource_import::ResourceImport,
};
use cli::objects::access;
use e2e::{
    account::credential,
    antrea_leader::{AREA, AntreaLeader},
    cluster::Cluster,
    daemon::End,
    fixture::{self, SET, SYSTEM, World, alone},
    seen::{Imported, conditions, imported, not_imported, right, says},
    waiting::{VOUCHED, always, eventually, within},
};
use k8s_openapi::api::{
    core::v1::{ConfigMap, Secret},
    rbac::v1::Role,
};
use kube::{
    Api, ResourceExt,
    api::{ListParams, PostParams},
};
use serde_json::json;

const EAST: &str = "freeport-member-east";
const PEER: &str = "north-1";
const SECRET: &str = "antrea-leader";

async fn sees(
    east: &Cluster,
    service: &ServiceName,
    of: &str,
    addresses: &[&str],
) -> Result<Imported, String> {
    right(imported(east, &service.namespace, &service.name).await, |seen| seen.addresses(of) == addresses)
}

/// Names of all records in the Common Area.
async fn records(world: &World) -> Vec<String> {
    let records = Api::<ResourceExport>::namespaced(world.leader().client.clone(), AREA);
    records.list(&ListParams::default()).await.unwrap().iter().map(ResourceExt::name_any).collect()
}

async fn no_records(world: &World) -> Result<(), String> {
    let records = records(world).await;
    if records.is_empty() { Ok(()) } else { Err(format!("{records:?}")) }
}

async fn membership_ends(east: &Cluster) {
    eventually("east has left", || async {
        match east.api::<ConfigMap>(SYSTEM).get_opt(membership::NAME).await.unwrap() {
            None => Ok(()),
            Some(note) => Err(format!("{:?}", note.data)),
        }
    })
    .await;
}

/// East leaves its ClusterSet, which is returned, and joins the one that a leader of Antrea's leads.
pub(super) async fn change_over(world: &'static World) -> (AntreaLeader, ClusterSet) {
    let east = world.cluster("east");
    let set: ClusterSet = east.take(SYSTEM, SET).await;
    membership_ends(east).await;
    let leader = AntreaLeader::begin(world, "east").await;
    let (ca, token) = credential(world, "leader", AREA, "east").await;
    let ca = String::from_utf8(ca.0).unwrap();
    let secret = json!({"metadata": {"name": SECRET}, "stringData": {"ca.crt": ca, "token": token}});
    east.create::<Secret>(SYSTEM, secret).await;
    let mut theirs = set.clone();
    theirs.spec.namespace = Some(AREA.into());
    theirs.spec.leaders[0].secret = Some(SECRET.into());
    east.put_back(theirs).await;
    let message = world.member_says("east", ("True", "Connected")).await;
    assert!(message.contains("the leader is Antrea's"), "{message}");
    (leader, set)
}

/// East leaves again; see [`come_back`].
pub(super) async fn change_back(world: &World, leader: AntreaLeader, set: ClusterSet) {
    world.cluster("east").delete::<ClusterSet>(SYSTEM, SET).await;
    come_back(world, leader, set).await;
}

/// East, which has no ClusterSet any more, has left, and nothing of it stays; then it belongs where it did.
async fn come_back(world: &World, leader: AntreaLeader, set: ClusterSet) {
    let east = world.cluster("east");
    membership_ends(east).await;
    eventually("nothing of east is left", || async {
        let announces = world.leader().api::<MemberClusterAnnounce>(AREA);
        let announce = announces.get_opt(&name::announce("east")).await.unwrap();
        no_records(world).await?;
        if announce.is_none() { Ok(()) } else { Err(format!("{announce:?}")) }
    })
    .await;
    leader.end().await;
    east.delete::<Secret>(SYSTEM, SECRET).await;
    east.put_back(set).await;
    world.member_says("east", ("True", "Connected")).await;
}

pub(super) async fn both_records_are_as_demanded(world: &World, service: &ServiceName) {
    for (name, kind) in
        [(service_export("east", service), "Service"), (endpoints_export("east", service), "Endpoints")]
    {
        eventually("told", || async {
            if records(world).await.contains(&name) { Ok(()) } else { Err(name.clone()) }
        })
        .await;
        is_as_demanded(world, &name, kind, service).await;
    }
}

/// What the leader's webhook demands of a record.
async fn is_as_demanded(world: &World, name: &str, kind: &str, service: &ServiceName) {
    let record = world.leader().api::<ResourceExport>(AREA).get(name).await.unwrap();
    assert!(record.finalizers().contains(&RECORD_FINALIZERS[0].to_owned()));
    let (labels, spec) = (record.labels(), &record.spec);
    let demanded = [
        (label::SOURCE_CLUSTER_ID, "east", &spec.cluster_id),
        (label::SOURCE_NAMESPACE, &service.namespace, &spec.namespace),
        (label::SOURCE_NAME, &service.name, &spec.name),
        (label::SOURCE_KIND, kind, &spec.kind),
    ];
    for (label, value, said) in demanded {
        assert_eq!((labels[label].as_str(), said.as_deref()), (value, Some(value)));
    }
    assert_eq!(spec.service.is_some(), kind == "Service");
    assert_eq!(spec.endpoints.is_some(), kind == "Endpoints");
}

/// The leader is down, and somebody deletes what it wrote.
async fn nothing_goes_without_the_leader(world: &World, web: &ServiceName, before: &Imported, touched: &str) {
    let (admin, east) = (world.leader(), world.cluster("east"));
    admin.delete::<ResourceImport>(AREA, &service_import(web)).await;
    always("what merely vanished stays", || async {
        let now = imported(east, &web.namespace, "web").await;
        if now.as_ref() == Ok(before) { Ok(()) } else { Err(format!("{now:?}")) }
    })
    .await;
    eventually("heartbeats go on", || async {
        let announces = admin.api::<MemberClusterAnnounce>(AREA);
        let now = announces.get(&name::announce("east")).await.unwrap().annotations()[TOUCHED].clone();
        if now == touched { Err(now) } else { Ok(()) }
    })
    .await;
}

/// Of two Services with the same names for Antrea the older export has them; younger means another second.
async fn the_older_of_two_namesakes_is_exported(east: &Cluster, web: &ServiceName, other: &str) {
    let ns = web.namespace.as_str();
    east.export(ns, "web").await;
    eventually("exported again", || says(east, (ns, "web"), "Ready", "True", "Exported")).await;
    tokio::time::sleep(std::time::Duration::from_millis(1100)).await;
    east.exported(other, "antrea-web", &["10.1.0.3"]).await;
    let namesake = (other, "antrea-web");
    eventually("the name is taken", || says(east, namesake, "Ready", "False", "Failed")).await;
    east.unexport(ns, "web").await;
    eventually("the name is free", || says(east, namesake, "Ready", "True", "Exported")).await;
}

#[e2e::test]
fn a_member_of_ours_takes_part_under_an_antrea_leader() {
    alone(async |world| {
        let ns = world.namespace("under-antrea", &["east"]).await;
        let (east, web) = (world.cluster("east"), ServiceName::new(&ns, "web"));
        let (mut leader, set) = change_over(world).await;
        let announce =
            world.leader().api::<MemberClusterAnnounce>(AREA).get(&name::announce("east")).await.unwrap();
        let fields =
            [&announce.spec.cluster_id, &announce.spec.cluster_set_id, &announce.spec.leader_cluster_id];
        assert_eq!(fields.map(Option::as_deref), [Some("east"), Some(SET), Some("leader")]);
        let touched = announce.annotations()[TOUCHED].clone();

        let north = leader.member(PEER);
        let heart = north.live().await;
        north.export(&web, ("http", 80), &["10.201.0.7"], 80).await;
        let seen = eventually("imported", || sees(east, &web, PEER, &["10.201.0.7:80"])).await;
        assert_eq!((seen.ports, seen.clusters), (vec![("http".to_owned(), 80)], [PEER.to_owned()].into()));

        east.exported(&ns, "web", &["10.1.0.1", "10.1.0.2"]).await;
        eventually("exported", || says(east, (&ns, "web"), "Ready", "True", "Exported")).await;
        assert!(!conditions(east, &ns, "web").await.contains_key("Conflict"), "such a leader does not say");
        eventually("ours are there too", || sees(east, &web, "east", &["10.1.0.1:8080", "10.1.0.2:8080"]))
            .await;
        both_records_are_as_demanded(world, &web).await;
        north.endpoints(&web, "http", &["10.201.0.8", "10.201.0.9"], 80).await;
        eventually("east follows", || sees(east, &web, PEER, &["10.201.0.8:80", "10.201.0.9:80"])).await;

        let before = imported(east, &ns, "web").await.unwrap();
        world.end(EAST, End::Crash).await;
        world.start(EAST).await;
        world.member_says("east", ("True", "Connected")).await;
        assert_eq!(imported(east, &ns, "web").await.as_ref(), Ok(&before), "a restart changes nothing");

        leader.stop().await;
        drop(heart);
        nothing_goes_without_the_leader(world, &web, &before, &touched).await;

        leader.resume();
        north.unexport(&web).await;
        eventually("east alone", || async {
            right(imported(east, &ns, "web").await, |seen| seen.clusters == ["east".to_owned()].into())
        })
        .await;
        east.unexport(&ns, "web").await;
        eventually("nobody", || not_imported(east, &ns, "web")).await;
        eventually("nothing is left of it", || no_records(world)).await;

        let other = world.namespace("under", &["east"]).await;
        the_older_of_two_namesakes_is_exported(east, &web, &other).await;

        // Left while it exports.
        north.leave().await;
        change_back(world, leader, set).await;
        world.release(&other).await;
        world.release(&ns).await;
    });
}

#[e2e::test]
fn what_vanishes_under_an_antrea_leader_is_believed_when_its_member_lives() {
    alone(async |world| {
        let ns = world.namespace("antrea-vanishes", &["east"]).await;
        let (east, web) = (world.cluster("east"), ServiceName::new(&ns, "web"));
        let (mut leader, set) = change_over(world).await;
        let north = leader.member(PEER);
        north.announce().await;
        north.export(&web, ("http", 80), &["10.201.0.7"], 80).await;
        let before = eventually("imported", || sees(east, &web, PEER, &["10.201.0.7:80"])).await;

        leader.stop().await;
        let admin = world.leader();
        world.end(EAST, End::Crash).await;
        for record in [service_export(PEER, &web), endpoints_export(PEER, &web)] {
            admin.delete::<ResourceExport>(AREA, &record).await;
            admin.patch::<ResourceExport>(AREA, &record, &json!({"metadata": {"finalizers": null}})).await;
        }
        admin.delete::<ResourceImport>(AREA, &service_import(&web)).await;
        world.start(EAST).await;
        always("nobody answers for it", || async {
            let now = imported(east, &ns, "web").await?;
            let same = (&now.vip, now.addresses(PEER)) == (&before.vip, before.addresses(PEER));
            if same { Ok(()) } else { Err(format!("{now:?}")) }
        })
        .await;
        let heart = north.beat(0);
        within(VOUCHED, "it lives, and did not write them again", || not_imported(east, &ns, "web")).await;
        drop(heart);
        leader.resume();
        north.leave().await;
        change_back(world, leader, set).await;
        world.release(&ns).await;
    });
}

/// What east's announce would note if this cluster had been rebuilt under its ID.
async fn note_earlier_cluster(world: &World) {
    let noted = json!({"metadata": {"annotations": {label::CLUSTER_UID: "earlier"}}});
    world.leader().patch::<MemberClusterAnnounce>(AREA, &name::announce("east"), &noted).await;
}

/// The uid that east's announce notes.
async fn noted_cluster(world: &World) -> Option<String> {
    let announces = world.leader().api::<MemberClusterAnnounce>(AREA);
    let announce = announces.get(&name::announce("east")).await.unwrap();
    announce.annotations().get(label::CLUSTER_UID).cloned()
}

#[e2e::test]
fn a_rebuilt_cluster_takes_over_its_id_under_an_antrea_leader_when_the_earlier_one_is_silent() {
    alone(async |world| {
        let ns = world.namespace("antrea-rebuilt", &["east"]).await;
        let (east, web) = (world.cluster("east"), ServiceName::new(&ns, "web"));
        let (leader, set) = change_over(world).await;
        let us = noted_cluster(world).await;
        east.exported(&ns, "web", &["10.1.0.1"]).await;
        both_records_are_as_demanded(world, &web).await;

        world.end(EAST, End::Crash).await;
        note_earlier_cluster(world).await;
        let rival = leader.member("east").beat(0);
        world.launch(EAST).await;
        let message = world.member_says("east", ("False", "DuplicateClusterID")).await;
        assert!(message.contains("earlier"), "{message}");
        assert_eq!(noted_cluster(world).await.as_deref(), Some("earlier"));
        drop(rival);
        world.member_says("east", ("True", "Connected")).await;
        assert_eq!(noted_cluster(world).await, us);

        // It was rebuilt once more, and leaves as soon as it runs: its records go, too.
        world.end(EAST, End::Crash).await;
        note_earlier_cluster(world).await;
        east.delete::<ClusterSet>(SYSTEM, SET).await;
        world.launch(EAST).await;
        come_back(world, leader, set).await;
        world.release(&ns).await;
    });
}

#[e2e::test]
fn a_leader_of_ours_that_refuses_leases_is_not_taken_for_antreas() {
    alone(async |world| {
        let ns = world.namespace("not-antrea", &["leader"]).await;
        let (leader, east) = (world.leader(), world.cluster("east"));
        leader.exported(&ns, "web", &["10.1.0.1"]).await;
        eventually("exported", || says(leader, (&ns, "web"), "Ready", "True", "Exported")).await;
        let set: ClusterSet = east.take(SYSTEM, SET).await;
        membership_ends(east).await;

        let roles = leader.api::<Role>(fixture::AREA);
        let mut role = roles.get(&access::account("east")).await.unwrap();
        let whole = role.rules.clone();
        role.rules.get_or_insert_default().retain(|rule| rule.resources != Some(vec!["leases".to_owned()]));
        let mut role = roles.replace(&role.name_any(), &PostParams::default(), &role).await.unwrap();
        let looks = || {
            let log = world.real().fleet.dir().join("logs").join(format!("{EAST}.log"));
            std::fs::read_to_string(log).unwrap().matches("checking whether the leader is Antrea's").count()
        };
        let before = looks();
        east.put_back(set).await;
        world.member_says("east", ("False", "Forbidden")).await;
        eventually("it has looked several times", || async {
            let looks = looks() - before;
            if looks >= 4 { Ok(()) } else { Err(format!("{looks}")) }
        })
        .await;
        world.member_says("east", ("False", "Forbidden")).await;
        let announces = leader.api::<MemberClusterAnnounce>(fixture::AREA);
        assert!(announces.get_opt(&name::announce("east")).await.unwrap().is_none(), "it has not spoken");
        role.rules = whole;
        roles.replace(&role.name_any(), &PostParams::default(), &role).await.unwrap();
        let message = world.member_says("east", ("True", "Connected")).await;
        assert!(!message.contains("Antrea"), "{message}");
        world.release(&ns).await;
    });
}
