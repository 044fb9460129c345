//! Which authorities and which leaf there are to be. Pure: the time and the keys come in.
//!
//! Whoever asks the webhook trusts what the configuration has, so a leaf is only issued by an authority that the configuration has
//! had for a while. An authority that is replaced issues nothing more, and stays trusted until its last leaf has expired.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use rcgen::KeyPair;

use super::{
    issue::{self, Certificate, Error, can_issue},
    stored::{Key, Stored},
};

/// For so long the configuration has to have an authority before a leaf of it replaces one that works: API servers hear of a change a
/// moment later.
const SETTLE: SignedDuration = SignedDuration::from_secs(10);
/// How often is looked at least.
const LOOK_EVERY: SignedDuration = SignedDuration::from_hours(1);
/// How soon is looked at most.
const LOOK_AGAIN: SignedDuration = SignedDuration::from_secs(1);

/// How long certificates count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lifetimes {
    /// Of an authority.
    pub(crate) authority: Duration,
    /// Of a leaf. No leaf outlives its authority.
    pub(crate) leaf: Duration,
}

/// Who is trusted by those who ask the webhook.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Trusted {
    /// The authorities in the configuration.
    pub(super) authorities: Vec<Certificate>,
    /// Since when the configuration has them.
    pub(super) since: Timestamp,
}

/// Under which names the webhook is asked, and what there is.
#[derive(Clone, Copy)]
pub(super) struct Now<'a> {
    /// The time.
    pub(super) at: Timestamp,
    /// How long what is made shall count.
    pub(super) lifetimes: Lifetimes,
    /// The names of the webhook: host names, or addresses.
    pub(super) names: &'a [String],
    /// Who is trusted.
    pub(super) trusted: &'a Trusted,
}

impl Now<'_> {
    /// What the Secret is to hold, given what it holds: the same where nothing is to be done. Keys are made by `generate`.
    pub(super) fn next(
        self,
        stored: &Stored,
        generate: impl Fn() -> Result<KeyPair, rcgen::Error>,
    ) -> Result<Stored, Error> {
        let mut next = stored.clone();
        self.take_over(&mut next);
        let key = match self.issuer_key(&next) {
            Some(key) => key,
            None => self.replace_issuer(&mut next, generate()?)?,
        };
        self.retire(&mut next);
        if let Some((issuer, _)) = &next.issuer
            && self.may_replace_leaf(issuer, &next)
        {
            let of = generate()?;
            let leaf = issue::leaf((issuer, &key), &of, self.names, self.at, self.leaf_lifetime())?;
            next.leaf = Some((leaf, Key(of.serialize_pem())));
        }
        Ok(next)
    }

    /// Authorities that are trusted and that the Secret does not know, because it was lost: a leaf of theirs may be served still.
    fn take_over(self, next: &mut Stored) {
        if next.issuer.is_some() {
            return;
        }
        let unknown = self.trusted.authorities.iter();
        let unknown = unknown.filter(|trusted| next.authorities().all(|known| known.der != trusted.der));
        let unknown: Vec<_> = unknown.map(|authority| (authority.clone(), None)).collect();
        next.retiring.extend(unknown);
    }

    /// The key of who issues, as long as that one issues on.
    fn issuer_key(self, next: &Stored) -> Option<KeyPair> {
        let (issuer, Key(key)) = next.issuer.as_ref()?;
        let key = KeyPair::from_pem(key).ok()?;
        (!self.is_due(issuer, self.lifetimes.authority) && can_issue(issuer, &key, self.at)).then_some(key)
    }

    fn replace_issuer(self, next: &mut Stored, key: KeyPair) -> Result<KeyPair, Error> {
        let issuer = issue::authority(&key, self.at, self.lifetimes.authority)?;
        let before = next.issuer.replace((issuer, Key(key.serialize_pem())));
        next.retiring.extend(before.map(|(issuer, _)| (issuer, None)));
        Ok(key)
    }

    /// Notes when those go that issue no more, and lets those go whose time has come.
    fn retire(self, next: &mut Stored) {
        let served = next.leaf.as_ref().map(|(leaf, _)| leaf.validity.until);
        let last = self.at.checked_add(self.leaf_lifetime()).unwrap_or(Timestamp::MAX);
        let last = served.map_or(last, |served| served.max(last));
        for (authority, until) in &mut next.retiring {
            *until = Some(until.unwrap_or(last).min(authority.validity.until));
        }
        next.retiring.retain(|(_, until)| until.is_some_and(|until| until > self.at));
    }

    /// Whether the leaf is to be replaced, and one of this authority would be accepted.
    fn may_replace_leaf(self, issuer: &Certificate, next: &Stored) -> bool {
        let trusted = &self.trusted.authorities;
        // Where nobody else is trusted, no other leaf can work, so nothing is gained by waiting.
        let has_settled =
            self.at >= self.settled() || (trusted.len() == 1 && !self.is_leaf_accepted(next, trusted));
        let is_trusted = trusted.iter().any(|authority| authority.der == issuer.der);
        is_trusted && has_settled && self.is_leaf_due(next, trusted)
    }

    fn is_leaf_due(self, stored: &Stored, trusted: &[Certificate]) -> bool {
        let is_due = |leaf| self.is_due(leaf, self.leaf_lifetime());
        !self.is_leaf_accepted(stored, trusted) || stored.leaf.as_ref().is_some_and(|(leaf, _)| is_due(leaf))
    }

    fn is_leaf_accepted(self, stored: &Stored, trusted: &[Certificate]) -> bool {
        stored.leaf.as_ref().is_some_and(|(leaf, _)| leaf.is_accepted(trusted, self.names, self.at))
    }

    /// By then API servers have heard who is trusted.
    fn settled(self) -> Timestamp {
        let twelfth = SignedDuration::try_from(self.leaf_lifetime() / 12).unwrap_or(SETTLE);
        self.trusted.since.checked_add(SETTLE.min(twelfth)).unwrap_or(Timestamp::MAX)
    }

    /// Whether two thirds of the lifetime are over; also, where it is to count for longer than is wanted now.
    fn is_due(self, certificate: &Certificate, lifetime: Duration) -> bool {
        let most =
            SignedDuration::try_from(lifetime.saturating_add(lifetime / 10)).unwrap_or(SignedDuration::MAX);
        self.at >= due(certificate, lifetime)
            || !certificate.counts(self.at)
            || certificate.remaining(self.at) > most
    }

    fn leaf_lifetime(self) -> Duration {
        self.lifetimes.leaf.min(self.lifetimes.authority)
    }

    /// For how long nothing is to be done if nothing happens.
    pub(super) fn wait(self, stored: &Stored) -> Duration {
        let issuer = stored.issuer.iter().map(|(issuer, _)| due(issuer, self.lifetimes.authority));
        let leaf = stored.leaf.as_ref().map_or(self.at, |(leaf, _)| due(leaf, self.leaf_lifetime()));
        let retiring = stored.retiring.iter().filter_map(|(_, until)| *until);
        let first = issuer.chain([leaf.max(self.settled())]).chain(retiring).min().unwrap_or(self.at);
        let wait = first.duration_since(self.at).clamp(LOOK_AGAIN, LOOK_EVERY);
        Duration::try_from(wait).unwrap_or_default()
    }
}

/// When two thirds of the lifetime are over.
fn due(certificate: &Certificate, lifetime: Duration) -> Timestamp {
    certificate.validity.until.checked_sub(lifetime / 3).unwrap_or(Timestamp::MIN)
}

#[cfg(test)]
mod tests;
