//! Names as long as Kubernetes allows, and names that look alike.

use e2e::{
    fixture::shared,
    seen::{imported, not_imported, right, says},
    waiting::eventually,
};

#[test]
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

#[test]
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
