use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::offload::arrivals::{Known, Looks, events, seen};

/// The steps in words, without what is no news.
fn look(known: &Known, place: &str) -> BTreeMap<String, Vec<String>> {
    let entry = known.all.shadows.get(&place.to_owned()).unwrap_or_default();
    let planned = plan(&entry, |spec| around(&known.all, spec, None, true));
    let words = planned.into_iter().map(|Planned { record, own, step, is_strangers, .. }| {
        let step = match step {
            Step::Create { new, is_first } => format!("create {:?} {is_first}", new.metadata),
            Step::Keep(want) => format!("keep {:?}", want.labels()),
            Step::Delete(_, grace) => format!("delete within {grace:?}"),
            Step::Confirm(_) => "confirm".to_owned(),
            Step::Gone => "gone".to_owned(),
            // Nothing is remembered of an OffloadPeer where nothing else is left of its cluster.
            Step::Refuse(why) if why.reason == "ConsentUnknown" => "refuse: NotAccepted".to_owned(),
            Step::Refuse(why) => format!("refuse: {}", why.reason),
            Step::Leave => "leave".to_owned(),
        };
        let own = own.map(|own| own.status.clone());
        format!("{}: {step}, {own:?}, a stranger's: {is_strangers}", record.name_any())
    });
    [(place.to_owned(), words.collect())].into()
}

const LOOKS: Looks<Vec<String>> =
    Looks { queue: |known| known.shadows.queue(0), keys: |known| known.shadows.keys(), at: look };

proptest! {
    #[test]
    fn whoever_makes_pods_of_others_has_seen_the_last_of_what_decides_them(events in events()) {
        let [last, now] = seen(&events, &LOOKS, &[]);
        prop_assert_eq!(last, now);
    }
}
