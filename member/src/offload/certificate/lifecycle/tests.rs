//! Years of a webhook in a second: its Secret, its configuration, and what its replicas serve.

use proptest::prelude::*;

use super::*;

const DAY: u64 = 24 * 3600;
const YEARLY: Lifetimes =
    Lifetimes { authority: Duration::from_secs(365 * DAY), leaf: Duration::from_secs(30 * DAY) };
const BY_MINUTES: Lifetimes = Lifetimes { authority: Duration::from_secs(60), leaf: Duration::from_secs(60) };

struct World {
    at: Timestamp,
    lifetimes: Lifetimes,
    names: Vec<String>,
    secret: Stored,
    trusted: Trusted,
    /// What API servers may still believe, which hear of a change a moment later.
    trusted_before: Vec<Certificate>,
    /// What a replica serves, which hears of a new leaf much later.
    served: Option<Certificate>,
    served_since: Timestamp,
}

impl World {
    fn new(lifetimes: Lifetimes) -> Self {
        let at = "2026-11-01T12:00:00Z".parse().unwrap();
        let mut world = Self {
            at,
            lifetimes,
            names: vec!["freeport-webhook.freeport-system.svc".into(), "127.0.0.1".into()],
            secret: Stored::default(),
            trusted: Trusted { authorities: vec![], since: at },
            trusted_before: vec![],
            served: None,
            served_since: at,
        };
        world.member();
        world.kubelet();
        world
    }

    fn now(&self) -> Now<'_> {
        Now { at: self.at, lifetimes: self.lifetimes, names: &self.names, trusted: &self.trusted }
    }

    /// The member writes until nothing is left to write, each time what it knows from what is written.
    fn member(&mut self) {
        for _ in 0..5 {
            let known = Stored::read(&self.secret.write());
            let next = self.now().next(&known, KeyPair::generate).unwrap();
            let is_news = next != known || self.secret != known;
            self.secret = next;
            let bundle: Vec<_> = self.secret.authorities().cloned().collect();
            if self.trusted.authorities != bundle {
                self.trusted_before = std::mem::replace(&mut self.trusted.authorities, bundle);
                self.trusted.since = self.at;
            } else if !is_news {
                return;
            }
        }
        panic!("it never settles: {:?}", self.secret);
    }

    /// The webhook keeps the last certificate that it could use.
    fn kubelet(&mut self) {
        if let Some((leaf, _)) = self.secret.leaf.clone() {
            (self.served, self.served_since) = (Some(leaf), self.at);
        }
    }

    fn pass(&mut self, part_of_lifetime: u32) {
        let time = self.lifetimes.leaf.min(self.lifetimes.authority) / part_of_lifetime;
        self.at = self.at.checked_add(time).unwrap();
        self.trusted_before = self.trusted.authorities.clone();
    }

    fn is_served_accepted(&self) -> Result<(), String> {
        for trusted in [&self.trusted.authorities, &self.trusted_before] {
            let served = self.served.as_ref().ok_or("nothing is served")?;
            if !served.is_accepted(trusted, &self.names, self.at) {
                return Err(format!("{served:?} at {} by {trusted:?}", self.at));
            }
        }
        Ok(())
    }
}

#[test]
fn three_rotations_of_authority_and_leaf_are_seen_by_nobody() {
    for lifetimes in [YEARLY, BY_MINUTES] {
        let mut world = World::new(lifetimes);
        world.trusted_before = world.trusted.authorities.clone();
        let (mut authorities, mut leaves, mut most) = (vec![], vec![], 0);
        while authorities.len() < 4 {
            world.pass(16);
            world.member();
            world.is_served_accepted().unwrap();
            world.kubelet();
            world.is_served_accepted().unwrap();
            authorities.extend(world.secret.issuer.clone().map(|(issuer, _)| issuer.der));
            authorities.dedup();
            leaves.extend(world.served.clone());
            leaves.dedup();
            most = most.max(world.secret.authorities().count());
        }
        assert!(leaves.len() >= 3 && (2..=3).contains(&most), "{} {most}", leaves.len());
        // The last leaf of the one before has to expire, which takes as long as a leaf counts.
        for _ in 0..16 {
            world.pass(16);
            world.member();
            world.kubelet();
        }
        if lifetimes == YEARLY {
            assert_eq!(world.secret.authorities().count(), 1);
        }
    }
}

#[test]
fn a_new_authority_is_trusted_for_a_while_before_a_leaf_of_it_replaces_one() {
    let mut world = World::new(YEARLY);
    let (issuer, _) = world.secret.issuer.clone().unwrap();
    while world.secret.issuer.as_ref().unwrap().0 == issuer {
        world.pass(16);
        world.member();
        world.kubelet();
    }
    // It is in the bundle with the one before, whose leaf goes on to be served, however due it is.
    let bundle: Vec<_> = world.trusted.authorities.clone();
    let (new, _) = world.secret.issuer.clone().unwrap();
    assert_eq!(bundle, [new, issuer.clone()]);
    let mut due = world.secret.clone();
    let leaf = world.secret.leaf.clone().unwrap().0;
    world.at = leaf.validity.until.checked_sub(SignedDuration::from_hours(24)).unwrap();
    world.trusted.since = world.at;
    let next = world.now().next(&due, KeyPair::generate).unwrap();
    assert_eq!(next.leaf, due.leaf, "API servers may not have heard of it");
    assert_eq!(world.now().wait(&next), Duration::from_secs(10));
    world.at = world.at.checked_add(SETTLE).unwrap();
    let next = world.now().next(&due, KeyPair::generate).unwrap();
    assert_ne!(next.leaf, due.leaf);
    // Where nobody can make the configuration trust it, the old leaf stays as long as it counts, and longer.
    world.trusted.authorities = vec![issuer];
    due.retiring.clear();
    let next = world.now().next(&due, KeyPair::generate).unwrap();
    assert_eq!(next.leaf, due.leaf);
}

