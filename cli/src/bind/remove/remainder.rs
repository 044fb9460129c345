//! What is left at the consumer when a binding is gone: the member's rights on its APIs, and the Secret with the credential. Both note whose they
//! are, so that they are found without the binding. They go last: until then another run knows what to go on with.

use std::collections::BTreeSet;

use api::{
    bind::{binding::APIServiceBinding, label::BINDINGS, resource::Resource},
    view::Tolerant,
};
use k8s_openapi::api::core::v1::Secret;
use kit::client::kubeconfig::Target;
use kube::{Api, ResourceExt};
use serde_json::json;

use crate::{
    Error,
    bind::consent::{self, Right},
    cluster::Cluster,
    eraser::{Eraser, called},
    objects::{
        Object,
        bind::{self, CREDENTIALS, KUBECONFIG},
    },
};

/// What is left of a binding, beside it.
pub(super) struct Remainder {
    /// Where its credential leads.
    pub(super) contract: Option<Target>,
    binding: String,
    /// Its APIs, as far as it says.
    apis: Vec<Resource>,
    /// The Secret that it names.
    secret: Option<String>,
}

/// What becomes of something that a binding leaves.
#[derive(Clone, Debug, PartialEq)]
enum Fate {
    /// Nobody else needs it.
    Goes,
    /// It is for these alone then.
    StaysFor(BTreeSet<String>),
}

/// Another binding.
struct Other {
    name: String,
    /// The Secret that it uses; none where it does not decode, and may use each.
    secret: Option<String>,
    exported: Vec<Resource>,
}

impl Remainder {
    pub(super) async fn of(
        cluster: &Cluster,
        name: &str,
        binding: Option<&APIServiceBinding>,
    ) -> Result<Self, Error> {
        let mut apis = consent::exported(binding);
        if let Some(binding) = binding {
            apis.extend(consent::brought(cluster, binding).await?.iter().map(consent::api_of));
        }
        let secret = binding.map(|binding| binding.spec.kubeconfig_secret_ref.name.clone());
        let mut this = Self { contract: None, binding: name.to_owned(), apis, secret };
        this.contract =
            secrets(cluster).await?.iter().filter(|secret| this.is_its(secret)).find_map(leads_to);
        Ok(this)
    }

    /// Other bindings that its credential is noted for: `freeport bind apiservice` does that before it asks for anything.
    pub(super) async fn others_noted(&self, cluster: &Cluster) -> Result<BTreeSet<String>, Error> {
        let secrets = secrets(cluster).await?;
        let of_it = secrets.iter().filter(|secret| self.is_its(secret));
        let mut noted: BTreeSet<_> =
            of_it.flat_map(|secret| bind::bindings_of(secret.annotations())).collect();
        noted.remove(&self.binding);
        Ok(noted)
    }

    /// Whether the binding uses it, as far as that can be known.
    fn is_its(&self, secret: &Secret) -> bool {
        match &self.secret {
            Some(used) => secret.name_any() == *used,
            None => bind::bindings_of(secret.annotations()).contains(&self.binding),
        }
    }

    /// What nobody else needs goes, and what others need notes them alone. They are asked now: bindings come while one ends.
    pub(super) async fn go(&self, here: &mut Eraser<'_>) -> Result<(), Error> {
        for (object, fate) in self.left(here.cluster).await? {
            match fate {
                Fate::Goes => self.let_go(here, &object).await?,
                Fate::StaysFor(bindings) => self.keep(here, &object, &bindings).await?,
            }
        }
        for right in bind::namespaces(&self.binding, &[]) {
            here.delete_ours(&right).await?;
        }
        Ok(())
    }

    /// Deletes it, unless another binding was noted on it meanwhile.
    async fn let_go(&self, here: &mut Eraser<'_>, object: &Object) -> Result<(), Error> {
        loop {
            let Some(there) = here.read(object).await? else { return Ok(()) };
            if !there.is_ours() {
                return here.delete_ours(object).await;
            }
            let mut noted = bind::bindings_of(&there.metadata().annotations.unwrap_or_default());
            noted.remove(&self.binding);
            if !noted.is_empty() {
                return self.keep(here, object, &noted).await;
            }
            if here.delete_unchanged(&there).await? {
                return Ok(());
            }
        }
    }

    async fn keep(
        &self,
        here: &mut Eraser<'_>,
        object: &Object,
        bindings: &BTreeSet<String>,
    ) -> Result<(), Error> {
        let names: Vec<_> = bindings.iter().map(String::as_str).collect();
        let patch = json!({"metadata": {"annotations": {BINDINGS: names.join(",")}}});
        let for_them = match names.first() {
            Some(first) => format!(
                ", and is kept for {} (`freeport bind remove {first}` lets it go, also where there is no such APIServiceBinding)",
                names.join(", ")
            ),
            None => String::new(),
        };
        let means = format!("APIServiceBinding {} does not need it any more{for_them}", self.binding);
        here.change(object, &patch, &means).await
    }

    async fn left(&self, cluster: &Cluster) -> Result<Vec<(Object, Fate)>, Error> {
        let others = others(cluster, &self.binding).await?;
        let mut left = Vec::new();
        for right in consent::rights(cluster).await? {
            if let Some(fate) = of_right(&right, &self.binding, &self.apis, &others) {
                left.extend(bind::bound(&right.api).map(|object| (object, fate.clone())));
            }
        }
        for secret in secrets(cluster).await? {
            let (at, noted) = (secret.name_any(), bind::bindings_of(secret.annotations()));
            if let Some(fate) = of_secret(&at, &noted, &self.binding, self.secret.as_deref(), &others) {
                left.push((called::<Secret>(CREDENTIALS, &at), fate));
            }
        }
        Ok(left)
    }
}

