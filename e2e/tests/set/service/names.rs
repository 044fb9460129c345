//! Names as long as Kubernetes allows, and names that look alike.

use api::{ServiceName, resource_export::ResourceExport};
use e2e::{
    fixture::{AREA, shared},
    record,
    seen::{holds, imported, not_imported, right, says},
    waiting::eventually,
};
use kube::ResourceExt;
use serde_json::json;

#[e2e::test]
fn r4_the_longest_service_names_are_imported_under_names_of_their_own() {
    shared(async |world| {
        let ns = &world.namespace("long-names", &["east", "west"]).await;
        let (east, west) = (world.cluster("east"), world.cluster("west"));
        // 53 characters fit behind `antrea-mc-`; these two differ in the last of 63.
        let fits = "s".repeat(53);
        let [one, two] = ["1", "2"].map(|end| "s".repeat(62) + end);
        for (name, address) in [(&fits, "10.1.0.1"), (&one, "10.1.0.2"), (&two, "10.1.0.3")] {
            east.exported(ns, name, &[address]).await;
            let endpoint = format!("{address}:8080");
            for cluster in [east, west] {
                let seen = eventually(name, || async {
                    right(imported(cluster, ns, name).await, |seen| seen.addresses("east").len() == 1)
                })
                .await;
                assert_eq!(seen.addresses("east"), [endpoint.as_str()], "{name} in {}", cluster.name);
            }
            eventually("Ready", || says(east, (ns, name), "Ready", "True", "Exported")).await;
        }
        east.unexport(ns, &one).await;
        eventually("the other one stays", || not_imported(west, ns, &one)).await;
        assert!(imported(west, ns, &two).await.is_ok());
        world.release(ns).await;
    });
}

#[e2e::test]
fn r4_names_that_are_joined_alike_stay_apart() {
    shared(async |world| {
        let (short, long) = ("x", world.namespace("x-y", &["east", "west"]).await);
        let [east, west] = ["east", "west"].map(|name| world.cluster(name));
        // `<ns>-<name>`: Service `y-…-web` of Namespace `x` and Service `web` of Namespace `x-y-…`.
        let tail = long.strip_prefix("x-").unwrap();
        let alike = format!("{tail}-web");
        for cluster in [east, west] {
            cluster.create_namespace(short).await;
        }
        east.exported(short, &alike, &["10.1.0.1"]).await;
        east.exported(&long, "web", &["10.1.0.2"]).await;
        for (ns, name, address) in [(short, alike.as_str(), "10.1.0.1:8080"), (&long, "web", "10.1.0.2:8080")]
        {
            let seen = eventually(name, || async {
                right(imported(west, ns, name).await, |seen| seen.addresses("east").len() == 1)
            })
            .await;
            assert_eq!(seen.addresses("east"), [address], "{ns}/{name}");
        }
        world.release(short).await;
        world.release(&long).await;
    });
}

#[e2e::test]
fn r1_r4_cluster_ids_of_two_labels_and_pairs_that_join_alike_stay_apart() {
    shared(async |world| {
        let (leader, west) = (world.leader(), world.cluster("west"));
        // By dashes and by dots these would be one: `a-b` in `c-pair`, `a` in `b-c-pair`; and `a.b` in both.
        let (short, long) = ("c-pair", "b-c-pair");
        for ns in [short, long] {
            west.create_namespace(ns).await;
        }
        let exports = [("a-b", short), ("a.b", short), ("a", long), ("a.b", long)];
        let mut records = vec![];
        for (n, (cluster, ns)) in exports.into_iter().enumerate() {
            let web = ServiceName::new(ns, "web");
            let address = format!("10.9.0.{}", n + 1);
            for record in [record::service(cluster, &web), record::slice(cluster, &web, &address)] {
                let written: ResourceExport = leader.create(AREA, record).await;
                records.push(written.name_any());
            }
        }
        for (ns, first, second) in [(short, ("a-b", 1), ("a.b", 2)), (long, ("a", 3), ("a.b", 4))] {
            let seen = eventually(&format!("{ns}/web"), || async {
                right(imported(west, ns, "web").await, |seen| seen.endpoints.len() == 2)
            })
            .await;
            for (cluster, address) in [first, second] {
                assert_eq!(seen.addresses(cluster), [format!("10.9.0.{address}:8080")], "{cluster} in {ns}");
            }
        }
        // As their clusters would: what is taken back is said first.
        for record in &records {
            let is_slice = record.contains(".slice.");
            let said = if is_slice {
                json!({"endpointSlice": {"endpoints": []}})
            } else {
                json!({"service": {"withdrawn": true}})
            };
            let _: ResourceExport = leader.patch(AREA, record, &json!({"spec": said})).await;
            if is_slice {
                leader.delete::<ResourceExport>(AREA, record).await;
            }
        }
        for ns in [short, long] {
            eventually("nothing of it is left", || not_imported(west, ns, "web")).await;
            eventually("nor in the Common Area", || holds(world, ns, "web", 0)).await;
            world.release(ns).await;
        }
    });
}
