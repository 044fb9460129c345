//! `cargo quickstart`: three clusters on this machine, joined to a set, and a Service of one used in another.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Instant,
};

use clap::{Parser, ValueEnum};
use cli::objects::SYSTEM;
use fleet::{
    ClusterSpec, Fleet, Lifetime, Options,
    cluster_set::{self, Ensured},
    demo, packages,
};
use k8s_openapi::api::core::v1::Pod;
use kube::{Api, ResourceExt, api::ListParams};

/// Starts real Kubernetes clusters on this machine, joins them to a ClusterSet, exports a Service from one cluster, shows what
/// then exists in another, and lets a Pod there send requests to the Pods here. Everything is left running; run it again at any time.
#[derive(Parser)]
#[command(name = "cargo quickstart", version)]
struct Args {
    /// Whether the clusters get nodes, so that Pods run. That needs root and some packages; `auto` falls back to no nodes where they are
    /// missing, and prints why.
    #[arg(long, value_enum, default_value_t = Nodes::Auto)]
    nodes: Nodes,
    /// Installs what nodes need, with apt-get.
    #[arg(long)]
    install: bool,
    /// The clusters, separated by commas; the first leads. At least two. NAME, or NAME=ipv6 or NAME=dual for one whose Pods and
    /// Services have IPv6 addresses, or both.
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "leader,east,west",
        value_name = "NAME[=ipv4|ipv6|dual]"
    )]
    clusters: Vec<ClusterSpec>,
    /// Directory for the clusters' files [default: freeport/quickstart in $XDG_STATE_HOME or ~/.local/state].
    #[arg(long)]
    dir: Option<PathBuf>,
    /// What is shown.
    #[arg(long, value_enum, default_value_t = Demo::Service)]
    demo: Demo,
    /// Stop once all members are ready, without exporting anything.
    #[arg(long, conflicts_with = "demo")]
    no_demo: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Nodes {
    Auto,
    Yes,
    No,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Demo {
    /// The clusters are a ClusterSet, and a Service of one is used in another.
    Service,
    /// Without a ClusterSet: an API of the first cluster is used in the second, spec up and status down.
    Bind,
}

/// Name of the ClusterSet.
const SET: &str = "demo";

fn main() -> ExitCode {
    if let Some(ended) = fleet::keeper::intercept() {
        return ended;
    }
    let args = Args::parse();
    if rustls::crypto::ring::default_provider().install_default().is_err() {
        eprintln!("a TLS provider is installed already");
    }
    let ended =
        tokio::runtime::Runtime::new().map_err(anyhow::Error::from).and_then(|rt| rt.block_on(run(args)));
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("quickstart: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(args: Args) -> anyhow::Result<()> {
    anyhow::ensure!(args.clusters.len() > 1, "--clusters: a set needs at least two clusters");
    let begun = Instant::now();
    let dir = match args.dir {
        Some(dir) => dir,
        None => fleet::command::default_dir()?.with_file_name("quickstart"),
    };
    if args.install {
        packages::install(&|line: &str| println!("{line}")).await?;
    }
    let nodes = has_nodes(args.nodes, &args.clusters, &dir).await?;
    let kind = if nodes {
        "Clusters with a node each"
    } else {
        "Control planes (no nodes: Pods do not run in them)"
    };
    let clusters: Vec<_> = args.clusters.iter().map(ToString::to_string).collect();
    step(&format!("1. {kind}: {}", clusters.join(", ")));
    let options = Options { dir, clusters: args.clusters, nodes, lifetime: Lifetime::Detached };
    println!("   building freeport-leader and freeport-member meanwhile, unless they are up to date");
    let up = async { Ok(Fleet::up(options, |line| println!("   {line}")).await?) };
    let (fleet, _) = tokio::try_join!(up, async { anyhow::Ok(cluster_set::build_daemons().await?) })?;

    if args.demo == Demo::Bind {
        Box::pin(demo::bind::run(&fleet, &mut |line: &str| println!("   {line}"))).await?;
        farewell_of_binding(&fleet);
        println!("\nAll of this took {:.0} s.", begun.elapsed().as_secs_f64());
        return Ok(());
    }
    let names = if nodes { "; `freeport dns` on all" } else { "" };
    step(&format!(
        "2. ClusterSet `{SET}`: `freeport init` on the first cluster, `freeport join` on the others{names}"
    ));
    if nodes {
        deploy(&fleet).await?
    } else {
        run_beside(&fleet).await?
    }

    if !args.no_demo {
        demo::run(&fleet).await?;
    }
    farewell(&fleet, !args.no_demo);
    println!("\nAll of this took {:.0} s.", begun.elapsed().as_secs_f64());
    Ok(())
}

/// Whether the clusters get nodes. `auto` keeps to what the running fleet has, and prints why there are none.
async fn has_nodes(wanted: Nodes, clusters: &[ClusterSpec], dir: &Path) -> anyhow::Result<bool> {
    if let (Nodes::Auto, Ok(fleet)) = (wanted, Fleet::open(dir).await) {
        return Ok(fleet.clusters().iter().any(fleet::Cluster::has_node));
    }
    match (wanted, packages::check_for(clusters)) {
        (Nodes::No, _) => Ok(false),
        (_, Ok(())) => Ok(true),
        (Nodes::Yes, Err(why)) => Err(why.into()),
        (Nodes::Auto, Err(why)) => {
            println!("No nodes, so no Pods will run: {why}");
            Ok(false)
        }
    }
}

/// The ClusterSet with its daemons in the nodes.
async fn deploy(fleet: &Fleet) -> anyhow::Result<()> {
    let mut tally = Tally::default();
    cluster_set::deploy(fleet, SET, &mut |line: &str| tally.count(line)).await?;
    tally.show(fleet);
    step("3. The daemons: Pods of Namespace `freeport-system`, as their Deployments say");
    for cluster in fleet.clusters() {
        let pods = Api::<Pod>::namespaced(cluster.client().await?, SYSTEM);
        for pod in pods.list(&ListParams::default()).await? {
            let status = pod.status.clone().unwrap_or_default();
            let (phase, address) = (status.phase.unwrap_or_default(), status.pod_ip.unwrap_or_default());
            println!("   {:8} {:34} {phase:9} {address}", cluster.name(), pod.name_any());
        }
    }
    Ok(())
}

/// The ClusterSet with its daemons as processes beside the clusters.
async fn run_beside(fleet: &Fleet) -> anyhow::Result<()> {
    let mut tally = Tally::default();
    let daemons = cluster_set::set_up(fleet, SET, &mut |line: &str| tally.count(line)).await?;
    tally.show(fleet);
    step("3. The daemons: freeport-leader for the first cluster, freeport-member for each");
    for daemon in &daemons {
        let done = match daemon.ensure(fleet).await? {
            Ensured::Started => "started",
            Ensured::Restarted => "restarted",
            Ensured::Running => "running",
        };
        println!("   {:28} {done:9}  http://{}/metrics", daemon.spec.name, daemon.listen);
    }
    Ok(cluster_set::ready_saying(fleet, SET, &daemons, &mut |line: &str| println!("   {line}")).await?)
}

fn step(headline: &str) {
    println!("\n{headline}");
}

/// How many objects and files of each cluster `init`, `join` and `dns` made or found as they should be.
#[derive(Default)]
struct Tally {
    made: BTreeMap<String, u32>,
    there: BTreeMap<String, u32>,
}

impl Tally {
    fn count(&mut self, line: &str) {
        let Some((cluster, outcome)) = line.split_once(": ") else { return };
        let counted = match outcome.split_once(' ') {
            Some(("created" | "changed", _)) => &mut self.made,
            Some((
                number,
                "objects were already as they should be" | "object was already as it should be",
            )) => {
                *self.there.entry(cluster.to_owned()).or_default() += number.parse().unwrap_or(1);
                return;
            }
            Some(("unchanged", _)) => &mut self.there,
            _ => return println!("   {line}"),
        };
        *counted.entry(cluster.to_owned()).or_default() += 1;
    }

    fn show(&self, fleet: &Fleet) {
        for cluster in fleet.clusters() {
            println!("   {}", self.of(cluster.name()));
        }
    }

    fn of(&self, cluster: &str) -> String {
        let number = |counted: &BTreeMap<String, u32>| counted.get(cluster).copied().unwrap_or_default();
        format!("{cluster}: {} objects made, {} were there", number(&self.made), number(&self.there))
    }
}

fn farewell(fleet: &Fleet, shown: bool) {
    let Some((exporter, importer)) = demo::roles(fleet) else { return take_down(fleet) };
    let leader = fleet.clusters().first().unwrap_or(importer).name();
    let importer_has_node = importer.has_node();
    let (exporter, importer) = (exporter.name(), importer.name());
    let (kubectl, dir) = (fleet.kubectl(), fleet.dir().display().to_string());
    println!("\nEverything is left running. To look further:");
    println!("   export KUBECONFIG={}", fleet.kubeconfig().display());
    if let Some(bin) = kubectl.parent() {
        println!("   export PATH={}:$PATH", bin.display());
    }
    if shown {
        println!("What the importing cluster has:");
        println!(
            "   kubectl --context {importer} -n {} get serviceimport,service,endpointslice",
            demo::NAMESPACE
        );
    }
    println!("The records in the Common Area, and whether a member is ready:");
    println!("   kubectl --context {leader} -n clusterset-{SET} get resourceexport,resourceimport,lease");
    println!("   kubectl --context {importer} -n {SYSTEM} get clusterset {SET} -o yaml");
    println!("Freeport's own status, problems first:");
    println!("   cargo run -p cli --bin freeport -- status --context {importer}");
    println!("The logs of the daemons:");
    if importer_has_node {
        println!("   kubectl --context {importer} -n {SYSTEM} logs deployment/freeport-member");
    } else {
        println!("   tail -f {dir}/logs/freeport-*.log");
    }
    if shown && importer_has_node {
        println!(
            "Change the number of Pods that answer, and send requests again from the Pod in {importer}:"
        );
        println!(
            "   kubectl --context {exporter} -n {} scale deployment {} --replicas=5",
            demo::NAMESPACE,
            demo::SERVICE
        );
        println!("   kubectl --context {importer} get --raw '{}'", demo::question());
    }
    if shown {
        let gone = if importer_has_node { "; requests then fail, because the name is gone" } else { "" };
        println!("Take the export back, and it is gone from every cluster{gone}:");
        println!(
            "   kubectl --context {exporter} -n {} delete serviceexport {}",
            demo::NAMESPACE,
            demo::SERVICE
        );
    }
    take_down(fleet);
}

fn farewell_of_binding(fleet: &Fleet) {
    let Some((provider, consumer)) = demo::bind::roles(fleet) else { return take_down(fleet) };
    let (provider, consumer) = (provider.name(), consumer.name());
    println!("\nEverything is left running. To look further:");
    println!("   export KUBECONFIG={}", fleet.kubeconfig().display());
    if let Some(bin) = fleet.kubectl().parent() {
        println!("   export PATH={}:$PATH", bin.display());
    }
    println!("   kubectl --context {consumer} get {} --all-namespaces", demo::bind::API);
    println!("   kubectl --context {consumer} get apiservicebindings");
    println!("   kubectl --context {provider} get apiserviceexports,apiservicenamespaces --all-namespaces");
    println!("End the binding, and the contract with it (what Freeport installed in both clusters stays):");
    println!(
        "   cargo run -p cli --bin freeport -- bind remove {} --context {consumer} --provider-context {provider}",
        demo::bind::NAME
    );
    take_down(fleet);
}

fn take_down(fleet: &Fleet) {
    println!("Take it all down:");
    println!("   cargo run -p fleet -- down --dir {}", fleet.dir().display());
}
