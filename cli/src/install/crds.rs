//! Which CRDs are installed, and which are left alone.
//!
//! CRDs of the Multi-Cluster Services API belong to no implementation: the newer schema stays, whoever installed it, and an older one
//! is brought up to date (rule R-78). Of other groups, what somebody else installed stays as it is.

use std::collections::BTreeMap;

use api::{crd::SchemaVersion, mcs::ServiceExport};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, Resource, ResourceExt,
    api::{ListParams, Patch, PatchParams},
};

use super::{Installer, MANAGER, is_labelled, without_label};
use crate::{
    Error,
    cluster::{Cluster, known},
    objects::Object,
    run::Part,
};

/// What to do about one CRD.
#[derive(Debug, PartialEq, Eq)]
enum Action {
    /// It is not there, or ours to change.
    Apply,
    /// Somebody else installed it, and it is older.
    Upgrade(SchemaVersion),
    /// It stays; the reason why.
    Leave(String),
}

/// What to do about a CRD, given the labels of the one that is there, if any.
fn action(crd: &Object, there: Option<&BTreeMap<String, String>>) -> Action {
    let Some(labels) = there else {
        return Action::Apply;
    };
    let ours = is_labelled(labels);
    let group = crd.body.pointer("/spec/group").and_then(|group| group.as_str());
    if group == Some(&*ServiceExport::group(&())) {
        let (version, our_version) = (SchemaVersion::of(Some(labels)), SchemaVersion::ours());
        if version > our_version {
            return Action::Leave(format!(
                "its schema is newer ({version}; this freeport brings {our_version})"
            ));
        }
        if !ours && version < our_version {
            return Action::Upgrade(version);
        }
    }
    if ours { Action::Apply } else { Action::Leave("freeport did not install it".into()) }
}

impl Installer<'_> {
    /// Applies CRDs and waits until the API server serves them. One that somebody else installed, or that is newer, stays as it
    /// is (see the top of this file).
    pub(crate) async fn install_crds(&mut self, crds: &[Object]) -> Result<(), Error> {
        if !self.run.does(Part::Crds) {
            return Ok(());
        }
        let mut applied = Vec::new();
        for crd in crds {
            match action(crd, self.labels_of(crd).await?.as_ref()) {
                Action::Apply => {
                    self.install(Part::Crds, std::slice::from_ref(crd)).await?;
                    applied.push(crd);
                }
                Action::Upgrade(from) => {
                    self.upgrade(crd, &from).await?;
                    applied.push(crd);
                }
                Action::Leave(why) if self.is_first(crd) => {
                    let comment = if self.run.dry_run { "# " } else { "" };
                    let line = format!("{comment}{}: left {crd} as it is: {why}", self.cluster.name);
                    self.say_plainly(&line);
                }
                Action::Leave(_) => {}
            }
        }
        if self.run.dry_run {
            return Ok(());
        }
        for crd in applied {
            self.is_served(&crd.name).await?;
        }
        Ok(())
    }

    /// Waits until objects of the CRD of this name can be written.
    pub(crate) async fn is_served(&self, crd: &str) -> Result<(), Error> {
        let missing = format!("CustomResourceDefinition {crd} is not served yet");
        self.until(&missing, async |cluster| served(cluster, crd).await).await
    }

    /// Labels of the object that is there; none when there is none.
    async fn labels_of(&self, object: &Object) -> Result<Option<BTreeMap<String, String>>, Error> {
        let metadata = self.cluster.metadata(&object.resource, None);
        let found = self.cluster.request(format!("read {object}"), metadata.get_opt(&object.name)).await?;
        Ok(found.map(|found| found.labels().clone()))
    }

    /// Brings a CRD that somebody else installed up to date. It stays theirs.
    async fn upgrade(&mut self, crd: &Object, from: &SchemaVersion) -> Result<(), Error> {
        if !self.is_first(crd) {
            return Ok(());
        }
        let crd = Object { body: without_label(&crd.body), ..crd.clone() };
        if self.run.dry_run {
            return self.print(&crd);
        }
        let apply = PatchParams::apply(MANAGER).force();
        let patch = Patch::Apply(&crd.body);
        let doing = format!("upgrade {crd}, which somebody else installed");
        self.cluster.request(doing, self.api(&crd).patch(&crd.name, &apply, &patch)).await?;
        let to = SchemaVersion::ours();
        self.say(&format!(
            "upgraded {crd}, which freeport did not install: its schema was {from} and is {to} now"
        ));
        Ok(())
    }
}

/// Some once the CRD is established and its objects can be listed, which comes a moment later.
async fn served(cluster: &Cluster, name: &str) -> Result<Option<()>, Error> {
    let crds: Api<CustomResourceDefinition> = Api::all(cluster.client.clone());
    let crd = cluster.request(format!("read CustomResourceDefinition {name}"), crds.get(name)).await?;
    let established = crd
        .status
        .iter()
        .flat_map(|status| status.conditions.iter().flatten())
        .any(|condition| condition.type_ == "Established" && condition.status == "True");
    if !established {
        return Ok(None);
    }
    for version in crd.spec.versions.iter().filter(|version| version.served) {
        let resource = kube::core::discovery::ApiResource {
            group: crd.spec.group.clone(),
            version: version.name.clone(),
            api_version: format!("{}/{}", crd.spec.group, version.name),
            kind: crd.spec.names.kind.clone(),
            plural: crd.spec.names.plural.clone(),
        };
        let one = ListParams::default().limit(1);
        let objects = cluster.metadata(&resource, None);
        let list = known(objects.list(&one));
        if cluster.request(format!("list {}", resource.plural), list).await?.is_none() {
            return Ok(None);
        }
    }
    Ok(Some(()))
}

#[cfg(test)]
mod tests {
    use api::label;

    use super::*;
    use crate::objects::crds;

    fn there(labels: &[(&str, &str)]) -> BTreeMap<String, String> {
        labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    fn of(kind: &str, there: Option<&BTreeMap<String, String>>) -> Action {
        let crds = crds::member();
        let crd = crds.iter().find(|crd| crd.name.starts_with(kind)).unwrap();
        action(crd, there)
    }

    const RELEASE: &str = "multicluster.x-k8s.io/release-version";
    const OURS: (&str, &str) = (label::MANAGED_BY, label::FREEPORT);

    #[test]
    fn r78_a_newer_crd_stays_whoever_installed_it() {
        for labels in [&[(RELEASE, "v0.9.0")][..], &[(RELEASE, "v0.9.0"), OURS]] {
            let Action::Leave(why) = of("serviceimports", Some(&there(labels))) else { panic!("{labels:?}") };
            assert!(why.contains("v0.9.0") && why.contains("v0.5.2"), "{why}");
        }
    }

    #[test]
    fn r78_an_older_crd_is_brought_up_to_date() {
        assert!(matches!(of("serviceimports", Some(&there(&[]))), Action::Upgrade(_)));
        assert!(matches!(of("serviceexports", Some(&there(&[(RELEASE, "v0.4.0")]))), Action::Upgrade(_)));
        assert_eq!(of("serviceexports", Some(&there(&[OURS]))), Action::Apply);
        assert_eq!(of("serviceexports", None), Action::Apply);
    }

    #[test]
    fn what_somebody_else_installed_stays_if_it_is_as_new_or_of_another_group() {
        let same = [(RELEASE, "v0.5.2"), ("multicluster.x-k8s.io/crd-schema-revision", "0")];
        for (kind, labels) in [("serviceimports", &same[..]), ("clustersets", &[])] {
            assert_eq!(of(kind, Some(&there(labels))), Action::Leave("freeport did not install it".into()));
        }
    }
}
