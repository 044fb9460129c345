//! What could not be looked at is said, and is no finding.

use serde_json::json;

use super::{
    super::{Mark, Picture, why},
    EAST, HUB, WEST,
    fixture::{healthy, object},
};
use crate::{cluster::Cluster, code::Code, gap::Gap};

/// Without what is known of these clusters.
fn without(unseen: &[usize], gap: &Gap) -> Picture {
    let mut picture = healthy();
    for at in unseen {
        let context = picture.clusters[*at].context.clone();
        picture.clusters[*at] = Cluster::unknown(context, gap);
    }
    picture
}

#[test]
fn any_cluster_may_be_unseen_and_nothing_is_found_for_that() {
    let gaps =
        [Gap::NotLooked, Gap::NoAnswer("east: no answer".into()), Gap::Forbidden("no".into()), Gap::NoKind];
    for gap in gaps {
        for unseen in [&[HUB][..], &[WEST], &[HUB, EAST], &[HUB, WEST], &[EAST, WEST]] {
            let walk = why(&without(unseen, &gap), Some("west")).unwrap();
            let text = walk.text().join("\n");
            assert!(walk.findings.is_empty() && walk.skipped.is_empty(), "{unseen:?}: {text}");
            assert!(walk.lines.iter().any(|line| line.mark == Mark::Unknown), "{unseen:?}: {text}");
            assert!(walk.verdict.starts_with("nothing found in what was looked at"), "{text}");
        }
        let walk = why(&without(&[EAST], &gap), Some("west")).unwrap();
        assert!(walk.verdict.starts_with("FP606"), "the leader knows east: {:?}", walk.text());
    }
}

#[test]
fn a_cluster_that_looks_at_itself_alone_does_not_say_that_nobody_exports() {
    let mut picture = healthy();
    picture.clusters = vec![picture.clusters.remove(WEST)];
    assert_eq!(why(&picture, None).unwrap().codes(), []);
    let west = &mut picture.clusters[0];
    (west.import, west.namespace) = (Ok(None), Ok(None));
    assert_eq!(why(&picture, None).unwrap().codes(), [Code(501)], "what it can see is found");
}

#[test]
fn of_a_cluster_that_is_not_looked_at_the_leader_knows_the_most() {
    let mut picture = healthy();
    picture.clusters.remove(WEST);
    let walk = why(&picture, Some("west")).unwrap();
    assert!(walk.text()[0].contains("west renews its Lease at the leader"), "{:?}", walk.text());
    let time = "2026-11-30T09:59:55.000000Z";
    let lacks = json!({"multicluster.freeport.dev/lacks": format!("{time} shop")});
    let lease = json!({
        "metadata": {"name": "freeport-member-west", "annotations": lacks},
        "spec": {"holderIdentity": "u/p", "leaseDurationSeconds": 30, "renewTime": time},
    });
    picture.clusters[HUB].areas.as_mut().unwrap()[0].leases = Ok(vec![object(lease)]);
    assert_eq!(why(&picture, Some("west")).unwrap().codes(), [Code(501)]);
}

#[test]
fn a_cluster_that_nobody_knows_is_an_error_that_names_those_that_are_known() {
    let error = why(&healthy(), Some("north")).unwrap_err();
    assert!(error.contains("\"north\"") && error.ends_with("east, hub, west"), "{error}");
    let picture = Picture { clusters: vec![], ..healthy() };
    assert!(why(&picture, None).is_err());
}
