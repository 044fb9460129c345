//! `cargo quickstart`: three clusters on this machine, joined to a set, and a Service of one seen in another.

use std::{collections::BTreeMap, path::PathBuf, process::ExitCode, time::Instant};

use clap::{Parser, ValueEnum};
use fleet::{
    Fleet, Lifetime, Options,
    cluster_set::{self, Ensured},
    demo,
};

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
    /// Directory for the clusters' files [default: freeport/quickstart in $XDG_STATE_HOME or ~/.local/state].
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
    let begun = Instant::now();
    let dir = match args.dir {
        Some(dir) => dir,
        None => fleet::command::default_dir()?.with_file_name("quickstart"),
    };
    step(&format!("1. Control planes of {} (no nodes: Pods do not run in them)", args.clusters.join(", ")));
    let options = Options { dir, clusters: args.clusters, nodes: false, lifetime: Lifetime::Detached };
    let fleet = Fleet::up(options, |line| println!("   {line}")).await?;

    step(&format!(
        "2. ClusterSet `{SET}`: `freeport init` on the first cluster, `freeport join` on the others"
    ));
    println!("   building freeport-leader and freeport-member, unless they are up to date");
    let mut tally = Tally::default();
    let daemons = cluster_set::set_up(&fleet, SET, &mut |line: &str| tally.count(line)).await?;
    for cluster in fleet.clusters() {
        println!("   {}", tally.of(cluster.name()));
    }

    step("3. The daemons: freeport-leader in the first cluster, freeport-member in each");
    for daemon in &daemons {
        let done = match daemon.ensure(&fleet).await? {
            Ensured::Started => "started",
            Ensured::Restarted => "restarted",
            Ensured::Running => "running",
        };
        println!("   {:28} {done:9}  http://{}/metrics", daemon.spec.name, daemon.listen);
    }
    cluster_set::ready_saying(&fleet, SET, &daemons, &mut |line: &str| println!("   {line}")).await?;

    if !args.no_demo {
        demo::run(&fleet).await?;
    }
    farewell(&fleet, !args.no_demo);
    println!("\nAll of this took {:.0} s.", begun.elapsed().as_secs_f64());
    Ok(())
}

fn step(headline: &str) {
    println!("\n{headline}");
}

/// How many objects and files of each cluster `init` and `join` made or found as they should be.
#[derive(Default)]
struct Tally {
    made: BTreeMap<String, u32>,
    there: BTreeMap<String, u32>,
}

impl Tally {
    fn count(&mut self, line: &str) {
        let Some((cluster, outcome)) = line.split_once(": ") else { return };
        let counted = if outcome.starts_with("unchanged ") { &mut self.there } else { &mut self.made };
        *counted.entry(cluster.to_owned()).or_default() += 1;
    }

    fn of(&self, cluster: &str) -> String {
        let number = |counted: &BTreeMap<String, u32>| counted.get(cluster).copied().unwrap_or_default();
        format!("{cluster}: {} objects made, {} were there", number(&self.made), number(&self.there))
    }
}

fn farewell(fleet: &Fleet, shown: bool) {
    let Some((exporter, importer)) = demo::roles(fleet) else { return };
    let leader = fleet.clusters().first().unwrap_or(importer).name();
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
    println!("What the members and the leader say to each other, and whether a member is ready:");
    println!("   kubectl --context {leader} -n clusterset-{SET} get resourceexport,resourceimport,lease");
    println!("   kubectl --context {importer} -n freeport-system get clusterset {SET} -o yaml");
    println!("What the daemons log:");
    println!("   tail -f {dir}/logs/freeport-*.log");
    if shown {
        println!("Take the export back, and it is gone from every cluster:");
        println!(
            "   kubectl --context {exporter} -n {} delete serviceexport {}",
            demo::NAMESPACE,
            demo::SERVICE
        );
    }
    println!("Take it all down:");
    println!("   cargo run -p fleet -- down --dir {dir}");
}
