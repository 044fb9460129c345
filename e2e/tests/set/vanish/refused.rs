//! Issue 14, A5: one export that is refused again and again says so, and does not make what else its cluster says less believable.

use api::{name, resource_export::ResourceExport};
use e2e::{
    daemon::End,
    fixture::{AREA, alone},
    forbidden::{forbid, permit},
    record,
    seen::{event, imported, records, right, says},
    waiting::{VOUCHED, eventually, within},
};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::PostParams;
use serde_json::json;

const POLICY: &str = "no-bad-records";

#[e2e::test(real)]
fn a5_one_refused_export_leaves_all_other_absences_believable_and_is_said() {
    alone(async |world| {
        let ns = &world.namespace("vouched", &["east", "west"]).await;
        let (leader, east, west) = (world.leader(), world.cluster("east"), world.cluster("west"));
        let rule = json!({"apiGroups": ["multicluster.crd.antrea.io"], "apiVersions": ["*"],
            "operations": ["CREATE", "UPDATE"], "resources": ["resourceexports"]});
        let spec = json!({
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [{"expression": "object.spec.name != 'bad'", "message": "no bad records"}],
        });
        forbid(leader, POLICY, spec).await;
        let is_refused = async |refused: bool| {
            let bad = record::service("nobody", &api::ServiceName::new(ns.as_str(), "bad"));
            let bad: ResourceExport = serde_json::from_value(bad).unwrap();
            let dry = PostParams { dry_run: true, ..PostParams::default() };
            let created = leader.api(AREA).create(&dry, &bad).await;
            if created.is_err() == refused { Ok(()) } else { Err(format!("{created:?}")) }
        };
        eventually("the policy holds", || is_refused(true)).await;

        east.exported(ns, "web", &["10.1.0.1"]).await;
        east.slice(ns, "web", "web-2", &["10.1.0.2"], &[("http", 8080)]).await;
        east.exported(ns, "bad", &["10.1.0.3"]).await;
        eventually("the refusal is said", || says(east, (ns, "bad"), "Ready", "False", "Refused")).await;
        eventually("its Event", || event(east, ns, "bad", "Refused")).await;
        eventually("web is imported", || async {
            right(imported(west, ns, "web").await, |seen| seen.addresses("east").len() == 2)
        })
        .await;

        world.end("freeport-member-east", End::Crash).await;
        east.delete::<EndpointSlice>(ns, "web-2").await;
        let web = api::ServiceName::new(ns.as_str(), "web");
        let vanished = name::slice_export("east", &web, "web-2");
        leader.delete::<ResourceExport>(AREA, &vanished).await;
        world.start("freeport-member-east").await;
        within(VOUCHED, "east's word is believed: the slice is gone", || async {
            right(imported(west, ns, "web").await, |seen| seen.addresses("east") == ["10.1.0.1:8080"])
        })
        .await;
        assert!(records(world, ns, "bad").await.is_empty(), "it was refused all the time");

        permit(leader, POLICY).await;
        eventually("the policy is gone", || is_refused(false)).await;
        // At once, and not after the wait that a record deserves which was refused so often.
        east.replace_slice(ns, "bad", "bad-1", &["10.1.0.4"], &[("http", 8080)]).await;
        eventually("it is taken", || says(east, (ns, "bad"), "Ready", "True", "Exported")).await;
        eventually("its Event", || event(east, ns, "bad", "Exported")).await;
        eventually("and imported", || imported(west, ns, "bad")).await;
        world.release(ns).await;
    });
}
