//! `freeport bind` as people run it.

mod again;
mod agreed;

use api::bind::{binding::APIServiceBinding, export::APIServiceExport, label};
use e2e::{
    binding::{BINDING, CREDENTIALS, Offered, becomes, binding_says, vanishes},
    cluster::Cluster,
    waiting::eventually,
    world::World,
};
use fleet::program;
use k8s_openapi::api::{
    core::v1::{Namespace, Secret},
    rbac::v1::ClusterRole,
};
use kube::{
    Api, ResourceExt,
    api::{ListParams, Patch, PatchParams},
};
use serde_json::{Value, json};

use crate::cli::program::{Ran, run, status};

/// Runs `freeport bind` with the words of `line`.
pub(super) async fn freeport(world: &World, line: &str) -> Ran {
    let program = program::path("cli", "freeport").await.unwrap();
    run(&program, &format!("bind {line}"), &[("KUBECONFIG", &world.real().fleet.kubeconfig())], "").await
}

pub(super) fn daemons(world: &World, cluster: &str) -> String {
    let folder = world.real().fleet.cluster(cluster).unwrap().dir().join("daemons");
    format!("--external {}", folder.display())
}

/// A second run says so of everything.
fn changes_nothing(said: &str) {
    let expected = ["already as ", "unchanged ", "kept ", "next: ", "is there already"];
    let news: Vec<_> = said.lines().filter(|line| !expected.iter().any(|part| line.contains(part))).collect();
    assert!(news.is_empty(), "{news:?}");
}

/// Whether the consumer's member has rights on the API.
async fn has_right(consumer: &Cluster, offered: &Offered) -> bool {
    has_role(consumer, &format!("freeport-bound-{}", offered.name())).await
}

async fn has_role(consumer: &Cluster, name: &str) -> bool {
    let roles = Api::<ClusterRole>::all(consumer.client.clone());
    roles.get_opt(name).await.unwrap().is_some()
}

async fn contracts(leader: &Cluster) -> Vec<String> {
    let namespaces = Api::<Namespace>::all(leader.client.clone());
    let ours = ListParams::default().labels(&format!("{}={}", label::BIND, label::CONTRACT));
    namespaces.list(&ours).await.unwrap().iter().map(ResourceExt::name_any).collect()
}

