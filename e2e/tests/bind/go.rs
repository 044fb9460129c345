//! Our provider with Go's konnector, which is played; where KUBE_BIND_BIN names a folder with `konnector`, that one runs instead. Then our
//! konnector takes over what it left.

mod commands;
mod konnector;
mod objects;
mod provider;

use std::process::{Child, Command};

use api::bind::{binding::ClusterBinding, export::APIServiceNamespace};
use e2e::{
    binding::{
        BINDING, Offered, becomes, bind_with, binding_says,
        provider::{contract_for, granted},
    },
    daemon::End,
    waiting::eventually,
    world::World,
};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, DynamicObject, Patch, PatchParams},
};
use serde_json::json;

use self::konnector::Konnector;
use super::konnector::unbind;

/// A program of kube-bind's, which ends with the test also where that fails.
struct Process(Child);

impl Process {
    fn start(command: &mut Command) -> Self {
        Self(command.spawn().unwrap())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

const OURS: &str = "freeport-member-east";

/// An object here, and its copy.
struct Both {
    here: Api<DynamicObject>,
    there: Api<DynamicObject>,
    copy: String,
}

/// From a spec to a status, a change, and the end of another object.
async fn is_in_step(go: &Konnector<'_>, both: &Both) {
    let Both { here, there, copy } = both;
    go.until("the copy is there", || async {
        there.get_opt(copy).await.unwrap().map(drop).ok_or_else(|| "no copy".to_owned())
    })
    .await;
    let status = Patch::Merge(json!({"status": {"phase": "Ready"}}));
    there.patch_status(copy, &PatchParams::default(), &status).await.unwrap();
    go.until("the status is here", || async {
        let object = here.get("foo").await.unwrap();
        let is_so = object.data["status"]["phase"] == "Ready";
        is_so.then_some(()).ok_or_else(|| object.data.to_string())
    })
    .await;
    let change = Patch::Merge(json!({"spec": {"size": "s", "opts": {"b": null}}}));
    here.patch("foo", &PatchParams::default(), &change).await.unwrap();
    go.until("the change is there", || async {
        let object = there.get(copy).await.unwrap();
        let is_so = object.data["spec"]["size"] == "s";
        is_so.then_some(()).ok_or_else(|| object.data.to_string())
    })
    .await;
}

async fn goes(go: &Konnector<'_>, both: &Both) {
    both.here.delete("foo", &DeleteParams::default()).await.unwrap();
    go.until("both are gone", || async {
        let here = both.here.get_opt("foo").await.unwrap().map(|object| object.metadata);
        let there = both.there.get_opt(&both.copy).await.unwrap().map(|copy| copy.metadata);
        if here.is_none() && there.is_none() { Ok(()) } else { Err(format!("{here:?} {there:?}")) }
    })
    .await;
}

/// What Go's konnector left in step is taken over, without a copy that is made again.
async fn ours_takes_over(world: &World, offered: [&Offered; 2], both: &[Both; 2], uids: [Option<String>; 2]) {
    world.start(OURS).await;
    for (both, uid) in both.iter().zip(uids) {
        let copy = becomes("what Go's left is gone", &both.there, &both.copy, |copy| {
            copy.data["spec"]["opts"] == json!({"a": 1})
        })
        .await;
        assert_eq!(copy.metadata.uid, uid);
        let change = Patch::Merge(json!({"spec": {"size": "m"}}));
        both.here.patch("foo", &PatchParams::default(), &change).await.unwrap();
        becomes("is changed by ours", &both.there, &both.copy, |copy| copy.data["spec"]["size"] == "m").await;
    }
    for offered in offered {
        binding_says(world, "east", &offered.plural, "Ready", "True", "").await;
    }
}

#[e2e::test(real)]
fn gos_konnector_works_with_our_provider_and_ours_takes_over_from_it() {
    BINDING.alone(async |world| {
        let (leader, east) = (world.leader(), world.cluster("east"));
        let (near, far) = (Offered::new("gonears", "Namespaced"), Offered::new("gofars", "Cluster"));
        let (cns, kubeconfig) = contract_for(world, "go-east", &[&near, &far]).await;
        world.end(OURS, End::Stop).await;
        for offered in [&near, &far] {
            granted(world, &cns, offered).await;
            bind_with(east, &offered.plural, offered, kubeconfig.clone()).await;
        }
        let go = Konnector::begin(world, &cns, &kubeconfig, [&near, &far]).await;
        let ns = world.namespace("bind-go", &["east"]).await;
        let there_ns = format!("{cns}-{ns}");
        let both = [
            Both {
                here: near.objects(east, Some(&ns)),
                there: near.objects(leader, Some(&there_ns)),
                copy: "foo".into(),
            },
            Both {
                here: far.objects(east, None),
                there: far.objects(leader, None),
                copy: format!("{cns}-foo"),
            },
        ];
        for (offered, both) in [&near, &far].into_iter().zip(&both) {
            let spec = json!({"spec": {"size": "l", "opts": {"a": 1, "b": 2}}});
            let mut object = offered.object("foo", spec);
            object.labels_mut().insert("team".into(), "a".into());
            go.until("the API takes an object", || async {
                both.here.create(&Default::default(), &object).await.map_err(|error| error.to_string())
            })
            .await;
            is_in_step(&go, both).await;
        }
        let beat = leader.api::<ClusterBinding>(&cns).get("cluster").await.unwrap().status.unwrap();
        assert!(beat.last_heartbeat_time.is_some(), "{beat:?}");
        eventually("D5: the export does not take the Namespace along", || async {
            let asked = leader.api::<APIServiceNamespace>(&cns).get(&ns).await.unwrap();
            let is_owned = asked.owner_references().iter().any(|owner| owner.controller == Some(true));
            if is_owned { Err(format!("{:?}", asked.metadata)) } else { Ok(()) }
        })
        .await;
        for (offered, both) in [&near, &far].into_iter().zip(&both) {
            goes(&go, both).await;
            let again = offered.object("foo", json!({"spec": {"size": "l", "opts": {"a": 1, "b": 2}}}));
            both.here.create(&Default::default(), &again).await.unwrap();
            is_in_step(&go, both).await;
        }
        drop(go);
        let mut uids = [None, None];
        for (uid, both) in uids.iter_mut().zip(&both) {
            *uid = both.there.get(&both.copy).await.unwrap().metadata.uid;
        }
        ours_takes_over(world, [&near, &far], &both, uids).await;
        for offered in [&near, &far] {
            unbind(world, "east", offered).await;
        }
        world.release(&ns).await;
        leader.release_namespace(&cns).await;
        for offered in [&near, &far] {
            leader.take_crd(&offered.name()).await;
        }
    });
}
