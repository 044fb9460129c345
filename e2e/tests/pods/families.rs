//! IPv4 and IPv6: who reaches whom. `six` has IPv6 alone, `west` IPv4 alone, the others have both.

use api::mcs::ServiceImport;
use e2e::{
    ask::Protocol::{Http, Udp},
    waiting::eventually,
};
use fleet::dns::clusterset_name;

use crate::pods::world::{Pods, SIX, shared};

/// The addresses of the import in a cluster, once they are of these families.
async fn addresses(world: &Pods, cluster: &str, ns: &str, families: &[&str]) -> Vec<String> {
    eventually(&format!("{cluster} has addresses of {families:?}"), || async {
        let imports = world.cluster(cluster).api::<ServiceImport>(ns);
        let ips = imports.get("web").await.map_err(|error| error.to_string())?.spec.ips;
        let are_right = ips.iter().map(|ip| api::family::of(ip)).eq(families.iter().copied());
        if are_right { Ok(ips) } else { Err(format!("{ips:?}")) }
    })
    .await
}

async fn not_supported(world: &Pods, cluster: &str, ns: &str) {
    eventually(&format!("{cluster} says that it cannot"), || async {
        let imports = world.cluster(cluster).api::<ServiceImport>(ns);
        let import = imports.get("web").await.map_err(|error| error.to_string())?;
        let conditions = import.status.iter().flat_map(|status| &status.conditions);
        match conditions.into_iter().find(|c| c.type_ == "Ready" && c.reason == "IPFamilyNotSupported") {
            Some(_) if import.spec.ips.is_empty() => Ok(()),
            _ => Err(format!("{import:?}")),
        }
    })
    .await;
}

/// Both ways a family can be added to an export; whoever was served before goes on by the address it had.
#[e2e::test]
fn r24_r31_a_client_of_one_family_reaches_a_service_of_both_and_a_family_may_be_added() {
    shared(async |world| {
        for (ns, first, order, served, other) in
            [("four", "IPv4", ["IPv4", "IPv6"], "west", SIX), ("six", "IPv6", ["IPv6", "IPv4"], SIX, "west")]
        {
            let name = clusterset_name(ns, "web");
            world.namespace_everywhere(ns).await;
            let east = world.cluster("east");
            let servers = east.run_service_of(ns, "web", 2, Some(first)).await;
            east.export(ns, "web").await;
            let before = addresses(world, served, ns, &[first]).await;
            for host in [&before[0], &name] {
                world.answer(served, Http, (host, 80), &servers).await;
            }
            not_supported(world, other, ns).await;
            world.is_no_name(other, &name).await;

            east.change_families(ns, "web", &order).await;
            let [_, added] = order;
            let after = addresses(world, other, ns, &[added]).await;
            for host in [&after[0], &name] {
                for protocol in [Http, Udp] {
                    world.answer(other, protocol, (host, 80), &servers).await;
                }
            }
            assert_eq!(addresses(world, served, ns, &[first]).await, before);
            for host in &addresses(world, "leader", ns, &order).await {
                world.answer("leader", Http, (host, 80), &servers).await;
            }

            east.change_families(ns, "web", &[first]).await;
            not_supported(world, other, ns).await;
            world.answer(served, Http, (&before[0], 80), &servers).await;
            world.release(ns).await;
        }
    });
}

#[e2e::test]
fn a_client_of_both_families_reaches_a_service_of_one() {
    shared(async |world| {
        let (ns, name) = ("one-family", clusterset_name("one-family", "web"));
        world.namespace_everywhere(ns).await;
        for (exporter, family) in [("west", "IPv4"), (SIX, "IPv6")] {
            let exporter = world.cluster(exporter);
            let servers = exporter.run_service(ns, "web", 1).await;
            exporter.export(ns, "web").await;
            for client in ["leader", "east"] {
                let ips = addresses(world, client, ns, &[family]).await;
                for host in [&ips[0], &name] {
                    world.answer(client, Http, (host, 80), &servers).await;
                }
            }
            exporter.unexport(ns, "web").await;
            world.is_no_name("leader", &name).await;
        }
        world.release(ns).await;
    });
}
