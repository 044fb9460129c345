use proptest::prelude::*;

use super::*;

/// Endpoints by the last part of their addresses.
fn endpoints(all: &[u8]) -> BTreeMap<u64, SocketAddr> {
    all.iter().map(|n| (u64::from(*n), at(*n))).collect()
}

fn at(n: u8) -> SocketAddr {
    ([10, 1, 0, n], 8080).into()
}

fn second(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

/// A way to these endpoints, and a clock.
struct Tried {
    path: Path,
    now: Instant,
    begun: Instant,
}

impl Tried {
    fn of(all: &[u8]) -> Self {
        let now = Instant::now();
        let mut path = Path::new(now, false, None);
        path.aim(&endpoints(all));
        Self { path, now, begun: now }
    }

    /// Asks as soon as it is time; whom, and whether the cluster is reached then.
    fn ask(&mut self, answers: impl Fn(SocketAddr) -> Answer) -> (SocketAddr, bool) {
        self.now = self.now.max(self.path.due());
        let target = self.path.ask(self.now, SPREAD).unwrap();
        self.path.hear(target, answers(target), self.now, second(7));
        (target, self.path.unreached().is_none())
    }

    fn elapsed(&self) -> Duration {
        self.now - self.begun
    }
}

const ALL: fn(SocketAddr) -> Answer = |_| Answer::Connected;
const NONE: fn(SocketAddr) -> Answer = |_| Answer::Silent;

#[test]
fn three_endpoints_are_asked_in_turn() {
    let mut tried = Tried::of(&[1, 2, 3, 4, 5]);
    let asked: Vec<_> = (0..6).map(|_| tried.ask(ALL).0).collect();
    assert_eq!(asked, [1, 2, 3, 1, 2, 3].map(at));
    assert_eq!(tried.path.ask(tried.now, Duration::ZERO), None, "it is not time");
    assert!((PACE + SPREAD) * 3 < Duration::from_secs(11), "each about every 10 s");
}

proptest! {
    #[test]
    fn a_cluster_is_never_asked_more_than_20_times_a_minute(answers in prop::collection::vec(any::<bool>(), 100)) {
        let mut tried = Tried::of(&[1, 2, 3, 4, 5, 6, 7, 8]);
        let asked: Vec<_> = answers.into_iter().map(|answered| {
            tried.ask(|_| if answered { Answer::Connected } else { Answer::Silent });
            tried.now
        }).collect();
        for of in asked.windows(21) {
            prop_assert!(of[20] - of[0] >= Duration::from_secs(60));
        }
    }
}

#[test]
fn a_way_that_is_lost_is_noticed_by_a_few_silences_and_found_by_one_answer() {
    for (all, silences) in [(1, 3), (2, 3), (3, 3), (4, 4), (5, 5), (100, 5)] {
        let mut tried = Tried::of(&(1..=all).collect::<Vec<_>>());
        assert!(tried.ask(ALL).1);
        tried.begun = tried.now;
        assert!((1..silences).all(|_| tried.ask(NONE).1), "{all}: not yet");
        assert!(!tried.ask(NONE).1, "{all}");
        // What is left of 15 s is for the connect to fail, and for the write.
        assert!(tried.elapsed() < Duration::from_secs(12), "{:?}", tried.elapsed());
        assert_eq!(tried.path.unreached(), Some(second(7)));
        assert!(!tried.ask(NONE).1);
        assert!(tried.ask(ALL).1, "{all}");
    }
}

#[test]
fn endpoints_that_go_together_are_not_the_way() {
    let mut tried = Tried::of(&[1, 2, 3, 4, 5]);
    assert!((0..3).all(|_| tried.ask(ALL).1));
    let node = [1, 2, 3].map(at);
    let others = |target| if node.contains(&target) { Answer::Silent } else { Answer::Connected };
    assert!((0..20).all(|_| tried.ask(others).1));
}

#[test]
fn a_way_that_never_was_is_not_lost() {
    let mut tried = Tried::of(&[1, 2, 3]);
    assert!((0..20).all(|_| tried.ask(NONE).1));
    let before = Path::new(tried.now, true, Some(second(1)));
    assert_eq!(before.unreached(), Some(second(1)), "but for one that an earlier process had, and lost");
}

#[test]
fn as_long_as_one_endpoint_answers_the_cluster_is_reached_and_others_take_the_place_of_the_silent() {
    let mut tried = Tried::of(&[1, 2, 3, 4, 5]);
    let only = |of: u8| move |target| if target == at(of) { Answer::Connected } else { Answer::Silent };
    for _ in 0..12 {
        assert!(tried.ask(only(1)).1);
    }
    // Asked again when the last of the three has answered.
    while tried.ask(only(1)).0 != at(1) {}
    tried.path.aim(&endpoints(&[1, 2, 3, 4, 5]));
    let asked: BTreeSet<_> = (0..3).map(|_| tried.ask(ALL).0).collect();
    assert_eq!(asked, [1, 4, 5].map(at).into());
}

#[test]
fn while_nobody_answers_others_are_asked_and_who_went_does_not_count() {
    let mut tried = Tried::of(&[1, 2, 3, 4]);
    assert!(tried.ask(ALL).1 && tried.ask(NONE).1);
    tried.path.aim(&endpoints(&[1, 2, 3, 4]));
    let asked: BTreeSet<_> = (0..3).map(|_| tried.ask(NONE).0).collect();
    assert_eq!(asked, [1, 3, 4].map(at).into());
    assert_eq!(tried.path.unreached(), Some(second(7)));
    tried.path.aim(&endpoints(&[]));
    assert_eq!(tried.path.unreached(), None, "nobody is left who could answer");

    let mut tried = Tried::of(&[1]);
    assert!(tried.ask(ALL).1 && tried.ask(NONE).1 && tried.ask(NONE).1);
    tried.path.aim(&endpoints(&[2]));
    tried.path.hear(at(1), Answer::Silent, tried.now, second(7));
    assert_eq!(tried.path.unreached(), None, "its Pod went");
    assert!(tried.ask(ALL).1);
    tried.path.aim(&endpoints(&[]));
    assert_eq!(tried.path.ask(tried.now + PACE * 2, SPREAD), None, "nobody to ask");
}

#[test]
fn only_a_connection_of_this_process_to_somebody_who_is_asked_shows_that_a_silent_cluster_is_there() {
    assert_eq!(
        Path::new(Instant::now(), true, None).connected(),
        None,
        "what a process before had found out"
    );
    let mut tried = Tried::of(&[1, 2]);
    tried.ask(|_| Answer::Refused);
    assert_eq!(tried.path.connected(), None, "others may have its addresses by now");
    tried.ask(ALL);
    let at = tried.now;
    tried.ask(NONE);
    assert_eq!(tried.path.connected(), Some(at));
    tried.path.aim(&endpoints(&[]));
    assert_eq!(tried.path.connected(), None, "nobody is asked");
}
