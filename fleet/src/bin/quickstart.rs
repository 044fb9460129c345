//! `cargo quickstart`: three clusters on this machine, joined to a set, and a Service of one seen in another.

use std::{path::PathBuf, process::ExitCode};

use clap::{Parser, ValueEnum};
use fleet::{Fleet, Lifetime, Options, cluster_set, demo};

/// Starts real Kubernetes control planes on this machine, joins them to a ClusterSet, exports a Service from one cluster and
/// shows what then exists in another. Everything is left running; run it again at any time.
#[derive(Parser)]
#[command(name = "cargo quickstart", version)]
struct Args {
    /// Whether the clusters get nodes, so that Pods run: this version has none, so `auto` means `no`.
    #[arg(long, value_enum, default_value_t = Nodes::Auto)]
    nodes: Nodes,
    /// Names of the clusters, separated by commas; the first leads. At least two.
    #[arg(long, value_delimiter = ',', default_value = "leader,east,west")]
    clusters: Vec<String>,
    /// Directory for the clusters' files [default: quickstart beside the directory of `fleet`].
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Stop once all members are ready, without exporting anything.
    #[arg(long)]
    no_demo: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Nodes {
    Auto,
    Yes,
    No,
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
    anyhow::ensure!(args.nodes != Nodes::Yes, "--nodes yes: this version has no nodes yet, use --nodes no");
    anyhow::ensure!(args.clusters.len() > 1, "--clusters: a set needs at least two clusters");
    let dir = match args.dir {
        Some(dir) => dir,
        None => fleet::command::default_dir()?.with_file_name("quickstart"),
    };
    step(&format!("1. Control planes of {} (no nodes: Pods do not run in them)", args.clusters.join(", ")));
    let options = Options { dir, clusters: args.clusters, lifetime: Lifetime::Detached };
    let fleet = Fleet::up(options, |line| println!("   {line}")).await?;

    step("2. `freeport init` on the first cluster, `freeport join` on the others");
    let mut changed = 0;
    let mut unchanged = 0;
    let daemons = cluster_set::set_up(&fleet, SET, &mut |line: &str| {
        if line.contains(": unchanged ") {
            unchanged += 1;
        } else if !line.starts_with("next:") {
            changed += 1;
        }
    })
    .await?;
    println!("   {changed} objects and files made, {unchanged} were there; the same as in manifests/");

    step("3. The daemons: freeport-leader once, freeport-member in each cluster");
    for daemon in &daemons {
        daemon.start(&fleet).await?;
        println!("   {:24} metrics at http://{}/metrics", daemon.spec.name, daemon.listen);
    }
    cluster_set::ready(&fleet, SET, &daemons).await?;
    println!("   every member says that it is ready");

    if !args.no_demo {
        demo::run(&fleet).await?;
    }
    farewell(&fleet, !args.no_demo);
    Ok(())
}

fn step(headline: &str) {
    println!("\n{headline}");
}

fn farewell(fleet: &Fleet, demo: bool) {
    let (kubectl, dir) = (fleet.kubectl(), fleet.dir().display().to_string());
    let names: Vec<_> = fleet.clusters().iter().map(fleet::Cluster::name).collect();
    let (leader, exporter, importer) = (names[0], names[1], names[names.len() - 1]);
    println!("\nEverything is left running. Look further:");
    println!("   export KUBECONFIG={}", fleet.kubeconfig().display());
    if let Some(bin) = kubectl.parent() {
        println!("   export PATH={}:$PATH", bin.display());
    }
    println!("   kubectl --context {leader} -n clusterset-{SET} get resourceexports,resourceimports,leases");
    println!("   kubectl --context {importer} -n freeport-system get clusterset {SET} -o yaml");
    if demo {
        println!("   kubectl --context {importer} -n shop get serviceimport,service,endpointslice");
        println!("Take the export back, and it is gone everywhere:");
        println!("   kubectl --context {exporter} -n shop delete serviceexport web");
    }
    println!("What the daemons say is in {dir}/logs. Take it all down:");
    println!("   cargo run -p fleet -- down --dir {dir}");
}
