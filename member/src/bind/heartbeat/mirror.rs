//! The credential of our cluster becomes the one that the provider has renewed.

use std::time::Duration;

use api::{label::MEMBER, view::Meta};
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kit::{
    client::{Dial, kubeconfig::Target},
    failure::classify,
    write::{Error, Writer},
};
use kube::{Api, ResourceExt};
use serde_json::json;

use super::Heartbeat;
use crate::bind::local::{KEY, NAMESPACE};

/// Until when a new credential has to have led to an answer. The heartbeat waits for that.
const ANSWERS: Duration = Duration::from_secs(10);

impl Heartbeat {
    /// The provider renews the credential in its Secret.
    ///
    /// # Errors
    /// [`Error::Stale`] where the new one does not lead there yet.
    pub(super) async fn mirror(&self) -> Result<(), Error> {
        let theirs = self.contract.known.with(|known| {
            let named = &known.cluster_bindings.get("cluster")?.spec.kubeconfig_secret_ref;
            known.secrets.get(&named.name)?.data.as_ref()?.get(&named.key).cloned()
        });
        let ours = self.local.known.with(|known| known.secrets.get(&self.secret).cloned());
        let (Some(theirs), Some(ours)) = (theirs, ours) else { return Ok(()) };
        let have = ours.data.as_ref().and_then(|data| data.get(KEY)).map(|have| have.0.as_slice());
        let kept =
            |why| tracing::warn!(why, "kept the old credential: the provider's new one cannot be used");
        let target = match mirrored(&theirs.0, have, &self.contract.cluster_namespace.name) {
            Ok(None) => return Ok(()),
            Ok(Some(target)) => target,
            Err(why) => {
                kept(why);
                return Ok(());
            }
        };
        if let Err(why) =
            leads_to(&self.contract.env.dial, &target, &self.contract.cluster_namespace.uid).await
        {
            kept(why);
            return Err(Error::Stale);
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
fn mirrored(theirs: &[u8], have: Option<&[u8]>, cluster_namespace: &str) -> Result<Option<Target>, String> {
    if have == Some(theirs) {
        return Ok(None);
    }
    match Target::read(theirs) {
        Ok(target) if target.namespace == cluster_namespace => Ok(Some(target)),
        Ok(target) => Err(format!("it is for the cluster namespace {}", target.namespace)),
        Err(error) => Err(error.to_string()),
    }
}

/// Whether it is the cluster namespace of this uid that answers there; why it is not.
async fn leads_to(dial: &Dial, target: &Target, uid: &str) -> Result<(), String> {
    let client = dial.connect(target).map_err(|error| error.to_string())?;
    let namespaces = Api::<Meta<Namespace>>::all(client);
    match tokio::time::timeout(ANSWERS, namespaces.get(&target.namespace)).await {
        Ok(Ok(there)) if there.uid().as_deref() == Some(uid) => Ok(()),
        Ok(Ok(_)) => Err("it leads to another cluster namespace of that name".to_owned()),
        Ok(Err(error)) => Err(classify(&error).to_string()),
        Err(_) => Err("no answer in time".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bind::fixture::kubeconfig;

    #[test]
    fn b12_a_credential_is_mirrored_on_change_only_and_never_one_that_leads_elsewhere_or_nowhere() {
        let (old, new) = (kubeconfig("kube-bind-a", "old"), kubeconfig("kube-bind-a", "new"));
        let mirrored = |theirs: &[u8], have| {
            super::mirrored(theirs, have, "kube-bind-a").map(|target| target.map(|target| target.namespace))
        };
        let cns = || Some("kube-bind-a".to_owned());
        assert_eq!(mirrored(&old, Some(&old)), Ok(None));
        assert_eq!(mirrored(&new, Some(&old)), Ok(cns()));
        assert_eq!(mirrored(&new, None), Ok(cns()), "somebody took ours out");
        let elsewhere = mirrored(&kubeconfig("kube-bind-b", "new"), Some(&old));
        assert!(elsewhere.unwrap_err().contains("kube-bind-b"));
        for unusable in [&b""[..], b"{", b"apiVersion: v1\nkind: Config\n"] {
            assert!(mirrored(unusable, Some(&old)).is_err());
        }
    }

    #[tokio::test]
    async fn b12_a_credential_that_leads_to_no_answer_is_not_mirrored() {
        let server = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let closed = server.local_addr().unwrap().to_string();
        drop(server);
        let leads = String::from_utf8(kubeconfig("kube-bind-a", "new")).unwrap();
        let target = Target::read(leads.replace("127.0.0.1:6443", &closed).as_bytes()).unwrap();
        assert!(leads_to(&Dial::default(), &target, "n1").await.is_err());
    }
}
