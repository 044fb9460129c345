//! Authorities that a Secret of somebody else held a moment ago: kubelets mount what it holds now a while later, and until then the webhook
//! serves a leaf of one of those. Pure.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::issue::Certificate;

/// By then kubelets have mounted what a Secret holds.
const MOUNTED: SignedDuration = SignedDuration::from_mins(3);

/// Who was trusted before, as far as this process has seen.
#[derive(Default)]
pub(super) struct Before {
    last: Vec<Certificate>,
    /// With the time until which they are trusted.
    leaving: Vec<(Certificate, Timestamp)>,
}

impl Before {
    /// The Secret holds these now.
    pub(super) fn see(&mut self, authorities: Vec<Certificate>, now: Timestamp) {
        let until = now.checked_add(MOUNTED).unwrap_or(Timestamp::MAX);
        let before = std::mem::replace(&mut self.last, authorities);
        self.leaving.extend(before.into_iter().map(|authority| (authority, until)));
        let holds = |known: &[Certificate], one: &Certificate| known.iter().any(|it| it.der == one.der);
        self.leaving.retain(|(authority, until)| {
            now < *until && authority.counts(now) && !holds(&self.last, authority)
        });
    }

    /// Who is trusted beside these, as PEM.
    pub(super) fn bundle(&self) -> String {
        self.leaving.iter().map(|(authority, _)| authority.pem.as_str()).collect()
    }

    /// For how long that stays so.
    pub(super) fn wait(&self, now: Timestamp) -> Option<Duration> {
        let first = self.leaving.iter().map(|(_, until)| *until).min()?;
        Some(Duration::try_from(first.duration_since(now)).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use rcgen::KeyPair;

    use super::{super::issue::authority, *};

    #[test]
    fn who_was_trusted_is_trusted_until_what_is_new_is_mounted() {
        let start = Timestamp::now();
        let at = |seconds| start.checked_add(SignedDuration::from_secs(seconds)).unwrap();
        let made = |lifetime| {
            authority(&KeyPair::generate().unwrap(), start, Duration::from_secs(lifetime)).unwrap()
        };
        let (old, new, short) = (made(3600), made(3600), made(60));
        let mut before = Before::default();
        before.see(vec![old.clone(), short], start);
        assert_eq!((before.bundle(), before.wait(start)), (String::new(), None));
        before.see(vec![new.clone()], at(10));
        assert!(before.bundle().contains(&old.pem));
        assert_eq!(before.wait(at(10)), Some(Duration::from_secs(180)));
        before.see(vec![new.clone()], at(100));
        assert_eq!(before.bundle(), old.pem, "the other one has expired");
        before.see(vec![new.clone(), old.clone()], at(110));
        assert_eq!(before.bundle(), "", "it is there again");
        before.see(vec![new.clone()], at(120));
        before.see(vec![new], at(300));
        assert_eq!((before.bundle(), before.wait(at(300))), (String::new(), None));
    }
}
