//! How far the rights of exports that go were taken back: a consumer may have thousands of Namespaces, which are more than one pass gets to.
//! Pure.

use std::{collections::BTreeMap, ops::Bound};

use super::Alone;
use crate::bind::key::Key;

/// How many rights one pass looks at, about.
const RIGHTS: usize = 500;

/// By export.
#[derive(Default)]
pub(super) struct Progress(BTreeMap<Key, Far>);

#[derive(PartialEq)]
struct Far {
    uid: Option<String>,
    /// Of these APIs the rights are gone up to and with this Namespace.
    apis: Vec<String>,
    last: String,
}

impl Progress {
    /// The next Namespaces, and whether there are others after them. Where another export needs other APIs by now, it begins anew.
    pub(super) fn next(&self, key: &Key, uid: Option<&str>, alone: &Alone) -> (Vec<String>, bool) {
        let far = self.0.get(key).filter(|far| far.uid.as_deref() == uid && far.apis == alone.apis);
        let after = far.map_or(Bound::Unbounded, |far| Bound::Excluded(far.last.as_str()));
        let mut left = alone.within.range::<str, _>((after, Bound::Unbounded));
        let most = (RIGHTS / alone.apis.len().max(1)).max(1);
        let next = left.by_ref().take(most).cloned().collect();
        (next, left.next().is_some())
    }

    /// In this Namespace none is left.
    pub(super) fn done(&mut self, key: &Key, uid: Option<String>, alone: &Alone, within: &str) {
        let far = Far { uid, apis: alone.apis.clone(), last: within.to_owned() };
        self.0.insert(key.clone(), far);
    }

    /// The export is gone.
    pub(super) fn forget(&mut self, key: &Key) {
        self.0.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pass_goes_on_where_the_last_one_stopped() {
        let key = Key { cluster_namespace: "cns".into(), name: "x".into() };
        let within = (0..600).map(|n| format!("cns-team{n:03}")).collect();
        let mut alone = Alone { apis: vec!["m.g".into(), "n.g".into()], within, schemas: Vec::new() };
        let (mut progress, mut seen) = (Progress::default(), Vec::new());
        loop {
            let (next, goes_on) = progress.next(&key, Some("u"), &alone);
            assert_eq!(next.len(), if goes_on { RIGHTS / 2 } else { 100 });
            next.iter().for_each(|within| progress.done(&key, Some("u".into()), &alone, within));
            seen.extend(next);
            if !goes_on {
                break;
            }
        }
        assert!(seen.iter().eq(&alone.within));
        assert_eq!(progress.next(&key, Some("u"), &alone), (vec![], false));
        assert!(!progress.next(&key, Some("v"), &alone).0.is_empty(), "another one of that name");
        alone.apis.pop();
        assert!(!progress.next(&key, Some("u"), &alone).0.is_empty(), "it has other APIs alone");
        progress.forget(&key);
        assert_eq!(progress.next(&key, Some("u"), &alone).0[0], "cns-team000");
    }
}
