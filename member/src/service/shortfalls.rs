//! What is not as it should be though nothing failed, in words: pure.

use std::collections::{BTreeMap, BTreeSet};

use api::{ServiceName, label, words::first_names};
use jiff::Timestamp;

use super::{
    copies::COPY,
    import::{NO_NAMESPACE, Room, TOO_MANY},
    irregular::Irregular,
};
use crate::feature::{About, Shortfall};

/// What waits, stays as it is, is `withheld`, `left_out` or `unreached`, and why.
pub(super) fn of(
    room: &Room,
    irregular: &Irregular,
    withheld: &BTreeSet<ServiceName>,
    left_out: usize,
    unreached: &BTreeMap<String, Timestamp>,
) -> Vec<Shortfall> {
    let imports =
        |reason, message, is_problem| Shortfall { about: About::Imports, reason, message, is_problem };
    let mass = some(withheld).map(|these| {
        let message = format!(
            "the leader reports that many Services are not exported any more, but the clusters that export them did not withdraw \
             them: {these}. These imports stay. To remove them, annotate this ClusterSet with {}=DATE",
            label::LET_GO
        );
        imports("MassWithdrawal", message, true)
    });
    let too_many = (room.waiting().len() > 0).then(|| {
        let message = format!(
            "this cluster has {} imports, and freeport-member makes {} at the most (--max-imports); it does not make {}. Existing \
             imports stay and are updated",
            room.taken(),
            room.max(),
            first_names(room.waiting()),
        );
        imports(TOO_MANY, message, true)
    });
    let not_ours = some(&irregular.not_ours).map(|these| {
        let message = format!(
            "ServiceImports exist that were not created by Freeport, so the Services of these names are not imported: {these}. Delete them \
             if nobody needs them"
        );
        imports("NotOurs", message, true)
    });
    let not_ready = some(irregular.not_ready.keys()).map(|these| {
        let message = format!(
            "these imports are not ready here: {these}. Condition Ready of their ServiceImports gives the reason; where the API server refuses \
             the ServiceImport itself, condition WritesAccepted does"
        );
        imports("ImportsNotReady", message, true)
    });
    // Without their number, which changes all the time while somebody writes too much.
    let left_out = (left_out > 0).then(|| {
        let message = "clusters have more or larger records than the leader takes in or this cluster keeps; the newest are left out, and \
                       their endpoints get no traffic from here (freeport_records_left_out counts them)";
        imports("RecordsLeftOut", message.to_owned(), true)
    });
    let addresses = (!irregular.left_out.is_empty()).then(|| {
        let of = |(service, clusters): (&ServiceName, &BTreeMap<String, usize>)| {
            format!("{service} of {}", clusters.keys().cloned().collect::<Vec<_>>().join(" and "))
        };
        let message = format!(
            "endpoints of other clusters have addresses that they must not have here, and get no traffic from here: {}. Either the leader \
             notes other ranges for that cluster, or the address is that of a Service, a Node or an API server of this one \
             (freeport_endpoints_left_out counts them)",
            first_names(irregular.left_out.iter().map(of)),
        );
        imports("AddressesLeftOut", message, true)
    });
    let nowhere = (room.nowhere().len() > 0).then(|| {
        let message = format!(
            "imports wait for their Namespaces, which this cluster does not have: {}. Create the Namespaces if you want to use these \
             Services here",
            first_names(room.nowhere()),
        );
        imports(NO_NAMESPACE, message, false)
    });
    let unreached = (!unreached.is_empty()).then(|| {
        let since = |(cluster, since): (&String, &Timestamp)| {
            format!("{cluster} since {}", since.strftime("%Y-%m-%dT%H:%M:%SZ"))
        };
        let message = format!(
            "no endpoint of these clusters answers from here any more: {}. They get no traffic from here where other clusters serve the \
             same; condition ClustersReachable of the ServiceImports has it for each",
            first_names(unreached.iter().map(since))
        );
        imports("ClustersUnreached", message, true)
    });
    let vanished = some(&irregular.vanished).map(|these| Shortfall {
        about: About::Exports,
        reason: "ServiceExportVanished",
        message: format!(
            "ServiceExports are gone with their CRD, or since this cluster was restored from a backup, and the Services stay exported: \
             {these}. Create the ServiceExports again; to end an export, delete it then"
        ),
        is_problem: true,
    });
    let copies = irregular.copies.named().map(|these| Shortfall {
        about: About::Note,
        reason: COPY,
        message: format!(
            "These objects have Freeport's labels, but Freeport did not create them, and neither changes nor deletes them: {these}. Of those that you need remove the label app.kubernetes.io/managed-by (of EndpointSlices also endpointslice.kubernetes.io/managed-by), and delete the others"
        ),
        is_problem: false,
    });
    [mass, too_many, not_ours, left_out, addresses, unreached, not_ready, nowhere, vanished, copies]
        .into_iter()
        .flatten()
        .collect()
}

