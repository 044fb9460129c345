//! When something was heard: silence of others counts only in a time in which we would have heard them. Pure.

use std::time::{Duration, Instant};

/// When Leases were heard: by watches, or by what the leader tells.
pub(crate) struct Contact {
    /// After so long without a word nobody is heard.
    pub(crate) patience: Duration,
    /// When anything was heard last.
    pub(crate) last: Option<Instant>,
    /// Since when something is heard without a long break.
    pub(crate) since: Option<Instant>,
}

impl Contact {
    pub(crate) fn new(patience: Duration) -> Self {
        Self { patience, last: None, since: None }
    }

    /// Something is heard. For how long it was deaf, if it was.
    pub(crate) fn hear(&mut self, now: Instant) -> Option<Duration> {
        let quiet = self.last.replace(now).map(|last| now.saturating_duration_since(last));
        let deaf = quiet.filter(|quiet| *quiet >= self.patience);
        self.since = self.since.filter(|_| deaf.is_none()).or(Some(now));
        deaf
    }

    pub(crate) fn hears(&self, now: Instant) -> bool {
        self.last.is_some_and(|last| now.saturating_duration_since(last) < self.patience)
    }
}
