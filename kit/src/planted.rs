//! Defects that a test puts into a daemon: a chaos run that does not find them proves nothing. A build without debug assertions, as images
//! hold it, has none of them.

use std::{
    env,
    sync::{
        LazyLock,
        atomic::{AtomicU64, Ordering},
    },
};

/// Names the defect of this process.
pub const VARIABLE: &str = "FREEPORT_PLANTED";

/// Of so many changes that watches tell, one is lost.
const LOST: u64 = 9;

static PLANTED: LazyLock<Option<Defect>> =
    LazyLock::new(|| env::var(VARIABLE).ok().and_then(|name| Defect::named(&name)));
static TOLD: AtomicU64 = AtomicU64::new(0);

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
}

impl Defect {
    /// Each of them.
    pub const ALL: [Self; 4] = [Self::LostEvent, Self::SkippedVouch, Self::WrongDelete, Self::StaleEndpoint];

    /// Its name in [`VARIABLE`].
    pub fn name(self) -> &'static str {
        match self {
            Self::LostEvent => "lost-event",
            Self::SkippedVouch => "skipped-vouch",
            Self::WrongDelete => "wrong-delete",
            Self::StaleEndpoint => "stale-endpoint",
        }
    }

    fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|defect| defect.name() == name)
    }

    /// Whether this process has it.
    pub fn is_planted(self) -> bool {
        cfg!(debug_assertions) && *PLANTED == Some(self)
    }
}

/// Whether a change that a watch tells is lost.
pub fn is_lost() -> bool {
    Defect::LostEvent.is_planted() && TOLD.fetch_add(1, Ordering::Relaxed) % LOST == LOST - 1
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
}
