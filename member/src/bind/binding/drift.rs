//! CRDs of ours that somebody changed since: they are put back.
//!
//! We keep no schemas of CRDs. So the API server is asked what would become of what we write (a dry run: it fills defaults in), once for each
//! generation of a CRD.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kit::{index::Shared, write::Error};
use kube::{
    Api, Resource, ResourceExt,
    api::{ApiResource, DynamicObject, PostParams},
};
use serde_json::json;

use super::Bindings;
use crate::bind::local::Crd;

/// The generations of CRDs that are known to be as we write them, by uid.
pub(super) type Checked = Shared<BTreeMap<String, i64>>;

impl Bindings {
    /// Writes the CRD if it is not as it was written.
    pub(super) async fn put_back(
        &self,
        want: &CustomResourceDefinition,
        have: Option<&Crd>,
    ) -> Result<(), Error> {
        let version = have.and_then(|have| Some((have.uid()?, have.meta().generation?)));
        let Some((uid, generation)) = version else { return Ok(()) };
        let before = self.checked.with(|checked| checked.get(&uid).copied());
        if before == Some(generation) {
            return Ok(());
        }
        let is_so = match self.is_as_written(want).await {
            // What is not granted any more is not installed anew, and what is installed goes on, unless somebody has changed it since.
            Err(Error::Refused(message)) if before.is_none() => {
                tracing::warn!(
                    crd = want.name_any(),
                    message,
                    "cannot find out whether somebody changed the CRD"
                );
                true
            }
            Err(Error::Refused(_)) => false,
            asked => asked?,
        };
        if !is_so {
            tracing::warn!(crd = want.name_any(), "somebody changed the CRD: putting it back");
            return self.update(want).await;
        }
        let known = self.local.known.with(|known| known.crds.iter().filter_map(Crd::uid).collect());
        self.checked.with(|checked| note(checked, &known, (uid, generation)));
        Ok(())
    }

    async fn is_as_written(&self, want: &CustomResourceDefinition) -> Result<bool, Error> {
        let resource = ApiResource::erase::<CustomResourceDefinition>(&());
        let crds = Api::<DynamicObject>::all_with(self.env.client.clone(), &resource);
        let name = want.name_any();
        let there = crds.get(&name).await?;
        let mut asked = DynamicObject::new(&name, &resource);
        asked.metadata = want.metadata.clone();
        asked.data = json!({"spec": want.spec});
        let dry = PostParams { dry_run: true, ..PostParams::default() };
        let would = crds.replace(&name, &dry, &asked).await?;
        Ok(would.data["spec"] == there.data["spec"])
    }
}

/// Notes a generation; those of CRDs that are not there any more go.
fn note(checked: &mut BTreeMap<String, i64>, known: &BTreeSet<String>, (uid, generation): (String, i64)) {
    checked.retain(|uid, _| known.contains(uid));
    checked.insert(uid, generation);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_crds_that_are_gone_nothing_is_kept() {
        let mut checked = BTreeMap::from([("gone".to_owned(), 1), ("there".to_owned(), 2)]);
        let known = ["there", "new"].map(str::to_owned).into();
        note(&mut checked, &known, ("new".to_owned(), 1));
        assert_eq!(checked, [("there".to_owned(), 2), ("new".to_owned(), 1)].into());
    }
}
