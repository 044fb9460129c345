//! What users exported in a cluster that was restored from a backup which may lack it. Nobody took it back, so it stays exported. Pure.

use std::{collections::BTreeSet, time::Duration};

use super::{
    places::{LEADER, Place},
    plan::{
        Happened, Happens,
        deed::{Deed, What},
        disorder::Disorder,
    },
};

/// A member knows by its Lease when the backup was made: up to a renewal later than the Lease says.
const RENEWAL: Duration = Duration::from_secs(15);

/// The places of such exports.
pub(super) fn lost(log: &[Happened]) -> BTreeSet<Place> {
    let restored = log.iter().filter_map(|happened| match happened.what {
        Happens::Disorder(Disorder::Restored { cluster, .. }) if cluster != LEADER => {
            Some((cluster, happened))
        }
        _ => None,
    });
    let exported = |cluster: &str, restored: &Happened| {
        let deeds = log.iter().filter_map(|happened| match &happened.what {
            Happens::Deed(Deed { place, what: What::Export(_) }) => Some((place, happened)),
            _ => None,
        });
        let is_lost = |(place, deed): &(&Place, &Happened)| {
            place.cluster == cluster && deed.ended + RENEWAL >= restored.began && deed.began <= restored.ended
        };
        deeds.filter(is_lost).map(|(place, _)| place.clone()).collect::<Vec<_>>()
    };
    restored.flat_map(|(cluster, restored)| exported(cluster, restored)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn happened(began: u64, ended: u64, what: Happens) -> Happened {
        let seconds = Duration::from_secs;
        Happened { began: seconds(began), ended: seconds(ended), what, failed: None }
    }

    #[test]
    fn what_is_exported_between_a_backup_and_its_restore_may_be_lost_in_that_cluster() {
        let place =
            |cluster, service: &str| Place { cluster, namespace: "chaos-0".into(), service: service.into() };
        let export = |at, cluster, service| {
            let what = What::Export("10.1.1.1".into());
            happened(at, at, Happens::Deed(Deed { place: place(cluster, service), what }))
        };
        let restore = |cluster| {
            let age = Duration::from_secs(10);
            happened(20, 35, Happens::Disorder(Disorder::Restored { cluster, age }))
        };
        let deeds = [
            export(4, "east", "old"),
            export(6, "east", "just-before"),
            export(30, "east", "new"),
            export(30, "west", "elsewhere"),
            export(36, "east", "later"),
        ];
        let lost_with = |cluster| lost(&[deeds.to_vec(), vec![restore(cluster)]].concat());
        assert_eq!(lost_with("east"), [place("east", "just-before"), place("east", "new")].into());
        assert_eq!(lost_with("leader"), BTreeSet::new());
    }
}
