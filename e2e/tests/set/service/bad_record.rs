//! Records that cannot be judged are reported where the administrator looks, and the others go on.

use api::{ServiceName, condition::AntreaCondition, name, resource_export::ResourceExport};
use serde_json::{Value, json};

use e2e::{
    daemon::LEADER,
    fixture::{AREA, World, shared},
    record::service as record,
    seen::{event, imported},
    waiting::eventually,
};

async fn conditions(world: &World, record: &str) -> Vec<AntreaCondition> {
    let record = world.leader().api::<ResourceExport>(AREA).get(record).await.unwrap();
    record.status.unwrap_or_default().conditions
}

async fn succeeded(world: &World, record: &str) -> Result<(), String> {
    let conditions = conditions(world, record).await;
    let succeeded = conditions.iter().any(|condition| condition.type_.as_deref() == Some("Succeeded"));
    if succeeded { Ok(()) } else { Err(format!("{conditions:?}")) }
}

async fn failure(world: &World, record: &str, reason: &str) -> Result<(), String> {
    match conditions(world, record).await.as_slice() {
        [one] if one.type_.as_deref() == Some("Failure") && one.reason.as_deref() == Some(reason) => Ok(()),
        other => Err(format!("{other:?}")),
    }
}

#[test]
fn records_that_cannot_be_judged_are_reported_and_the_others_go_on() {
    shared(async |world| {
        let ns = world.namespace("bad-records", &["east", "west"]).await;
        let (leader, east, west) = (world.leader(), world.cluster("east"), world.cluster("west"));
        let tuple = |name: &str| ServiceName::new(&ns, name);
        let mut no_payload = record("north", &tuple("no-payload"));
        no_payload["spec"]["service"] = Value::Null;
        let mut foreign = record("north", &tuple("foreign"));
        foreign["spec"]["clusterID"] = json!("west");
        let mut mislabelled = record("north", &tuple("mislabelled"));
        mislabelled["metadata"]["labels"]["sourceClusterID"] = json!("west");
        let mut no_slice = record("north", &tuple("no-slice"));
        no_slice["metadata"]["name"] = json!(name::slice_export("north", &tuple("no-slice"), "x"));
        no_slice["metadata"]["labels"]["sourceKind"] = json!("EndpointSlice");
        no_slice["spec"]["kind"] = json!("EndpointSlice");
        let mut bad_slice = no_slice.clone();
        bad_slice["metadata"]["name"] = json!(name::slice_export("north", &tuple("no-slice"), "y"));
        bad_slice["spec"]["endpointSlice"] =
            json!({"addressType": "IPv4", "ports": [], "endpoints": [{"addresses": ["not an address"]}]});
        let mut bad_port = record("north", &tuple("bad-port"));
        bad_port["spec"]["service"]["serviceSpec"]["ports"][0]["port"] = json!(0);
        let bad = [
            (no_payload, "NoPayload"),
            (foreign, "ForeignTuple"),
            (mislabelled, "ForeignTuple"),
            (no_slice, "NoPayload"),
            (bad_slice, "InvalidSlice"),
            (bad_port, "InvalidService"),
        ];
        for (record, reason) in &bad {
            let created: ResourceExport = leader.create(AREA, record.clone()).await;
            let name = created.metadata.name.unwrap();
            eventually(&format!("{name}: {reason}"), || failure(world, &name, reason)).await;
            eventually("its Event", || event(leader, AREA, &name, reason)).await;
        }
        let refused = world.metrics(LEADER).await.unwrap().sum("freeport_records_refused");
        assert!(refused >= 6.0, "{refused}");

        east.exported(&ns, "good", &["10.1.0.1"]).await;
        eventually("others go on", || imported(west, &ns, "good")).await;

        let name = name::service_export("north", &tuple("no-payload"));
        let mended = json!({"spec": {"service": record("north", &tuple("x"))["spec"]["service"]}});
        leader.patch::<ResourceExport>(AREA, &name, &mended).await;
        eventually("mended", || succeeded(world, &name)).await;
        eventually("and taken in", || imported(west, &ns, "no-payload")).await;
        let withdrawn = json!({"spec": {"service": {"withdrawn": true}}});
        leader.patch::<ResourceExport>(AREA, &name, &withdrawn).await;
        for (record, _) in bad.iter().skip(1) {
            leader.delete::<ResourceExport>(AREA, record["metadata"]["name"].as_str().unwrap()).await;
        }
        world.release(&ns).await;
    });
}
