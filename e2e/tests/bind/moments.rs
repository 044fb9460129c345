//! The konnector is killed after each of its writes about an object: while it is created, gets a status, changes, and goes; and the provider
//! is away meanwhile.

mod provider;

use std::cell::RefCell;

use api::bind::resource::{InformerScope, Isolation};
use e2e::{
    binding::{BINDING, CREDENTIALS, Offered, becomes, bind_with, vanishes},
    daemon::End,
    life::Fall,
    trap::{Side, Trap},
    victim::Victim,
    waiting::{VOUCHED, always, eventually, within},
};
use fleet::Component;
use k8s_openapi::{ByteString, api::core::v1::Secret};
use kube::{
    Api,
    api::{DeleteParams, DynamicObject, Patch, PatchParams},
};
use serde_json::json;

use super::{backend::Backend, commands::freeport, konnector::unbind};

/// One more object for each write; no name is part of another one.
const MOST: usize = 20;

/// What becomes of an object here and of its copy.
struct Both<'a> {
    victim: &'a Victim,
    here: Api<DynamicObject>,
    there: Api<DynamicObject>,
    name: String,
    falls: RefCell<Vec<Fall>>,
}

impl Both<'_> {
    /// The konnector runs again.
    async fn rises(&self, fall: Fall) {
        e2e::note!("{}: {fall}", self.name);
        self.falls.borrow_mut().push(fall);
        self.victim.launch().await;
    }

    /// Waits until both are so, and starts the konnector again when it was killed.
    async fn become_so(
        &self,
        what: &str,
        is_so: impl Fn(Option<&DynamicObject>, Option<&DynamicObject>) -> bool,
    ) {
        within(VOUCHED, &format!("{}: {what}", self.name), || async {
            if let Some(fall) = self.victim.fell() {
                self.rises(fall).await;
            }
            let here = self.here.get_opt(&self.name).await.map_err(|error| error.to_string())?;
            let there = self.there.get_opt(&self.name).await.map_err(|error| error.to_string())?;
            match is_so(here.as_ref(), there.as_ref()) {
                true => Ok(()),
                false => Err(format!("{} {}", json!(here), json!(there))),
            }
        })
        .await;
    }
}

#[e2e::test(real)]
fn a_konnector_that_is_killed_after_any_write_ends_what_it_began() {
    BINDING.alone(async |world| {
        let (leader, east) = (world.leader(), world.cluster("east"));
        let offered = Offered::new("moments", "Namespaced");
        offered.install(leader).await;
        let (backend, kubeconfig) =
            Backend::begin(world, "east", &offered, (Isolation::Prefixed, InformerScope::Namespaced)).await;
        let victim = Victim::of(world, "freeport-member-east").await;
        let server = world.real().fleet.cluster("leader").unwrap().server();
        let direct = String::from_utf8(kubeconfig.0).unwrap();
        let proxied = direct.replace(&server, victim.leader());
        let data = |kubeconfig: &str| json!({"stringData": {"kubeconfig": kubeconfig}});
        let _: Secret = leader.patch(&backend.cluster_namespace, "kubeconfig", &data(&proxied)).await;
        bind_with(east, "moments", &offered, ByteString(proxied.into_bytes())).await;
        let ns = world.namespace("bind-moments", &["east"]).await;
        offered.create(east, Some(&ns), "first", json!({"spec": {"size": "l"}})).await;
        let there_ns = backend.assign(&ns).await;
        let mut falls = Vec::new();
        for nth in 1..MOST {
            let name = format!("moment{nth:02}");
            let (here, there) = (offered.objects(east, Some(&ns)), offered.objects(leader, Some(&there_ns)));
            let both = Both { victim: &victim, here, there, name: name.clone(), falls: RefCell::default() };
            victim.set(Trap::at(nth, Side::After).about(&name));
            offered.create(east, Some(&ns), &name, json!({"spec": {"size": "l", "opts": {"a": 1}}})).await;
            both.become_so("created", |here, there| {
                let uid = there.and_then(|there| there.metadata.uid.as_deref());
                let annotations = here.and_then(|here| here.metadata.annotations.as_ref());
                uid.is_some()
                    && annotations.and_then(|all| all.get("kube-bind.io/provider-uid")).map(String::as_str)
                        == uid
            })
            .await;
            let status = Patch::Merge(json!({"status": {"phase": "Ready"}}));
            both.there.patch_status(&name, &PatchParams::default(), &status).await.unwrap();
            both.become_so("said", |here, _| {
                here.is_some_and(|here| here.data["status"]["phase"] == "Ready")
            })
            .await;
            let change = Patch::Merge(json!({"spec": {"size": "s", "opts": null}}));
            both.here.patch(&name, &PatchParams::default(), &change).await.unwrap();
            both.become_so("changed", |_, there| {
                there.is_some_and(|there| there.data["spec"] == json!({"size": "s"}))
            })
            .await;
            both.here.delete(&name, &DeleteParams::default()).await.unwrap();
            both.become_so("gone", |here, there| here.is_none() && there.is_none()).await;
            if let Some(fall) = victim.disarm().await {
                both.rises(fall).await;
            }
            // It has no more writes than that.
            let Some(fall) = both.falls.into_inner().pop() else { break };
            falls.push(fall.to_string());
        }
        let _: Secret = leader.patch(&backend.cluster_namespace, "kubeconfig", &data(&direct)).await;
        let _: Secret = east.patch(CREDENTIALS, "moments", &data(&direct)).await;
        victim.free().await;
        // Finalizer, copy, two annotations, status, change, deletion, end of the finalizer.
        assert!((6..MOST - 1).contains(&falls.len()), "{falls:#?}");
        unbind(world, "east", &offered).await;
        world.release(&ns).await;
        backend.release().await;
        east.delete::<Secret>(CREDENTIALS, "moments").await;
        leader.take_crd(&offered.name()).await;
    });
}

