//! The end of bindings and of what they brought, also where somebody has taken a part of it away before: nobody hangs.

use std::fmt::Debug;

use api::bind::{
    binding::APIServiceBinding,
    bound_schema::BoundSchema,
    export::{APIServiceExport, APIServiceNamespace, Phase},
};
use e2e::{
    binding::{
        BINDING, CREDENTIALS, Offered, becomes, bind_with, binding_says,
        provider::{contract, contract_for, granted, offer, request},
        vanishes,
    },
    cluster::Cluster,
    daemon::LEADER,
    seen::event,
    trap::{Side, Trap},
    victim::Victim,
    waiting::{VOUCHED, eventually, within},
    world::World,
};
use k8s_openapi::api::core::v1::Secret;
use kube::{
    Api, Resource, ResourceExt,
    api::{DeleteParams, Patch, PatchParams},
};
use serde::de::DeserializeOwned;
use serde_json::json;

use super::{backend::Backend, konnector::unbind};

pub(super) async fn is_gone(world: &World, offered: &Offered) {
    let east = world.cluster("east");
    let bindings = Api::<APIServiceBinding>::all(east.client.clone());
    eventually("the binding and its CRD are gone", || async {
        let binding = bindings.get_opt(&offered.plural).await.unwrap().map(|binding| binding.metadata);
        let crd = east.crds().get_opt(&offered.name()).await.unwrap().map(|crd| crd.metadata);
        let log = || world.log_tail("freeport-member-east");
        if binding.is_none() && crd.is_none() {
            Ok(())
        } else {
            Err(format!("{binding:?} {crd:?}\n{}", log()))
        }
    })
    .await;
}

/// Waits until the object is gone.
pub(super) async fn goes<K>(api: &Api<K>, name: &str)
where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    eventually(&format!("{name} is gone"), || async {
        let there = api.get_opt(name).await.unwrap();
        there.map_or(Ok(()), |there| Err(format!("{:?}", there.meta())))
    })
    .await;
}

/// As `kubectl delete --cascade=foreground` does, where the CRD blocks its owner.
async fn unbind_in_foreground(east: &Cluster, offered: &Offered) {
    let crd = east.crds().get(&offered.name()).await.unwrap();
    let mut owners = json!(crd.metadata.owner_references);
    owners[0]["blockOwnerDeletion"] = json!(true);
    let blocks = Patch::Merge(json!({"metadata": {"ownerReferences": owners}}));
    east.crds().patch(&offered.name(), &PatchParams::default(), &blocks).await.unwrap();
    let bindings = Api::<APIServiceBinding>::all(east.client.clone());
    bindings.delete(&offered.plural, &DeleteParams::foreground()).await.unwrap();
}

#[e2e::test(real)]
fn x9_a_crd_that_is_deleted_takes_its_objects_along_and_comes_back() {
    BINDING.beside(async |world| {
        let (leader, east) = (world.leader(), world.cluster("east"));
        let (offered, backend) = Backend::bound(world, "takens").await;
        let spec = || json!({"spec": {"size": "l"}});
        offered.create(east, None, "foo", spec()).await;
        let (there, copy) = (offered.objects(leader, None), format!("{}-foo", backend.cluster_namespace));
        becomes("is at the provider", &there, &copy, |_| true).await;

        let crds = east.crds();
        let before = crds.get(&offered.name()).await.unwrap().uid();
        crds.delete(&offered.name(), &DeleteParams::default()).await.unwrap();
        vanishes(&there, &copy).await;
        eventually("the CRD is made anew", || async {
            match crds.get_opt(&offered.name()).await.unwrap() {
                Some(crd) if crd.uid() != before => Ok(()),
                other => Err(format!("{other:?}; its log:\n{}", world.log_tail("freeport-member-east"))),
            }
        })
        .await;
        binding_says(world, "east", "takens", "Ready", "True", "").await;

        // Somebody changes it.
        let was = crds.get(&offered.name()).await.unwrap();
        let column = json!([{"name": "Theirs", "type": "string", "jsonPath": ".spec.size"}]);
        let change =
            json!([{"op": "add", "path": "/spec/versions/0/additionalPrinterColumns", "value": column}]);
        let change = Patch::<()>::Json(serde_json::from_value(change).unwrap());
        crds.patch(&offered.name(), &PatchParams::default(), &change).await.unwrap();
        eventually("the CRD is put back", || async {
            let is = crds.get(&offered.name()).await.unwrap();
            if is.spec == was.spec { Ok(()) } else { Err(format!("{:?}", is.spec.versions)) }
        })
        .await;
        offered.create(east, None, "foo", spec()).await;
        becomes("is at the provider", &there, &copy, |_| true).await;

        // Without its BoundSchema, and with the garbage collector at work.
        leader.delete::<BoundSchema>(&backend.cluster_namespace, &offered.name()).await;
        unbind_in_foreground(east, &offered).await;
        is_gone(world, &offered).await;
        vanishes(&there, &copy).await;
        backend.release().await;
        leader.take_crd(&offered.name()).await;
    });
}

