//! For how long members have been silent, and whose records go for it. Pure: clocks come in as arguments.
//!
//! Time counts only while this daemon runs and hears a member of another cluster: where it hears none, it may be the leader that is cut
//! off. What was counted is said on the leader's Lease, so a restart, or another replica, goes on with it. No clock of a member has a say.
//! That the time of a member is over is said there before anything is done about it: whoever goes on must not know of less than was done.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use jiff::Timestamp;

/// It is said so long before records go, at the most.
const NOTICE: Duration = Duration::from_secs(3600);
/// And at the most in the last of so many parts of the time.
const PART: u32 = 4;

/// How it stands with a member that is silent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Its records stay for a long time yet.
    Waiting,
    /// Its endpoints answer another member: its records stay.
    Answering,
    /// They go soon.
    Near,
    /// They go, or are gone.
    Evicted,
}

/// What is heard of members.
#[derive(Debug, Default)]
pub(crate) struct Heard {
    /// They do not renew their Leases.
    pub(crate) silent: BTreeSet<String>,
    /// Their endpoints answer a member that does.
    pub(crate) answering: BTreeSet<String>,
    /// This process has only just begun to listen: to them, or to one that said that they answer.
    pub(crate) unknown: BTreeSet<String>,
}

/// The silence of members.
#[derive(Debug)]
pub(crate) struct Silences {
    /// After which the records of a member go.
    limit: Duration,
    /// Longer time between two looks does not count: this process was stopped.
    longest: Duration,
    /// By cluster ID; none while this process does not count.
    counted: Option<BTreeMap<String, Duration>>,
    /// What our Lease says: what whoever counts has said last.
    said: BTreeMap<String, Duration>,
    /// Silent members whose endpoints answer another one.
    answering: BTreeSet<String>,
    /// Since when members are evicted, as far as this process knows.
    evicted: BTreeMap<String, Timestamp>,
    /// When it was looked last.
    last: Option<Instant>,
}

impl Silences {
    /// Of members whose records go after `limit`; it is looked `every` so often.
    pub(crate) fn new(limit: Duration, every: Duration) -> Self {
        Self {
            limit,
            longest: every * 2,
            counted: None,
            said: BTreeMap::new(),
            answering: BTreeSet::new(),
            evicted: BTreeMap::new(),
            last: None,
        }
    }

    /// Takes in what the leader's Lease says, if it says something. A replica that stands by may hear another one count for weeks.
    pub(crate) fn hear(&mut self, said: Option<&str>) {
        self.said = said.map(read).unwrap_or_default();
    }

    /// Goes on with what was heard last: from now on this process counts. Whoever was evicted is, until it is heard.
    pub(crate) fn begin(&mut self, clock: Timestamp) {
        let Self { counted, said, .. } = self;
        counted.get_or_insert_with(|| said.clone());
        self.evict(clock);
    }

    /// Takes in who is silent now, if that is known, and of whom it is not known, so that nothing is counted and nothing forgotten. The time of
    /// one whose endpoints answer begins when they do not any more.
    pub(crate) fn look(&mut self, heard: Option<&Heard>, now: Instant, clock: Timestamp) {
        let (Some(counted), Some(Heard { silent, answering, unknown })) = (&mut self.counted, heard) else {
            self.last = None;
            self.answering.clear();
            return;
        };
        let is_away = |cluster: &String| silent.contains(cluster) || unknown.contains(cluster);
        let passed = self.last.replace(now).map(|last| now.saturating_duration_since(last));
        let passed = passed.unwrap_or_default().min(self.longest);
        // Who is evicted must be so for the next process as well.
        let begins = |cluster: &String| answering.contains(cluster) && !self.evicted.contains_key(cluster);
        counted.retain(|cluster, _| is_away(cluster) && !begins(cluster));
        self.answering = silent.intersection(answering).cloned().collect();
        for cluster in silent.difference(answering) {
            let so_far = counted.entry(cluster.clone()).or_default();
            *so_far = (*so_far + passed).min(self.limit);
        }
        self.evicted.retain(|cluster, _| is_away(cluster));
        self.evict(clock);
    }

    /// The Lease says it first. Imports name who was evicted, for importers that are away, and a leader that started with less would take
    /// the name out of them for good.
    fn evict(&mut self, clock: Timestamp) {
        let Self { limit, counted, said, evicted, .. } = self;
        let is_over = |so_far: &Duration| so_far.as_secs() >= limit.as_secs();
        let is_said = |cluster: &String| said.get(cluster).is_some_and(is_over);
        let over = counted.iter().flatten().filter(|(cluster, so_far)| is_over(so_far) && is_said(cluster));
        for (cluster, _) in over {
            evicted.entry(cluster.clone()).or_insert(clock);
        }
    }

