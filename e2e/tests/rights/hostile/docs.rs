//! The tables of docs/rights.md on what a stolen credential can do.

use std::collections::BTreeSet;

use super::Right;

const PAGE: &str = include_str!("../../../../docs/rights.md");
const COLUMNS: &str = "| where | resource | verbs | whose | what that can do to others |";

/// The table under this heading, a right for each verb of each resource.
pub(super) fn table(heading: &str) -> BTreeSet<Right> {
    let (_, section) = PAGE.split_once(&format!("### {heading}\n")).unwrap();
    let lines = section.lines().skip_while(|line| *line != COLUMNS).skip(2);
    let mut rights = BTreeSet::new();
    for row in lines.take_while(|line| line.starts_with('|')) {
        let cells: Vec<_> =
            row.trim_matches('|').split('|').map(|cell| cell.trim().replace('`', "")).collect();
        let [place, resources, verbs, whose, _] = cells.as_slice() else { panic!("{row}") };
        for resource in resources.split(", ") {
            for verb in verbs.split(", ") {
                let right = Right {
                    place: place.clone(),
                    resource: resource.to_owned(),
                    verb: verb.to_owned(),
                    whose: whose.clone(),
                };
                assert!(rights.insert(right), "twice: {row}");
            }
        }
    }
    assert!(rights.len() > 5, "no table under {heading:?}");
    rights
}
