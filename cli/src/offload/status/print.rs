//! The report as text.

use std::fmt::Write;

use api::words::first_names;

use super::report::{OffloadReport, Offloaded, Said};
use crate::printable::printable;

/// The report as text: what other clusters are here, what is offloaded, and what is here of others. Each thing that is not as it was
/// asked for says why.
pub fn text(report: &OffloadReport) -> String {
    let mut lines = vec![format!("cluster {}", report.context)];
    lines.extend(report.problems.iter().map(|problem| format!("problem: {problem}")));
    lines.push(heading("clusters", report.peers.is_empty()));
    for peer in &report.peers {
        let does = match (peer.outgoing, peer.incoming) {
            (true, true) => "is a node here, and may come here",
            (true, false) => "is a node here",
            (false, true) => "may come here",
            (false, false) => "nothing is allowed or asked for",
        };
        lines.push(format!("  {}: {does}{}", peer.cluster, unless_true(&peer.ready)));
    }
    lines.push(heading("virtual nodes", report.nodes.is_empty()));
    lines.extend(report.nodes.iter().map(|node| format!("  {}{}", node.name, unless_true(&node.ready))));
    lines.push(match report.lacks {
        Some(_) => "offloaded Namespaces: not known".to_owned(),
        None => heading("offloaded Namespaces", report.namespaces.is_empty()),
    });
    report.namespaces.iter().for_each(|namespace| offloaded(&mut lines, namespace));
    lines.push(heading("twins of other clusters' Namespaces", report.twins.is_empty()));
    for twin in &report.twins {
        let going = if twin.terminating { ", being deleted" } else { "" };
        lines.push(format!("  {}: {} of cluster {}{going}", twin.namespace, twin.original, twin.home));
    }
    lines.iter().fold(String::new(), |mut text, line| {
        // Writing to a String cannot fail. Some of the words are another cluster's.
        let _ = writeln!(text, "{}", printable(line).trim_end());
        text
    })
}

fn heading(what: &str, is_empty: bool) -> String {
    format!("{what}:{}", if is_empty { " none" } else { "" })
}

fn offloaded(lines: &mut Vec<String>, namespace: &Offloaded) {
    let Offloaded {
        namespace: name,
        strategy,
        phase,
        twin,
        clusters,
        invalid,
        placement,
        refused,
        older_pods,
        unplaced_pods,
    } = namespace;
    let called = if twin.is_empty() { String::new() } else { format!(", as {twin}") };
    lines.push(format!("  {name}: {phase}, {strategy}{called}"));
    for (cluster, said) in clusters {
        let ready = if said.status == "True" { ": it is there" } else { "" };
        lines.push(format!("    {cluster}{ready}{}", unless_true(said)));
    }
    if let Some(invalid) = invalid {
        lines.push(format!("    nothing is offloaded{}", unless_true(invalid)));
    } else if placement.status != "True" {
        lines.push(format!(
            "    new Pods are refused, or placed wrongly where failurePolicy is Ignore{}",
            unless_true(placement)
        ));
    }
    if let Some(refused) = refused {
        lines.push(format!("    {}", refused.message));
    }
    if !unplaced_pods.is_empty() {
        lines.push(format!(
            "    Pods that were created while the API server did not ask freeport-webhook, and so were not placed: {}; delete them, and \
             those that their owners create are placed",
            first_names(unplaced_pods)
        ));
    }
    if !older_pods.is_empty() {
        lines.push(format!(
            "    Pods that are older than the strategy, and stay until they are deleted: {}",
            older_pods.join(", ")
        ));
    }
}

fn unless_true(said: &Said) -> String {
    match said.status.as_str() {
        "True" => String::new(),
        status => format!(": {status}: {}: {}", said.reason, said.message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thing_that_is_not_as_asked_says_why() {
        let want = "cluster west
clusters:
  east: is a node here
  north: may come here: Unknown: NotSaid: freeport-member has said nothing yet
virtual nodes:
  freeport-east
offloaded Namespaces:
  shop: AllFailed, Remote, as shop-west
    east: False: CreationLoopBackOff: says CreationLoopBackOff
    Pods that are older than the strategy, and stay until they are deleted: web-1
twins of other clusters' Namespaces:
  web-north: web of cluster north
";
        assert_eq!(text(&super::super::report::tests::example()), want);
        let none = text(&OffloadReport { context: "west".into(), ..OffloadReport::default() });
        assert!(none.contains("offloaded Namespaces: none\n"), "{none}");
        let lacks = Some("namespaceoffloadings.offloading.liqo.io".into());
        let problems = vec!["it is missing".into()];
        let unknown = text(&OffloadReport { lacks, problems, ..OffloadReport::default() });
        assert!(unknown.contains("problem: it is missing\n"), "{unknown}");
        assert!(unknown.contains("offloaded Namespaces: not known\n"), "{unknown}");
    }
}
