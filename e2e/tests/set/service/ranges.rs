//! Which addresses the endpoints of a member may have: those that its account at the leader notes, and never those of the importer itself.

use std::collections::BTreeSet;

use api::{
    ServiceName, cluster_set::ClusterSet, condition::AntreaCondition, label, membership, name,
    resource_export::ResourceExport,
};
use e2e::{
    cluster::Cluster,
    cluster_set::imports_complete,
    fixture::{AREA, CLUSTERS, SET, SYSTEM, World, alone, shared},
    record,
    seen::{imported, says},
    waiting::{always, eventually},
};
use k8s_openapi::api::{
    core::v1::{ConfigMap, Node, Service, ServiceAccount},
    discovery::v1::EndpointSlice,
};
use kube::{
    Api,
    api::{DeleteParams, ListParams},
};
use serde_json::json;

const RIGHT: &str = "10.1.0.1";
const WRONG: &str = "10.9.0.1";
/// Address of a Node.
const NODE: &str = "10.5.0.7";
/// Address of an API server.
const SERVER: &str = "10.5.0.8";

/// Notes the ranges of `east`, as `freeport join --pod-cidrs` does.
async fn note(world: &World, ranges: Option<&str>) {
    let note = json!({"metadata": {"annotations": {label::ADDRESS_RANGES: ranges}}});
    let _: ServiceAccount = world.leader().patch(AREA, "freeport-member-east", &note).await;
}

/// Waits until `east` has noted in its own cluster which ranges it has, for another leader.
async fn is_noted_at_home(world: &World, ranges: Option<&str>) {
    eventually(&format!("east notes {ranges:?}"), || async {
        let note = world.cluster("east").api::<ConfigMap>(SYSTEM).get(membership::NAME).await;
        let mut data = note.map_err(|error| error.to_string())?.data.unwrap_or_default();
        let noted = data.remove(membership::RANGES);
        if noted.as_deref() == ranges { Ok(()) } else { Err(format!("{noted:?}")) }
    })
    .await;
}

/// Waits until the cluster imports these addresses of `east`.
async fn imports(cluster: &Cluster, ns: &str, addresses: &[&str]) {
    eventually(&format!("{} imports {addresses:?}", cluster.name), || async {
        let seen = imported(cluster, ns, "web").await?;
        let has: BTreeSet<_> =
            seen.addresses("east").iter().map(|to| to.trim_end_matches(":8080").to_owned()).collect();
        let want = addresses.iter().map(|address| (*address).to_owned()).collect();
        if has == want { Ok(()) } else { Err(format!("{has:?}")) }
    })
    .await;
}

/// The condition of the slice record of `ns/web`.
async fn said_of_record(world: &World, ns: &str) -> Result<AntreaCondition, String> {
    let slices = format!("sourceNamespace={ns},sourceKind=EndpointSlice");
    let records =
        world.leader().api::<ResourceExport>(AREA).list(&ListParams::default().labels(&slices)).await;
    let mut records = records.map_err(|error| error.to_string())?.items;
    let record = records.pop().filter(|_| records.is_empty()).ok_or("there is not one record")?;
    record
        .status
        .and_then(|status| status.conditions.into_iter().next())
        .ok_or_else(|| "nothing is said".to_owned())
}

async fn record_says(world: &World, ns: &str, type_: &str, word: &str) {
    eventually(&format!("the record says {type_}"), || async {
        let said = said_of_record(world, ns).await?;
        let is_it =
            said.type_.as_deref() == Some(type_) && said.message.clone().unwrap_or_default().contains(word);
        if is_it { Ok(()) } else { Err(format!("{said:?}")) }
    })
    .await;
}

#[e2e::test]
fn endpoints_out_of_range_and_those_that_are_the_importers_own_get_no_traffic() {
    alone(async |world| {
        let ns = world.namespace("ranges", &["leader", "east", "west"]).await;
        let (leader, east, west) = (world.leader(), world.cluster("east"), world.cluster("west"));
        let own = west.service(&ns, "own", &[("http", 80)]).await.spec.unwrap().cluster_ip.unwrap();
        let ranges = format!("10.1.0.0/16,{own}/32");
        note(world, Some(&ranges)).await;
        let all = [RIGHT, WRONG, &own];
        east.exported(&ns, "web", &all).await;

        imports(west, &ns, &[RIGHT]).await;
        imports(leader, &ns, &[RIGHT, &own]).await;
        imports(east, &ns, &all).await;
        is_noted_at_home(world, Some(&ranges)).await;
        record_says(world, &ns, "Failure", &format!("{WRONG}: in none of the ranges of cluster east")).await;
        eventually("the exporter is told", || says(east, (&ns, "web"), "Ready", "False", "Failed")).await;
        eventually("the importer says what it leaves out", || async {
            let (reason, message) = imports_complete(west).await?;
            let is_it = reason == "AddressesLeftOut" && message.contains(&format!("{ns}/web of east"));
            if is_it { Ok(()) } else { Err(format!("{reason}: {message}")) }
        })
        .await;
        let left_out =
            world.metrics("freeport-member-west").await.unwrap().sum("freeport_endpoints_left_out");
        assert!((left_out - 2.0).abs() < 0.5, "{left_out}");

        note(world, Some(&format!("{ranges},10.9.0.0/24"))).await;
        imports(west, &ns, &[RIGHT, WRONG]).await;
        record_says(world, &ns, "Succeeded", "").await;
        eventually("all is well", || says(east, (&ns, "web"), "Ready", "True", "Exported")).await;

        note(world, Some("10.9.0.0/24")).await;
        imports(west, &ns, &[WRONG]).await;
        is_noted_at_home(world, Some("10.9.0.0/24")).await;

        note(world, Some("10.9/24")).await;
        imports(west, &ns, &[RIGHT, WRONG]).await;
        eventually("the leader says what it cannot read", || async {
            let set = leader.api::<ClusterSet>(AREA).get(SET).await.map_err(|error| error.to_string())?;
            let said = set.status.unwrap_or_default().conditions;
            let is_it = said.iter().any(|c| {
                c.message.as_deref().unwrap_or_default().contains("freeport-member-east: annotation")
            });
            if is_it { Ok(()) } else { Err(format!("{said:?}")) }
        })
        .await;
        west.delete::<Service>(&ns, "own").await;
        is_noted_at_home(world, None).await;
        note(world, None).await;
        world.release(&ns).await;
    });
}

