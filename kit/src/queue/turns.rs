//! Keys that are due, by whose they are: each party has its turn, so that who has many keys does not make others wait. Pure.

use std::{
    collections::{HashMap, VecDeque},
    hash::{DefaultHasher, Hash, Hasher},
};

/// Whose a key is. It only tells apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Party(u64);

impl Party {
    /// Of nobody in particular.
    pub const NOBODY: Self = Self(0);

    /// Of all of them together.
    pub fn of<T: Hash>(members: impl IntoIterator<Item = T>) -> Self {
        let mut hasher = DefaultHasher::new();
        members.into_iter().for_each(|member| member.hash(&mut hasher));
        Self(hasher.finish())
    }
}

/// What waits for its turn.
pub(super) struct Turns<T> {
    /// Parties with something that waits; the first is next.
    order: VecDeque<Party>,
    /// None is empty.
    waiting: HashMap<Party, VecDeque<T>>,
}

impl<T> Turns<T> {
    pub(super) fn new() -> Self {
        Self { order: VecDeque::new(), waiting: HashMap::new() }
    }

    pub(super) fn put(&mut self, party: Party, one: T) {
        let waiting = self.waiting.entry(party).or_default();
        if waiting.is_empty() {
            self.order.push_back(party);
        }
        waiting.push_back(one);
    }

    pub(super) fn take(&mut self) -> Option<T> {
        let party = self.order.pop_front()?;
        let waiting = self.waiting.get_mut(&party)?;
        let next = waiting.pop_front();
        if waiting.is_empty() {
            self.waiting.remove(&party);
        } else {
            self.order.push_back(party);
        }
        next
    }

    /// What [`take`](Self::take) would take.
    pub(super) fn first(&self) -> Option<&T> {
        self.waiting.get(self.order.front()?)?.front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_little_does_not_wait_for_who_has_much() {
        let mut turns = Turns::new();
        let (much, little) = (Party::of(["much"]), Party::of(["little"]));
        (0..100).for_each(|number| turns.put(much, number));
        turns.put(little, 1000);
        assert_eq!([turns.take(), turns.take(), turns.take()], [Some(0), Some(1000), Some(1)]);
        turns.put(little, 1001);
        let rest: Vec<_> = std::iter::from_fn(|| turns.take()).collect();
        assert_eq!((rest.len(), rest[1]), (99, 1001));
        assert_eq!(turns.first(), None);
    }
}
