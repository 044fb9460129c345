//! Somebody at the provider changes each copy back: an admission policy that sets a field of the consumer's.

use e2e::{
    audit,
    binding::{
        BINDING, GROUP, Offered, becomes, bind_with,
        provider::{contract_for, granted},
        vanishes,
    },
    cluster::Cluster,
    daemon::End,
    waiting::{always, eventually},
    world::World,
};
use kube::{
    Api,
    api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams},
    core::GroupVersionKind,
};
use serde_json::{Value, json};

use super::konnector::unbind;

const KONNECTOR: &str = "freeport-member-east";
const POLICY: &str = "sets-the-size";

/// Objects of the API server's own admission that say this.
fn admission(cluster: &Cluster, kind: &str) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("admissionregistration.k8s.io", "v1", kind);
    Api::all_with(cluster.client.clone(), &ApiResource::from_gvk(&kind))
}

/// Whoever writes an object of this API writes size `xl`.
async fn set_the_size(cluster: &Cluster, offered: &Offered) {
    let rules = json!([{"apiGroups": [GROUP], "apiVersions": ["*"], "resources": [offered.plural], "operations": ["CREATE", "UPDATE"]}]);
    let mutation = json!({"patchType": "ApplyConfiguration", "applyConfiguration": {
        "expression": "Object{spec: Object.spec{size: \"xl\"}}",
    }});
    let policy = json!({"matchConstraints": {"resourceRules": rules}, "mutations": [mutation],
        "failurePolicy": "Fail", "reinvocationPolicy": "Never"});
    for (kind, spec) in [
        ("MutatingAdmissionPolicy", policy),
        ("MutatingAdmissionPolicyBinding", json!({"policyName": POLICY})),
    ] {
        let (api, object) = (admission(cluster, kind), json!({"metadata": {"name": POLICY}, "spec": spec}));
        api.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap();
    }
    let probe = offered.object("probe", json!({"spec": {"size": "s"}}));
    let probes = offered.objects(cluster, Some("default"));
    eventually("the policy is in force", || async {
        let dry = PostParams { dry_run: true, ..PostParams::default() };
        let probe = probes.create(&dry, &probe).await.map_err(|error| error.to_string())?;
        let is_set = probe.data["spec"]["size"] == "xl";
        if is_set { Ok(()) } else { Err(probe.data.to_string()) }
    })
    .await;
}

async fn leave_the_size(cluster: &Cluster) {
    for kind in ["MutatingAdmissionPolicyBinding", "MutatingAdmissionPolicy"] {
        admission(cluster, kind).delete(POLICY, &DeleteParams::default()).await.unwrap();
    }
}

/// What the konnector has written of the copy itself since then.
fn applied(world: &World, since: &audit::Mark, offered: &Offered) -> Vec<String> {
    let of_copies = format!("/{}/foo", offered.plural);
    let all = audit::writes(world, since).into_iter();
    all.filter(|write| write.contains(":kube-binder ") && write.contains(&of_copies)).collect()
}

#[e2e::test(real)]
fn what_the_provider_changes_back_is_sent_once_and_statuses_come_all_the_same() {
    BINDING.alone(async |world| {
        let (leader, east) = (world.leader(), world.cluster("east"));
        let offered = Offered::new("changedbacks", "Namespaced");
        let (cns, kubeconfig) = contract_for(world, "changed-east", &[&offered]).await;
        granted(world, &cns, &offered).await;
        set_the_size(leader, &offered).await;
        bind_with(east, "changedbacks", &offered, kubeconfig).await;
        let ns = world.namespace("bind-changed", &["east"]).await;
        let begun = audit::mark(world);
        offered.create(east, Some(&ns), "foo", json!({"spec": {"size": "s", "opts": {}}})).await;
        let (here, there) =
            (offered.objects(east, Some(&ns)), offered.objects(leader, Some(&format!("{cns}-{ns}"))));
        becomes("is there as the policy wants it", &there, "foo", |copy| copy.data["spec"]["size"] == "xl")
            .await;
        let says = async |status: Value| {
            let status = Patch::Merge(json!({"status": status}));
            there.patch_status("foo", &PatchParams::default(), &status).await.unwrap();
        };
        let hears = async |phase: &str| {
            becomes(&format!("hears {phase}"), &here, "foo", |here| here.data["status"]["phase"] == phase)
                .await
        };
        says(json!({"phase": "Made"})).await;
        let object = hears("Made").await;
        assert_eq!(object.data["spec"]["size"], "s", "the consumer's word stays");
        always("it is not sent again", || async {
            let applied = applied(world, &begun, &offered);
            if applied.len() == 1 { Ok(()) } else { Err(format!("{applied:#?}")) }
        })
        .await;

        // The operator fills an empty map of the consumer's, and says so at once.
        let filled = Patch::Merge(json!({"spec": {"opts": {"a": 1}}}));
        there.patch("foo", &PatchParams::default(), &filled).await.unwrap();
        says(json!({"phase": "Filled"})).await;
        hears("Filled").await;
        // And while nobody listens.
        world.end(KONNECTOR, End::Stop).await;
        says(json!({"phase": "Ready"})).await;
        world.start(KONNECTOR).await;
        hears("Ready").await;
        becomes("keeps what the operator filled in", &there, "foo", |copy| {
            copy.data["spec"]["opts"] == json!({"a": 1})
        })
        .await;

        here.delete("foo", &DeleteParams::default()).await.unwrap();
        vanishes(&there, "foo").await;
        unbind(world, "east", &offered).await;
        world.release(&ns).await;
        leave_the_size(leader).await;
        leader.take_crd(&offered.name()).await;
    });
}
