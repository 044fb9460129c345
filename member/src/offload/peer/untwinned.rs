//! Namespaces of another cluster that are to have a twin here and get none: pure.

use std::collections::BTreeMap;

use api::offload::{
    map::{CREATION_LOOP_BACK_OFF, MappedNamespace, NamespaceMapStatus},
    peer::REFUSED_MAX,
};

/// Returns, by name, what this cluster says in the NamespaceMap of the Namespaces that get no twin: the first [`REFUSED_MAX`] of them.
pub(super) fn untwinned(said: &NamespaceMapStatus) -> BTreeMap<String, MappedNamespace> {
    let refused = said.current_mapping.iter().filter(|(_, entry)| entry.phase == CREATION_LOOP_BACK_OFF);
    refused.take(REFUSED_MAX).map(|(name, entry)| (name.clone(), entry.clone())).collect()
}

#[cfg(test)]
mod tests {
    use api::offload::map::ACCEPTED;

    use super::*;

    #[test]
    fn refused_namespaces_are_named_up_to_a_limit() {
        let said = |phase: &str, count: usize| {
            let entry = MappedNamespace { phase: phase.to_owned(), ..MappedNamespace::default() };
            let entries = (0..count).map(|number| (format!("{phase}-{number}"), entry.clone()));
            entries.collect::<BTreeMap<_, _>>()
        };
        let named = |current_mapping| {
            untwinned(&NamespaceMapStatus { current_mapping, ..NamespaceMapStatus::default() })
        };
        let mut both = said(ACCEPTED, 3);
        both.extend(said(CREATION_LOOP_BACK_OFF, 2));
        assert_eq!(named(both), said(CREATION_LOOP_BACK_OFF, 2));
        assert_eq!(named(said(CREATION_LOOP_BACK_OFF, REFUSED_MAX + 1)).len(), REFUSED_MAX);
    }
}
