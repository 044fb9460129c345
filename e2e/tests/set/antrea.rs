//! A member that runs Antrea's controllers, in a set that Freeport leads. What it writes is what those write; an actual
//! controller of Antrea runs against Freeport elsewhere.

use std::collections::BTreeSet;

use api::{
    ServiceName, antrea,
    condition::AntreaCondition,
    label,
    name::{self, LEADER_LEASE},
    resource_export::ResourceExport,
};
use e2e::{
    antrea::AntreaMember,
    cluster::Cluster,
    cluster_set::{ready, status},
    daemon::{End, LEADER},
    fixture::{AREA, World, alone},
    seen::{Imported, holds, imported, not_imported, right},
    waiting::{VOUCHED, always, eventually, within},
};
use k8s_openapi::api::{coordination::v1::Lease, core::v1::ServiceAccount};
use kube::ResourceExt;
use serde_json::{Value, json};

/// With a dash in each part, so that no name splits back.
const ID: &str = "north-1";

/// What the leader's Lease says of who runs Antrea's controllers.
async fn leader_names(world: &World, members: &str) -> Result<(), String> {
    let lease = world.leader().api::<Lease>(AREA).get(LEADER_LEASE).await.unwrap();
    match lease.annotations().get(label::ANTREA_MEMBERS) {
        Some(said) if said == members => Ok(()),
        other => Err(format!("{other:?}")),
    }
}

/// What the leader says of the member being there.
async fn standing(world: &World, is: &str) -> Result<(), String> {
    let status = status(world.leader(), AREA).await?;
    let member = status.cluster_statuses.iter().find(|entry| entry.cluster_id.as_deref() == Some(ID));
    let said: Option<&AntreaCondition> = member.and_then(|member| ready(&member.conditions));
    if said.is_some_and(|said| said.status.as_deref() == Some(is)) {
        Ok(())
    } else {
        Err(format!("{said:?}"))
    }
}

/// Addresses with their ports in the import of all endpoints, as Antrea's importer puts them behind its Service.
async fn all_endpoints(member: &AntreaMember, service: &ServiceName) -> Result<BTreeSet<String>, String> {
    let import = member.imports().get_opt(&name::endpoints_import(service)).await.unwrap();
    let spec = import.ok_or("no import of all endpoints")?.spec;
    let tuple = (spec.kind.as_deref(), spec.namespace.as_deref(), spec.name.as_deref());
    assert_eq!(tuple, (Some("Endpoints"), Some(service.namespace.as_str()), Some(service.name.as_str())));
    let mut all = BTreeSet::new();
    for subset in spec.endpoints.unwrap().subsets {
        for port in subset.ports.iter().flatten() {
            let name = port.name.as_deref().unwrap_or_default();
            let addresses = subset.addresses.iter().flatten();
            all.extend(addresses.map(|address| format!("{name} {}:{}", address.ip, port.port)));
        }
    }
    Ok(all)
}

async fn has(member: &AntreaMember, service: &ServiceName, want: &[&str]) -> Result<(), String> {
    let all = all_endpoints(member, service).await?;
    if all.iter().map(String::as_str).eq(want.iter().copied()) { Ok(()) } else { Err(format!("{all:?}")) }
}

async fn sees(
    cluster: &Cluster,
    service: &ServiceName,
    of: &str,
    addresses: &[&str],
) -> Result<Imported, String> {
    right(imported(cluster, &service.namespace, &service.name).await, |seen| seen.addresses(of) == addresses)
}

