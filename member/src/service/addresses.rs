//! Addresses of imports that have ended: pure. One that comes back within some minutes gets its address back, if nobody else has it by
//! then: clients and firewalls know it.
//!
//! The member notes them on ConfigMap `freeport-membership` ([`noting`]), for a process that starts again. Of a Namespace that was deleted and
//! created again none counts.

pub(super) mod noting;

use std::{collections::BTreeMap, time::Duration};

use api::ServiceName;
use jiff::Timestamp;

/// Number of addresses that are remembered; the oldest go first. A note of as many fits on one object.
const MOST: usize = 1000;
/// Within this time an import that ends is one whose deletion was tried before.
const TRIED_AGAIN: Duration = Duration::from_secs(90);
/// Within this time an API server may not have released the address of a deleted Service.
const RELEASED: Duration = Duration::from_secs(5);

/// The addresses of an import that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Remembered {
    ips: Vec<String>,
    /// When it ended.
    ended: Timestamp,
    /// When its Namespace was created.
    namespace: Option<Timestamp>,
}

/// What an import that comes back asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Returning {
    /// The addresses that it had.
    pub(crate) ips: Vec<String>,
    /// The API server may not have released them yet.
    pub(crate) is_fresh: bool,
}

/// The addresses that are remembered.
#[derive(Debug, Default)]
pub(crate) struct Addresses(BTreeMap<ServiceName, Remembered>);

impl Addresses {
    /// Takes in that an import with these addresses ends `now`, in a Namespace that was created then. Reports whether that is to be noted:
    /// a deletion that is refused is tried again and again.
    pub(crate) fn ends(
        &mut self,
        service: &ServiceName,
        ips: Vec<String>,
        namespace: Option<Timestamp>,
        now: Timestamp,
    ) -> bool {
        if ips.is_empty() {
            return false;
        }
        let ends = Remembered { ips, ended: now, namespace };
        let is_noted = |had: &Remembered| {
            (&had.ips, had.namespace) == (&ends.ips, ends.namespace) && had.age(now) < TRIED_AGAIN
        };
        let is_news = !self.0.get(service).is_some_and(is_noted);
        self.put(service.clone(), ends);
        is_news
    }

    /// Returns what an import asks for that comes back `now`, if its addresses are kept for so long.
    pub(crate) fn returning(
        &self,
        service: &ServiceName,
        namespace: Option<Timestamp>,
        keep: Duration,
        now: Timestamp,
    ) -> Option<Returning> {
        let had = self.0.get(service).filter(|had| had.namespace == namespace && had.age(now) < keep)?;
        Some(Returning { ips: had.ips.clone(), is_fresh: had.age(now) < RELEASED })
    }

    /// Forgets what is not kept any more.
    pub(crate) fn forget(&mut self, keep: Duration, now: Timestamp) {
        self.0.retain(|_, had| had.age(now) < keep);
    }

    /// The note: `NAMESPACE/NAME=IP,IP@ENDED@CREATED` with spaces between, times in seconds.
    pub(crate) fn note(&self) -> String {
        let word = |(service, had): (&ServiceName, &Remembered)| {
            let created = had.namespace.map(|at| at.as_second().to_string()).unwrap_or_default();
            format!("{service}={}@{}@{created}", had.ips.join(","), had.ended.as_second())
        };
        self.0.iter().map(word).collect::<Vec<_>>().join(" ")
    }

    /// Takes in what was noted before this process began. What cannot be read is left out.
    pub(crate) fn read(&mut self, note: &str) {
        for (service, had) in note.split_whitespace().filter_map(noted) {
            if !self.0.contains_key(&service) {
                self.put(service, had);
            }
        }
    }

    fn put(&mut self, service: ServiceName, had: Remembered) {
        self.0.insert(service, had);
        if self.0.len() > MOST {
            let oldest = self.0.iter().min_by_key(|(_, had)| had.ended).map(|(service, _)| service.clone());
            oldest.and_then(|oldest| self.0.remove(&oldest));
        }
    }
}

impl Remembered {
    /// How long ago it ended. A clock that was set back makes nothing old.
    fn age(&self, now: Timestamp) -> Duration {
        Duration::try_from(now.duration_since(self.ended)).unwrap_or_default()
    }
}

