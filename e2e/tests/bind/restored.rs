//! A consumer's cluster is restored from a backup that knows less than the provider does (D8).

mod provider;

use e2e::{
    binding::{
        BINDING, Offered, becomes, bind_with, binding_says,
        provider::{contract_for, granted},
        vanishes,
    },
    daemon::End,
    waiting::always,
    world::World,
};
use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, DynamicObject},
};
use serde_json::json;

use super::konnector::unbind;

const KONNECTOR: &str = "freeport-member-east";
const NAMESPACE: &str = "bind-forgotten";

/// Objects that the backup lacks: one in a Namespace that it lacks as well, and one in none.
struct Forgotten<'a> {
    world: &'a World,
    near: &'a Offered,
    far: &'a Offered,
    cns: &'a str,
}

impl Forgotten<'_> {
    /// The copies, and their names.
    fn copies(&self) -> [(Api<DynamicObject>, String); 2] {
        let leader = self.world.leader();
        let near = self.near.objects(leader, Some(&format!("{}-{NAMESPACE}", self.cns)));
        [(near, "foo".to_owned()), (self.far.objects(leader, None), format!("{}-foo", self.cns))]
    }

    /// The uids of the copies.
    async fn are_made(&self) -> [Option<String>; 2] {
        let east = self.world.cluster("east");
        east.create_namespace(NAMESPACE).await;
        let spec = json!({"spec": {"size": "l"}});
        self.near.create(east, Some(NAMESPACE), "foo", spec.clone()).await;
        self.far.create(east, None, "foo", spec).await;
        let mut uids = [None, None];
        for ((there, name), uid) in self.copies().iter().zip(&mut uids) {
            let copy = becomes("is at the provider", there, name, |copy| {
                copy.annotations().contains_key("kube-bind.io/consumer-uid")
            });
            *uid = copy.await.uid();
        }
        uids
    }

    async fn stay(&self, uids: &[Option<String>; 2]) {
        for offered in [self.near, self.far] {
            binding_says(self.world, "east", &offered.plural, "Synced", "False", "LostByRestore").await;
        }
        always("copies stay", || async {
            for ((there, name), uid) in self.copies().iter().zip(uids) {
                let copy = there.get_opt(name).await.map_err(|error| error.to_string())?;
                let stays = copy
                    .as_ref()
                    .is_some_and(|copy| copy.uid() == *uid && copy.metadata.deletion_timestamp.is_none());
                stays.then_some(()).ok_or_else(|| format!("{name}: {}", json!(copy)))?;
            }
            Ok(())
        })
        .await;
    }
}

#[e2e::test]
fn d8_what_a_restored_consumer_lacks_keeps_its_copies() {
    BINDING.alone(async |world| {
        let (leader, east) = (world.leader(), world.cluster("east"));
        let (near, far) = (Offered::new("lostnears", "Namespaced"), Offered::new("lostfars", "Cluster"));
        let (cns, kubeconfig) = contract_for(world, "lost-east", &[&near, &far]).await;
        for offered in [&near, &far] {
            granted(world, &cns, offered).await;
            bind_with(east, &offered.plural, offered, kubeconfig.clone()).await;
        }
        for offered in [&near, &far] {
            binding_says(world, "east", &offered.plural, "Ready", "True", "").await;
        }
        let backup = world.back_up("east").await;
        let forgotten = Forgotten { world, near: &near, far: &far, cns: &cns };
        let uids = forgotten.are_made().await;

        // While no konnector runs.
        world.end(KONNECTOR, End::Stop).await;
        world.restore(&backup).await;
        world.start(KONNECTOR).await;
        forgotten.stay(&uids).await;
        // Who makes them again has their copies.
        assert_eq!(forgotten.are_made().await, uids);
        for offered in [&near, &far] {
            binding_says(world, "east", &offered.plural, "Synced", "True", "").await;
        }

        // While one runs, and for one that starts later.
        world.restore(&backup).await;
        forgotten.stay(&uids).await;
        world.end(KONNECTOR, End::Crash).await;
        world.start(KONNECTOR).await;
        forgotten.stay(&uids).await;
        assert_eq!(forgotten.are_made().await, uids);
        for offered in [&near, &far] {
            binding_says(world, "east", &offered.plural, "Synced", "True", "").await;
        }
        // An object may go without having been seen: then its copy stays.
        becomes("has been seen", &far.objects(east, None), "foo", |seen| !seen.finalizers().is_empty()).await;
        far.objects(east, None).delete("foo", &DeleteParams::default()).await.unwrap();
        let [_, (there, name)] = forgotten.copies();
        vanishes(&there, &name).await;
        let namespaces = Api::<Namespace>::all(leader.client.clone());
        east.release_namespace(NAMESPACE).await;
        e2e::waiting::eventually("the provider's Namespace is gone", || async {
            let there = namespaces.get_opt(&format!("{cns}-{NAMESPACE}")).await.unwrap();
            there.map_or(Ok(()), |there| Err(format!("{:?}", there.metadata)))
        })
        .await;
        for offered in [&near, &far] {
            unbind(world, "east", offered).await;
        }
        leader.release_namespace(&cns).await;
        for offered in [&near, &far] {
            leader.take_crd(&offered.name()).await;
        }
    });
}
