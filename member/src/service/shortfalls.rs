//! What is not as it should be though nothing failed, in words: pure.

use std::collections::BTreeSet;

use api::ServiceName;

use super::{
    import::{NO_NAMESPACE, Room, TOO_MANY},
    irregular::Irregular,
};
use crate::feature::{About, Shortfall};

/// How many are named.
const NAMED: usize = 3;

/// What waits, stays as it is, or is `left_out`, and why.
pub(super) fn of(room: &Room, irregular: &Irregular, left_out: usize) -> Vec<Shortfall> {
    let imports =
        |reason, message, is_problem| Shortfall { about: About::Imports, reason, message, is_problem };
    let too_many = (room.waiting().len() > 0).then(|| {
        let message = format!(
            "this cluster has {} imports, and freeport-member makes {} at the most (--max-imports); it does not make {}. Existing \
             imports stay and are updated",
            room.taken(),
            room.max(),
            named(room.waiting()),
        );
        imports(TOO_MANY, message, true)
    });
    let not_ours = some(&irregular.not_ours).map(|these| {
        let message = format!(
            "ServiceImports exist that were not created by Freeport, so what they are named after is not imported: {these}. Delete them \
             if nobody needs them"
        );
        imports("NotOurs", message, true)
    });
    // Without their number, which changes all the time while somebody writes too much.
    let left_out = (left_out > 0).then(|| {
        let message = "clusters have more or larger records than the leader takes in or this cluster keeps; the newest are left out, and \
                       their endpoints get no traffic from here (freeport_records_left_out counts them)";
        imports("RecordsLeftOut", message.to_owned(), true)
    });
    let nowhere = (room.nowhere().len() > 0).then(|| {
        let message = format!(
            "imports wait for their Namespaces, which this cluster does not have: {}. Create the Namespaces if you want to use these \
             Services here",
            named(room.nowhere()),
        );
        imports(NO_NAMESPACE, message, false)
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
    [too_many, not_ours, left_out, nowhere, vanished].into_iter().flatten().collect()
}

fn some(these: &BTreeSet<ServiceName>) -> Option<String> {
    (!these.is_empty()).then(|| named(these.iter()))
}

/// As in `shop/db, shop/web and 3 more`.
fn named<'a>(services: impl ExactSizeIterator<Item = &'a ServiceName>) -> String {
    let more = services.len().saturating_sub(NAMED);
    let first: Vec<_> = services.take(NAMED).map(ServiceName::to_string).collect();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    first.join(", ") + &more
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::{import::Need, irregular::note};

    #[test]
    fn what_waits_is_counted_and_the_first_are_named() {
        let mut room = Room::new(1);
        let none = Irregular::default();
        assert_eq!(of(&room, &none, 0), []);
        let all = (0..6u8).map(|n| {
            (ServiceName::new("shop", format!("s{n}")), Need::New(Default::default(), String::new()))
        });
        room.begin(all.chain([(ServiceName::new("nowhere", "web"), Need::Namespace)]));
        let [too_many, nowhere] = of(&room, &none, 0).try_into().unwrap();
        assert_eq!((too_many.reason, too_many.is_problem), ("TooManyImports", true));
        let said = "has 1 imports, and freeport-member makes 1 at the most";
        assert!(too_many.message.contains(said), "{}", too_many.message);
        assert!(too_many.message.contains("shop/s1, shop/s2, shop/s3 and 2 more"), "{}", too_many.message);
        assert_eq!((nowhere.reason, nowhere.is_problem), ("NamespaceMissing", false));
        assert!(nowhere.message.contains(": nowhere/web."), "{}", nowhere.message);
    }

    #[test]
    fn what_somebody_has_to_decide_about_is_named() {
        let mut irregular = Irregular::default();
        let web = ServiceName::new("shop", "web");
        note(&mut irregular.not_ours, &web, true);
        note(&mut irregular.vanished, &web, true);
        let room = Room::new(1);
        let said = |irregular: &Irregular, left_out| {
            of(&room, irregular, left_out)
                .into_iter()
                .map(|s| (s.about, s.reason, s.is_problem))
                .collect::<Vec<_>>()
        };
        let (imports, exports) = (About::Imports, About::Exports);
        let all = [
            (imports, "NotOurs", true),
            (imports, "RecordsLeftOut", true),
            (exports, "ServiceExportVanished", true),
        ];
        assert_eq!(said(&irregular, 7), all);
        assert!(of(&room, &irregular, 0).iter().all(|shortfall| shortfall.message.contains(": shop/web. ")));
        note(&mut irregular.not_ours, &web, false);
        note(&mut irregular.vanished, &web, false);
        assert_eq!(said(&irregular, 0), []);
    }
}
