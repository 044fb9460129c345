//! One contract, two clusters: one of them uses it, and the other one touches nothing.

use api::bind::{
    binding::{APIServiceBinding, ClusterBinding},
    export::APIServiceNamespace,
    holder::{HELD, held_by},
    label,
};
use e2e::{
    binding::{
        BINDING, Offered, becomes, bind, bind_with, binding_says,
        provider::{contract_for, granted},
    },
    cluster::Cluster,
    daemon::End,
    waiting::{NAMESPACE_GONE, always, eventually, within},
};
use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, Patch, PatchParams},
};
use serde_json::json;

use super::{
    commands::{daemons, freeport},
    konnector::unbind,
    refused_writes::bind_by,
};

const NAME: &str = "heldnears";

#[e2e::test(real)]
fn of_two_clusters_with_one_contract_the_second_touches_nothing_until_it_takes_over() {
    BINDING.alone(async |world| {
        let (leader, east, west) = (world.leader(), world.cluster("east"), world.cluster("west"));
        let offered = Offered::new(NAME, "Namespaced");
        let (cns, kubeconfig) = contract_for(world, "team-held", &[&offered]).await;
        granted(world, &cns, &offered).await;
        bind_with(west, NAME, &offered, kubeconfig.clone()).await;
        let ours = world.namespace("bind-held", &["west"]).await;
        let copies = offered.objects(leader, Some(&format!("{cns}-{ours}")));
        offered.create(west, Some(&ours), "kept", json!({"spec": {"size": "l"}})).await;
        becomes("is at the provider", &copies, "kept", |_| true).await;
        binding_says(world, "west", NAME, "Ready", "True", "").await;
        let copy = copies.get("kept").await.unwrap().uid();

        // By hand, as the file of another cluster is applied.
        bind_with(east, NAME, &offered, kubeconfig.clone()).await;
        binding_says(world, "east", NAME, "Connected", "False", "ContractInUse").await;
        let is_untouched = async || {
            let copy_now = copies.get_opt("kept").await.unwrap();
            let is_kept = copy_now
                .as_ref()
                .is_some_and(|now| now.uid() == copy && now.metadata.deletion_timestamp.is_none());
            if is_kept { Ok(()) } else { Err(format!("{copy_now:?}")) }
        };
        always("the copy stays", is_untouched).await;
        world.end("freeport-member-east", End::Crash).await;
        world.launch("freeport-member-east").await;
        binding_says(world, "east", NAME, "Connected", "False", "ContractInUse").await;
        always("the copy stays", is_untouched).await;
        binding_says(world, "west", NAME, "Ready", "True", "").await;
        // It waits for nobody to end there.
        unbind(world, "east", &offered).await;
        bind(east, NAME, &offered).await;
        binding_says(world, "east", NAME, "Connected", "False", "ContractInUse").await;

        // By the command, which refuses; and it ends nothing of the first one's.
        let answer = json!({"kind": "BindingResourceResponse", "kubeconfig": kubeconfig, "requests": []});
        let file = world.real().fleet.cluster("east").unwrap().dir().join("held.yaml");
        std::fs::write(&file, answer.to_string()).unwrap();
        let command = |cluster: &str| {
            let (file, daemons) = (file.display(), daemons(world, cluster));
            let api = offered.name();
            format!("apiservice {NAME} --only consumer -f {file} --context {cluster} --agree {api} {daemons}")
        };
        freeport(world, &command("east")).await.refused(&["is in use by", "--take-over"]);
        let remove = format!("remove {NAME} --context east");
        freeport(world, &remove).await.refused(&["another cluster uses it", "--force"]);
        let with_provider = format!("{remove} --force --provider-context leader --identity team-held");
        freeport(world, &with_provider).await.refused(&["is in use by", "not touched"]);

        // The first one is gone, its owner says. What was made for it stays; what is new is the second one's.
        let take_over = async |taker: &str, other: &str| {
            freeport(world, &format!("{} --take-over", command(taker))).await.succeeded();
            binding_says(world, other, NAME, "Connected", "False", "ContractInUse").await;
            binding_says(world, taker, NAME, "Ready", "True", "").await;
        };
        take_over("east", "west").await;
        let theirs = world.namespace("bind-held-too", &["east"]).await;
        let of_east = offered.objects(leader, Some(&format!("{cns}-{theirs}")));
        offered.create(east, Some(&theirs), "new", json!({"spec": {"size": "s"}})).await;
        becomes("is at the provider", &of_east, "new", |_| true).await;
        always("the copy stays", is_untouched).await;
        let namespaces = leader.api::<APIServiceNamespace>(&cns);
        assert!(namespaces.get_opt(&ours).await.unwrap().is_some());

        // It was not gone. What the second one has made meanwhile in the same Namespace outlives that of the first one.
        world.namespace(&ours, &["east"]).await;
        offered.create(east, Some(&ours), "beside", json!({"spec": {"size": "s"}})).await;
        becomes("is at the provider", &copies, "beside", |_| true).await;
        take_over("west", "east").await;
        is_untouched().await.unwrap();
        west.delete_namespace(&ours).await;
        eventually("the APIServiceNamespace is to stay", || async {
            let there = namespaces.get(&ours).await.map_err(|error| error.to_string())?;
            let stays =
                there.annotations().get(label::DELETION_POLICY).is_some_and(|policy| policy == label::ORPHAN);
            if stays { Ok(()) } else { Err(format!("{:?}", there.metadata)) }
        })
        .await;
        assert!(copies.get_opt("kept").await.unwrap().is_none(), "its object is gone");
        assert_eq!(copies.get("beside").await.unwrap().metadata.deletion_timestamp, None);

        // Without the contract a binding goes alone, and its copies are not its own any more.
        take_over("east", "west").await;
        unbind(world, "west", &offered).await;
        assert_eq!(copies.get("beside").await.unwrap().metadata.deletion_timestamp, None);
        bind(west, NAME, &offered).await;
        binding_says(world, "west", NAME, "Connected", "False", "ContractInUse").await;

        // East ends its own, and nothing else. With its last binding it does not hold the contract any more.
        unbind(world, "east", &offered).await;
        namespace_goes(leader, &format!("{cns}-{theirs}")).await;
        binding_says(world, "west", NAME, "Ready", "True", "").await;
        unbind(world, "west", &offered).await;
        assert!(namespaces.get_opt(&ours).await.unwrap().is_some());
        world.release(&ours).await;
        world.release(&theirs).await;
        leader.release_namespace(&cns).await;
        leader.take_crd(&offered.name()).await;
    });
}

