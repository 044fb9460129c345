//! What the policy on objects says where rights say nothing: two consumers in one Namespace, with every right in it.

use api::bind::resource::Isolation;
use cli::objects::bind;
use e2e::{
    account::by_token,
    binding::{BINDING, GROUP, Offered, install},
    waiting::eventually,
    world::World,
};
use k8s_openapi::api::{
    core::v1::{Namespace, ServiceAccount},
    rbac::v1::{Role, RoleBinding},
};
use kube::{Client, api::ListParams};
use serde_json::{Value, json};

use super::{Consumer, attempt, is_wrong, note, until_refused};
use crate::rights::{
    attempt::{Attempt, Do, EVERYWHERE, try_all, within},
    samples::namespaces,
};

/// Two consumers of one API.
struct Two<'a> {
    world: &'a World,
    offered: Offered,
    /// Their Namespace. It was made for the first one.
    space: String,
    first: Consumer,
    second: Consumer,
}

impl<'a> Two<'a> {
    async fn begin(world: &'a World, plural: &str) -> Self {
        let (leader, offered) = (world.leader(), Offered::new(plural, "Namespaced"));
        offered.install(leader).await;
        install(leader, &bind::offer(&offered.resource(), Isolation::None)).await;
        let (space, made_for) = (format!("all-{plural}"), format!("first-{plural}/team"));
        let annotations = json!({"kube-bind.io/api-service-namespace": made_for});
        let namespace = json!({"metadata": {"name": space, "annotations": annotations}});
        let _: Namespace = leader.create_cluster_wide(namespace).await;
        let verbs = ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"];
        let resources = json!([plural, format!("{plural}/status")]);
        let rules = json!([{"apiGroups": [GROUP], "resources": resources, "verbs": verbs}]);
        let _: Role =
            leader.create(&space, json!({"metadata": {"name": "everything"}, "rules": rules})).await;
        let first = Self::consumer(world, &space, format!("first-{plural}")).await;
        let second = Self::consumer(world, &space, format!("second-{plural}")).await;
        let (unsaid, says) = (json!({"metadata": {"name": "unsaid"}}), "must have the annotation");
        for consumer in [&first, &second] {
            let todo = Do::DryCreate(unsaid.clone());
            until_refused(&consumer.client, &space, &offered.api_resource(), todo, says).await;
        }
        Self { world, offered, space, first, second }
    }

    /// One that may do everything in that Namespace.
    async fn consumer(world: &World, space: &str, cns: String) -> Consumer {
        let leader = world.leader();
        leader.create_namespace(&cns).await;
        let _: ServiceAccount = leader.create(&cns, json!({"metadata": {"name": "kube-binder"}})).await;
        let binding = json!({
            "metadata": {"name": cns},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "everything"},
            "subjects": [{"kind": "ServiceAccount", "name": "kube-binder", "namespace": cns}],
        });
        let _: RoleBinding = leader.create(space, binding).await;
        let client = by_token(world, "leader", &cns, "kube-binder").await;
        Consumer { cns, client }
    }

    async fn done(&self, by: &Client, todo: Do) {
        let done = todo.by(by, &self.space, &self.offered.api_resource()).await;
        assert!(done.is_ok(), "{todo:?}: {done:?}");
    }

    fn admin(&self) -> &Client {
        &self.world.leader().client
    }

    async fn refused(&self, by: &Consumer, attempts: &[Attempt]) {
        try_all(&by.client, &self.space, attempts, is_wrong).await;
    }

    async fn end(self) {
        let leader = self.world.leader();
        for namespace in [&self.space, &self.first.cns, &self.second.cns] {
            leader.release_namespace(namespace).await;
        }
        leader.take_crd(&self.offered.name()).await;
    }
}

fn marked(consumer: &Consumer) -> Value {
    json!({"metadata": {"annotations": consumer.mark()}})
}

