//! The credential of our cluster becomes the one that the provider has renewed.

use api::label::MEMBER;
use k8s_openapi::api::core::v1::Secret;
use kit::{
    client::kubeconfig::Target,
    write::{Error, Writer},
};
use serde_json::json;

use super::Heartbeat;
use crate::bind::local::{KEY, NAMESPACE};

impl Heartbeat {
    /// The provider renews the credential in its Secret.
    pub(super) async fn mirror(&self) -> Result<(), Error> {
        let theirs = self.contract.known.with(|known| {
            let named = &known.cluster_bindings.get("cluster")?.spec.kubeconfig_secret_ref;
            known.secrets.get(&named.name)?.data.as_ref()?.get(&named.key).cloned()
        });
        let ours = self.local.known.with(|known| known.secrets.get(&self.secret).cloned());
        let (Some(theirs), Some(ours)) = (theirs, ours) else { return Ok(()) };
        let have = ours.data.as_ref().and_then(|data| data.get(KEY)).map(|have| have.0.as_slice());
        match mirrored(&theirs.0, have, &self.contract.cluster_namespace.name) {
            Ok(true) => {}
            Ok(false) => return Ok(()),
            Err(why) => {
                tracing::warn!(why, "kept the old credential: the provider's new one cannot be used");
                return Ok(());
            }
        }
        let env = &self.contract.env;
        let writer = Writer::new(env.client.clone(), MEMBER, "local", env.metrics.clone());
        writer.merge::<Secret>(&ours, None, json!({"data": {KEY: theirs}})).await?;
        tracing::info!(
            secret = format!("{NAMESPACE}/{}", self.secret),
            "took the provider's new credential over"
        );
        Ok(())
    }
}

/// Whether the provider's credential is to replace the one that we `have`; why it never does. One that leads elsewhere, or nowhere, would
/// be the last one.
fn mirrored(theirs: &[u8], have: Option<&[u8]>, cluster_namespace: &str) -> Result<bool, String> {
    if have == Some(theirs) {
        return Ok(false);
    }
    match Target::read(theirs) {
        Ok(target) if target.namespace == cluster_namespace => Ok(true),
        Ok(target) => Err(format!("it is for the cluster namespace {}", target.namespace)),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use crate::bind::fixture::kubeconfig;

    #[test]
    fn b12_a_credential_is_mirrored_on_change_only_and_never_one_that_leads_elsewhere_or_nowhere() {
        let (old, new) = (kubeconfig("kube-bind-a", "old"), kubeconfig("kube-bind-a", "new"));
        let mirrored = |theirs: &[u8]| super::mirrored(theirs, Some(&old), "kube-bind-a");
        assert_eq!(mirrored(&old), Ok(false));
        assert_eq!(mirrored(&new), Ok(true));
        assert_eq!(super::mirrored(&new, None, "kube-bind-a"), Ok(true), "somebody took ours out");
        assert!(mirrored(&kubeconfig("kube-bind-b", "new")).unwrap_err().contains("kube-bind-b"));
        for unusable in [&b""[..], b"{", b"apiVersion: v1\nkind: Config\n"] {
            assert!(mirrored(unusable).is_err());
        }
    }
}
