//! What Services cost: `cargo bench -p e2e --bench services`, and `-- --help` for its flags. Three control planes without nodes: `east`
//! exports and imports, `west` imports, `leader` leads and is a member without imports; they and the daemons share this machine, so
//! ratios to the floor count and not seconds.
//!
//! Everything is measured from outside: by watches of our own, from the audit logs and metrics of the API servers, and from what the
//! kernel says of processes. [`floor`] is what the same writes cost without daemons.

#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

mod args;
mod endpoints;
mod floor;
mod hollow;
mod meter;
mod page;
mod phase;
mod process;
mod run;
mod seen;
mod set;

use std::{sync::Arc, time::Duration};

use clap::Parser;
use k8s_openapi::jiff::Timestamp;

use self::{
    args::{Args, What},
    floor::{Floor, Template},
    phase::member,
    run::{Phase, Run, Side},
    seen::Seen,
    set::{EXPORTER, IMPORTER, IMPORTERS, Set},
};

fn main() {
    let args = Args::parse();
    end_with_any_panic();
    if args.runs.is_none() {
        let run = e2e::shared::RUNTIME.block_on(measure(&args));
        println!("{}", page::tables(&[run]));
    }
    let runs = args.folder().map(|folder| Run::read_all(&folder)).unwrap_or_default();
    if let Some(page) = &args.page {
        page::write(page, &runs);
    }
    if let Some(folder) = &args.svg {
        page::draw(folder, &runs);
    }
}

/// What a task of the floor could not do, nobody waits for in vain. The clusters end with this process.
fn end_with_any_panic() {
    let say = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        say(panic);
        std::process::exit(1);
    }));
}

async fn measure(args: &Args) -> Run {
    let bench = Bench::new(args).await;
    let mut run = Run {
        release: args.release.clone(),
        at: Timestamp::now().to_string(),
        cores: std::thread::available_parallelism().unwrap().get(),
        optimized: !cfg!(debug_assertions),
        phases: Vec::new(),
    };
    if args.wants(What::Single) {
        for side in [Side::Freeport, Side::Floor] {
            run.phases.extend(Box::pin(bench.one_by_one(side)).await);
            keep(args, &run);
        }
    }
    let wants_imports = [What::Bulk, What::Withdraw, What::Join, What::Churn, What::Restart, What::Idle];
    let sizes = args.services.iter().filter(|_| wants_imports.into_iter().any(|what| args.wants(what)));
    for count in sizes {
        for side in [Side::Freeport, Side::Floor] {
            run.phases.extend(Box::pin(bench.many(side, *count)).await);
            keep(args, &run);
        }
    }
    if args.wants(What::Unused) {
        bench.set.turn_to(Side::Freeport).await;
        run.phases.push(phase::unused(&bench.set, args.unused).await);
        keep(args, &run);
    }
    for members in args.hollow.iter().filter(|_| args.wants(What::Hollow)) {
        bench.set.turn_to(Side::Freeport).await;
        run.phases.extend(Box::pin(phase::hollow(&bench.set, *members, args.hollow_services)).await);
        keep(args, &run);
    }
    bench.set.world.discard().await;
    run
}

/// After each turn: a run takes long, and whoever ends it has what was measured so far.
fn keep(args: &Args, run: &Run) {
    if let Some(file) = &args.json {
        run.write(file);
    }
}

struct Bench<'a> {
    args: &'a Args,
    set: Set,
    template: Arc<Template>,
}

impl<'a> Bench<'a> {
    async fn new(args: &'a Args) -> Self {
        let set = Set::up(&args.env).await;
        let (side, seen) = (Side::Freeport, Seen::watch(&set, Side::Freeport));
        let names = set.services(side, "template", 1).await;
        phase::bulk(&set, side, &seen, &names).await;
        let template = Arc::new(Template::of(&set, &names[0]).await);
        phase::withdraw(&set, side, &seen, &names).await;
        set.remove_services(side, &names).await;
        Self { args, set, template }
    }

    /// Who works on this side, if not the daemons.
    fn floor(&self, side: Side, importers: &[&'static str]) -> Option<Floor> {
        (side == Side::Floor).then(|| {
            let mut floor = Floor::of(&self.set, &self.template);
            importers.iter().for_each(|importer| floor.imports(importer));
            floor
        })
    }

    async fn one_by_one(&self, side: Side) -> Vec<Phase> {
        let set = &self.set;
        set.turn_to(side).await;
        let (seen, _floor) = (Seen::watch(set, side), self.floor(side, &IMPORTERS));
        let names = set.services(side, "single", self.args.samples).await;
        let single = phase::single(set, side, &seen, &names).await;
        phase::withdraw(set, side, &seen, &names).await;
        set.remove_services(side, &names).await;
        vec![single]
    }

    async fn many(&self, side: Side, count: usize) -> Vec<Phase> {
        let (set, args) = (&self.set, self.args);
        set.turn_to(side).await;
        let names = set.services(side, &format!("of-{count}"), count).await;
        let mut phases = Vec::new();
        if args.wants(What::Bulk) || args.wants(What::Withdraw) {
            let (seen, _floor) = (Seen::watch(set, side), self.floor(side, &IMPORTERS));
            phases.push(phase::bulk(set, side, &seen, &names).await);
            phases.push(phase::withdraw(set, side, &seen, &names).await);
        }
        if [What::Join, What::Churn, What::Restart, What::Idle].into_iter().any(|what| args.wants(what)) {
            phases.extend(Box::pin(self.with_imports(side, &names)).await);
        }
        set.remove_services(side, &names).await;
        phases
    }

    /// What is measured while there are imports.
    async fn with_imports(&self, side: Side, names: &[String]) -> Vec<Phase> {
        let (set, args) = (&self.set, self.args);
        if side == Side::Freeport {
            set.stop(&member(IMPORTER)).await;
        }
        let (seen, mut floor) = (Seen::watch(set, side), self.floor(side, &[EXPORTER]));
        let mut phases = vec![phase::join(set, &seen, names, floor.as_mut()).await];
        if args.wants(What::Churn) {
            for rate in &args.rates {
                phases.push(phase::churn(set, side, &seen, names, *rate, args.churn_seconds).await);
            }
        }
        if args.wants(What::Restart) && side == Side::Freeport {
            phases.push(phase::restart(set, names.len()).await);
        }
        if args.wants(What::Idle) && side == Side::Freeport {
            phases.push(phase::idle(set, names.len(), Duration::from_secs(args.idle_seconds)).await);
        }
        phase::withdraw(set, side, &seen, names).await;
        phases
    }
}
