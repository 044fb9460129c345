//! A map by Namespace and name. Of most objects of a cluster it is nearly all that a daemon keeps, so a Namespace is there once and not
//! once for each object.

use std::collections::BTreeMap;

use super::ObjectName;

/// Values by Namespace (empty for cluster-wide kinds) and name, in that order. No Namespace in it is empty.
pub(super) struct ByName<T>(BTreeMap<Box<str>, BTreeMap<Box<str>, T>>);

impl<T> Default for ByName<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<T> ByName<T> {
    pub(super) fn len(&self) -> usize {
        self.0.values().map(BTreeMap::len).sum()
    }

    pub(super) fn get(&self, (namespace, name): &ObjectName) -> Option<&T> {
        self.0.get(namespace.as_str())?.get(name.as_str())
    }

    pub(super) fn get_mut(&mut self, (namespace, name): &ObjectName) -> Option<&mut T> {
        self.0.get_mut(namespace.as_str())?.get_mut(name.as_str())
    }

    pub(super) fn insert(&mut self, (namespace, name): ObjectName, value: T) {
        self.0.entry(namespace.into()).or_default().insert(name.into(), value);
    }

    pub(super) fn remove(&mut self, (namespace, name): &ObjectName) -> Option<T> {
        let there = self.0.get_mut(namespace.as_str())?;
        let removed = there.remove(name.as_str());
        if there.is_empty() {
            self.0.remove(namespace.as_str());
        }
        removed
    }

    /// The first Namespace.
    pub(super) fn first(&self) -> Option<&str> {
        self.0.first_key_value().map(|(namespace, _)| &**namespace)
    }

    pub(super) fn values(&self) -> impl Iterator<Item = &T> {
        self.0.values().flat_map(BTreeMap::values)
    }

    /// Those of one Namespace, by name.
    pub(super) fn within(&self, namespace: &str) -> impl Iterator<Item = &T> {
        self.0.get(namespace).into_iter().flat_map(BTreeMap::values)
    }

    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.0.values_mut().flat_map(BTreeMap::values_mut)
    }

    /// Takes out those that `goes` says.
    pub(super) fn take_out(&mut self, mut goes: impl FnMut(&ObjectName, &T) -> bool) -> Vec<(ObjectName, T)> {
        let mut taken = Vec::new();
        for (namespace, there) in &mut self.0 {
            let mut full = (String::from(&**namespace), String::new());
            let of_those = there.extract_if(.., |name, value| {
                full.1.clear();
                full.1.push_str(name);
                goes(&full, value)
            });
            taken.extend(
                of_those.map(|(name, value)| ((String::from(&**namespace), String::from(name)), value)),
            );
        }
        self.0.retain(|_, there| !there.is_empty());
        taken
    }
}
