//! The credential for the leader: replaces the token in its Secret when half of its life is over, one that counts for ever at once, and
//! the authorities when the leader's cluster has others. Reads ConfigMap `kube-root-ca.crt` of the Common Area and that Secret; asks for
//! tokens of our own ServiceAccount; writes the Secret. Safe to run twice: a second token is as good as the first.
//!
//! What is written was proven, and until it is written the one before counts. It is written over what was replaced alone: whoever puts
//! another credential into the Secret meanwhile wins; who always puts the same one back is answered once a minute. The session hears of it
//! by the watch of Secrets, as a replica does that stands by, and goes on ([`Target::goes_on_as`]).
//!
//! | module | holds |
//! |---|---|
//! | [`due`] | when a token is replaced (pure) |
//! | [`authorities`] | which authorities are trusted (pure) |
//! | [`exchange`] | the requests |

mod authorities;
mod due;
mod exchange;

use std::time::{Duration, Instant};

use api::{
    label,
    token::{Claims, Life},
};
use jiff::{SignedDuration, Timestamp};
use kit::{index::Shared, write::Writer};
use presence::lease::Presence;
use tokio::{sync::watch, task::JoinSet, time::sleep};

use self::{
    due::{Pace, is_due, is_short},
    exchange::{Exchange, Hindrance},
};
use crate::{chance::share, feature::Access, identity::Target};

/// Longest time between two looks at the credential.
const LOOK: Duration = Duration::from_secs(60);
/// A credential whose tokens live shorter than an hour is looked at so many times in that life.
const LOOKS: u32 = 60;
/// How long to wait at the most after the leader refused a token: one that does not grant the right is asked once an hour.
const REFUSED: Duration = Duration::from_secs(3600);
/// How often a refused token is asked for again before the one in use expires, if that is in a few hours.
const TRIES: u32 = 8;

/// How it stands with the token for the leader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Renewal {
    /// It counts until then, and is replaced before.
    Renewed { until: Timestamp },
    /// It counts until then, and could not be replaced.
    Failing { until: Timestamp, why: String },
    /// It counts until its account is deleted, and could not be replaced.
    LongLived { why: String },
}

/// What is kept.
#[derive(Clone)]
pub(crate) struct Kept {
    /// Has the credential as the Secret has it now.
    pub(crate) target: watch::Receiver<Target>,
    /// What a token is asked to count.
    pub(crate) token_life: Duration,
}

/// Starts to keep the credential; what is known of it.
pub(super) fn keep(
    access: &Access,
    Kept { target, token_life }: &Kept,
    present: watch::Receiver<Presence>,
    tasks: &mut JoinSet<()>,
) -> Shared<Option<Renewal>> {
    let env = &access.env;
    let writer = Writer::new(env.client.clone(), label::MEMBER, "local", env.metrics.clone());
    let exchange = Exchange { access: access.clone(), writer, life: *token_life };
    let told = Shared::default();
    let keeper = Keeper {
        exchange,
        target: target.clone(),
        told: told.clone(),
        got: None,
        again: Again::resting(look(*token_life)),
        look: look(*token_life),
        share: share(),
    };
    keeper.look_at_token();
    tasks.spawn(keeper.keep(present));
    told
}

struct Keeper {
    exchange: Exchange,
    target: watch::Receiver<Target>,
    told: Shared<Option<Renewal>>,
    /// The last token that this process got, and when.
    got: Option<(String, Instant)>,
    again: Again,
    /// The time between two looks.
    look: Duration,
    /// Our part of the time over which members are spread.
    share: f64,
}

/// When either is tried again.
struct Again {
    token: Pace,
    authorities: Pace,
}

impl Again {
    /// Neither is written twice within `rest`.
    fn resting(rest: Duration) -> Self {
        Self { token: Pace::resting(rest), authorities: Pace::resting(rest) }
    }

    /// The Secret has something else, or the leader takes our Lease again.
    fn changed(&mut self) {
        self.token.changed();
        self.authorities.changed();
    }
}

