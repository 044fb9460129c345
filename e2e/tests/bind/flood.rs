//! A consumer floods its cluster namespace, by its own credential: another one is answered meanwhile, and the leader needs little memory.

use api::bind::export::{APIServiceExportRequest, Phase};
use e2e::{
    account::by_token,
    binding::{
        BINDING, GROUP, Offered,
        provider::{contract, offer, request},
    },
    cluster::created,
    daemon::{End, LEADER},
    figures::peak,
    waiting::eventually,
};
use futures::{StreamExt, stream};
use kube::Api;
use serde_json::{Value, json};

/// Half of them are more than are looked at.
const REQUESTS: usize = 400;
const WRITERS: usize = 16;
/// Most memory of the leader, in MiB: the manifests give it 512.
const MEMORY_MAX: u64 = 256;

/// A request whose parameters have 24 KB, and two megabytes when they are decoded.
fn dense(number: usize) -> APIServiceExportRequest {
    let spec = json!({"parameters": {"x": vec![json!({"a": 0}); 3000]}, "resources": [{"group": GROUP, "resource": "nothings"}]});
    serde_json::from_value(json!({"metadata": {"name": format!("flood{number}")}, "spec": spec})).unwrap()
}

#[e2e::test(real)]
fn a_consumer_that_floods_its_cluster_namespace_holds_nobody_up() {
    BINDING.alone(async |world| {
        let (leader, offered) = (world.leader(), Offered::new("floods", "Namespaced"));
        offer(leader, &offered, json!({})).await;
        let (flooded, _) = contract(world, "flooder", "floods").await;
        let (quiet, _) = contract(world, "quiet", "floods").await;
        let client = by_token(world, "leader", &flooded, "kube-binder").await;
        let requests = Api::<APIServiceExportRequest>::namespaced(client, &flooded);
        eventually("the consumer may write", || async {
            created(&requests, &dense(0)).await.map(drop).map_err(|error| error.to_string())
        })
        .await;
        let flood = stream::iter(1..REQUESTS).map(|number| {
            let (requests, request) = (&requests, dense(number));
            async move { created(requests, &request).await.map(drop) }
        });
        flood.buffer_unordered(WRITERS).for_each(|written| async { written.unwrap() }).await;
        let of: Value =
            json!({"resources": [{"group": offered.resource().group, "resource": offered.plural}]});
        let answered = request(world, &quiet, "beside", of.clone()).await;
        assert_eq!(answered, (Phase::Succeeded, String::new()));

        world.end(LEADER, End::Crash).await;
        world.launch(LEADER).await;
        let (quieter, _) = contract(world, "quieter", "floods").await;
        assert_eq!(request(world, &quieter, "after", of).await, (Phase::Succeeded, String::new()));
        let mebibytes = peak(world, LEADER).await;
        assert!(mebibytes < MEMORY_MAX, "the leader had {mebibytes} MiB");
        for namespace in [&flooded, &quiet, &quieter] {
            leader.release_namespace(namespace).await;
        }
        leader.take_crd(&offered.name()).await;
    });
}
