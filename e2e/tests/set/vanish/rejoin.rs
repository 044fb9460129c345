//! The leader's cluster is lost, and another one takes its place: members rejoin, and imports are bound again as they are.

use std::{collections::BTreeMap, time::Instant};

use api::{label, lease::LeaseView, mcs::ServiceImport, membership, name};
use cli::{Daemons, InitOptions, KubeContext, RejoinOptions, Run, init, objects::offload, rejoin};
use e2e::{
    cluster::Cluster,
    daemon::LEADER,
    fixture::{AREA, CLUSTERS, SET, SYSTEM, World, alone},
    say,
    seen::{Imported, imported, right},
    waiting::{RECONCILED, VOUCHED, eventually, within},
    watched::Watched,
};
use k8s_openapi::{
    api::{
        core::v1::{ConfigMap, Service, ServiceAccount},
        discovery::v1::EndpointSlice,
        rbac::v1::ClusterRole,
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{Api, ResourceExt, api::DeleteParams};
use serde_json::json;

/// Imports that are bound again.
const IMPORTS: usize = 50;

fn name_of(number: usize) -> String {
    format!("web-{number}")
}

async fn all(cluster: &Cluster, ns: &str) -> Result<BTreeMap<String, Imported>, String> {
    let mut all = BTreeMap::new();
    for name in (0..IMPORTS).map(name_of) {
        let seen = right(imported(cluster, ns, &name).await, |seen| seen.addresses("east").len() == 1);
        all.insert(name.clone(), seen.map_err(|error| format!("{name}: {error}"))?);
    }
    Ok(all)
}

fn context(world: &World, cluster: &str) -> KubeContext {
    KubeContext {
        file: Some(world.real().fleet.kubeconfig()),
        name: Some(cluster.to_owned()),
        ..KubeContext::default()
    }
}

/// Makes the cluster `leader`, which is empty, the leader of the set under this ID.
async fn lead(world: &World, id: &str) {
    let daemons = world.real().fleet.cluster("leader").unwrap().dir().join("daemons");
    let options = InitOptions {
        cluster_set: SET.into(),
        cluster_id: id.into(),
        dedicated: true,
        cluster: context(world, "leader"),
        leader_server: None,
        offload: None,
        probe: None,
        ranges: None,
        run: Run {
            daemons: Daemons::Outside(daemons),
            only: vec![],
            wait: false,
            timeout: RECONCILED.time,
            dry_run: false,
            aside: |_| {},
        },
    };
    init(&options, &mut say::note).await.unwrap();
    world.launch(LEADER).await;
}

async fn follow(world: &World) {
    let options = RejoinOptions {
        clusters: ["east", "west"].map(|cluster| context(world, cluster)).into(),
        leader: context(world, "leader"),
        leader_server: None,
        wait: true,
        timeout: RECONCILED.time,
        aside: |_| {},
    };
    rejoin(&options, &mut say::note).await.unwrap();
}

/// Whether all imports were compared with what the leader of now says.
async fn are_bound(world: &World, ns: &str) -> Result<(), String> {
    let leases = world.leader().api::<LeaseView>(AREA);
    let hub = leases.get(name::LEADER_LEASE).await.map_err(|error| error.to_string())?.uid();
    let imports = world.cluster("west").api::<ServiceImport>(ns);
    let imports = imports.list(&Default::default()).await.map_err(|error| error.to_string())?;
    let bound = imports.iter().filter(|import| import.annotations().get(label::HUB) == hub.as_ref()).count();
    if bound == IMPORTS { Ok(()) } else { Err(format!("{bound} of {}", imports.items.len())) }
}

const RANGES: &str = "10.1.0.0/16";

async fn account(world: &World) -> ServiceAccount {
    world.leader().api::<ServiceAccount>(AREA).get("freeport-member-east").await.unwrap()
}

/// Limits the addresses of endpoints of `east`, or does not any more, and waits until the member has noted that.
async fn limit(world: &World, ranges: Option<&str>) {
    let note = json!({"metadata": {"annotations": {label::ADDRESS_RANGES: ranges}}});
    let _: ServiceAccount = world.leader().patch(AREA, "freeport-member-east", &note).await;
    eventually("east notes its ranges", || async {
        let note = world.cluster("east").api::<ConfigMap>(SYSTEM).get(membership::NAME).await;
        let data = note.map_err(|error| error.to_string())?.data.unwrap_or_default();
        let noted = data.get(membership::RANGES).map(String::as_str);
        if noted == ranges { Ok(()) } else { Err(format!("{noted:?}")) }
    })
    .await;
}

/// Which CRDs of the records of offloading the leader has.
async fn offload_crds(world: &World) -> usize {
    let crds = Api::<CustomResourceDefinition>::all(world.leader().client.clone());
    let mut there = 0;
    for crd in offload::leader_crds() {
        let found = crds.get_metadata_opt(&crd.name).await.unwrap();
        there += usize::from(found.is_some());
    }
    there
}

#[e2e::test(real)]
fn a_new_leader_binds_all_imports_again_with_their_addresses() {
    alone(async |world| {
        let ns = world.namespace("rejoin", &CLUSTERS).await;
        let (east, west) = (world.cluster("east"), world.cluster("west"));
        for number in 0..IMPORTS {
            east.exported(&ns, &name_of(number), &[&format!("10.1.2.{}", number + 1)]).await;
        }
        limit(world, Some(RANGES)).await;
        // A member with this ClusterRole has offloading.
        let role = json!({"metadata": {"name": offload::ROLE}, "rules": []});
        let _: ClusterRole = west.create_cluster_wide(role).await;
        let before = within(VOUCHED, "imported", || all(west, &ns)).await;
        let slices = Watched::<EndpointSlice>::of(west, &ns).await;
        let services = Watched::<Service>::of(west, &ns).await;

        world.replace_leader().await;
        let begun = Instant::now();
        lead(world, "hub").await;
        world.leader().create_namespace(&ns).await;
        follow(world).await;
        let connected = begun.elapsed();
        assert_eq!(
            account(world).await.annotations().get(label::ADDRESS_RANGES).map(String::as_str),
            Some(RANGES)
        );
        assert_eq!(offload_crds(world).await, offload::leader_crds().len());
        within(VOUCHED, "bound again", || are_bound(world, &ns)).await;
        e2e::note!(
            "{IMPORTS} imports: members connected after {:.1} s, all bound again after {:.1} s",
            connected.as_secs_f64(),
            begun.elapsed().as_secs_f64()
        );
        eventually("they are as they were", || async {
            let now = all(west, &ns).await?;
            if now == before { Ok(()) } else { Err(format!("{now:?}")) }
        })
        .await;
        services.nothing_deleted("another leader");
        slices.nothing_deleted("another leader");
        slices.each(|slice| {
            let addresses = slice.endpoints.iter().flatten().flat_map(|endpoint| &endpoint.addresses);
            assert!(addresses.count() > 0, "a slice was emptied: {slice:?}");
        });
        east.replace_slice(&ns, "web-0", "web-0-1", &["10.1.3.1"], &[("http", 8080)]).await;
        eventually("they follow", || async {
            right(imported(west, &ns, "web-0").await, |seen| seen.addresses("east") == ["10.1.3.1:8080"])
        })
        .await;

        // As it was, for the test that comes after.
        limit(world, None).await;
        let roles = Api::<ClusterRole>::all(west.client.clone());
        roles.delete(offload::ROLE, &DeleteParams::default()).await.unwrap();
        world.replace_leader().await;
        lead(world, "leader").await;
        follow(world).await;
        world.set_up_again().await;
        world.release(&ns).await;
    });
}