#[e2e::test]
fn an_antrea_member_exports_imports_and_withdraws() {
    alone(async |world| {
        let ns = world.namespace("with-antrea", &["east", "west"]).await;
        let (east, west) = (world.cluster("east"), world.cluster("west"));
        let web = ServiceName::new(&ns, "web-front");
        let north = AntreaMember::join(world, ID).await;
        eventually("the leader says that it takes part", || leader_names(world, ID)).await;
        let heart = north.live().await;
        eventually("its heartbeats count", || standing(world, "True")).await;

        north.export(&web, ("web", 80), &["10.201.0.7"], 80).await;
        for cluster in [east, west] {
            let seen = eventually("imported", || sees(cluster, &web, ID, &["10.201.0.7:80"])).await;
            assert_eq!(seen.ports, [("web".to_owned(), 80)]);
            assert_eq!(seen.clusters, [ID.to_owned()].into());
        }
        eventually("as Antrea reads it", || has(&north, &web, &["web 10.201.0.7:80"])).await;

        // Younger, and calls the port otherwise.
        tokio::time::sleep(std::time::Duration::from_millis(1100)).await;
        east.exported(&ns, "web-front", &["10.1.0.1", "10.1.0.2"]).await;
        let all = ["web 10.1.0.1:8080", "web 10.1.0.2:8080", "web 10.201.0.7:80"];
        eventually("those of both, under the merged name", || has(&north, &web, &all)).await;
        let import = north.imports().get(&name::service_import(&web)).await.unwrap();
        let nested = serde_json::to_value(import.spec.service_import.unwrap()).unwrap();
        let port = json!({"name": "web", "port": 80, "protocol": "TCP"});
        assert_eq!(
            (&nested["spec"]["type"], &nested["spec"]["ports"]),
            (&json!("ClusterSetIP"), &json!([port]))
        );

        north.endpoints(&web, "web", &["10.201.0.8", "10.201.0.9"], 80).await;
        eventually("west follows", || sees(west, &web, ID, &["10.201.0.8:80", "10.201.0.9:80"])).await;
        eventually("east's are there too", || sees(west, &web, "east", &["10.1.0.1:8080", "10.1.0.2:8080"]))
            .await;

        north.unexport(&web).await;
        eventually("east alone", || async {
            right(imported(west, &ns, "web-front").await, |seen| seen.clusters == ["east".to_owned()].into())
        })
        .await;
        eventually("nothing of it is left here", || sees(west, &web, ID, &[])).await;
        eventually("its records are let go", || gone(&north, &web)).await;
        eventually("as Antrea reads it", || has(&north, &web, &["http 10.1.0.1:8080", "http 10.1.0.2:8080"]))
            .await;

        east.unexport(&ns, "web-front").await;
        eventually("nobody", || not_imported(west, &ns, "web-front")).await;
        eventually("nothing is left in the Common Area", || holds(world, &ns, "web-front", 0)).await;
        drop(heart);
        silent_and_gone(world, &north, &ServiceName::new(&ns, "late")).await;
        world.release(&ns).await;
    });
}

/// Exports after it has fallen silent, and leaves.
async fn silent_and_gone(world: &World, north: &AntreaMember, late: &ServiceName) {
    let west = world.cluster("west");
    within(VOUCHED, "silence is noticed", || standing(world, "False")).await;
    north.export(late, ("http", 80), &["10.201.0.7"], 80).await;
    eventually("imported, silent or not", || sees(west, late, ID, &["10.201.0.7:80"])).await;
    north.leave().await;
    eventually("who leaves takes all along", || not_imported(west, &late.namespace, "late")).await;
    eventually("its records go", || gone(north, late)).await;
    eventually("and it is gone", || north.is_gone()).await;
    farewell(world, north).await;
}

/// Both records are gone, or which is not.
async fn gone(member: &AntreaMember, service: &ServiceName) -> Result<(), String> {
    for record in [antrea::service_export(ID, service), antrea::endpoints_export(ID, service)] {
        if let Some(record) = member.records().get_opt(&record).await.unwrap() {
            return Err(format!("{:?}", record.metadata));
        }
    }
    Ok(())
}

async fn farewell(world: &World, member: &AntreaMember) {
    member.expel().await;
    eventually("nobody of that kind takes part any more", || leader_names(world, "")).await;
}

#[e2e::test]
fn what_an_antrea_member_says_while_daemons_are_down_is_caught_up_with() {
    alone(async |world| {
        let ns = world.namespace("antrea-downtime", &["east", "west"]).await;
        let (east, west) = (world.cluster("east"), world.cluster("west"));
        east.exported(&ns, "ours", &["10.1.0.1"]).await;
        let [goes, stays] = ["goes", "stays"].map(|service| ServiceName::new(&ns, service));
        let north = AntreaMember::join(world, ID).await;
        let heart = north.live().await;
        for service in [&goes, &stays] {
            north.export(service, ("http", 80), &["10.201.0.7"], 80).await;
            eventually("imported", || sees(west, service, ID, &["10.201.0.7:80"])).await;
        }
        let before = eventually("settled", || sees(west, &stays, ID, &["10.201.0.7:80"])).await;
        world.end(LEADER, End::Crash).await;
        world.end("freeport-member-west", End::Crash).await;
        north.unexport(&goes).await;
        let standing = north.records().get(&antrea::service_export(ID, &goes)).await.unwrap();
        assert!(standing.metadata.deletion_timestamp.is_some(), "waits for the leader");
        world.start(LEADER).await;
        eventually("let go", || gone(&north, &goes)).await;
        world.start("freeport-member-west").await;
        within(VOUCHED, "gone", || not_imported(west, &ns, "goes")).await;
        assert_eq!(sees(west, &stays, ID, &["10.201.0.7:80"]).await, Ok(before));

        // Somebody removes the mark: what it exported stays, and nobody writes for it any more.
        eventually("with both records of all endpoints", || holds(world, &ns, "ours", 5)).await;
        let leader = world.leader();
        leader.patch::<ServiceAccount>(AREA, &cli::objects::access::account(ID), &speaks(Value::Null)).await;
        eventually("not marked", || leader_names(world, "")).await;
        eventually("without", || holds(world, &ns, "ours", 3)).await;
        world.vouches(LEADER_LEASE).await;
        sees(west, &stays, ID, &["10.201.0.7:80"]).await.expect("stays");
        north.unexport(&stays).await;
        eventually("its records are let go all the same", || gone(&north, &stays)).await;
        leader
            .patch::<ServiceAccount>(AREA, &cli::objects::access::account(ID), &speaks(label::ANTREA))
            .await;
        within(VOUCHED, "with the mark it is believed again", || not_imported(west, &ns, "stays")).await;
        drop(heart);
        north.leave().await;
        eventually("and so is its announce", || north.is_gone()).await;
        farewell(world, &north).await;
        world.release(&ns).await;
    });
}