#[e2e::test(real)]
fn a_contract_that_was_made_for_a_cluster_that_is_gone_can_be_taken_over() {
    const LOST: &str = "5d0c2b1a-9f61-4b9e-8f5e-3a1de4b2a001";
    BINDING.beside(async |world| {
        let (leader, east, offered) =
            (world.leader(), world.cluster("east"), Offered::new("inherited", "Namespaced"));
        let (cns, kubeconfig) = contract_for(world, LOST, &[&offered]).await;
        granted(world, &cns, &offered).await;
        let answer = json!({"kind": "BindingResourceResponse", "kubeconfig": kubeconfig, "requests": []});
        let file = world.real().fleet.cluster("east").unwrap().dir().join("inherited.yaml");
        std::fs::write(&file, answer.to_string()).unwrap();
        let command = format!(
            "apiservice inherited --only consumer -f {} --context east --agree {} {}",
            file.display(),
            offered.name(),
            daemons(world, "east")
        );
        freeport(world, &command).await.refused(&[LOST, "--take-over"]);
        bind_with(east, "inherited", &offered, kubeconfig).await;
        binding_says(world, "east", "inherited", "SecretValid", "False", "KubeconfigSecretInvalid").await;
        freeport(world, &format!("{command} --take-over")).await.succeeded();
        binding_says(world, "east", "inherited", "Ready", "True", "").await;
        freeport(world, &command).await.succeeded();
        unbind(world, "east", &offered).await;
        leader.release_namespace(&cns).await;
        leader.take_crd(&offered.name()).await;
    });
}

