//! Defects that a test puts into a daemon: a chaos run that does not find them proves nothing. A process has one by its environment, a thread by
//! [`plant`]: a simulation is one thread. A build without debug assertions, as images hold it, has none of them.

use std::{cell::Cell, env, sync::LazyLock};

/// Names the defect of this process.
pub const VARIABLE: &str = "FREEPORT_PLANTED";

/// Of so many changes that watches tell, one is lost.
const LOST: u64 = 9;

static PLANTED: LazyLock<Option<Defect>> =
    LazyLock::new(|| env::var(VARIABLE).ok().and_then(|name| Defect::named(&name)));

thread_local! {
    static OF_THREAD: Cell<Option<Defect>> = const { Cell::new(None) };
    /// Changes that watches of this thread told while [`Defect::LostEvent`] was planted.
    static TOLD: Cell<u64> = const { Cell::new(0) };
}

/// What is wrong with a daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Defect {
    /// A change that a watch tells is lost now and then.
    LostEvent,
    /// An absence is believed though nobody vouches for it.
    SkippedVouch,
    /// An import is deleted when one of its exporters withdraws, though others still export.
    WrongDelete,
    /// That there are fewer endpoints is not written.
    StaleEndpoint,
    /// One renewal of a Lease confirms an absence.
    OneRenewal,
    /// What a watch tells counts, though an answer to a write has told newer news.
    LateNews,
    /// An export is ready as soon as its record is written.
    EarlyReady,
}

impl Defect {
    /// Each of them.
    pub const ALL: [Self; 7] = [
        Self::LostEvent,
        Self::SkippedVouch,
        Self::WrongDelete,
        Self::StaleEndpoint,
        Self::OneRenewal,
        Self::LateNews,
        Self::EarlyReady,
    ];

    /// Those that a few chaos runs of real programs find.
    pub const COARSE: [Self; 4] =
        [Self::LostEvent, Self::SkippedVouch, Self::WrongDelete, Self::StaleEndpoint];

    /// Its name in [`VARIABLE`].
    pub fn name(self) -> &'static str {
        match self {
            Self::LostEvent => "lost-event",
            Self::SkippedVouch => "skipped-vouch",
            Self::WrongDelete => "wrong-delete",
            Self::StaleEndpoint => "stale-endpoint",
            Self::OneRenewal => "one-renewal",
            Self::LateNews => "late-news",
            Self::EarlyReady => "early-ready",
        }
    }

    /// The defect of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|defect| defect.name() == name)
    }

    /// Whether this process or this thread has it.
    pub fn is_planted(self) -> bool {
        cfg!(debug_assertions) && (OF_THREAD.get() == Some(self) || *PLANTED == Some(self))
    }
}

/// Plants a defect in the daemons that run on this thread, or none any more.
pub fn plant(defect: Option<Defect>) {
    OF_THREAD.set(defect);
    TOLD.set(0);
}

/// Whether a change that a watch tells is lost.
pub fn is_lost() -> bool {
    if !Defect::LostEvent.is_planted() {
        return false;
    }
    TOLD.set(TOLD.get() + 1);
    TOLD.get().is_multiple_of(LOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_a_name_of_its_own_and_none_is_planted_unasked() {
        for defect in Defect::ALL {
            assert_eq!(Defect::named(defect.name()), Some(defect));
            assert!(!defect.is_planted());
        }
        assert_eq!(Defect::named("none"), None);
        assert!((0..2 * LOST).all(|_| !is_lost()));
    }

    #[test]
    fn a_thread_has_the_defect_that_is_planted_in_it() {
        plant(Some(Defect::LostEvent));
        assert!(Defect::LostEvent.is_planted() && !Defect::WrongDelete.is_planted());
        assert_eq!((0..2 * LOST).filter(|_| is_lost()).count(), 2);
        let elsewhere = std::thread::spawn(|| Defect::LostEvent.is_planted());
        assert_eq!(elsewhere.join().ok(), Some(false));
        plant(None);
        assert!(!is_lost());
    }
}
