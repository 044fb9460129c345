//! Leases that say what the API server takes and our clock cannot hold (issue 14, A1).

use api::{lease::LeaseView, name::member_lease};
use cli::objects::access;
use e2e::{
    account::by_token,
    fixture::{AREA, shared},
    seen::{imported, not_imported},
    waiting::eventually,
};
use k8s_openapi::api::coordination::v1::Lease;
use kube::{
    Api, Client,
    api::{DeleteParams, Patch, PatchParams, PostParams},
    core::Request,
};
use serde_json::{Value, json};

const LATE: &str = "9999-12-31T23:59:59.000000Z";

fn leases(client: &Client) -> Api<LeaseView> {
    Api::namespaced(client.clone(), AREA)
}

/// Creates a Lease whose answer no Rust type holds.
async fn create(client: &Client, lease: &Value) {
    let request = Request::new(leases(client).resource_url());
    let request = request.create(&PostParams::default(), serde_json::to_vec(lease).unwrap()).unwrap();
    let _: Value = client.request(request).await.unwrap();
}

#[e2e::test(real)]
fn a1_a_time_that_we_cannot_hold_stops_nobody_and_its_lease_is_mended() {
    shared(async |world| {
        let ns = world.namespace("odd-lease", &["east", "west"]).await;
        let (leader, east, west) = (world.leader(), world.cluster("east"), world.cluster("west"));
        // One that nobody mends.
        let late = json!({"manager": "odd", "operation": "Update", "apiVersion": "coordination.k8s.io/v1",
            "fieldsType": "FieldsV1", "fieldsV1": {}, "time": "9999-12-31T23:59:59Z"});
        let odd = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": "odd", "managedFields": [late]},
            "spec": {"holderIdentity": "odd/1", "renewTime": LATE, "acquireTime": "0000-01-01T00:00:00.000000+23:59"}});
        create(&leader.client, &odd).await;
        let east_itself = by_token(world, "leader", AREA, &access::account("east")).await;
        let late = json!({"spec": {"renewTime": LATE, "acquireTime": LATE}});
        let (of_east, params, late) = (leases(&east_itself), PatchParams::default(), Patch::Merge(&late));
        let patched = of_east.patch(&member_lease("east"), &params, &late).await.unwrap();
        assert_eq!(patched.renew_time(), None, "the API server takes it");

        for (cluster, other) in [(east, west), (west, east)] {
            let name = format!("of-{}", cluster.name);
            cluster.exported(&ns, &name, &["10.1.0.1"]).await;
            eventually("exported meanwhile", || imported(other, &ns, &name)).await;
            cluster.unexport(&ns, &name).await;
            eventually("withdrawn meanwhile", || not_imported(other, &ns, &name)).await;
        }
        eventually("its own member mends it", || async {
            let lease = leases(&leader.client).get(&member_lease("east")).await.unwrap();
            lease.renew_time().map(drop).ok_or_else(|| format!("{lease:?}"))
        })
        .await;
        drop(leader.api::<Lease>(AREA).delete("odd", &DeleteParams::default()).await);
        let is_gone = leases(&leader.client).get_opt("odd").await.unwrap().is_none();
        assert!(is_gone);
        world.release(&ns).await;
    });
}