#[e2e::test]
fn a_contract_is_free_when_its_last_bindings_end_at_once_or_wait_for_somebody_else() {
    BINDING.beside(async |world| {
        let (leader, east) = (world.leader(), world.cluster("east"));
        let apis = ["lastnears", "lastfars"].map(|name| Offered::new(name, "Namespaced"));
        let [near, far] = &apis;
        let (cns, kubeconfig) = contract_for(world, "team-last", &[near, far]).await;
        for offered in &apis {
            granted(world, &cns, offered).await;
        }
        bind_with(east, &near.plural, near, kubeconfig).await;
        bind_by(east, far, &near.plural).await;
        for offered in &apis {
            binding_says(world, "east", &offered.plural, "Ready", "True", "").await;
        }
        let contracts = leader.api::<ClusterBinding>(&cns);
        let held = async |status: &str| {
            eventually(&format!("Held is {status}"), || async {
                let said = contracts.get("cluster").await.unwrap().status.unwrap().conditions;
                let held = said.iter().find(|said| said.type_ == HELD).map(|said| said.status.clone());
                if held.as_deref() == Some(status) { Ok(()) } else { Err(format!("{held:?}")) }
            })
            .await;
        };
        held("True").await;
        let bindings = Api::<APIServiceBinding>::all(east.client.clone());
        let is_gone = async |offered: &Offered| {
            eventually("the binding is gone", || async {
                let there = bindings.get_opt(&offered.plural).await.unwrap();
                there.map_or(Ok(()), |there| Err(format!("{:?}", there.metadata)))
            })
            .await;
        };
        for offered in &apis {
            bindings.delete(&offered.plural, &DeleteParams::default()).await.unwrap();
        }
        for offered in &apis {
            is_gone(offered).await;
        }
        held("Unknown").await;

        // One that ends without the member waits for a user.
        bind_by(east, near, &near.plural).await;
        binding_says(world, "east", &near.plural, "Ready", "True", "").await;
        held("True").await;
        let finalizers = |these: &[&str]| Patch::Merge(json!({"metadata": {"finalizers": these}}));
        let patch = PatchParams::default();
        bindings.patch(&near.plural, &patch, &finalizers(&["users.example.com/kept"])).await.unwrap();
        bindings.delete(&near.plural, &DeleteParams::default()).await.unwrap();
        bindings.patch(&near.plural, &patch, &finalizers(&["users.example.com/kept"])).await.unwrap();
        held("Unknown").await;
        always("it is not noted again", async || {
            let status = contracts.get("cluster").await.unwrap().status.unwrap();
            held_by(&status).map_or(Ok(()), |uid| Err(uid.to_owned()))
        })
        .await;
        bindings.patch(&near.plural, &patch, &finalizers(&[])).await.unwrap();
        is_gone(near).await;
        // Its owner is gone, so Kubernetes deletes it.
        eventually("its CRD is gone", || async {
            let there = east.crds().get_opt(&near.name()).await.unwrap();
            there.map_or(Ok(()), |there| Err(format!("{:?}", there.metadata)))
        })
        .await;
        for offered in &apis {
            leader.take_crd(&offered.name()).await;
        }
        leader.release_namespace(&cns).await;
    });
}

async fn namespace_goes(cluster: &Cluster, name: &str) {
    let namespaces = Api::<Namespace>::all(cluster.client.clone());
    within(NAMESPACE_GONE, "the provider's Namespace is gone", || async {
        let there = namespaces.get_opt(name).await.map_err(|error| error.to_string())?;
        there.map_or(Ok(()), |there| Err(format!("{:?}", there.status)))
    })
    .await;
}
