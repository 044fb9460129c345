//! What there is of a binding before anything is changed.

use std::collections::BTreeSet;

use api::bind::{binding::APIServiceBinding, resource::Resource};

use crate::{
    Error,
    bind::consent::{self, Right},
    cluster::Cluster,
};

/// What there is of a binding.
pub(super) struct Known {
    pub(super) binding: Option<APIServiceBinding>,
    /// What its provider exports, as the member says.
    pub(super) exported: Vec<Resource>,
    /// What was agreed to.
    pub(super) agreed: Vec<Resource>,
    rights: Vec<Right>,
}

impl Known {
    pub(super) async fn of(
        cluster: &Cluster,
        name: &str,
        binding: Option<APIServiceBinding>,
    ) -> Result<Self, Error> {
        let rights = consent::rights(cluster).await?;
        let brought = match &binding {
            Some(binding) => consent::brought(cluster, binding).await?,
            None => Vec::new(),
        };
        let brought: Vec<_> = brought.iter().map(consent::api_of).collect();
        let exported = consent::exported(binding.as_ref());
        let agreed = consent::agreed(name, &exported, &brought, &rights);
        Ok(Self { binding, exported, agreed, rights })
    }

    /// What the binding has, with what its provider exports of `more`.
    pub(super) fn still(&self, more: &[Resource]) -> Vec<Resource> {
        let mut all = self.agreed.clone();
        let new =
            more.iter().filter(|api| consent::has(&self.exported, api) && !consent::has(&self.agreed, api));
        all.extend(new.cloned());
        all
    }

    /// The bindings that rights on this API are for: this one, and those that they were for.
    pub(super) fn bindings_of(&self, api: &Resource, name: &str) -> BTreeSet<String> {
        let there = self.rights.iter().find(|right| right.api.name() == api.name());
        let mut all = there.map(|right| right.bindings.clone()).unwrap_or_default();
        all.insert(name.to_owned());
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_run_gives_what_there_was_and_what_is_asked_for_by_name() {
        let apis =
            |names: &[&str]| -> Vec<_> { names.iter().filter_map(|name| consent::named(name)).collect() };
        let known = Known {
            binding: None,
            exported: apis(&["mangodbs.example.com", "new.example.com", "newer.example.com"]),
            agreed: apis(&["mangodbs.example.com"]),
            rights: Vec::new(),
        };
        assert_eq!(known.still(&[]), known.agreed);
        let named = apis(&["new.example.com", "mangodbs.example.com", "elsewhere.example.com"]);
        assert_eq!(known.still(&named), apis(&["mangodbs.example.com", "new.example.com"]));
    }
}
