//! Growth of requests, events and bytes with members and with Services: `cargo bench -p e2e --bench scale`. It prints tables for
//! docs/performance.md, and draws charts. Counts alone: virtual time tells nothing about speed. One seed gives the same counts every time.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a measurement that cannot go on ends")]

#[path = "../services/page/chart.rs"]
mod chart;
mod passed;
mod set;

use std::{fs, path::PathBuf};

use clap::Parser;
use sim::simulation::simulate;

use self::{
    chart::{Chart, Group},
    passed::Passed,
    set::Set,
};

/// Counts requests, events and bytes as members and Services become more.
#[derive(Parser)]
struct Args {
    /// Numbers of members, the leader's among them, each with one Service.
    #[arg(long, value_delimiter = ',', default_value = "10,100,500")]
    members: Vec<usize>,
    /// Numbers of Services, each with three members.
    #[arg(long, value_delimiter = ',', default_value = "100,1000,10000")]
    services: Vec<usize>,
    /// Folder for the charts; without it none is drawn.
    #[arg(long)]
    svg: Option<PathBuf>,
    /// Passed by `cargo bench`.
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() {
    let args = Args::parse();
    println!(
        "Per change, by members: one Service with three endpoints, exported by one member, imported by all.\n"
    );
    heading("members");
    let by_members = measured(args.members, "members", |members| simulate(1, move || by_members(members)));
    println!("\nPer Service, by Services: three members, one exports all of them at once.\n");
    heading("Services");
    let by_services =
        measured(args.services, "Services", |services| simulate(1, move || by_services(services)));
    let Some(folder) = args.svg else { return };
    fs::create_dir_all(&folder).unwrap();
    chart("Bytes for each cluster and change, by members", &by_members).draw(&folder.join("members.svg"));
    chart("Bytes for each cluster and Service, by Services", &by_services).draw(&folder.join("services.svg"));
}

fn heading(of: &str) {
    println!(
        "| {of} | change | leader: reads | writes | events | kB | each member: reads | writes | events | kB |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
}

/// Costs of one size: kB for each change and cluster, by the name of the change.
struct Size {
    name: String,
    costs: Vec<(&'static str, f64)>,
}

/// Something that happened, so many times.
type Row = (&'static str, Passed, f64);

/// Measures each size, and prints its rows as soon as they are known.
fn measured(sizes: Vec<usize>, of: &str, measure: impl Fn(usize) -> Vec<Row>) -> Vec<Size> {
    let each = sizes.into_iter().map(|size| {
        let rows = measure(size);
        for (change, passed, changes) in &rows {
            println!("| {size} | {change} | {} |", passed.cells(*changes));
        }
        let costs = rows.iter().map(|(change, passed, changes)| (*change, passed.kilobytes_each(*changes)));
        Size { name: format!("{size} {of}"), costs: costs.collect() }
    });
    each.collect()
}

async fn by_members(members: usize) -> Vec<Row> {
    let set = Set::up(members).await;
    let mut rows = vec![("one minute, Leases alone", set.idle().await, 1.0)];
    set.create("web");
    rows.push(("export", set.passes(|| set.all_have("web")).await, 1.0));
    set.change("web");
    rows.push(("an endpoint changes", set.passes(|| true).await, 1.0));
    set.withdraw("web");
    rows.push(("withdrawal", set.passes(|| set.none_has("web")).await, 1.0));
    rows
}

async fn by_services(services: usize) -> Vec<Row> {
    let set = Set::up(3).await;
    let names: Vec<_> = (0..services).map(|number| format!("web-{number}")).collect();
    let each = services as f64;
    names.iter().for_each(|name| set.create(name));
    let mut rows = vec![("export", set.passes(|| set.have(services)).await, each)];
    names.iter().for_each(|name| set.change(name));
    rows.push(("an endpoint changes", set.passes(|| true).await, each));
    names.iter().for_each(|name| set.withdraw(name));
    rows.push(("withdrawal", set.passes(|| set.have(0)).await, each));
    rows
}

/// A group of bars for each change, with a bar for each size: bars of one height mean that costs grow linearly.
fn chart(title: &'static str, sizes: &[Size]) -> Chart {
    let changes = sizes.first().map(|size| size.costs.as_slice()).unwrap_or_default();
    let group = |(at, (change, _)): (usize, &(&'static str, f64))| Group {
        name: (*change).to_owned(),
        values: sizes.iter().map(|size| size.costs.get(at).map(|(_, cost)| *cost)).collect(),
        target: None,
    };
    Chart {
        title,
        unit: "kB",
        bars: sizes.iter().map(|size| size.name.clone()).collect(),
        groups: changes.iter().enumerate().map(group).collect(),
    }
}