#[e2e::test]
fn b11_a_binding_without_an_export_goes() {
    BINDING.beside(async |world| {
        let (leader, east) = (world.leader(), world.cluster("east"));
        let (offered, backend) = Backend::bound(world, "exportless").await;
        let (here, there) = (offered.objects(east, None), offered.objects(leader, None));
        let copy = |name: &str| format!("{}-{name}", backend.cluster_namespace);
        for name in ["foo", "bar"] {
            offered.create(east, None, name, json!({"spec": {"size": "l"}})).await;
            becomes("is at the provider", &there, &copy(name), |_| true).await;
        }
        leader.delete::<APIServiceExport>(&backend.cluster_namespace, "exportless").await;
        binding_says(world, "east", "exportless", "Connected", "False", "APIServiceExportNotFound").await;
        // While the binding stays, what somebody deletes does not wait for it.
        here.delete("bar", &DeleteParams::default()).await.unwrap();
        vanishes(&here, "bar").await;
        eventually("an Event says it", || event(east, "default", "exportless", "CopiesMayStay")).await;
        assert!(here.get("foo").await.unwrap().metadata.deletion_timestamp.is_none());
        let bindings = Api::<APIServiceBinding>::all(east.client.clone());
        bindings.delete("exportless", &DeleteParams::default()).await.unwrap();
        is_gone(world, &offered).await;
        for name in ["foo", "bar"] {
            let copy = there.get_opt(&copy(name)).await.unwrap();
            assert!(copy.is_some(), "nobody but the provider may delete {name}");
        }
        backend.release().await;
        leader.take_crd(&offered.name()).await;
    });
}

#[e2e::test]
fn a_credential_in_another_namespace_is_said() {
    BINDING.beside(async |world| {
        let east = world.cluster("east");
        let binding = json!({"metadata": {"name": "elsewhere"},
            "spec": {"kubeconfigSecretRef": {"namespace": "default", "name": "elsewhere", "key": "kubeconfig"}}});
        let _: APIServiceBinding = east.create_cluster_wide(binding).await;
        binding_says(world, "east", "elsewhere", "SecretValid", "False", "KubeconfigSecretInvalid").await;
        let bindings = Api::<APIServiceBinding>::all(east.client.clone());
        bindings.delete("elsewhere", &DeleteParams::default()).await.unwrap();
        goes(&bindings, "elsewhere").await;
    });
}

/// APIServiceNamespaces go with the last binding that has objects in them.
#[e2e::test]
fn namespaces_that_no_other_binding_needs_go_with_a_binding() {
    BINDING.beside(async |world| {
        let (leader, east) = (world.leader(), world.cluster("east"));
        let (ends, stays) = (Offered::new("needed", "Namespaced"), Offered::new("needing", "Namespaced"));
        let (cns, kubeconfig) = contract_for(world, "needs-east", &[&ends, &stays]).await;
        let alone = world.namespace("bind-alone", &["east"]).await;
        let both = world.namespace("bind-both", &["east"]).await;
        for (offered, namespaces) in [(&ends, &[&alone, &both][..]), (&stays, &[&both])] {
            granted(world, &cns, offered).await;
            bind_with(east, &offered.plural, offered, kubeconfig.clone()).await;
            for namespace in namespaces {
                offered.create(east, Some(namespace), "foo", json!({"spec": {"size": "l"}})).await;
                let there = offered.objects(leader, Some(&format!("{cns}-{namespace}")));
                becomes("is at the provider", &there, "foo", |_| true).await;
            }
        }
        let there = stays.objects(leader, Some(&format!("{cns}-{both}")));
        let copy = there.get("foo").await.unwrap().uid();
        unbind(world, "east", &ends).await;
        let asked = leader.api::<APIServiceNamespace>(&cns);
        eventually("only what is needed is left", || async {
            let left = asked.list(&Default::default()).await.unwrap();
            let left: Vec<_> = left.iter().map(ResourceExt::name_any).collect();
            if left == [both.clone()] { Ok(()) } else { Err(format!("{left:?}")) }
        })
        .await;
        assert_eq!(there.get("foo").await.unwrap().uid(), copy);
        unbind(world, "east", &stays).await;
        for namespace in [&alone, &both] {
            world.release(namespace).await;
        }
        leader.release_namespace(&cns).await;
        for offered in [&ends, &stays] {
            leader.take_crd(&offered.name()).await;
        }
    });
}

