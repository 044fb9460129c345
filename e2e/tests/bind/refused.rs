//! What an API server refuses to the leader, or to the member, is said, in its words, of what it is about, and done when it is let.

use api::{
    bind::{
        binding::APIServiceBinding,
        condition::Condition,
        export::{APIServiceExport, APIServiceExportRequest, APIServiceNamespace, Phase},
        identity::cluster_namespace,
        offer::BindableResourcesRequest,
    },
    label::LEADER,
};
use cli::objects::{SYSTEM, bind as offering};
use e2e::{
    binding::{
        BINDING, CREDENTIALS, Offered, becomes, bind, bind_with, binding_says, install,
        provider::{contract, contract_for, granted, offer},
    },
    cluster::Cluster,
    forbidden::{forbid, permit},
    seen::event,
    waiting::eventually,
};
use k8s_openapi::api::{
    authorization::v1::SubjectAccessReview,
    core::v1::{Namespace, Secret, ServiceAccount},
    rbac::v1::ClusterRoleBinding,
};
use kube::{
    Api, Resource,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use super::konnector::unbind;

/// What the administrator says.
const WORDS: &str = "there is no room for consumers";

/// Forbids to create what is not `allowed`, which is so of `forbidden`.
async fn forbid_to_create<K>(
    leader: &Cluster,
    policy: &str,
    api: &Api<K>,
    (allowed, forbidden): (&str, Value),
) where
    K: Resource<DynamicType = ()> + Serialize + DeserializeOwned + Clone + std::fmt::Debug,
{
    let rule = json!({"apiGroups": [K::group(&())], "apiVersions": ["*"], "operations": ["CREATE"], "resources": [K::plural(&())]});
    let spec = json!({
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [{"expression": allowed, "message": WORDS}],
    });
    forbid(leader, policy, spec).await;
    let forbidden = serde_json::from_value(forbidden).unwrap();
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    eventually(&format!("policy {policy} holds"), || async {
        match api.create(&dry, &forbidden).await {
            Err(kube::Error::Api(status)) if status.message.contains(WORDS) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
}

/// Whether it is said that this was refused, in the words of the API server.
fn is_refused(said: &[Condition], type_: &str, words: &str) -> Result<(), String> {
    let is_so = said.iter().any(|condition| {
        let message = condition.message.as_deref().unwrap_or_default();
        condition.type_ == type_ && condition.reason.as_deref() == Some("Refused") && message.contains(words)
    });
    is_so.then_some(()).ok_or_else(|| format!("{said:?}"))
}

#[e2e::test(real)]
fn a_namespace_that_the_leader_must_not_make_is_said_to_the_consumer_and_made_later() {
    const POLICY: &str = "no-namespaces-of-crammed";
    BINDING.beside(async |world| {
        let (leader, east) = (world.leader(), world.cluster("east"));
        let offered = Offered::new("crammed", "Namespaced");
        let (cns, kubeconfig) = contract_for(world, "crammed-east", &[&offered]).await;
        granted(world, &cns, &offered).await;
        bind_with(east, "crammed", &offered, kubeconfig).await;
        let allowed = format!("!object.metadata.name.startsWith('{cns}-')");
        let forbidden = json!({"metadata": {"name": format!("{cns}-dry")}});
        let namespaces = Api::<Namespace>::all(leader.client.clone());
        forbid_to_create(leader, POLICY, &namespaces, (&allowed, forbidden)).await;

        let ns = world.namespace("bind-crammed", &["east"]).await;
        offered.create(east, Some(&ns), "foo", json!({"spec": {"size": "l"}})).await;
        let asked = leader.api::<APIServiceNamespace>(&cns);
        eventually("the leader says so", || async {
            let status = asked.get_opt(&ns).await.unwrap().and_then(|asked| asked.status);
            is_refused(&status.unwrap_or_default().conditions, "Assigned", WORDS)
        })
        .await;
        eventually("an Event says it", || event(leader, &cns, &ns, "Refused")).await;
        binding_says(world, "east", "crammed", "Synced", "False", "NotAssigned").await;
        eventually("an Event of the object says it", || event(east, &ns, "foo", "NotAssigned")).await;
        permit(leader, POLICY).await;
        let there = offered.objects(leader, Some(&format!("{cns}-{ns}")));
        becomes("is at the provider", &there, "foo", |_| true).await;
        binding_says(world, "east", "crammed", "Synced", "True", "").await;
        unbind(world, "east", &offered).await;
        world.release(&ns).await;
        leader.release_namespace(&cns).await;
        leader.take_crd(&offered.name()).await;
    });
}

#[e2e::test(real)]
fn what_the_consumers_own_api_server_refuses_is_said_there_and_done_later() {
    const POLICY: &str = "no-notes-on-unclaimed";
    BINDING.beside(async |world| {
        let (leader, east, offered) = (world.leader(), world.cluster("east"), Offered::new("unclaimed", "Cluster"));
        let (cns, kubeconfig) = contract_for(world, "unclaimed-east", &[&offered]).await;
        granted(world, &cns, &offered).await;
        let secrets = east.api::<Secret>(CREDENTIALS);
        let secret = json!({"metadata": {"name": "unclaimed"}, "data": {"kubeconfig": kubeconfig}});
        let secret = serde_json::from_value(secret).unwrap();
        secrets.create(&PostParams::default(), &secret).await.unwrap();
        let rule = json!({"apiGroups": [""], "apiVersions": ["*"], "operations": ["UPDATE"], "resources": ["secrets"]});
        let spec = json!({
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [{"expression": "object.metadata.name != 'unclaimed'", "message": WORDS}],
        });
        forbid(east, POLICY, spec).await;
        let note = Patch::Merge(json!({"metadata": {"annotations": {"note": "n"}}}));
        let dry = PatchParams { dry_run: true, ..PatchParams::default() };
        eventually("the policy holds", || async {
            match secrets.patch("unclaimed", &dry, &note).await {
                Err(kube::Error::Api(status)) if status.message.contains(WORDS) => Ok(()),
                other => Err(format!("{:?}", other.map(drop))),
            }
        })
        .await;

        bind(east, "unclaimed", &offered).await;
        let bindings = Api::<APIServiceBinding>::all(east.client.clone());
        for type_ in ["SecretValid", "Ready"] {
            eventually(&format!("{type_} says so"), || async {
                let status = bindings.get("unclaimed").await.unwrap().status;
                is_refused(&status.unwrap_or_default().conditions, type_, WORDS)
            })
            .await;
        }
        permit(east, POLICY).await;
        binding_says(world, "east", "unclaimed", "SecretValid", "True", "").await;
        binding_says(world, "east", "unclaimed", "Ready", "True", "").await;
        unbind(world, "east", &offered).await;
        leader.release_namespace(&cns).await;
        leader.take_crd(&offered.name()).await;
    });
}

/// Waits until the leader may give this right, or must not.
async fn may_give(leader: &Cluster, role: &str, may: bool) {
    let on = json!({"group": "rbac.authorization.k8s.io", "resource": "clusterroles", "verb": "bind", "name": role});
    let user = format!("system:serviceaccount:{SYSTEM}:{LEADER}");
    let review = json!({"metadata": {}, "spec": {"user": user, "resourceAttributes": on}});
    let review: SubjectAccessReview = serde_json::from_value(review).unwrap();
    let reviews = Api::<SubjectAccessReview>::all(leader.client.clone());
    eventually(&format!("that the leader may give {role} is {may}"), || async {
        let status = reviews.create(&PostParams::default(), &review).await.unwrap().status.unwrap();
        if status.allowed == may { Ok(()) } else { Err(format!("{status:?}")) }
    })
    .await;
}

#[e2e::test(real)]
fn rights_that_the_leader_must_not_give_are_said_on_the_export_and_given_later() {
    BINDING.beside(async |world| {
        let (leader, offered) = (world.leader(), Offered::new("ungiven", "Cluster"));
        offer(leader, &offered, json!({})).await;
        let (cns, _) = contract(world, "ungiven", "ungiven").await;
        let role = format!("freeport-bind-{}", offered.name());
        let right = format!("freeport-bind-offer-{}", offered.name());
        let bindings = Api::<ClusterRoleBinding>::all(leader.client.clone());
        bindings.delete(&right, &DeleteParams::default()).await.unwrap();
        may_give(leader, &role, false).await;
        granted(world, &cns, &offered).await;
        let exports = leader.api::<APIServiceExport>(&cns);
        let said = async || {
            let export = exports.get("ungiven").await.unwrap();
            export.status.unwrap_or_default().conditions
        };
        eventually("the export says so", || async {
            is_refused(&said().await, "ProviderInSync", &offered.name())
        })
        .await;
        install(leader, &offering::offer(&offered.resource(), Default::default())).await;
        eventually("the rights are given", || async {
            let said = said().await;
            let is_so = said.iter().any(|said| said.type_ == "ProviderInSync" && said.status == "True");
            is_so.then_some(()).ok_or_else(|| format!("{said:?}"))
        })
        .await;
        leader.release_namespace(&cns).await;
        leader.take_crd(&offered.name()).await;
    });
}

#[e2e::test(real)]
fn a_contract_that_the_leader_must_not_make_is_said_on_what_asks_for_it_and_made_later() {
    const IDENTITY: &str = "unmade";
    const POLICIES: [&str; 3] = ["unmade-no-namespace", "unmade-no-account", "unmade-no-export"];
    BINDING.beside(async |world| {
        let (leader, offered) = (world.leader(), Offered::new("unmade", "Namespaced"));
        offer(leader, &offered, json!({})).await;
        let cns = cluster_namespace("kube-bind-", IDENTITY);
        let namespaces = Api::<Namespace>::all(leader.client.clone());
        let no_namespace = (
            format!("object.metadata.name != '{cns}'"),
            json!({"metadata": {"name": cns}}),
        );
        forbid_to_create(leader, POLICIES[0], &namespaces, (&no_namespace.0, no_namespace.1)).await;
        // In `default` as well, where it shows that the policy holds.
        let allowed = format!("object.metadata.name != 'kube-binder' || !(request.namespace in ['{cns}', 'default'])");
        let accounts = leader.api::<ServiceAccount>("default");
        let forbidden = json!({"metadata": {"name": "kube-binder"}});
        forbid_to_create(leader, POLICIES[1], &accounts, (&allowed, forbidden)).await;

        let spec = json!({"clusterIdentity": {"identity": IDENTITY}, "author": "me", "templateRef": {"name": "unmade"}});
        let _: BindableResourcesRequest =
            leader.create(SYSTEM, json!({"metadata": {"name": "unmade"}, "spec": spec})).await;
        let asks = leader.api::<BindableResourcesRequest>(SYSTEM);
        let status = async || asks.get("unmade").await.unwrap().status.unwrap_or_default();
        eventually("the request says so", || async {
            let status = status().await;
            let is_so = status.phase == Phase::Pending
                && status.conditions.iter().any(|said| said.reason == "Refused" && said.message.contains(WORDS));
            is_so.then_some(()).ok_or_else(|| format!("{status:?}"))
        })
        .await;
        permit(leader, POLICIES[0]).await;
        eventually("an Event of the cluster namespace says it", || event(leader, "default", &cns, "Refused")).await;
        assert_eq!(status().await.phase, Phase::Pending);
        permit(leader, POLICIES[1]).await;
        eventually("somebody is a consumer", || async {
            let status = status().await;
            if status.phase == Phase::Succeeded { Ok(()) } else { Err(format!("{status:?}")) }
        })
        .await;

        let exports = leader.api::<APIServiceExport>(&cns);
        let spec = json!({"resources": [offered.resource()], "isolation": "Prefixed", "informerScope": "Namespaced"});
        let no_export = (
            format!("request.namespace != '{cns}'"),
            json!({"metadata": {"name": "dry"}, "spec": spec}),
        );
        forbid_to_create(leader, POLICIES[2], &exports, (&no_export.0, no_export.1)).await;
        let of = json!({"resources": [{"group": offered.resource().group, "resource": offered.plural}]});
        let _: APIServiceExportRequest =
            leader.create(&cns, json!({"metadata": {"name": "unmade"}, "spec": of})).await;
        let requests = leader.api::<APIServiceExportRequest>(&cns);
        let status = async || requests.get("unmade").await.unwrap().status.unwrap_or_default();
        eventually("the request says so", || async {
            let status = status().await;
            is_refused(&status.conditions, "ExportsReady", WORDS)?;
            if status.phase == Phase::Pending { Ok(()) } else { Err(format!("{status:?}")) }
        })
        .await;
        permit(leader, POLICIES[2]).await;
        eventually("the request is granted", || async {
            let status = status().await;
            if status.phase == Phase::Succeeded { Ok(()) } else { Err(format!("{status:?}")) }
        })
        .await;
        leader.delete::<BindableResourcesRequest>(SYSTEM, "unmade").await;
        leader.release_namespace(&cns).await;
        leader.take_crd(&offered.name()).await;
    });
}
