//! The Secret of a contract.

use std::collections::BTreeSet;

use api::bind::{binding::APIServiceBinding, label, resource::Resource};
use k8s_openapi::{ByteString, api::core::v1::Secret};
use kit::client::kubeconfig::Target;
use kube::{Api, ResourceExt};
use serde_json::json;

use super::Consumer;
use crate::{
    Error, Part,
    bind::{answer::Answer, parties::are_of_one_contract},
    cluster::known,
    install::Installer,
    objects::bind::{self, CREDENTIALS, KUBECONFIG},
};

impl Consumer<'_> {
    pub(super) fn target(&self, answer: &Answer) -> Result<Target, Error> {
        Target::read(&answer.kubeconfig.0)
            .map_err(|why| self.cluster.refuse(format!("the provider's kubeconfig cannot be used: {why}")))
    }

    /// Where the credential leads that a binding has, if it can be used.
    pub(super) async fn had(&self, binding: &APIServiceBinding) -> Result<Option<Target>, Error> {
        let name = named(binding);
        let secrets: Api<Secret> = Api::namespaced(self.cluster.client.clone(), CREDENTIALS);
        let doing = format!("read Secret {CREDENTIALS}/{name}");
        let secret = self.cluster.request(doing, known(secrets.get(name))).await?;
        Ok(secret.and_then(|secret| Target::read(&secret.data?.get(KUBECONFIG)?.0).ok()))
    }

    /// An error if a credential is of another contract than the one that a binding has. Where it has none any more, what was noted on the
    /// binding, or what the contract exports under its name, says that it is the same. `uid` is that of the cluster namespace.
    pub(super) async fn is_its(
        &self,
        binding: &APIServiceBinding,
        target: &Target,
        uid: Option<&str>,
        exported: Option<&[Resource]>,
    ) -> Result<(), Error> {
        let had = self.had(binding).await?;
        // Without its credential nobody can wait for the end of copies.
        let with = |why: String| {
            format!(
                "the credential leads to the cluster at {}, in its Namespace {}, and {why}: nothing was changed; bind that under another name, or \
                 end this binding first (freeport bind remove {}{})",
                target.server(),
                target.namespace,
                self.name,
                if had.is_some() { "" } else { " --force" }
            )
        };
        match had {
            Some(ref had) if are_of_one_contract(had, target) => Ok(()),
            None if exported.is_some() || uid.is_some() && contract_of(binding) == uid => Ok(()),
            Some(ref had) => {
                let (server, namespace) = (had.server(), &had.namespace);
                Err(self.cluster.refuse(with(format!(
                    "{} is bound to that at {server}, in its Namespace {namespace}",
                    self.name
                ))))
            }
            None => {
                let secret = named(binding);
                Err(self.cluster.refuse(with(format!(
                    "there is no APIServiceExport {} there, while {} is bound by Secret {CREDENTIALS}/{secret}, which cannot be used any more, and nothing \
                     else says that it was with that one",
                    self.name, self.name
                ))))
            }
        }
    }

    /// Puts the kubeconfig into the Secret that the binding names, or else into that of its contract; the Secret's name.
    pub(super) async fn keep(
        &self,
        here: &mut Installer<'_>,
        target: &Target,
        kubeconfig: &ByteString,
        binding: Option<&APIServiceBinding>,
    ) -> Result<String, Error> {
        let secrets: Api<Secret> = Api::namespaced(self.cluster.client.clone(), CREDENTIALS);
        let there = self.cluster.all(&secrets, "").await?;
        let name = binding.map_or_else(|| place(&there, target), |binding| named(binding).to_owned());
        let bindings = bindings_of(&there, &name, self.name);
        here.install(Part::Member, &[bind::noted(bind::credential(&name), &bindings)]).await?;
        if !self.run.dry_run {
            here.fill(CREDENTIALS, &name, json!({KUBECONFIG: kubeconfig})).await?;
        }
        Ok(name)
    }
}

/// The uid of the cluster namespace that a binding is with, where somebody noted it.
pub(super) fn contract_of(binding: &APIServiceBinding) -> Option<&str> {
    binding.annotations().get(label::CONTRACT_UID).map(String::as_str)
}

/// The Secret that a binding names.
fn named(binding: &APIServiceBinding) -> &str {
    &binding.spec.kubeconfig_secret_ref.name
}

/// The bindings that a Secret is for: this one, and those that it was for.
fn bindings_of(secrets: &[Secret], name: &str, binding: &str) -> BTreeSet<String> {
    let there = secrets.iter().find(|secret| secret.name_any() == name);
    let mut all = there.map(|there| bind::bindings_of(there.annotations())).unwrap_or_default();
    all.insert(binding.to_owned());
    all
}

/// The Secret that leads there, or a name for one.
fn place(secrets: &[Secret], target: &Target) -> String {
    let leads_there = |secret: &&Secret| {
        let bytes = secret.data.as_ref().and_then(|data| data.get(KUBECONFIG));
        let had = bytes.and_then(|bytes| Target::read(&bytes.0).ok());
        had.is_some_and(|had| are_of_one_contract(&had, target))
    };
    if let Some(secret) = secrets.iter().find(leads_there) {
        return secret.name_any();
    }
    let names =
        std::iter::once(target.namespace.clone()).chain((2..).map(|n| format!("{}-{n}", target.namespace)));
    let is_free = |name: &String| {
        // One that was made and not filled yet is ours to fill.
        secrets.iter().all(|secret| secret.name_any() != *name || secret.data.is_none())
    };
    let mut free = names.filter(is_free);
    free.next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kubeconfig(server: &str) -> ByteString {
        let all = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u", "namespace": "cns"}}],
            "clusters": [{"name": "c", "cluster": {"server": server}}], "users": [{"name": "u", "user": {"token": "t"}}],
        });
        ByteString(all.to_string().into_bytes())
    }

    fn secret(name: &str, server: Option<&str>) -> Secret {
        let mut secret = Secret {
            data: server.map(|server| [(KUBECONFIG.into(), kubeconfig(server))].into()),
            ..Secret::default()
        };
        secret.metadata.name = Some(name.into());
        secret
    }

    #[test]
    fn a_contract_has_one_secret_whatever_it_is_called() {
        let target = Target::read(&kubeconfig("https://leader:6443").0).unwrap();
        assert_eq!(place(&[], &target), "cns");
        assert_eq!(place(&[secret("kubeconfig-x1", Some("https://leader:6443"))], &target), "kubeconfig-x1");
        assert_eq!(place(&[secret("cns", None)], &target), "cns");
        let other = secret("cns", Some("https://other:6443"));
        assert_eq!(place(&[other], &target), "cns-2", "another provider's, of the same identity");
    }

    #[test]
    fn a_secret_is_for_all_bindings_of_its_contract() {
        let mut there = secret("cns", None);
        there.annotations_mut().insert(label::BINDINGS.into(), "mango".into());
        let all: Vec<_> = bindings_of(&[there], "cns", "cactus").into_iter().collect();
        assert_eq!(all, ["cactus", "mango"]);
        assert_eq!(bindings_of(&[], "cns", "cactus").len(), 1);
    }
}