#[e2e::test(real)]
fn from_a_provider_to_a_status_and_back_by_commands() {
    BINDING.beside(async |world| {
        let (leader, east) = (world.leader(), world.cluster("east"));
        let offered = Offered::new("commands", "Namespaced");
        let mut plain = offered.crd.clone();
        plain.metadata.labels = None;
        leader.crds().create(&Default::default(), &plain).await.unwrap();

        let provide = format!("provide --context leader {}", daemons(world, "leader"));
        freeport(world, &provide).await.succeeded();
        changes_nothing(&freeport(world, &provide).await.succeeded());
        let offer = format!("offer commands --context leader --resource {} --collection dbs", offered.name());
        let said = freeport(world, &offer).await.succeeded();
        assert!(said.contains("labelled CustomResourceDefinition"), "{said}");
        changes_nothing(&freeport(world, &offer).await.succeeded());
        let listed = freeport(world, "templates --context leader").await.succeeded();
        let row = listed.lines().find(|line| line.starts_with("commands ")).expect(&listed);
        assert_eq!(row.split_whitespace().collect::<Vec<_>>(), ["commands", &offered.name(), "-", "dbs"]);

        let outside = daemons(world, "east");
        let bind =
            format!("apiservice commands -t commands --context east --provider-context leader {outside}");
        let said = freeport(world, &bind).await.succeeded();
        assert!(said.contains("created APIServiceBinding commands"), "{said}");
        assert!(!said.contains("eyJ"), "a token: {said}");
        binding_says(world, "east", "commands", "Ready", "True", "").await;
        changes_nothing(&freeport(world, &bind).await.succeeded());
        let ns = world.namespace("bind-commands", &["east"]).await;
        offered.create(east, Some(&ns), "foo", json!({"spec": {"size": "l"}})).await;
        let bound = Api::<APIServiceBinding>::all(east.client.clone()).get("commands").await.unwrap();
        let secret = bound.spec.kubeconfig_secret_ref.name;
        let cns = contracts(leader).await.into_iter().find(|name| *name == secret).expect(&secret);
        let there = offered.objects(leader, Some(&format!("{cns}-{ns}")));
        becomes("is at the provider", &there, "foo", |copy| copy.data["spec"]["size"] == "l").await;
        let ready = Patch::Merge(json!({"status": {"phase": "Ready"}}));
        there.patch_status("foo", &PatchParams::default(), &ready).await.unwrap();
        let here = offered.objects(east, Some(&ns));
        becomes("has the status", &here, "foo", |object| object.data["status"]["phase"] == "Ready").await;

        for (context, says) in [("east", "APIServiceBindings: "), ("leader", "contracts with consumers: ")] {
            let said = status(world, context).await.stdout;
            assert!(said.contains(says) && !said.contains("freeport-bind"), "{said}");
        }
        let would = freeport(world, "remove commands --context east --dry-run").await.succeeded();
        assert!(would.contains("1 objects of commands.") && would.contains("would delete"), "{would}");

        // It takes longer than somebody waits; who runs it again goes on with what is left.
        let held = |finalizers: Value| Patch::Merge(json!({"metadata": {"finalizers": finalizers}}));
        there.patch("foo", &PatchParams::default(), &held(json!(["example.com/held"]))).await.unwrap();
        let remove = "remove commands --context east --provider-context leader";
        let copy = format!("leader: Commands {cns}-{ns}/foo is held by finalizer example.com/held");
        let ran = eventually("what holds the copy is said", || async {
            let ran = freeport(world, &format!("{remove} --timeout 1")).await;
            if ran.stderr.contains(&copy) { Ok(ran) } else { Err(ran.to_string()) }
        })
        .await;
        let said = ran.timed_out(&["APIServiceBinding commands still exists", "run this again"]);
        binding_says(world, "east", "commands", "Ready", "False", "Deleting").await;
        let stuck = "APIServiceBinding commands: is being deleted for ";
        let status = status(world, "east").await;
        assert!(status.code == Some(1) && status.stdout.contains(stuck), "{status}");
        assert!(said.contains("1 objects of commands.provider.example.com go"), "{said}");
        there.patch("foo", &PatchParams::default(), &held(Value::Null)).await.unwrap();
        vanishes(&there, "foo").await;
        let bindings = Api::<APIServiceBinding>::all(east.client.clone());
        eventually("the binding is gone", || async {
            let there = bindings.get_opt("commands").await.unwrap();
            there.map_or(Ok(()), |there| Err(format!("{:?}", there.metadata)))
        })
        .await;
        let secrets = east.api::<Secret>(CREDENTIALS);
        assert!(has_right(east, &offered).await && secrets.get_opt(&secret).await.unwrap().is_some());
        assert!(contracts(leader).await.contains(&cns));
        let said = freeport(world, remove).await.succeeded();
        assert!(said.contains("there is no APIServiceBinding commands"), "{said}");
        assert!(east.crds().get_opt(&offered.name()).await.unwrap().is_none());
        assert!(!has_right(east, &offered).await && secrets.get_opt(&secret).await.unwrap().is_none());
        assert!(!contracts(leader).await.contains(&cns));
        let again = freeport(world, remove).await.succeeded();
        assert!(again.contains("there is no APIServiceBinding commands"), "{again}");
        world.release(&ns).await;
        leader.take_crd(&offered.name()).await;
    });
}

