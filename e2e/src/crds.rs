//! CRDs that are deleted and come back.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceDefinitionCondition,
};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use crate::{
    cluster::{Cluster, as_new},
    waiting::eventually,
};

impl Cluster {
    pub fn crds(&self) -> Api<CustomResourceDefinition> {
        Api::all(self.client.clone())
    }

    /// The versions of a CRD, with their schemas.
    pub async fn crd_versions(&self, name: &str) -> Value {
        json!(self.crds().get(name).await.unwrap().spec.versions)
    }

    /// Puts these in the place of a CRD's versions.
    pub async fn install_crd_versions(&self, name: &str, versions: &Value) {
        let patch = Patch::Merge(json!({"spec": {"versions": versions}}));
        self.crds().patch(name, &PatchParams::default(), &patch).await.unwrap();
    }

    /// Deletes the CRD and waits until it is gone; as it was.
    pub async fn take_crd(&self, name: &str) -> CustomResourceDefinition {
        let had = self.crds().get(name).await.unwrap();
        self.crds().delete(name, &DeleteParams::default()).await.unwrap();
        eventually(&format!("{name} of {} is gone", self.name), || async {
            match self.crds().get_opt(name).await.unwrap() {
                None => Ok(()),
                Some(crd) => Err(format!("{:?}", crd.status)),
            }
        })
        .await;
        had
    }

    /// Creates what [`Cluster::take_crd`] took, and waits until it is served.
    pub async fn put_back_crd(&self, had: CustomResourceDefinition) {
        let name = had.name_any();
        let had = CustomResourceDefinition { status: None, ..as_new(had) };
        self.crds().create(&PostParams::default(), &had).await.unwrap();
        eventually(&format!("{name} of {} is served", self.name), || async {
            let conditions = self.crds().get(&name).await.unwrap().status.and_then(|s| s.conditions);
            let established =
                |c: &CustomResourceDefinitionCondition| c.type_ == "Established" && c.status == "True";
            if conditions.iter().flatten().any(established) { Ok(()) } else { Err(format!("{conditions:?}")) }
        })
        .await;
    }
}
