//! Records that cannot be judged are reported where the administrator looks, and the others go on.

use api::{
    ServiceName, condition::AntreaCondition, name, resource_export::ResourceExport,
    resource_import::ResourceImport,
};
use kube::{
    Api, ResourceExt,
    api::{DynamicObject, Patch, PatchParams},
    core::discovery::ApiResource,
};
use serde_json::{Value, json};

use e2e::{
    daemon::LEADER,
    fixture::{AREA, World, shared},
    record::service as record,
    seen::{event, imported},
    waiting::eventually,
};

/// Records whatever is in them.
fn records(world: &World) -> Api<DynamicObject> {
    let kind = ApiResource::erase::<ResourceExport>(&());
    Api::namespaced_with(world.leader().client.clone(), AREA, &kind)
}

async fn put(world: &World, record: &Value) {
    let record: DynamicObject = serde_json::from_value(record.clone()).unwrap();
    let patch = Patch::Apply(&record);
    records(world).patch(&record.name_any(), &PatchParams::apply("test").force(), &patch).await.unwrap();
}

async fn conditions(world: &World, record: &str) -> Vec<AntreaCondition> {
    let record = records(world).get(record).await.unwrap();
    serde_json::from_value(record.data["status"]["conditions"].clone()).unwrap_or_default()
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

#[e2e::test]
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

/// Issue 14, A2: two times that an API server takes for times, and no import can have.
#[e2e::test]
fn a2_a_record_with_an_odd_time_freezes_no_service() {
    shared(async |world| {
        let ns = world.namespace("odd-times", &["east", "west"]).await;
        let (leader, east, west) = (world.leader(), world.cluster("east"), world.cluster("west"));
        let web = ServiceName::new(&ns, "web");
        let of = |cluster: &str, exported_at: &str| {
            let mut record = record(cluster, &web);
            record["spec"]["service"]["exportedAt"] = json!(exported_at);
            record
        };
        for (cluster, reason, exported_at) in [
            ("north", "InvalidService", "0000-01-01T00:00:00+23:59"),
            ("south", "NotDecodable", "2026-01-01T10:00:00+99:99"),
        ] {
            put(world, &of(cluster, exported_at)).await;
            let name = name::service_export(cluster, &web);
            eventually(&format!("{cluster}: {reason}"), || failure(world, &name, reason)).await;
        }
        east.exported(&ns, "web", &["10.1.0.1"]).await;
        eventually("others are merged", || imported(west, &ns, "web")).await;

        // A part that a cluster has stays its part, and the others come and go.
        let name = name::service_export("south", &web);
        put(world, &of("south", "2026-01-01T10:00:00Z")).await;
        eventually("south takes part", || exporters_are(world, &web, &["south", "east"])).await;
        put(world, &of("south", "2026-01-01T10:00:00+99:99")).await;
        eventually("south is refused", || failure(world, &name, "NotDecodable")).await;
        east.unexport(&ns, "web").await;
        eventually("a withdrawal gets through", || exporters_are(world, &web, &["south"])).await;
        put(world, &of("south", "2026-01-01T10:00:00Z")).await;
        eventually("mended", || succeeded(world, &name)).await;
        let withdrawn = json!({"spec": {"service": {"withdrawn": true}}});
        leader.patch::<ResourceExport>(AREA, &name, &withdrawn).await;
        leader.delete::<ResourceExport>(AREA, &name::service_export("north", &web)).await;
        world.release(&ns).await;
    });
}

async fn exporters_are(world: &World, service: &ServiceName, want: &[&str]) -> Result<(), String> {
    let import =
        world.leader().api::<ResourceImport>(AREA).get_opt(&name::service_import(service)).await.unwrap();
    let exporters = import.and_then(|import| import.spec.exporters).unwrap_or_default();
    let have: Vec<_> = exporters.iter().map(|exporter| exporter.cluster_id.as_str()).collect();
    if have == want { Ok(()) } else { Err(format!("{have:?}")) }
}
