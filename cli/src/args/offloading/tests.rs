//! Lines that are understood, and lines that are not.

use clap::Parser;

use super::*;
use crate::args::{Args, Command};

fn parse(line: &str) -> Result<Command, clap::Error> {
    let words = ["freeport"].into_iter().chain(line.split_whitespace());
    Args::try_parse_from(words).map(|args| args.command)
}

fn namespace(line: &str) -> OffloadOptions {
    match parse(line).unwrap() {
        Command::Offload(OffloadArgs { command: OffloadCommand::Namespace(args) }) => args.into(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_lines_of_the_guide_are_understood() {
    let shop = namespace(
        "offload namespace shop --context west --pod-offloading-strategy Remote --selector liqo.io/region=us-west-1",
    );
    assert_eq!(
        (shop.namespaces, shop.strategy),
        (vec!["shop".to_owned()], Some(PodOffloadingStrategy::Remote))
    );
    assert_eq!((shop.selectors, shop.wait), (vec!["liqo.io/region=us-west-1".to_owned()], true));
    let printed = namespace("offload namespace shop --dry-run -o yaml");
    assert!(printed.dry_run && printed.mapping.is_none());
    for line in [
        "offload accept west --context east --label liqo.io/region=us-west-1",
        "offload use east --context west",
        "unoffload namespace shop --context west --yes",
        "offload namespace --ns-selector team=a,!staging --context west",
        "offload status -n shop -o json",
        "offload maps --context west",
        "offload maps -o json",
    ] {
        assert!(parse(line).is_ok(), "{line}");
    }
}

#[test]
fn lines_that_make_no_sense_are_refused() {
    for line in [
        "offload",
        "offload namespace",
        "offload namespace shop -o yaml",
        "offload namespace shop --ns-selector team=a",
        "offload namespace --ns-selector=",
        "offload namespace shop --pod-offloading-strategy Elsewhere",
        "offload accept west --remove --label a=b",
        "offload accept west --label a",
        "unoffload shop",
    ] {
        assert_eq!(parse(line).unwrap_err().exit_code(), 2, "{line}");
    }
}
