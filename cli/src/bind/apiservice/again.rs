//! A binding that is there already: whether it is the one that is asked for, and whether something of it is missing.

use api::{
    bind::{
        binding::APIServiceBinding, export::APIServiceExport, label::GRANTED_TEMPLATES, resource::Resource,
    },
    view::Meta,
};
use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, ResourceExt};

use super::{Consumer, credential::contract_of, request::Contract};
use crate::{
    Error,
    bind::{
        consent::{has, more},
        parties::{by_identity, not_with},
    },
    cluster::{Cluster, known, list},
    eraser::Say,
};

impl Consumer<'_> {
    /// Says where another template than before is asked for, which has no more than there is: what was granted stays.
    pub(super) async fn stays(
        &self,
        provider: &Cluster,
        (template, asked): (&str, &[Resource]),
        there: &[Resource],
        say: Say<'_>,
    ) -> Result<(), Error> {
        let contract = contract_at(provider, &self.cluster.uid).await?;
        let granted = contract.as_ref().and_then(|contract| contract.annotations().get(GRANTED_TEMPLATES));
        let other = other(template, granted.map(String::as_str), there, asked);
        if let Some(other) = other {
            say(&format!(
                "{}: {} is bound already, {other}: it stays as it was granted; to have it by that template, end it first (freeport bind remove {})",
                self.cluster.name, self.name, self.name
            ));
        }
        Ok(())
    }

    /// An error if more is asked for than there is, where there is anything: an export stays as it was granted.
    pub(super) fn has_all(&self, there: &[Resource], asked: &[Resource]) -> Result<(), Error> {
        let more = more(asked, there);
        if there.is_empty() || more.is_empty() {
            return Ok(());
        }
        let names: Vec<_> = there.iter().map(Resource::name).collect();
        Err(self.cluster.refuse(format!(
            "{} is bound already, with {}, and not with {}: bind that under another name, or end this binding first (freeport bind remove {})",
            self.name,
            list(&names),
            list(&more),
            self.name
        )))
    }

    /// Whether the binding has a credential that the provider takes, and an export. What it lacks is asked for again.
    ///
    /// # Errors
    /// Where it is bound to another provider, or nothing says that it is with this one.
    pub(super) async fn is_whole(
        &self,
        binding: &APIServiceBinding,
        provider: &Cluster,
    ) -> Result<bool, Error> {
        let Some(target) = self.had(binding).await? else {
            return self.is_of(provider, contract_of(binding)).await.map(|()| false);
        };
        if let Some(why) = not_with(provider, &self.cluster.name, &target).await? {
            return Err(provider.refuse(why));
        }
        let Ok(contract) = Contract::connect(self.cluster, &target) else { return Ok(false) };
        Ok(matches!(contract.exported(self.name).await, Ok(Some(_))))
    }

    /// An error if a provider has neither the cluster namespace of this uid nor an export of this name for this cluster: a binding without a
    /// credential says of no other one that it is with it.
    async fn is_of(&self, provider: &Cluster, contract: Option<&str>) -> Result<(), Error> {
        if let Some(there) = contract_at(provider, &self.cluster.uid).await? {
            if contract.is_some() && there.metadata.uid.as_deref() == contract {
                return Ok(());
            }
            let namespace = there.name_any();
            let exports: Api<Meta<APIServiceExport>> = Api::namespaced(provider.client.clone(), &namespace);
            let doing = format!("read APIServiceExport {namespace}/{}", self.name);
            if provider.request(doing, known(exports.get(self.name))).await?.is_some() {
                return Ok(());
            }
        }
        Err(provider.refuse(format!(
            "{} is bound in {}, by a Secret that is gone or cannot be used, and nothing of that name is exported to it here: nothing was changed; \
             name the context of its provider by --provider-context, or end the binding first (freeport bind remove {} --force)",
            self.name, self.cluster.name, self.name
        )))
    }
}

/// The cluster namespace that the cluster with this uid has at a provider.
async fn contract_at(provider: &Cluster, uid: &str) -> Result<Option<Meta<Namespace>>, Error> {
    let Some(name) = by_identity(provider, uid).await? else { return Ok(None) };
    let namespaces: Api<Meta<Namespace>> = Api::all(provider.client.clone());
    provider.request(format!("read Namespace {name}"), known(namespaces.get(&name))).await
}

/// In words, how a template is another one than a binding has; nothing where nothing shows that. `granted` are those of its contract, with
/// commas between.
fn other(template: &str, granted: Option<&str>, there: &[Resource], asked: &[Resource]) -> Option<String> {
    let beyond: Vec<_> = there.iter().filter(|api| !has(asked, api)).map(Resource::name).collect();
    if !beyond.is_empty() {
        return Some(format!("also with {}, which template {template} does not have", list(&beyond)));
    }
    let is_new = granted.is_some_and(|granted| granted.split(',').all(|name| name != template));
    is_new.then(|| format!("by template {}", granted.unwrap_or_default().replace(',', ", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bind::consent::named;

    #[test]
    fn another_template_that_has_no_more_than_there_is_is_noticed() {
        let apis = |names: &[&str]| names.iter().filter_map(|name| named(name)).collect::<Vec<_>>();
        let there = apis(&["mangodbs.example.com", "cacti.example.com"]);
        assert_eq!(other("all", Some("small,all"), &there, &there), None);
        assert_eq!(other("all", None, &there, &there), None, "Go's backend does not say");
        assert_eq!(other("twin", Some("small,all"), &there, &there).unwrap(), "by template small, all");
        let said = other("small", Some("all"), &there, &apis(&["mangodbs.example.com"])).unwrap();
        assert!(said.contains("cacti.example.com") && !said.contains("mangodbs"), "{said}");
    }
}