    /// A member showed in another way than by its Lease that it is there: the time begins anew.
    pub(crate) fn heard(&mut self, cluster: &str) {
        self.counted.iter_mut().for_each(|counted| counted.retain(|of, _| of != cluster));
        self.evicted.remove(cluster);
    }

    /// How it stands with a member.
    pub(crate) fn stage(&self, cluster: &str) -> Stage {
        let so_far =
            self.counted.as_ref().and_then(|counted| counted.get(cluster)).copied().unwrap_or_default();
        match () {
            () if self.evicted.contains_key(cluster) => Stage::Evicted,
            () if self.answering.contains(cluster) => Stage::Answering,
            () if so_far + self.notice() >= self.limit => Stage::Near,
            () => Stage::Waiting,
        }
    }

    /// How long before records go it is said.
    pub(crate) fn notice(&self) -> Duration {
        NOTICE.min(self.limit / PART)
    }

    /// After how long they go.
    pub(crate) fn limit(&self) -> Duration {
        self.limit
    }

    /// Members whose records go or are gone, and since when.
    pub(crate) fn evicted(&self) -> &BTreeMap<String, Timestamp> {
        &self.evicted
    }

    /// What the Lease says: cluster IDs and seconds. Nothing while that is not known.
    pub(crate) fn annotation(&self) -> Option<String> {
        let word = |(cluster, so_far): (&String, &Duration)| format!("{cluster}={}", so_far.as_secs());
        Some(self.counted.as_ref()?.iter().map(word).collect::<Vec<_>>().join(" "))
    }
}