/// The mark of an account; with null it is removed.
fn speaks(protocol: impl Into<Value>) -> Value {
    json!({"metadata": {"annotations": {label::SPEAKS: protocol.into()}}})
}

#[e2e::test]
fn what_vanishes_of_an_antrea_member_is_believed_when_it_lives() {
    alone(async |world| {
        let ns = world.namespace("antrea-vanish", &["west"]).await;
        let (leader, west) = (world.leader(), world.cluster("west"));
        let web = ServiceName::new(&ns, "web");
        let north = AntreaMember::join(world, ID).await;
        north.announce().await;
        north.export(&web, ("http", 80), &["10.201.0.7"], 80).await;
        eventually("imported", || sees(west, &web, ID, &["10.201.0.7:80"])).await;
        eventually("with an import of all endpoints", || holds(world, &ns, "web", 4)).await;

        for daemon in [LEADER, "freeport-member-west"] {
            world.end(daemon, End::Crash).await;
        }
        for record in [antrea::service_export(ID, &web), antrea::endpoints_export(ID, &web)] {
            leader.delete::<ResourceExport>(AREA, &record).await;
            leader.patch::<ResourceExport>(AREA, &record, &json!({"metadata": {"finalizers": null}})).await;
        }
        for daemon in [LEADER, "freeport-member-west"] {
            world.start(daemon).await;
        }
        always("nobody answers for it", || async {
            holds(world, &ns, "web", 2).await?;
            sees(west, &web, ID, &["10.201.0.7:80"]).await.map(drop)
        })
        .await;
        let heart = north.beat(0);
        within(VOUCHED, "it lives, and did not write them again", || not_imported(west, &ns, "web")).await;
        drop(heart);
        north.leave().await;
        eventually("gone", || north.is_gone()).await;
        farewell(world, &north).await;
        world.release(&ns).await;
    });
}

#[e2e::test]
fn an_antrea_member_writes_its_own_alone() {
    alone(async |world| {
        let north = AntreaMember::join(world, ID).await;
        let web = ServiceName::new("antrea-rights", "web");
        let payload = json!({"service": {"serviceSpec": {"ports": [{"port": 80}]}}});
        let refused = async |what: &str, change: fn(&mut ResourceExport)| {
            let mut record = north.record(&web, "Service", &payload);
            change(&mut record);
            let created = north.records().create(&Default::default(), &record).await;
            assert!(
                matches!(&created, Err(kube::Error::Api(status)) if matches!(status.code, 403 | 422)),
                "{what}: {created:?}"
            );
        };
        refused("another's record", |r| r.spec.cluster_id = Some("east".into())).await;
        refused("a name of its own choice", |r| r.metadata.name = Some("free".into())).await;
        refused("a kind nobody may write", |r| r.spec.kind = Some("AntreaClusterNetworkPolicy".into())).await;
        refused("another's labels", |r| {
            r.labels_mut().insert("sourceClusterID".into(), "east".into());
        })
        .await;
        let leases = kube::Api::<Lease>::namespaced(north.client.clone(), AREA);
        assert!(leases.create(&Default::default(), &Lease::default()).await.is_err());
        let imports = north.imports().delete_collection(&Default::default(), &Default::default()).await;
        assert!(imports.is_err(), "{imports:?}");
        let secrets = kube::Api::<k8s_openapi::api::core::v1::Secret>::namespaced(north.client.clone(), AREA);
        assert!(secrets.list(&Default::default()).await.is_err());
        north.expel().await;
        eventually("nobody of that kind takes part any more", || leader_names(world, "")).await;
    });
}
