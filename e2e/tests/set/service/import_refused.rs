//! Issue 14, A2: the leader's API server refuses a ResourceImport, because of one export or altogether. It is said, the others go on, and
//! it is tried again without help.

use api::{ServiceName, name, resource_import::ResourceImport};
use e2e::{
    cluster::Cluster,
    fixture::{AREA, shared},
    forbidden,
    seen::{event, imported, right, says},
    waiting::eventually,
};
use kube::api::PostParams;
use serde_json::json;

const POLICY: &str = "no-such-imports";

#[e2e::test(real)]
fn a2_an_import_that_is_refused_is_said_and_tried_again() {
    shared(async |world| {
        let ns = &world.namespace("refused-import", &["east", "west"]).await;
        let (leader, east, west) = (world.leader(), world.cluster("east"), world.cluster("west"));
        forbid(leader, ns).await;

        // One export of two is at fault.
        east.exported(ns, "web", &["10.1.0.1"]).await;
        west.service(ns, "web", &[("http", 80), ("bad", 81)]).await;
        west.slice(ns, "web", "web-1", &["10.2.0.1"], &[("http", 8080), ("bad", 8081)]).await;
        west.export(ns, "web").await;
        eventually("the one at fault says so", || says(west, (ns, "web"), "Ready", "False", "Failed")).await;
        eventually("its Event", || event(west, ns, "web", "Failed")).await;
        eventually("the other is merged", || says(east, (ns, "web"), "Ready", "True", "Exported")).await;
        eventually("and imported", || async {
            right(imported(west, ns, "web").await, |seen| seen.addresses("east") == ["10.1.0.1:8080"])
        })
        .await;
        // Whatever is exported.
        east.exported(ns, "never", &["10.1.0.2"]).await;
        eventually("it is said", || says(east, (ns, "never"), "Ready", "False", "Failed")).await;

        permit(leader, ns).await;
        eventually("the first is taken", || says(west, (ns, "web"), "Ready", "True", "Exported")).await;
        eventually("the second is taken", || says(east, (ns, "never"), "Ready", "True", "Exported")).await;
        eventually("and imported", || imported(west, ns, "never")).await;
        world.release(ns).await;
    });
}

/// No port 81, and no import of `never`, in ResourceImports of this Namespace.
async fn forbid(leader: &Cluster, ns: &str) {
    let rule = json!({"apiGroups": ["multicluster.crd.antrea.io"], "apiVersions": ["*"],
        "operations": ["CREATE", "UPDATE"], "resources": ["resourceimports"]});
    let ports =
        "has(object.spec.serviceImport) && object.spec.serviceImport.spec.ports.exists(p, p.port == 81)";
    let spec = json!({
        "matchConstraints": {"resourceRules": [rule]},
        "matchConditions": [{"name": "here", "expression": format!("object.spec.namespace == '{ns}'")}],
        "validations": [
            {"expression": format!("!({ports})"), "message": "no port 81"},
            {"expression": "object.spec.name != 'never'", "message": "not this one"},
        ],
    });
    forbidden::forbid(leader, POLICY, spec).await;
    eventually("the policy holds", || is_refused(leader, ns, true)).await;
}

async fn permit(leader: &Cluster, ns: &str) {
    forbidden::permit(leader, POLICY).await;
    eventually("the policy is gone", || is_refused(leader, ns, false)).await;
}

async fn is_refused(leader: &Cluster, ns: &str, refused: bool) -> Result<(), String> {
    let name = name::service_import(&ServiceName::new(ns, "never"));
    let import =
        json!({"metadata": {"name": name}, "spec": {"namespace": ns, "name": "never", "exporters": []}});
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    let import: ResourceImport = serde_json::from_value(import).unwrap();
    let created = leader.api(AREA).create(&dry, &import).await;
    if created.is_err() == refused { Ok(()) } else { Err(format!("{created:?}")) }
}
