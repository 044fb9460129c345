//! Where an object of the consumer is at the provider, and back.
//!
//! This gives a place. Whose the object there is, its annotations say: see [`label`](super::label).

use std::fmt;

/// Most characters of the name of an object.
const NAME_MAX: usize = 253;

/// Namespace, if the object is in one, and name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// None of a cluster-scoped object.
    pub namespace: Option<String>,
    /// Name of the object.
    pub name: String,
}

impl Place {
    /// In no Namespace.
    pub fn cluster(name: impl Into<String>) -> Self {
        Self { namespace: None, name: name.into() }
    }

    /// In this Namespace.
    pub fn within(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self { namespace: Some(namespace.into()), name: name.into() }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{namespace}/{}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

/// How the objects of one API are kept apart at the provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// Cluster-scoped at both, under the same name.
    Shared,
    /// Cluster-scoped at both, with the cluster namespace before the name.
    Prefixed,
    /// Cluster-scoped at the consumer, in the cluster namespace at the provider.
    Converted,
    /// In Namespaces at both, each by an APIServiceNamespace.
    Namespaced,
}

/// Why an object has no place at the provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoPlace {
    /// The APIServiceNamespace of its Namespace does not say yet which Namespace that is at the provider.
    Pending,
    /// Its name would have that many characters.
    NameTooLong(usize),
    /// It is in a Namespace, and its API is not, or the other way round.
    WrongScope,
}

/// The mapping of one API of one consumer.
pub struct Mapping<'a> {
    /// How objects are kept apart.
    pub strategy: Strategy,
    /// Name of the cluster namespace.
    pub cluster_namespace: &'a str,
}

