//! The About API: ClusterProperties that say who this cluster is (`cluster.clusterset.k8s.io`) and that it belongs to a ClusterSet
//! (`clusterset.k8s.io`). Pure.
//!
//! Both are there while a membership is noted, and put back if somebody changes or deletes what we made: the second says exactly that there
//! is a membership. What somebody else made is never touched. A cluster about which it says something else does not begin a
//! membership; one that is a member already goes on, and says so.

use api::{
    about::{CLUSTER_ID, CLUSTER_SET},
    membership::Membership,
};

use super::{object::Property, state::MembershipState};

/// What a membership has this cluster say, in the order of writing: who belongs to a set is known before it does.
fn wanted(membership: &Membership) -> [(&'static str, &str); 2] {
    [(CLUSTER_ID, &membership.cluster_id), (CLUSTER_SET, &membership.cluster_set)]
}

/// A property to be written: what there is, and what there has to be.
pub(super) type Due = (Option<Property>, Property);

impl MembershipState {
    /// What a property of this name says, whoever made it.
    pub(super) fn says_itself(&self, name: &str) -> Option<&str> {
        self.properties.get(name).map(Property::value)
    }

    /// Which property of somebody else contradicts this membership.
    pub(super) fn contradiction(&self, membership: &Membership) -> Option<String> {
        let theirs = |name: &str| self.properties.get(name).filter(|property| !property.is_ours());
        let contradicts = |(name, value): (&str, &str)| {
            let says = theirs(name).map(Property::value).filter(|says| *says != value)?;
            Some(format!(
                "ClusterProperty {name} says {says:?} and this membership says {value:?}. Freeport did not make it and does not change it: \
                 delete it, or join with what it says"
            ))
        };
        wanted(membership).into_iter().find_map(contradicts)
    }

    /// The next property that has to be written, if any. Nothing is before the properties have been listed: without their CRD there are
    /// none. A cluster whose ID is not the one that it has in the set does not say that it belongs to it.
    pub(super) fn due(&self) -> Option<Due> {
        let membership = self.alone().filter(|_| self.properties.lists() > 0)?;
        for (name, value) in wanted(&membership) {
            match self.properties.get(name) {
                Some(theirs) if !theirs.is_ours() && theirs.value() != value => return None,
                Some(there) if there.value() == value => {}
                there => return Some((there.cloned(), Property::of(name, value))),
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use api::label;
    use kit::objects::Change;
    use kube::ResourceExt;
    use serde_json::{Value, json};

    use super::*;
    use crate::membership::{
        fixture::{noted, state},
        note::Note,
    };

    fn property(name: &str, value: &str, labels: &Value) -> Property {
        serde_json::from_value(
            json!({"metadata": {"name": name, "labels": labels}, "spec": {"value": value}}),
        )
        .unwrap()
    }

    /// A member with these properties of somebody else.
    fn member(theirs: &[(&str, &str)]) -> MembershipState {
        let mut state = state(|_| {});
        state.notes.change(Change::Apply(Note::of("freeport-system", &noted())));
        let theirs = theirs.iter().map(|(name, value)| property(name, value, &json!({})));
        state.properties.change(Change::Reset(theirs.collect()));
        state
    }

    /// What is written until nothing is due any more.
    fn written(state: &mut MembershipState) -> Vec<(String, String)> {
        let mut written = Vec::new();
        while let Some((_, want)) = state.due() {
            written.push((want.name_any(), want.value().to_owned()));
            state.properties.change(Change::Apply(want));
            assert!(written.len() < 9, "{written:?}");
        }
        written
    }

    fn said(name: &str, value: &str) -> (String, String) {
        (name.to_owned(), value.to_owned())
    }

    #[test]
    fn r73_r74_a_member_says_its_id_and_then_its_set_and_puts_back_what_is_changed() {
        let mut state = member(&[]);
        assert_eq!(written(&mut state), [said(CLUSTER_ID, "east"), said(CLUSTER_SET, "demo")]);
        state.properties.change(Change::Apply(property(
            CLUSTER_SET,
            "x",
            &json!({label::MANAGED_BY: label::FREEPORT}),
        )));
        assert_eq!(state.contradiction(&noted()), None);
        assert_eq!(written(&mut state), [said(CLUSTER_SET, "demo")]);
        state.properties.change(Change::Remove(Property::of(CLUSTER_ID, "")));
        assert_eq!(written(&mut state), [said(CLUSTER_ID, "east")]);
    }

    #[test]
    fn r74_without_a_membership_or_while_it_is_left_nothing_is_said() {
        let mut state = member(&[]);
        state.notes.change(Change::Apply(Note::of("freeport-system", &noted()).leaving()));
        assert_eq!(written(&mut state), []);
        state.notes.change(Change::Reset(vec![]));
        assert_eq!(written(&mut state), []);
        let mut without_crd = member(&[]);
        without_crd.properties = kit::objects::Objects::default();
        assert_eq!(written(&mut without_crd), []);
    }

    #[test]
    fn r75_what_somebody_else_made_stays_and_an_id_that_is_not_ours_makes_no_member() {
        let mut same = member(&[(CLUSTER_ID, "east")]);
        assert_eq!(
            (written(&mut same), same.contradiction(&noted())),
            (vec![said(CLUSTER_SET, "demo")], None)
        );
        let mut other = member(&[(CLUSTER_ID, "north")]);
        assert_eq!(written(&mut other), []);
        assert!(other.contradiction(&noted()).unwrap().contains("\"north\""));
        let mut another_set = member(&[(CLUSTER_SET, "prod")]);
        assert_eq!(written(&mut another_set), [said(CLUSTER_ID, "east")]);
        assert!(another_set.contradiction(&noted()).unwrap().contains("\"prod\""));
    }
}