#[e2e::test(real)]
fn a_provider_that_is_away_takes_nothing_along_and_gets_what_happened_meanwhile() {
    BINDING.alone(async |world| {
        let (leader, east) = (world.leader(), world.cluster("east"));
        let offered = Offered::new("aways", "Namespaced");
        offered.install(leader).await;
        let (backend, kubeconfig) =
            Backend::begin(world, "east", &offered, (Isolation::Prefixed, InformerScope::Namespaced)).await;
        bind_with(east, "aways", &offered, kubeconfig).await;
        let ns = world.namespace("bind-aways", &["east"]).await;
        let small = json!({"spec": {"size": "s"}});
        offered.create(east, Some(&ns), "kept", small.clone()).await;
        let there_ns = backend.assign(&ns).await;
        offered.create(east, Some(&ns), "gone", small.clone()).await;
        let (here, there) = (offered.objects(east, Some(&ns)), offered.objects(leader, Some(&there_ns)));
        for name in ["kept", "gone"] {
            becomes("is at the provider", &there, name, |_| true).await;
        }

        let provider = world.real().fleet.cluster("leader").unwrap();
        let comes_back = async || {
            provider.start(Component::ApiServer).await.unwrap();
            eventually("the provider answers", || async {
                there.list(&Default::default()).await.map(drop).map_err(|error| error.to_string())
            })
            .await;
        };
        provider.kill(Component::ApiServer).await.unwrap();
        let change = Patch::Merge(json!({"spec": {"size": "l"}}));
        here.patch("kept", &PatchParams::default(), &change).await.unwrap();
        here.delete("gone", &DeleteParams::default()).await.unwrap();
        offered.create(east, Some(&ns), "late", small).await;
        // Also one that begins meanwhile.
        world.end("freeport-member-east", End::Stop).await;
        world.launch("freeport-member-east").await;
        always("nothing goes", || async {
            for name in ["kept", "gone", "late"] {
                here.get(name).await.map_err(|error| error.to_string())?;
            }
            Ok(())
        })
        .await;

        comes_back().await;
        becomes("is changed", &there, "kept", |copy| copy.data["spec"]["size"] == "l").await;
        becomes("is at the provider", &there, "late", |_| true).await;
        vanishes(&there, "gone").await;
        vanishes(&here, "gone").await;

        // It never returns, and the konnector, which runs, would hold objects again.
        provider.kill(Component::ApiServer).await.unwrap();
        for number in 0..MOST {
            offered.create(east, Some(&ns), &format!("left{number}"), json!({"spec": {"size": "s"}})).await;
        }
        freeport(world, "remove aways --context east --force").await.succeeded();
        assert!(east.crds().get_opt(&offered.name()).await.unwrap().is_none(), "its objects are held");
        comes_back().await;
        world.release(&ns).await;
        backend.release().await;
        leader.take_crd(&offered.name()).await;
    });
}