/// Whether the leader is asked. Also while it does not take our Lease: that may last, and the token ends.
fn may_ask(now: &Presence) -> bool {
    now.is_held() || matches!(now, Presence::Failing { .. })
}

impl Keeper {
    /// Until the session ends.
    async fn keep(mut self, mut present: watch::Receiver<Presence>) {
        let (hold, mut was_held) = (self.exchange.access.env.hold.clone(), false);
        loop {
            let may = async {
                hold.active().await;
                present.wait_for(may_ask).await.ok().map(|now| now.is_held())
            };
            let is_held = tokio::select! {
                is_held = may => is_held,
                Ok(()) = self.target.changed() => {
                    self.look_at_token();
                    continue;
                }
            };
            let Some(is_held) = is_held else { return };
            if is_held && !was_held {
                // What the leader refused while it took no Lease says nothing of what it grants.
                self.again.changed();
            }
            was_held = is_held;
            self.look(is_held).await;
            tokio::select! {
                () = sleep(self.look) => {}
                // Who has changed it may have changed what is granted.
                Ok(()) = self.target.changed() => self.again.changed(),
            }
            self.look_at_token();
        }
    }

    async fn look(&mut self, is_held: bool) {
        let target = self.target.borrow_and_update().clone();
        // What is written changes the target, of which the watch tells: then it is looked again.
        if !(is_held && self.replace_authorities(&target).await) {
            self.replace_token(&target, is_held).await;
        }
    }

    /// Tells what can be told of the token without asking anybody.
    fn look_at_token(&self) {
        let target = self.target.borrow();
        let claims = target.token().and_then(Claims::of).unwrap_or_default();
        let until = claims.life.map_or(0, |life| life.expires.as_second());
        self.exchange.access.env.metrics.credential_expires(until);
        if let Some(life) = claims.life.filter(|life| !self.is_due(&target, life)) {
            self.tell(Renewal::Renewed { until: life.expires });
        }
    }

    fn tell(&self, renewal: Renewal) {
        let renewal = Some(renewal);
        if self.told.with(|told| std::mem::replace(told, renewal.clone()) != renewal) {
            self.exchange.access.changed.notify_one();
        }
    }

    /// The time at the leader, as far as it is known.
    fn now(&self) -> Timestamp {
        let ahead = self.exchange.access.leases.with(|leases| leases.skew()).unwrap_or_default();
        let now = Timestamp::now();
        now.checked_add(SignedDuration::from_secs(ahead)).unwrap_or(now)
    }

    fn is_due(&self, target: &Target, life: &Life) -> bool {
        let got = self.got.as_ref().filter(|(token, _)| target.token() == Some(token.as_str()));
        is_due(life, self.now(), got.map(|(_, at)| at.elapsed()), self.share)
    }

    /// Replaces the token, if it is time.
    async fn replace_token(&mut self, target: &Target, is_held: bool) {
        let Some(claims) = target.token().and_then(Claims::of) else { return };
        let Some(account) = claims.account else { return };
        // One that never ends can wait: before we were present it is not known whose leader it is.
        let stays = claims.life.as_ref().map_or(!is_held, |life| !self.is_due(target, life));
        if stays || self.again.token.waits(Instant::now()) {
            return;
        }
        let replaced = match self.exchange.token(target, &account).await {
            Ok((proven, life)) => {
                // Noted first: the watch may tell of it before the answer comes.
                self.got = proven.token().map(|token| (token.to_owned(), Instant::now()));
                self.exchange.write(&proven).await.map(|()| life)
            }
            Err(hindrance) => Err(hindrance),
        };
        let (why, is_refused) = match replaced {
            Ok(life) => {
                self.again.token.written(Instant::now());
                return tracing::info!(until = %life.expires, "the token for the leader was replaced");
            }
            Err(Hindrance::Changed) => return,
            Err(Hindrance::Refused(why)) => (why, true),
            Err(Hindrance::Failed(why)) => (why, false),
        };
        let left = claims.life.as_ref().map(|life| life.expires.duration_since(self.now()));
        if is_refused {
            self.again.token.refused(Instant::now() + refused_until(left));
        }
        tracing::info!(why, "the token for the leader could not be replaced");
        self.tell(kept(claims.life.as_ref(), self.now(), why, is_refused));
    }