#[e2e::test(real)]
fn two_people_do_one_half_each() {
    BINDING.beside(async |world| {
        let (leader, west) = (world.leader(), world.cluster("west"));
        let offered = Offered::new("halves", "Cluster");
        offered.install(leader).await;
        let offer = format!("offer halves --context leader --resource {} --isolation none", offered.name());
        freeport(world, &offer).await.succeeded();
        let provider = "apiservice halves -t halves --only provider --provider-context leader";
        let said = freeport(world, &format!("{provider} --identity west-and-somebody")).await.succeeded();
        let file = world.real().fleet.cluster("west").unwrap().dir().join("answer.yaml");
        std::fs::write(&file, &said).unwrap();
        let consumer = format!(
            "apiservice halves --only consumer -f {} --context west {}",
            file.display(),
            daemons(world, "west")
        );
        let printed = freeport(world, &format!("{consumer} --dry-run")).await.succeeded();
        assert!(printed.contains("kind: APIServiceBinding") && !printed.contains("eyJ"), "{printed}");
        freeport(world, &consumer).await.succeeded();
        binding_says(world, "west", "halves", "Ready", "True", "").await;
        offered.create(west, None, "foo", json!({"spec": {"size": "l"}})).await;
        becomes("is at the provider", &offered.objects(leader, None), "foo", |copy| {
            copy.data["spec"]["size"] == "l"
        })
        .await;

        // The provider is not asked for anything any more.
        let exports: Vec<_> = Api::<APIServiceExport>::all(leader.client.clone())
            .list(&ListParams::default())
            .await
            .unwrap()
            .into_iter()
            .filter(|export| export.name_any() == "halves")
            .collect();
        let cns = exports[0].namespace().unwrap();
        let foreign = "remove halves --context west --provider-context leader";
        freeport(world, foreign).await.refused(&[&cns, "west-and-somebody", "it is not touched"]);
        let said = freeport(world, "remove halves --context west --orphan").await.succeeded();
        assert!(said.contains("stay"), "{said}");
        assert!(offered.objects(leader, None).get_opt("foo").await.unwrap().is_some(), "the copy stays");
        freeport(world, &format!("{foreign} --identity west-and-somebody")).await.succeeded();
        assert!(!contracts(leader).await.contains(&cns));
        leader.take_crd(&offered.name()).await;
    });
}

#[e2e::test(real)]
fn copies_that_are_to_stay_keep_the_contract_that_they_would_go_with() {
    BINDING.beside(async |world| {
        let (leader, west) = (world.leader(), world.cluster("west"));
        let offered = Offered::new("orphans", "Cluster");
        offered.install(leader).await;
        freeport(world, &format!("offer orphans --context leader --resource {}", offered.name()))
            .await
            .succeeded();
        // A contract of its own: the test ends it.
        let both = "--context west --provider-context leader --identity west-and-orphans";
        let half = "apiservice orphans -t orphans --only provider --provider-context leader";
        let said = freeport(world, &format!("{half} --identity west-and-orphans")).await.succeeded();
        let file = world.real().fleet.cluster("west").unwrap().dir().join("orphans.yaml");
        std::fs::write(&file, &said).unwrap();
        let half = format!("apiservice orphans --only consumer -f {} --context west", file.display());
        freeport(world, &format!("{half} {}", daemons(world, "west"))).await.succeeded();
        binding_says(world, "west", "orphans", "Ready", "True", "").await;
        let bound = Api::<APIServiceBinding>::all(west.client.clone()).get("orphans").await.unwrap();
        let cns = bound.spec.kubeconfig_secret_ref.name;
        offered.create(west, None, "foo", json!({"spec": {"size": "l"}})).await;
        let (there, copy) = (offered.objects(leader, None), format!("{cns}-foo"));
        becomes("is at the provider", &there, &copy, |copy| copy.data["spec"]["size"] == "l").await;

        let said = freeport(world, &format!("remove orphans --orphan {both}")).await.succeeded();
        assert!(said.contains("stays: the copies would go with it"), "{said}");
        let exports = leader.api::<APIServiceExport>(&cns);
        eventually("the export is gone", || async {
            let there = exports.get_opt("orphans").await.unwrap();
            there.map_or(Ok(()), |export| Err(format!("{:?}", export.metadata)))
        })
        .await;
        assert!(contracts(leader).await.contains(&cns));
        assert!(there.get_opt(&copy).await.unwrap().is_some(), "the copy stays");
        leader.release_namespace(&cns).await;
        leader.take_crd(&offered.name()).await;
    });
}

#[e2e::test(real)]
fn what_cannot_be_is_refused_in_one_line() {
    BINDING.beside(async |world| {
        let bind = "apiservice x -t missing --context east --provider-context leader";
        for (line, parts) in [
            ("offer none --context leader --resource nothing.example.com", &["nothing.example.com"][..]),
            (&format!("{bind} {}", daemons(world, "east")), &["missing", "there are"]),
            (bind, &["freeport-member runs outside of this cluster", "--external"]),
            ("provide --context leader", &["freeport-leader runs outside of this cluster", "--external"]),
            ("templates --context east", &["freeport bind provide"]),
        ] {
            freeport(world, line).await.refused(parts);
        }
        freeport(world, "offer none --context leader --resource nothing").await.misused(&["PLURAL.GROUP"]);
        freeport(world, "apiservice X -t a --context east --provider-context leader")
            .await
            .misused(&["DNS label"]);
    });
}