/// A konnector that is killed after it wrote a CRD, an APIServiceNamespace, and each step of the end.
#[e2e::test(real)]
fn a_konnector_that_is_killed_while_it_binds_and_unbinds_ends_what_it_began() {
    BINDING.alone(async |world| {
        let (leader, east) = (world.leader(), world.cluster("east"));
        let offered = Offered::new("mortals", "Namespaced");
        offer(leader, &offered, json!({})).await;
        let victim = Victim::of(world, "freeport-member-east").await;
        // By the leader's own word: a credential that leads elsewhere is replaced.
        let mut provider = world.daemon(LEADER).clone();
        provider.spec.env.insert("FREEPORT_BIND_ADDRESS".to_owned(), victim.leader().to_owned());
        provider.ensure(&world.real().fleet).await.unwrap();
        let (cns, proxied) = contract(world, "mortal-east", "mortals").await;
        let of = json!({"resources": [{"group": offered.resource().group, "resource": "mortals"}]});
        assert_eq!(request(world, &cns, "mortals", of).await.0, Phase::Succeeded);
        let falls = async |about: &str| {
            let fall = victim.falls().await;
            e2e::note!("about {about}: {fall}");
            victim.launch().await;
        };
        let set = |about: &str| victim.set(Trap::at(1, Side::After).about(about));
        let ns = world.namespace("bind-mortal", &["east"]).await;
        set("customresourcedefinitions");
        bind_with(east, "mortals", &offered, proxied).await;
        falls("the CRD").await;
        set("apiservicenamespaces");
        offered.create(east, Some(&ns), "foo", json!({"spec": {"size": "l"}})).await;
        falls("the APIServiceNamespace").await;
        let there = offered.objects(leader, Some(&format!("{cns}-{ns}")));
        within(VOUCHED, "it is at the provider", || async {
            there
                .get_opt("foo")
                .await
                .map_err(|error| error.to_string())?
                .map(drop)
                .ok_or("no copy".to_owned())
        })
        .await;

        set("/mortals/foo");
        let bindings = Api::<APIServiceBinding>::all(east.client.clone());
        bindings.delete("mortals", &DeleteParams::default()).await.unwrap();
        falls("the object").await;
        for about in ["apiservicenamespaces", "customresourcedefinitions", "/apiservicebindings/mortals"] {
            set(about);
            falls(about).await;
        }
        within(VOUCHED, "the binding is gone", || async {
            let there = bindings.get_opt("mortals").await.map_err(|error| error.to_string())?;
            there.map_or(Ok(()), |there| Err(format!("{:?}", there.metadata)))
        })
        .await;
        is_gone(world, &offered).await;
        vanishes(&there, "foo").await;
        let asked = leader.api::<APIServiceNamespace>(&cns).list(&Default::default()).await.unwrap();
        assert!(asked.items.iter().all(|asked| asked.metadata.deletion_timestamp.is_some()), "{asked:?}");
        victim.free().await;
        world.daemon(LEADER).ensure(&world.real().fleet).await.unwrap();
        east.delete::<Secret>(CREDENTIALS, "mortals").await;
        world.release(&ns).await;
        leader.release_namespace(&cns).await;
        leader.take_crd(&offered.name()).await;
    });
}
