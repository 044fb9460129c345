//! The guard against late news of objects: of each the version that is known, and what was deleted.

use std::collections::{HashMap, HashSet};

use kube::Resource;

use super::{ObjectName, by_name::ByName, name, version};
use crate::planted::Defect;

/// What identifies a version of an object.
pub(crate) struct Tag {
    name: ObjectName,
    version: u64,
    uid: Option<Uid>,
}

impl Tag {
    pub(crate) fn of<P: Resource>(object: &P) -> Self {
        Self { name: name(object), version: version(object), uid: uid(object) }
    }
}

/// What is kept of each object of one kind, and the guard against late news of it.
pub(crate) struct Guard<T> {
    known: ByName<Known<T>>,
    /// Highest resourceVersion that the watch has told of since its last list.
    seen: u64,
    /// How many lists it has told.
    lists: u64,
    /// uids of objects that we deleted and the watch still has to tell of.
    deleted: HashMap<ObjectName, Uid>,
}

struct Known<T> {
    version: u64,
    uid: Option<Uid>,
    value: T,
}

/// The version of an object that a list under way has not told of yet: older than all that it may tell.
const UNTOLD: u64 = 0;

impl<T> Default for Guard<T> {
    fn default() -> Self {
        Self { known: ByName::default(), seen: 0, lists: 0, deleted: HashMap::new() }
    }
}

impl<T> Guard<T> {
    pub(crate) fn len(&self) -> usize {
        self.known.len()
    }

    pub(crate) fn get(&self, name: &ObjectName) -> Option<&T> {
        self.known.get(name).map(|known| &known.value)
    }

    /// The first Namespace with something.
    pub(super) fn first_namespace(&self) -> Option<&str> {
        self.known.first()
    }

    /// All of it, by Namespace and name.
    pub(super) fn values(&self) -> impl Iterator<Item = &T> {
        self.known.values().map(|known| &known.value)
    }

    /// What is kept of one Namespace, by name.
    pub(super) fn within(&self, namespace: &str) -> impl Iterator<Item = &T> {
        self.known.within(namespace).map(|known| &known.value)
    }

    /// The version of the object of that name, 0 without one.
    #[cfg(test)]
    pub(crate) fn version_of(&self, name: &ObjectName) -> u64 {
        self.known.get(name).map_or(0, |known| known.version)
    }

    /// The watch has come to this version.
    pub(crate) fn see(&mut self, version: u64) {
        self.seen = self.seen.max(version);
    }

    /// How many lists the watch has told.
    pub(crate) fn lists(&self) -> u64 {
        self.lists
    }

    /// Whether an answer to a write of ours, which began when the watch had told so many `lists`, is newer than all that the watch told.
    ///
    /// A list says neither its own version nor what was deleted before it, and after a restore the version of the answer means nothing.
    /// So an answer that a list has overtaken does not count: what it says is in the list, or the watch tells it next.
    pub(crate) fn is_news<P: Resource>(&self, answer: &P, lists: u64) -> bool {
        lists == self.lists && version(answer) > self.seen
    }

    /// Whether the object that was read, when the watch had told so many `lists`, is one that the watch told of and that is not gone since.
    pub(crate) fn is_still<P: Resource>(&self, object: &P, lists: u64) -> bool {
        lists == self.lists && self.known.get(&name(object)).is_some_and(|known| known.uid == uid(object))
    }

    /// Whether this is no late news.
    pub(crate) fn admits<P: Resource>(&self, object: &P) -> bool {
        if Defect::LateNews.is_planted() {
            return true;
        }
        let name = name(object);
        let is_deleted = self.deleted.get(&name).is_some_and(|deleted| uid(object).as_ref() == Some(deleted));
        !is_deleted && self.known.get(&name).is_none_or(|known| known.version <= version(object))
    }

    pub(crate) fn insert(&mut self, tag: Tag, value: T) {
        self.known.insert(tag.name, Known { version: tag.version, uid: tag.uid, value });
    }

    /// Forgets an object, by its name alone.
    pub(crate) fn forget(&mut self, name: &ObjectName) -> Option<T> {
        self.known.remove(name).map(|known| known.value)
    }

