//! The data of Secrets, apart from the Secrets themselves.

use k8s_openapi::api::core::v1::Secret;
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};

use super::Installer;
use crate::Error;

/// Field manager of credentials, which are no part of what is applied: applying the Secret again, by this command or by a GitOps
/// tool, leaves them in place.
const MANAGER: &str = "freeport-cli-credential";

impl Installer<'_> {
    /// Puts a credential into a Secret that is there.
    pub(crate) async fn fill(&mut self, namespace: &str, name: &str, data: Value) -> Result<(), Error> {
        let secrets: Api<Secret> = Api::namespaced(self.cluster.client.clone(), namespace);
        let doing = format!("read Secret {namespace}/{name}");
        let before = self.cluster.request(doing, secrets.get(name)).await?;
        // A member may keep more there.
        let (has, mut wanted) = (json!(before.data), data.as_object().into_iter().flatten());
        if wanted.all(|(key, value)| has.get(key) == Some(value)) {
            self.unchanged += 1;
            return Ok(());
        }
        let patch = json!({"apiVersion": "v1", "kind": "Secret", "data": data});
        let params = PatchParams::apply(MANAGER).force();
        let doing = format!("put the credential into Secret {namespace}/{name}");
        self.cluster.request(doing, secrets.patch(name, &params, &Patch::Apply(patch))).await?;
        self.say(&format!("changed credential in Secret {namespace}/{name}"));
        Ok(())
    }
}