#[e2e::test]
fn addresses_of_nodes_and_api_servers_of_the_importer_get_no_traffic() {
    alone(async |world| {
        let ns = world.namespace("machines", &["east", "west"]).await;
        let (east, west) = (world.cluster("east"), world.cluster("west"));
        let all = [RIGHT, NODE, SERVER];
        east.exported(&ns, "web", &all).await;
        imports(west, &ns, &all).await;

        let status = json!({"addresses": [{"type": "InternalIP", "address": NODE}]});
        west.create_cluster_wide::<Node>(json!({"metadata": {"name": "machine"}, "status": status})).await;
        imports(west, &ns, &[RIGHT, SERVER]).await;
        // In these clusters API servers do not write it themselves.
        let servers = json!({
            "metadata": {"name": "kubernetes", "labels": {"kubernetes.io/service-name": "kubernetes"}},
            "addressType": "IPv4", "endpoints": [{"addresses": [SERVER]}],
        });
        let _: EndpointSlice = west.create("default", servers).await;
        imports(west, &ns, &[RIGHT]).await;
        imports(east, &ns, &all).await;

        west.delete::<EndpointSlice>("default", "kubernetes").await;
        Api::<Node>::all(west.client.clone()).delete("machine", &DeleteParams::default()).await.unwrap();
        imports(west, &ns, &all).await;
        world.release(&ns).await;
    });
}

/// Addresses that mean something else on every node: loopback, link-local, multicast, unspecified.
const OF_EVERY_NODE: [(&str, &str); 9] = [
    ("IPv4", "127.0.0.1"),
    ("IPv4", "169.254.169.254"),
    ("IPv4", "224.0.0.1"),
    ("IPv4", "0.0.0.0"),
    ("IPv6", "::1"),
    ("IPv6", "fe80::1"),
    ("IPv6", "ff02::1"),
    ("IPv6", "::"),
    ("IPv6", "::ffff:10.1.0.1"),
];

/// A hostile member writes its records by itself.
#[e2e::test]
fn addresses_that_mean_something_else_on_every_node_are_imported_nowhere() {
    shared(async |world| {
        let ns = world.namespace("every-node", &CLUSTERS).await;
        let (leader, web) = (world.leader(), ServiceName::new(&ns, "web"));
        let _: ResourceExport = leader.create(AREA, record::service("north", &web)).await;
        let _: ResourceExport = leader.create(AREA, record::slice("north", &web, RIGHT)).await;
        let mut bad = Vec::new();
        for (number, (family, address)) in OF_EVERY_NODE.into_iter().enumerate() {
            let mut record = record::slice("north", &web, address);
            let name = name::slice_export("north", &web, &format!("bad-{number}"));
            record["metadata"]["name"] = json!(name);
            record["spec"]["endpointSlice"]["addressType"] = json!(family);
            let _: ResourceExport = leader.create(AREA, record).await;
            bad.push((name, address));
        }
        for (name, address) in &bad {
            eventually(&format!("{address} is refused"), || async {
                let record = leader.api::<ResourceExport>(AREA).get(name).await;
                let status = record.map_err(|error| error.to_string())?.status.unwrap_or_default();
                let said = status.conditions.first().and_then(|said| said.reason.as_deref());
                if said == Some("InvalidSlice") { Ok(()) } else { Err(format!("{status:?}")) }
            })
            .await;
        }
        let good = [format!("{RIGHT}:8080")];
        for cluster in CLUSTERS {
            let of_north = || async {
                let seen = imported(world.cluster(cluster), &ns, "web").await?;
                let seen = seen.addresses("north").iter().map(ToString::to_string).collect::<Vec<_>>();
                if seen == good { Ok(()) } else { Err(format!("{cluster}: {seen:?}")) }
            };
            eventually("the rest is imported", of_north).await;
            always("nothing else is", of_north).await;
        }
        let withdrawn = json!({"spec": {"service": {"withdrawn": true}}});
        let _: ResourceExport = leader.patch(AREA, &name::service_export("north", &web), &withdrawn).await;
        for (name, _) in &bad {
            leader.delete::<ResourceExport>(AREA, name).await;
        }
        world.release(&ns).await;
    });
}
