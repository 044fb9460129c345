//! The command line of `freeport plan`.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use serde::Serialize;

use super::{
    Outcome, aside,
    explaining::services,
    reaching::Several,
    showing::{ReportForm, json, print, print_marked},
};
use crate::{Error, PlanFrom, PlanOptions, plan, printable::printable};

#[derive(ClapArgs, Debug)]
#[group(id = "change", multiple = true, required = true, args = ["files", "unexport"])]
pub(super) struct PlanArgs {
    /// File or folder with ServiceExports and Services to apply.
    #[arg(short = 'f', long = "filename", value_name = "FILE|DIR")]
    files: Vec<PathBuf>,
    /// Export to end.
    #[arg(long, value_name = "NAMESPACE/NAME")]
    unexport: Vec<String>,
    /// Cluster of the change, by ID or context [default: the first].
    #[arg(long = "in", value_name = "CLUSTER")]
    at: Option<String>,
    /// Namespace of objects without one [default: that of --in].
    #[arg(short, long, value_name = "NAME")]
    namespace: Option<String>,
    /// Take all from files: a folder for each cluster.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["context", "contexts", "all_contexts", "leader_context"])]
    offline: Option<PathBuf>,
    /// Form.
    #[arg(short, long, value_enum, default_value_t = ReportForm::Text)]
    output: ReportForm,
    #[command(flatten)]
    clusters: Several,
}

impl TryFrom<PlanArgs> for PlanOptions {
    type Error = Error;

    fn try_from(args: PlanArgs) -> Result<Self, Error> {
        let example = "freeport plan --unexport shop/web";
        let unexport = services(&args.unexport, example)?;
        let from = match args.offline {
            Some(folder) => PlanFrom::Offline(folder),
            None => PlanFrom::Live(args.clusters.try_into()?),
        };
        Ok(Self { files: args.files, unexport, at: args.at, namespace: args.namespace, from })
    }
}

/// A plan, as `-o json` has it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Shown<'a> {
    api_version: &'static str,
    kind: &'static str,
    #[serde(flatten)]
    plan: &'a picture::plan::Plan,
}

/// Prints the plan; on stderr, what was not looked at.
pub(super) async fn show(args: PlanArgs) -> Result<Outcome, Error> {
    let form = args.output;
    let options: PlanOptions = args.try_into()?;
    let predicted = Box::pin(plan(&options)).await?;
    for note in &predicted.notes {
        aside(&format!("note: {}", printable(note)));
    }
    let plan = predicted.plan?;
    match form {
        ReportForm::Text => {
            for note in &plan.not_looked_at {
                aside(&format!("note: {}", printable(note)));
            }
            let lines: String = plan.text().iter().map(|line| printable(line) + "\n").collect();
            print_marked(&lines)?;
        }
        ReportForm::Json => {
            let shown = Shown { api_version: crate::schema::API_VERSION, kind: "Plan", plan: &plan };
            print(&(json(&shown)? + "\n"))?;
        }
    }
    Ok(if plan.is_well() { Outcome::Well } else { Outcome::Problems })
}