async fn secrets(cluster: &Cluster) -> Result<Vec<Secret>, Error> {
    let secrets: Api<Secret> = Api::namespaced(cluster.client.clone(), CREDENTIALS);
    cluster.all(&secrets, "").await
}

/// The bindings of other names.
async fn others(cluster: &Cluster, name: &str) -> Result<Vec<Other>, Error> {
    let bindings: Api<Tolerant<APIServiceBinding>> = Api::all(cluster.client.clone());
    let all = cluster.all(&bindings, "").await?;
    let other = |other: &Tolerant<APIServiceBinding>| {
        let binding = other.object.as_ref().ok();
        Other {
            name: other.name_any(),
            secret: binding.map(|binding| binding.spec.kubeconfig_secret_ref.name.clone()),
            exported: consent::exported(binding),
        }
    };
    Ok(all.iter().map(other).filter(|other| other.name != name).collect())
}

/// What becomes of rights; nothing where they have not to do with the binding. Where nobody noted for whom they are, they are for those
/// whose provider exports the API.
fn of_right(right: &Right, name: &str, apis: &[Resource], others: &[Other]) -> Option<Fate> {
    if right.bindings.is_empty() {
        let is_others = others.iter().any(|other| consent::has(&other.exported, &right.api));
        return (consent::has(apis, &right.api) && !is_others).then_some(Fate::Goes);
    }
    right.bindings.contains(name).then(|| fate(&right.bindings, name, false))
}

/// The same of a Secret. Who uses it says so in its spec.
fn of_secret(
    secret: &str,
    noted: &BTreeSet<String>,
    name: &str,
    used: Option<&str>,
    others: &[Other],
) -> Option<Fate> {
    let is_its = used == Some(secret) || noted.contains(name);
    let is_used = others.iter().any(|other| other.secret.as_deref().is_none_or(|of| of == secret));
    match is_its.then(|| fate(noted, name, is_used)) {
        // There is nothing to take off.
        Some(Fate::StaysFor(_)) if !noted.contains(name) => None,
        fate => fate,
    }
}

/// It goes if no other binding is noted, and none uses it. One that is noted may be about to come: nobody says how long that takes.
fn fate(noted: &BTreeSet<String>, name: &str, is_used: bool) -> Fate {
    let others: BTreeSet<_> = noted.iter().filter(|other| *other != name).cloned().collect();
    match others.is_empty() && !is_used {
        true => Fate::Goes,
        false => Fate::StaysFor(others),
    }
}

/// Where a credential leads.
fn leads_to(secret: &Secret) -> Option<Target> {
    let bytes = secret.data.as_ref()?.get(KUBECONFIG)?;
    Target::read(&bytes.0).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(all: &[&str]) -> BTreeSet<String> {
        all.iter().map(|name| (*name).to_owned()).collect()
    }

    fn other(name: &str, secret: Option<&str>, exported: &[&str]) -> Other {
        let exported = exported.iter().filter_map(|name| consent::named(name)).collect();
        Other { name: name.into(), secret: secret.map(str::to_owned), exported }
    }

    fn right(noted: &[&str]) -> Right {
        Right { api: consent::named("mangodbs.example.com").unwrap(), bindings: names(noted) }
    }

    #[test]
    fn rights_are_found_without_the_binding_and_without_its_crds() {
        let api = [right(&[]).api];
        assert_eq!(of_right(&right(&["mango"]), "mango", &[], &[]), Some(Fate::Goes), "the binding is gone");
        assert_eq!(of_right(&right(&[]), "mango", &api, &[]), Some(Fate::Goes), "its CRD was a foreign one");
        assert_eq!(of_right(&right(&[]), "mango", &[], &[]), None, "nobody knows whose they are");
    }

    #[test]
    fn rights_of_another_binding_stay() {
        let api = [right(&[]).api];
        let there = [other("cactus", Some("cns"), &["mangodbs.example.com"])];
        assert_eq!(of_right(&right(&["cactus"]), "mango", &api, &there), None, "ours had the foreign CRD");
        let stays = |all| Some(Fate::StaysFor(names(all)));
        let noted = right(&["cactus", "coming", "mango"]);
        assert_eq!(of_right(&noted, "mango", &api, &there), stays(&["cactus", "coming"]));
        assert_eq!(of_right(&right(&["coming", "mango"]), "mango", &api, &there), stays(&["coming"]));
        assert_eq!(of_right(&right(&[]), "mango", &api, &there), None);
    }

    #[test]
    fn a_secret_goes_with_the_last_binding_that_uses_it() {
        let (used, noted) = (Some("cns"), names(&["cactus", "mango"]));
        let ours = names(&["mango"]);
        assert_eq!(of_secret("cns", &ours, "mango", None, &[]), Some(Fate::Goes), "the binding is gone");
        assert_eq!(of_secret("cns", &names(&[]), "mango", used, &[]), Some(Fate::Goes), "it notes nobody");
        assert_eq!(of_secret("cns", &names(&["cactus"]), "mango", None, &[]), None);
        let there = [other("cactus", used, &[])];
        let stays = Some(Fate::StaysFor(names(&["cactus"])));
        assert_eq!(of_secret("cns", &noted, "mango", used, &there), stays);
        assert_eq!(of_secret("cns", &names(&[]), "mango", used, &there), None);
        assert_eq!(of_secret("cns", &noted, "mango", used, &[]), stays, "it is noted before it is there");
        assert_eq!(
            of_secret("cns", &ours, "mango", used, &[other("cactus", Some("b"), &[])]),
            Some(Fate::Goes)
        );
        let unclear = [other("odd", None, &[])];
        assert_ne!(of_secret("cns", &noted, "mango", used, &unclear), Some(Fate::Goes), "it may use it");
    }
}
