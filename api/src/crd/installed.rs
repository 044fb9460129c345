//! A CRD as it is installed.

use std::{collections::BTreeSet, fmt};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceDefinitionSpec,
};
use kube::{Resource, ResourceExt, core::ObjectMeta};
use serde::Deserialize;

use super::lacks;
use crate::view::{Lenient, lean};

/// A CRD that somebody else may have installed, or changed.
#[derive(Resource, Clone, Debug, Deserialize)]
#[resource(inherit = CustomResourceDefinition)]
pub struct Installed {
    #[serde(deserialize_with = "lean")]
    metadata: ObjectMeta,
    spec: Lenient<CustomResourceDefinitionSpec>,
}

impl Installed {
    /// What it lacks of the CRD of its name in `ours`, and the kind; none if none of ours has its name. Of a schema that does not
    /// decode nothing is known to be lacking.
    pub fn lacks(&self, ours: Vec<CustomResourceDefinition>) -> Option<(String, BTreeSet<String>)> {
        let ours = ours.into_iter().find(|ours| ours.name_any() == self.name_any())?.spec;
        let lacking = self.spec.0.as_ref().map(|spec| lacks(spec, &ours)).unwrap_or_default();
        Some((ours.names.kind, lacking))
    }
}

/// Which CRD it is: another one when it was made anew or its spec changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    uid: String,
    generation: i64,
}

impl Version {
    /// Of a CRD, whatever is kept of it.
    pub fn of(crd: &impl Resource) -> Self {
        let uid = crd.meta().uid.clone().unwrap_or_default();
        Self { uid, generation: crd.meta().generation.unwrap_or_default() }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.uid, self.generation)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a1_no_crd_stops_a_list(
            spec in odd::anything(&["group", "names", "versions", "schema", "openAPIV3Schema", "properties"]),
        ) {
            for crd in odd::everywhere::<Installed>(&spec).unwrap() {
                prop_assert_eq!(crd.lacks(vec![]), None);
            }
        }
    }
}