#[test]
fn what_is_lost_or_garbled_is_put_right() {
    let whole = World::new(YEARLY);
    let without = |key: &str, text: Option<&str>| {
        let mut data = whole.secret.write();
        data.remove(key);
        data.extend(text.map(|text| (key.to_owned(), k8s_openapi::ByteString(text.into()))));
        Stored::read(&data)
    };
    for key in ["ca.crt", "ca.key", "tls.crt", "tls.key", "ca.retiring"] {
        for text in [
            None,
            Some(""),
            Some("odd"),
            Some("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----"),
        ] {
            let mut world = World::new(YEARLY);
            (world.secret, world.served) = (without(key, text), whole.served.clone());
            (world.trusted, world.trusted_before) =
                (whole.trusted.clone(), whole.trusted.authorities.clone());
            world.member();
            world.is_served_accepted().unwrap();
            world.kubelet();
            let leaf = world.secret.leaf.clone().unwrap().0;
            assert!(leaf.is_accepted(&world.trusted.authorities, &world.names, world.at), "{key} {text:?}");
            assert_eq!(Stored::read(&world.secret.write()), world.secret, "{key} {text:?}");
        }
    }
}

#[test]
fn other_lifetimes_and_names_count_at_once() {
    let mut world = World::new(YEARLY);
    let before = world.secret.clone();
    world.lifetimes.leaf = Duration::from_secs(DAY);
    world.pass(1000);
    world.member();
    assert_eq!(world.secret.issuer, before.issuer);
    assert_ne!(world.secret.leaf, before.leaf);
    let before = world.secret.clone();
    world.names.push("webhook.example.com".into());
    world.member();
    assert_ne!(world.secret.leaf, before.leaf);
    let before = world.secret.clone();
    world.lifetimes.authority = Duration::from_secs(30 * DAY);
    world.member();
    assert_ne!(world.secret.issuer, before.issuer);
}

#[test]
fn what_is_new_is_told_once() {
    let mut world = World::new(YEARLY);
    let told = |world: &World, before: &Stored| -> Vec<_> {
        world.secret.news(before).into_iter().map(|news| news.reason).collect()
    };
    assert_eq!(told(&world, &Stored::default()), ["AuthorityIssued", "CertificateIssued"]);
    assert!(told(&world, &world.secret.clone()).is_empty());
    let mut reasons = Vec::new();
    // Two years.
    for _ in 0..24 * 20 {
        let before = world.secret.clone();
        world.pass(20);
        world.member();
        reasons.extend(told(&world, &before));
    }
    let count = |reason: &str| reasons.iter().filter(|told| **told == reason).count();
    assert_eq!((count("AuthorityIssued"), count("AuthorityRetired")), (2, 2), "{reasons:?}");
    assert!(count("CertificateIssued") > 20, "{reasons:?}");
}

#[derive(Clone, Debug)]
enum Event {
    Pass,
    Kubelet,
    LoseSecret,
    LoseBundle,
    LoseKey,
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        20 => Just(Event::Pass),
        5 => Just(Event::Kubelet),
        1 => Just(Event::LoseSecret),
        1 => Just(Event::LoseBundle),
        1 => Just(Event::LoseKey),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 10, ..ProptestConfig::default() })]

    /// Whatever is lost, in whatever order, and however late replicas read the Secret: what is served is accepted.
    #[test]
    fn what_is_served_is_accepted_at_every_moment(
        events in prop::collection::vec(event(), 1..100),
        authority in 1_u64..20,
    ) {
        let leaf = Duration::from_secs(30 * DAY);
        let authority = leaf * u32::try_from(authority).unwrap();
        let mut world = World::new(Lifetimes { authority, leaf });
        world.pass(1000);
        for event in events {
            match event {
                Event::Pass => {
                    world.pass(20);
                    world.member();
                    if world.at.duration_since(world.served_since) > SignedDuration::from_hours(48) {
                        world.kubelet();
                    }
                }
                Event::Kubelet => world.kubelet(),
                Event::LoseSecret => {
                    world.secret = Stored::default();
                    world.member();
                }
                Event::LoseBundle => {
                    world.trusted.authorities = vec![];
                    world.member();
                    world.trusted_before = world.trusted.authorities.clone();
                }
                Event::LoseKey => {
                    let mut data = world.secret.write();
                    data.remove("ca.key");
                    world.secret = Stored::read(&data);
                    world.member();
                }
            }
            if world.served.is_none() {
                world.kubelet();
            }
            world.is_served_accepted().map_err(TestCaseError::fail)?;
            prop_assert!(world.secret.authorities().count() < 60);
        }
    }
}