impl Mapping<'_> {
    /// Where an object of the consumer is at the provider. `assigned` is the provider's Namespace for one of the consumer.
    ///
    /// # Errors
    /// [`NoPlace`] where it can be nowhere, or not yet.
    pub fn there<'n>(
        &self,
        here: &Place,
        assigned: impl FnOnce(&str) -> Option<&'n str>,
    ) -> Result<Place, NoPlace> {
        match (self.strategy, &here.namespace) {
            (Strategy::Shared, None) => Ok(here.clone()),
            (Strategy::Prefixed, None) => {
                let name = format!("{}-{}", self.cluster_namespace, here.name);
                let length = name.len();
                if length > NAME_MAX { Err(NoPlace::NameTooLong(length)) } else { Ok(Place::cluster(name)) }
            }
            (Strategy::Converted, None) => Ok(Place::within(self.cluster_namespace, &here.name)),
            (Strategy::Namespaced, Some(namespace)) => {
                let assigned = assigned(namespace).ok_or(NoPlace::Pending)?;
                Ok(Place::within(assigned, &here.name))
            }
            _ => Err(NoPlace::WrongScope),
        }
    }

    /// Whose copy the object at this place of the provider would be: the inverse of [`there`](Self::there). None if it is nobody's.
    /// `assigned_to` is the consumer's Namespace that one of the provider is for.
    pub fn here<'n>(
        &self,
        there: &Place,
        assigned_to: impl FnOnce(&str) -> Option<&'n str>,
    ) -> Option<Place> {
        match (self.strategy, &there.namespace) {
            (Strategy::Shared, None) => Some(there.clone()),
            (Strategy::Prefixed, None) => {
                let name = there.name.strip_prefix(self.cluster_namespace)?.strip_prefix('-')?;
                (!name.is_empty()).then(|| Place::cluster(name))
            }
            (Strategy::Converted, Some(namespace)) => {
                (namespace == self.cluster_namespace).then(|| Place::cluster(&there.name))
            }
            (Strategy::Namespaced, Some(namespace)) => {
                Some(Place::within(assigned_to(namespace)?, &there.name))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::{
        prelude::{Just, prop_assert_eq, prop_oneof, proptest},
        strategy::Strategy as Generated,
    };

    use super::*;

    const A: &str = "kube-bind-37p3oxx6sh4fd";

    fn mapping(strategy: Strategy) -> Mapping<'static> {
        Mapping { strategy, cluster_namespace: A }
    }

    fn back(strategy: Strategy, there: &Place) -> Option<String> {
        let assigned_to = |namespace: &str| (namespace == format!("{A}-team1")).then_some("team1");
        mapping(strategy).here(there, assigned_to).map(|place| place.to_string())
    }

    #[test]
    fn m1_shared_objects_are_where_they_are() {
        let foo = Place::cluster("foo");
        assert_eq!(mapping(Strategy::Shared).there(&foo, |_| None), Ok(foo.clone()));
        assert_eq!(back(Strategy::Shared, &foo).as_deref(), Some("foo"));
    }

    #[test]
    fn m2_m3_a_prefix_says_whose_an_object_is() {
        let there = mapping(Strategy::Prefixed).there(&Place::cluster("foo"), |_| None).unwrap();
        assert_eq!(there, Place::cluster(format!("{A}-foo")));
        let back = |name: &str| back(Strategy::Prefixed, &Place::cluster(name));
        assert_eq!(back(&format!("{A}-foo")).as_deref(), Some("foo"));
        assert_eq!(back(&format!("{A}-a.b")).as_deref(), Some("a.b"));
        for others in ["foo", "kube-bind-b-foo", &format!("{A}-"), A, &format!("{A}foo")] {
            assert_eq!(back(others), None, "{others}");
        }
    }

    #[test]
    fn a_converted_object_is_in_the_cluster_namespace() {
        let there = mapping(Strategy::Converted).there(&Place::cluster("foo"), |_| None).unwrap();
        assert_eq!(there, Place::within(A, "foo"));
        assert_eq!(back(Strategy::Converted, &there).as_deref(), Some("foo"));
        assert_eq!(back(Strategy::Converted, &Place::within("other", "foo")), None);
    }

    #[test]
    fn m5_m7_a_namespace_is_assigned_by_its_api_service_namespace() {
        let (mapping, foo) = (mapping(Strategy::Namespaced), Place::within("team1", "foo"));
        let there = mapping.there(&foo, |_| Some("pns")).unwrap();
        assert_eq!(there, Place::within("pns", "foo"));
        assert_eq!(mapping.there(&foo, |_| None), Err(NoPlace::Pending));
        let in_team1 = Place::within(format!("{A}-team1"), "foo");
        assert_eq!(back(Strategy::Namespaced, &in_team1).as_deref(), Some("team1/foo"));
        assert_eq!(back(Strategy::Namespaced, &Place::within("unknown", "foo")), None);
    }

    #[test]
    fn m8_a_name_that_is_too_long_with_the_prefix_has_no_place() {
        let there =
            |length: usize| mapping(Strategy::Prefixed).there(&Place::cluster("n".repeat(length)), |_| None);
        assert_eq!(there(229).unwrap().name.len(), 253);
        assert_eq!(there(230), Err(NoPlace::NameTooLong(254)));
    }

    fn strategy() -> impl Generated<Value = Strategy> {
        prop_oneof![
            Just(Strategy::Shared),
            Just(Strategy::Prefixed),
            Just(Strategy::Converted),
            Just(Strategy::Namespaced)
        ]
    }

    proptest! {
        /// There and back is where it was.
        #[test]
        fn back_is_where_it_was(strategy in strategy(), name in "[a-z0-9]{1,20}(\\.[a-z0-9]{1,10})?", namespace in "[a-z]{1,8}") {
            let here = match strategy {
                Strategy::Namespaced => Place::within(&namespace, name),
                _ => Place::cluster(name),
            };
            let assigned = format!("{A}-{namespace}");
            let there = mapping(strategy).there(&here, |_| Some(assigned.as_str())).unwrap();
            let back = mapping(strategy).here(&there, |to| (to == assigned).then_some(namespace.as_str()));
            prop_assert_eq!(back, Some(here));
        }
    }
}