fn noted(word: &str) -> Option<(ServiceName, Remembered)> {
    let (service, had) = word.split_once('=')?;
    let (namespace, name) = service.split_once('/')?;
    let [ips, ended, created] = had.split('@').collect::<Vec<_>>().try_into().ok()?;
    let second = |text: &str| Timestamp::from_second(text.parse().ok()?).ok();
    let ips: Vec<_> = ips.split(',').map(str::to_owned).collect();
    let is_address = |ip: &String| ip.parse::<std::net::IpAddr>().is_ok();
    let fits = ips.len() <= 2 && ips.iter().all(is_address);
    let had = Remembered { ips, ended: second(ended)?, namespace: second(created) };
    fits.then(|| (ServiceName::new(namespace, name), had))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const KEEP: Duration = Duration::from_secs(300);

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).unwrap()
    }

    fn web() -> ServiceName {
        ServiceName::new("shop", "web")
    }

    fn words(ips: &[&str]) -> Vec<String> {
        ips.iter().map(|ip| (*ip).to_owned()).collect()
    }

    #[test]
    fn an_address_is_kept_for_a_while_and_for_its_namespace() {
        let (mut addresses, created) = (Addresses::default(), Some(at(-9)));
        assert!(!addresses.ends(&web(), vec![], created, at(0)), "it was headless");
        assert!(addresses.ends(&web(), words(&["10.96.0.9"]), created, at(-2)));
        assert!(
            !addresses.ends(&web(), words(&["10.96.0.9"]), created, at(0)),
            "the deletion is tried again"
        );
        let returning = |namespace, second| {
            let asks = addresses.returning(&web(), namespace, KEEP, at(second));
            asks.map(|asks| (asks.ips.join(","), asks.is_fresh))
        };
        assert_eq!(returning(created, 1), Some(("10.96.0.9".to_owned(), true)));
        assert_eq!(returning(created, 299), Some(("10.96.0.9".to_owned(), false)));
        assert_eq!(returning(created, 300), None);
        assert_eq!(returning(created, -300), Some(("10.96.0.9".to_owned(), true)), "the clock was set back");
        assert_eq!(returning(Some(at(0)), 1), None, "another Namespace of that name");
        assert_eq!(addresses.returning(&web(), created, Duration::ZERO, at(0)), None, "it is turned off");
        addresses.forget(KEEP, at(300));
        assert_eq!(addresses.note(), "");
    }

    #[test]
    fn what_cannot_be_read_hides_nothing_else() {
        let odd =
            ["x", "shop/web", "shop/web=", "web=10.0.0.1@1@1", "shop/web=10.0.0.1@x@1", "shop/web=x@1@1"];
        let mut addresses = Addresses::default();
        addresses.read(&format!("{} shop/web=10.0.0.2@1800000000@", odd.join(" ")));
        assert_eq!(addresses.returning(&web(), None, KEEP, at(9)).unwrap().ips, ["10.0.0.2"]);
        assert_eq!(addresses.0.len(), 1);
        addresses.ends(&web(), words(&["10.0.0.3"]), None, at(10));
        addresses.read("shop/web=10.0.0.2@1800000000@");
        assert_eq!(
            addresses.returning(&web(), None, KEEP, at(10)).unwrap().ips,
            ["10.0.0.3"],
            "which is later"
        );
    }

    #[test]
    fn the_oldest_go_first_and_a_note_fits_on_an_object() {
        let mut addresses = Addresses::default();
        for n in 0..1100 {
            let service = ServiceName::new("n".repeat(63), format!("{n:063}"));
            addresses.ends(&service, words(&["10.96.0.9", "fd00:96::9"]), Some(at(0)), at(n));
        }
        let note = addresses.note();
        assert!(addresses.0.len() == MOST && note.len() < 200 << 10, "{}", note.len());
        assert!(!note.contains(&format!("{:063}=", 99)) && note.contains(&format!("{:063}=", 100)));
    }

    proptest! {
        #[test]
        fn what_was_noted_is_known_after_a_restart(
            all in prop::collection::vec(("[a-c]", "[a-c]", any::<Option<u32>>(), 0..400i64), 0..20),
            now in 0..800i64,
        ) {
            let (mut before, mut after) = (Addresses::default(), Addresses::default());
            for (namespace, name, created, second) in all {
                let created = created.map(|second| at(second.into()));
                before.ends(&ServiceName::new(namespace, name), words(&["10.96.0.9", "fd00::1"]), created, at(second));
            }
            after.read(&before.note());
            for (service, had) in &before.0 {
                let asks = |of: &Addresses| of.returning(service, had.namespace, KEEP, at(now));
                prop_assert_eq!(asks(&before), asks(&after));
                prop_assert_eq!(asks(&after).is_some(), now - had.ended.as_second() + 1_800_000_000 < 300);
            }
            after.forget(KEEP, at(now));
            prop_assert!(after.0.values().all(|had| had.age(at(now)) < KEEP));
        }
    }
}
