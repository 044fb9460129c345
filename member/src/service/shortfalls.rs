//! Imports that are not made though nothing failed, in words: pure.

use api::ServiceName;

use super::import::{NO_NAMESPACE, Room, TOO_MANY};
use crate::feature::Shortfall;

/// How many are named.
const NAMED: usize = 3;

/// What waits, and why.
pub(super) fn of(room: &Room) -> Vec<Shortfall> {
    let too_many = (room.waiting().len() > 0).then(|| Shortfall {
        reason: TOO_MANY,
        message: format!(
            "this cluster has {} imports, and freeport-member makes {} at the most (--max-imports); it does not make {}. Existing \
             imports stay and are updated",
            room.taken(),
            room.max(),
            named(room.waiting()),
        ),
        is_problem: true,
    });
    let nowhere = (room.nowhere().len() > 0).then(|| Shortfall {
        reason: NO_NAMESPACE,
        message: format!(
            "imports wait for their Namespaces, which this cluster does not have: {}. Create the Namespaces if you want to use these \
             Services here",
            named(room.nowhere()),
        ),
        is_problem: false,
    });
    too_many.into_iter().chain(nowhere).collect()
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
    use crate::service::import::Need;

    #[test]
    fn what_waits_is_counted_and_the_first_are_named() {
        let mut room = Room::new(1);
        assert_eq!(of(&room), []);
        let all = (0..6u8).map(|n| {
            (ServiceName::new("shop", format!("s{n}")), Need::New(Default::default(), String::new()))
        });
        room.begin(all.chain([(ServiceName::new("nowhere", "web"), Need::Namespace)]));
        let [too_many, nowhere] = of(&room).try_into().unwrap();
        assert_eq!((too_many.reason, too_many.is_problem), ("TooManyImports", true));
        let said = "has 1 imports, and freeport-member makes 1 at the most";
        assert!(too_many.message.contains(said), "{}", too_many.message);
        assert!(too_many.message.contains("shop/s1, shop/s2, shop/s3 and 2 more"), "{}", too_many.message);
        assert_eq!((nowhere.reason, nowhere.is_problem), ("NamespaceMissing", false));
        assert!(nowhere.message.contains(": nowhere/web."), "{}", nowhere.message);
    }
}