#[e2e::test]
fn what_is_anothers_stays_anothers_whatever_rights_say() {
    BINDING.beside(async |world| {
        let two = Two::begin(world, "shareds").await;
        let (kind, first, second) = (two.offered.api_resource(), &two.first, &two.second);
        let status = json!({"status": {"phase": "x"}});
        two.done(&first.client, Do::Create(first.object("one"))).await;
        two.done(&second.client, Do::Create(second.object("other"))).await;
        two.done(&second.client, Do::PatchStatus("other".into(), status.clone())).await;
        two.done(two.admin(), Do::Create(json!({"metadata": {"name": "theirs"}}))).await;
        let (another, nobodys) = ("it is of another consumer, first-shareds", "no consumer made it");
        let says = "must have the annotation";
        let (one, theirs) = (|| "one".to_owned(), || "theirs".to_owned());
        let attempts = [
            attempt("patch another's", &kind, Do::Patch(one(), note()), another),
            attempt("take another's", &kind, Do::Patch(one(), marked(second)), another),
            attempt("replace another's", &kind, Do::Replace(one(), note()), another),
            attempt("another's status", &kind, Do::PatchStatus(one(), status.clone()), another),
            attempt("delete another's", &kind, Do::Delete(one()), another),
            attempt("in another's name", &kind, Do::Create(first.object("new")), says),
            attempt("patch nobody's", &kind, Do::Patch(theirs(), note()), nobodys),
            attempt("take nobody's", &kind, Do::Patch(theirs(), marked(second)), nobodys),
            attempt("nobody's status", &kind, Do::PatchStatus(theirs(), status), nobodys),
            attempt("delete nobody's", &kind, Do::Delete(theirs()), nobodys),
            attempt("delete all", &kind, Do::DeleteAll(String::new()), "one by one"),
        ];
        two.refused(second, &attempts).await;
        let all = within(two.admin(), &two.space, &kind).list(&ListParams::default()).await.unwrap();
        assert_eq!(all.items.len(), 3, "some of all were deleted");

        let adopt = json!({"metadata": {"annotations": {"multicluster.freeport.dev/adopt": "true"}}});
        two.done(two.admin(), Do::Patch(theirs(), adopt)).await;
        let open = [attempt("leave whose it is open", &kind, Do::Patch(theirs(), note()), says)];
        two.refused(second, &open).await;
        two.done(&second.client, Do::Patch(theirs(), marked(second))).await;
        let late = [attempt("adopt it again", &kind, Do::Patch(theirs(), marked(first)), "second-shareds")];
        two.refused(first, &late).await;
        for name in ["other", "theirs"] {
            two.done(&second.client, Do::Delete(name.into())).await;
        }
        two.end().await;
    });
}

/// Somebody at the provider takes the annotation off.
#[e2e::test]
fn a_lost_annotation_is_put_back_by_whose_place_it_is() {
    BINDING.beside(async |world| {
        let two = Two::begin(world, "losts").await;
        let (kind, first, second) = (two.offered.api_resource(), &two.first, &two.second);
        let lost = json!({"metadata": {"annotations": {"kube-bind.io/cluster-namespace": null}}});
        for (consumer, name) in [(first, "one"), (second, "other")] {
            consumer.apply(&two.space, &kind, name).await;
            two.done(two.admin(), Do::Patch(name.into(), lost.clone())).await;
        }
        let take = |name: &str, by: &Consumer| Do::Patch(name.to_owned(), marked(by));
        let says = "no consumer made it";
        let attempts = [
            attempt("take another's", &kind, take("one", second), says),
            attempt("what may be anybody's", &kind, take("other", second), says),
        ];
        two.refused(second, &attempts).await;
        two.done(&first.client, take("one", first)).await;
        two.done(two.admin(), Do::Patch("one".into(), json!({"metadata": {"annotations": null}}))).await;
        two.done(&first.client, take("one", first)).await;

        // Others have objects there as well: whose it was nobody knows any more.
        let shared = json!({"metadata": {"annotations": {"multicluster.freeport.dev/shared": "true"}}});
        Do::Patch(two.space.clone(), shared).by(two.admin(), EVERYWHERE, &namespaces()).await.unwrap();
        eventually("one is nobody's", || async {
            two.done(two.admin(), Do::Patch("one".into(), lost.clone())).await;
            match take("one", first).by(&first.client, &two.space, &kind).await {
                Err(refusal) if refusal.is_by_policy(says) => Ok(()),
                other => Err(format!("{other:?}")),
            }
        })
        .await;
        two.end().await;
    });
}