/// Words that are none of ours say nothing.
fn read(said: &str) -> BTreeMap<String, Duration> {
    let word = |word: &str| {
        let (cluster, seconds) = word.split_once('=')?;
        Some((cluster.to_owned(), Duration::from_secs(seconds.parse::<u32>().ok()?.into())))
    };
    said.split_whitespace().filter_map(word).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVERY: Duration = Duration::from_secs(10);
    const LIMIT: Duration = Duration::from_secs(100);

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    /// Looks every ten seconds, so many times; these are silent. What is counted is not said meanwhile.
    fn look(silences: &mut Silences, from: Instant, times: u32, silent: &[&str]) -> Instant {
        let silent = silent.iter().map(|cluster| (*cluster).to_owned()).collect();
        let heard = Heard { silent, ..Heard::default() };
        for n in 0..times {
            silences.look(Some(&heard), from + EVERY * n, at(n.into()));
        }
        from + EVERY * times
    }

    /// The Lease was renewed, and the watch told of it.
    fn renew(silences: &mut Silences) {
        let said = silences.annotation();
        silences.hear(said.as_deref());
    }

    /// A leader that starts now.
    fn restarted(said: &str) -> Silences {
        let mut silences = Silences::new(LIMIT, EVERY);
        silences.hear(Some(said));
        silences.begin(at(0));
        silences
    }

    #[test]
    fn r58_who_is_silent_for_too_long_is_evicted_and_that_is_said_before() {
        let (mut silences, now) = (Silences::new(LIMIT, EVERY), Instant::now());
        silences.begin(at(0));
        let now = look(&mut silences, now, 8, &["east"]);
        assert_eq!(silences.stage("east"), Stage::Waiting, "70 s");
        let now = look(&mut silences, now, 1, &["east"]);
        assert_eq!((silences.stage("east"), silences.notice()), (Stage::Near, LIMIT / 4));
        assert_eq!(silences.annotation().as_deref(), Some("east=80"));
        let now = look(&mut silences, now, 2, &["east"]);
        renew(&mut silences);
        let now = look(&mut silences, now, 1, &["east"]);
        assert_eq!(silences.stage("east"), Stage::Evicted);
        assert_eq!(silences.evicted().len(), 1);
        assert_eq!(silences.stage("west"), Stage::Waiting);
        let mut writes = restarted("east=100");
        writes.heard("east");
        writes.look(Some(&Heard { silent: ["east".to_owned()].into(), ..Heard::default() }), now, at(1));
        assert_eq!((writes.stage("east"), writes.evicted().len()), (Stage::Waiting, 0), "from the beginning");
        look(&mut silences, now, 1, &[]);
        assert_eq!(
            (silences.stage("east"), silences.evicted().len()),
            (Stage::Waiting, 0),
            "at its first word"
        );
        assert_eq!(silences.annotation().as_deref(), Some(""));
        assert_eq!(Silences::new(Duration::from_secs(86_400), EVERY).notice(), NOTICE);
    }

    #[test]
    fn the_time_of_one_whose_endpoints_answer_begins_when_they_do_not_any_more() {
        let (mut silences, now) = (Silences::new(LIMIT, EVERY), Instant::now());
        silences.begin(at(0));
        let now = look(&mut silences, now, 9, &["east", "west"]);
        let both = ["east", "west"].map(str::to_owned);
        let answering =
            Heard { silent: both.into(), answering: ["east".to_owned()].into(), ..Heard::default() };
        silences.look(Some(&answering), now, at(90));
        assert_eq!((silences.stage("east"), silences.stage("west")), (Stage::Answering, Stage::Near));
        assert_eq!(silences.annotation().as_deref(), Some("west=90"));
        look(&mut silences, now, 2, &["east", "west"]);
        assert_eq!(silences.stage("east"), Stage::Waiting);
        assert_eq!(silences.annotation().as_deref(), Some("east=10 west=100"));

        let mut silences = restarted("east=100");
        silences.look(Some(&answering), now, at(100));
        assert_eq!(silences.stage("east"), Stage::Evicted, "its records are gone");
        assert!(restarted(&silences.annotation().unwrap()).evicted().contains_key("east"));
        silences.look(None, now, at(100));
        let mut silences = Silences::new(LIMIT, EVERY);
        silences.begin(at(0));
        silences.look(Some(&answering), now, at(0));
        silences.look(None, now, at(0));
        assert_eq!(silences.stage("east"), Stage::Waiting, "nobody is heard who says so");
    }

    #[test]
    fn nobody_is_evicted_before_the_lease_says_that_the_time_is_over_so_that_a_restart_forgets_nobody() {
        let (mut silences, now) = (Silences::new(LIMIT, EVERY), Instant::now());
        silences.begin(at(0));
        let now = look(&mut silences, now, 10, &["east"]);
        renew(&mut silences);
        let now = look(&mut silences, now, 2, &["east"]);
        assert_eq!(silences.annotation().as_deref(), Some("east=100"));
        assert!(restarted("east=90").evicted().is_empty(), "what the Lease says yet");
        assert_eq!(
            (silences.stage("east"), silences.evicted().len()),
            (Stage::Near, 0),
            "a restart would forget it"
        );
        renew(&mut silences);
        look(&mut silences, now, 1, &["east"]);
        assert_eq!((silences.stage("east"), silences.evicted().len()), (Stage::Evicted, 1));
        assert!(restarted("east=100").evicted().contains_key("east"));
    }

    #[test]
    fn a_replica_that_takes_over_goes_on_with_what_was_said_last() {
        let (mut silences, now) = (Silences::new(LIMIT, EVERY), Instant::now());
        silences.hear(Some("east=90 west=20"));
        silences.hear(Some("west=100"));
        look(&mut silences, now, 3, &["east", "west"]);
        assert_eq!(silences.annotation(), None, "another one counts");
        silences.begin(at(0));
        assert_eq!(silences.evicted().keys().collect::<Vec<_>>(), ["west"], "imports go on saying it");
        let now = look(&mut silences, now, 2, &["east", "west"]);
        assert_eq!((silences.stage("east"), silences.stage("west")), (Stage::Waiting, Stage::Evicted));
        assert_eq!(silences.annotation().as_deref(), Some("east=10 west=100"));
        look(&mut silences, now, 1, &["east"]);
        assert_eq!(silences.stage("west"), Stage::Waiting);

        let mut silences = Silences::new(LIMIT, EVERY);
        silences.hear(Some("east=90"));
        silences.hear(None);
        silences.begin(at(0));
        assert_eq!(silences.annotation().as_deref(), Some(""), "the Lease is another one now");
    }

    #[test]
    fn time_counts_only_while_the_leader_runs_and_hears() {
        let (mut silences, now) = (Silences::new(LIMIT, EVERY), Instant::now());
        let later = look(&mut silences, now, 20, &["east"]);
        assert_eq!(silences.annotation(), None, "what was counted before is not known");
        silences.hear(Some("east=50 nonsense=x z"));
        silences.begin(at(0));
        silences.hear(Some("east=99"));
        silences.begin(at(0));
        let heard = Heard { unknown: ["east".to_owned()].into(), ..Heard::default() };
        silences.look(Some(&heard), later, at(0));
        assert_eq!(silences.annotation().as_deref(), Some("east=50"), "a restart goes on with it");
        let later = later + LIMIT;
        silences.look(None, later, at(0));
        let now = look(&mut silences, later, 1, &["east"]);
        assert_eq!(silences.annotation().as_deref(), Some("east=50"));
        silences.look(None, now, at(0));
        let now = look(&mut silences, now + LIMIT, 1, &["east"]);
        assert_eq!(silences.annotation().as_deref(), Some("east=50"), "nobody was heard");
        look(&mut silences, now + LIMIT, 1, &["east"]);
        assert_eq!(silences.annotation().as_deref(), Some("east=70"), "stopped for that long");
    }
}