    /// The watch told that the object is gone. A deletion that is older than what we know was of another object of that name, which
    /// we have replaced since.
    pub(crate) fn remove<P: Resource>(&mut self, object: &P) -> Option<T> {
        let (name, version) = (name(object), version(object));
        self.see(version);
        self.deleted.remove(&name);
        if self.known.get(&name).is_some_and(|known| known.version > version) {
            return None;
        }
        self.forget(&name)
    }

    /// The API server deleted the object at our request: what a watch on its way still says of it is late.
    pub(crate) fn deleted<P: Resource>(&mut self, object: &P) -> Option<T> {
        let name = name(object);
        if self.known.get(&name).is_none_or(|known| known.uid != uid(object)) {
            return None;
        }
        self.deleted.extend(uid(object).map(|uid| (name.clone(), uid)));
        self.forget(&name)
    }

    /// These are all objects there are. What was kept of the others. After a list nothing older counts, not even higher
    /// resourceVersions: the API server may have been restored.
    pub(crate) fn reset<P: Resource>(&mut self, objects: &[P]) -> Vec<(ObjectName, T)> {
        self.seen = 0;
        self.lists += 1;
        self.reset_within(|_| true, objects)
    }

    /// A list begins whose objects are told one by one. As after a [`reset`](Self::reset) nothing older counts; what is kept stays
    /// until the list [`ends`](Self::list_ends).
    pub(crate) fn list_begins(&mut self) {
        self.seen = 0;
        self.lists += 1;
        self.deleted.clear();
        self.known.values_mut().for_each(|known| known.version = UNTOLD);
    }

    /// The list was all. What was kept of objects that nobody has told of since it began.
    pub(crate) fn list_ends(&mut self) -> Vec<(ObjectName, T)> {
        self.take_out(|_, known| known.version == UNTOLD)
    }

    /// [`reset`](Self::reset) of those objects whose names are `within` what one of several watches covers: `objects` are all of them.
    pub(crate) fn reset_within<P: Resource>(
        &mut self,
        within: impl Fn(&ObjectName) -> bool,
        objects: &[P],
    ) -> Vec<(ObjectName, T)> {
        let live: HashSet<ObjectName> = objects.iter().map(name).collect();
        self.see(objects.iter().map(version).max().unwrap_or(0));
        self.deleted.retain(|name, _| !within(name));
        let gone = self.take_out(|name, _| within(name) && !live.contains(name));
        for name in live.iter().filter(|name| within(name)) {
            self.known.get_mut(name).into_iter().for_each(|known| known.version = UNTOLD);
        }
        gone
    }

    fn take_out(&mut self, goes: impl Fn(&ObjectName, &Known<T>) -> bool) -> Vec<(ObjectName, T)> {
        self.known.take_out(goes).into_iter().map(|(name, known)| (name, known.value)).collect()
    }
}

/// The uid of an object. Of most objects of a cluster little else is kept, so that it should take little room.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Uid {
    /// As API servers make them: 32 digits in five groups.
    Digits([u8; 16]),
    Text(Box<str>),
}

fn uid<P: Resource>(object: &P) -> Option<Uid> {
    let text = object.meta().uid.as_deref()?;
    Some(digits(text).map_or_else(|| Uid::Text(text.into()), Uid::Digits))
}

/// The bytes of the number that is written so, and in no other way.
fn digits(text: &str) -> Option<[u8; 16]> {
    let is_hyphen = |at: usize| matches!(at, 8 | 13 | 18 | 23);
    let fits = text.len() == 36
        && text.bytes().enumerate().all(|(at, byte)| match is_hyphen(at) {
            true => byte == b'-',
            false => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
        });
    u128::from_str_radix(&text.replace('-', ""), 16).ok().filter(|_| fits).map(u128::to_be_bytes)
}

#[cfg(test)]
mod tests {
    use super::digits;

    #[test]
    fn no_two_uids_are_the_same_number() {
        let uid = "00000000-0000-4000-8000-00000000000a";
        assert_eq!(digits(uid), Some(0x4000_8000_0000_0000_000a_u128.to_be_bytes()));
        for other in [
            &uid.to_uppercase(),
            &uid.replace('-', "0"),
            &uid[1..],
            "+0000000-0000-4000-8000-00000000000a",
            "",
        ] {
            assert_eq!(digits(other), None, "{other}");
        }
    }
}