fn some<'a>(these: impl IntoIterator<Item = &'a ServiceName, IntoIter: ExactSizeIterator>) -> Option<String> {
    let these = these.into_iter();
    (these.len() > 0).then(|| first_names(these))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::{
        import::Need,
        irregular::{NotReady, note, note_why},
    };

    #[test]
    fn what_waits_is_counted_and_the_first_are_named() {
        let mut room = Room::new(1);
        let none = Irregular::default();
        assert_eq!(of(&room, &none, &BTreeSet::new(), 0, &BTreeMap::new()), []);
        let all = (0..6u8).map(|n| {
            (ServiceName::new("shop", format!("s{n}")), Need::New(Default::default(), String::new()))
        });
        room.begin(all.chain([(ServiceName::new("nowhere", "web"), Need::Namespace)]));
        let [too_many, nowhere] = of(&room, &none, &BTreeSet::new(), 0, &BTreeMap::new()).try_into().unwrap();
        assert_eq!((too_many.reason, too_many.is_problem), ("TooManyImports", true));
        let said = "has 1 imports, and freeport-member makes 1 at the most";
        assert!(too_many.message.contains(said), "{}", too_many.message);
        assert!(too_many.message.contains("shop/s1, shop/s2, shop/s3 and 2 more"), "{}", too_many.message);
        assert_eq!((nowhere.reason, nowhere.is_problem), ("NamespaceMissing", false));
        assert!(nowhere.message.contains(": nowhere/web."), "{}", nowhere.message);
    }

    #[test]
    fn what_stays_against_the_leaders_word_comes_first() {
        let these = (0..5u8).map(|n| ServiceName::new("shop", format!("s{n}"))).collect();
        let said = of(&Room::new(1), &Irregular::default(), &these, 1, &BTreeMap::new());
        assert_eq!(said.iter().map(|s| s.reason).collect::<Vec<_>>(), ["MassWithdrawal", "RecordsLeftOut"]);
        let message = &said[0].message;
        assert!(
            message.contains(": shop/s0, shop/s1, shop/s2 and 2 more.") && message.contains(label::LET_GO),
            "{message}"
        );
    }

    #[test]
    fn what_somebody_has_to_decide_about_is_named() {
        let mut irregular = Irregular::default();
        let web = ServiceName::new("shop", "web");
        note(&mut irregular.not_ours, &web, true);
        note_why(&mut irregular.not_ready, &web, Some(NotReady::new("ServiceNameTaken", "m")));
        note(&mut irregular.vanished, &web, true);
        let room = Room::new(1);
        let said = |irregular: &Irregular, left_out| {
            of(&room, irregular, &BTreeSet::new(), left_out, &BTreeMap::new())
                .into_iter()
                .map(|s| (s.about, s.reason, s.is_problem))
                .collect::<Vec<_>>()
        };
        let (imports, exports) = (About::Imports, About::Exports);
        let all = [
            (imports, "NotOurs", true),
            (imports, "RecordsLeftOut", true),
            (imports, "ImportsNotReady", true),
            (exports, "ServiceExportVanished", true),
        ];
        assert_eq!(said(&irregular, 7), all);
        assert!(
            of(&room, &irregular, &BTreeSet::new(), 0, &BTreeMap::new())
                .iter()
                .all(|shortfall| shortfall.message.contains(": shop/web. "))
        );
        note(&mut irregular.not_ours, &web, false);
        note_why(&mut irregular.not_ready, &web, None);
        note(&mut irregular.vanished, &web, false);
        assert_eq!(said(&irregular, 0), []);
    }

    #[test]
    fn where_addresses_are_left_out_service_and_cluster_are_named() {
        let (mut irregular, web) = (Irregular::default(), ServiceName::new("shop", "web"));
        let by = |these: &[&str]| these.iter().map(|cluster| ((*cluster).to_owned(), 2)).collect();
        assert!(
            irregular.leave_out(&web, by(&["east", "north"]))
                && !irregular.leave_out(&web, by(&["east", "north"]))
        );
        let said =
            |irregular: &Irregular| of(&Room::new(1), irregular, &BTreeSet::new(), 0, &BTreeMap::new());
        let [shortfall] = said(&irregular).try_into().unwrap();
        assert_eq!(
            (shortfall.reason, shortfall.is_problem, irregular.left_out()),
            ("AddressesLeftOut", true, 4)
        );
        assert!(shortfall.message.contains(": shop/web of east and north. "), "{}", shortfall.message);
        assert!(irregular.leave_out(&web, BTreeMap::new()) && said(&irregular).is_empty());
    }

    #[test]
    fn clusters_that_do_not_answer_are_named() {
        let unreached = [("east".to_owned(), Timestamp::UNIX_EPOCH)].into();
        let [said] =
            of(&Room::new(1), &Irregular::default(), &BTreeSet::new(), 0, &unreached).try_into().unwrap();
        assert_eq!((said.about, said.reason, said.is_problem), (About::Imports, "ClustersUnreached", true));
        assert!(said.message.contains(": east since 1970-01-01T00:00:00Z. "), "{}", said.message);
    }
}