    /// Replaces the authorities, if the leader's cluster has others; whether it did.
    async fn replace_authorities(&mut self, target: &Target) -> bool {
        let account = target.token().and_then(Claims::of).and_then(|claims| claims.account);
        let Some(account) = account else { return false };
        if self.again.authorities.waits(Instant::now()) {
            return false;
        }
        let replaced = match self.exchange.authorities(target, &account).await {
            Ok(Some(proven)) => self.exchange.write(&proven).await.map(|()| true),
            Ok(None) => Ok(false),
            Err(hindrance) => Err(hindrance),
        };
        match replaced {
            Ok(false) | Err(Hindrance::Changed) => false,
            Ok(true) => {
                self.again.authorities.written(Instant::now());
                tracing::info!("the authorities of the leader's cluster were replaced");
                true
            }
            Err(Hindrance::Failed(why)) => {
                tracing::debug!(why, "the authorities of the leader's cluster are not known");
                false
            }
            Err(Hindrance::Refused(why)) => {
                self.again.authorities.refused(Instant::now() + REFUSED);
                tracing::debug!(why, "the authorities of the leader's cluster stay as they are known");
                false
            }
        }
    }
}

/// Returns the time between two looks at a credential whose tokens live for `life`.
fn look(life: Duration) -> Duration {
    (life / LOOKS).min(LOOK)
}

/// How it stands with a token that could not be replaced. What may be over soon is not said before it gets late.
fn kept(life: Option<&Life>, now: Timestamp, why: String, is_refused: bool) -> Renewal {
    match life {
        None => Renewal::LongLived { why },
        Some(life) if is_refused || is_short(life, now) => Renewal::Failing { until: life.expires, why },
        Some(life) => Renewal::Renewed { until: life.expires },
    }
}

/// How long to wait after the leader refused a token, while the one in use has so much time left. `None`: it never expires.
fn refused_until(left: Option<SignedDuration>) -> Duration {
    let part = left.map_or(REFUSED, |left| Duration::try_from(left).unwrap_or_default() / TRIES);
    part.clamp(LOOK, REFUSED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_token_is_looked_at_more_often() {
        let secs = |life| look(Duration::from_secs(life)).as_secs();
        assert_eq!((secs(24 * 3600), secs(3600), secs(600)), (60, 60, 10));
    }

    #[test]
    fn what_was_refused_is_tried_again_before_a_short_token_ends() {
        let after = |left: Option<i64>| refused_until(left.map(SignedDuration::from_secs)).as_secs();
        assert_eq!((after(None), after(Some(12 * 3600)), after(Some(1800))), (3600, 3600, 225));
        assert_eq!((after(Some(300)), after(Some(-5))), (60, 60));
    }

    #[test]
    fn a_leader_that_does_not_answer_for_a_while_is_no_problem_and_one_that_refuses_is() {
        let at = |hour: i64| Timestamp::from_second(1_800_000_000 + 3600 * hour).unwrap();
        let life = Life { issued: at(0), expires: at(24) };
        let kept = |life, hour, is_refused| kept(life, at(hour), "why".into(), is_refused);
        let failing = Renewal::Failing { until: at(24), why: "why".into() };
        assert_eq!(kept(Some(&life), 13, false), Renewal::Renewed { until: at(24) });
        assert_eq!(kept(Some(&life), 13, true), failing);
        assert_eq!(kept(Some(&life), 19, false), failing);
        assert_eq!(kept(None, 1, false), Renewal::LongLived { why: "why".into() });
    }
}
