use proptest::prelude::*;

use super::*;
use crate::offload::arrivals::{Known, Looks, events, seen};

/// The steps in words, without what is no news.
fn look(known: &Known, home: &str) -> BTreeMap<String, Vec<String>> {
    let known = &known.all;
    let record = names::namespace_map(home, &known.us.cluster);
    let entry = known.clusters.get(&home.to_owned()).unwrap_or_default();
    let Some(spec) = entry.asked_here() else { return [(home.to_owned(), vec![])].into() };
    let twins = twins(known, home, &record);
    let steps = desired(known, (home, &record), &entry, spec, &twins);
    let words = steps.into_iter().map(|(namespace, step)| {
        let step = match step {
            Step::Create(twin) => format!("create {:?}", twin.metadata),
            Step::Mend { have, want } => {
                let twin = want.name_any();
                let is_bound = known.namespaces.get(&twin).is_some_and(|entry| entry.binding.is_some());
                let labels = [have.labels(), want.labels()];
                format!("mend {twin} {labels:?}, takes Pods: {}, {is_bound}", takes_pods(known, &twin))
            }
            Step::Refuse { twin, why } => format!("refuse {twin}: {why:?}"),
            Step::Wait { twin } => format!("wait for {twin}"),
            Step::Keep { twin } => format!("keep {twin}"),
            Step::Delete(twin) => format!("delete {}, is going: {}", twin.name_any(), twin.is_going()),
        };
        format!("{namespace}: {step}")
    });
    [(home.to_owned(), words.collect())].into()
}

const LOOKS: Looks<Vec<String>> =
    Looks { queue: |known| known.clusters.queue(2), keys: |known| known.clusters.keys(), at: look };

proptest! {
    #[test]
    fn whoever_makes_twins_has_seen_the_last_of_what_decides_them(events in events()) {
        let [last, now] = seen(&events, &LOOKS, &[]);
        prop_assert_eq!(last, now);
    }
}
