//! Names of twins, and the Namespaces that can have none or be none.

use std::collections::BTreeSet;

use super::namespace::{NamespaceMappingStrategy, NamespaceOffloadingSpec};
use crate::name::is_dns_label;

/// Name of the RoleBinding in each twin that lets the member there make Pods.
pub const BINDING: &str = "freeport-offload";

/// Name of the ClusterRole that [`BINDING`] gives: what the member may do with Pods of a twin.
pub const POD_ROLE: &str = "freeport-offload-pods";

/// ServiceAccount of Pods that name none; Kubernetes makes it in each Namespace.
pub const ACCOUNT: &str = "default";

/// Namespace that Kubernetes makes in every cluster: it may be offloaded, and is never a twin.
const DEFAULT: &str = "default";
/// Namespace of the daemons, if the installation names no other.
const FREEPORT_SYSTEM: &str = "freeport-system";

/// Why there can be no twin.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TwinError {
    /// The strategy has to be another one: by this one the name is too long.
    #[error(
        "the twin would be called {0}, which has {length} characters, and a Namespace has at most 63: choose EnforceSameName or \
         SelectedName",
        length = .0.len()
    )]
    TooLong(String),
    /// The name has to be said, or said otherwise.
    #[error(
        "SelectedName needs a remoteNamespaceName of at most 63 lower case letters, digits and '-'; it is {0:?}"
    )]
    NotALabel(String),
    /// The name has to be another one: no cluster takes it.
    #[error(
        "no twin may be called {0}: kube-*, {DEFAULT}, {FREEPORT_SYSTEM}, Common Areas and Freeport's own Namespace never are twins"
    )]
    Reserved(String),
    /// The Namespace cannot be offloaded at all.
    #[error(
        "Namespace {0} cannot be offloaded: kube-*, {FREEPORT_SYSTEM}, Common Areas and Freeport's own Namespace never are"
    )]
    NotOffloadable(String),
}

impl TwinError {
    /// One CamelCase word for machines.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::TooLong(_) => "NameTooLong",
            Self::NotALabel(_) => "NameInvalid",
            Self::Reserved(_) => "NameReserved",
            Self::NotOffloadable(_) => "NotOffloadable",
        }
    }
}

/// Name of the twins of a Namespace of cluster `home`, as its NamespaceOffloading wants it. Whether any cluster takes such a name says
/// [`check_twin`].
pub fn twin(spec: &NamespaceOffloadingSpec, namespace: &str, home: &str) -> Result<String, TwinError> {
    match spec.namespace_mapping_strategy {
        NamespaceMappingStrategy::DefaultName => default_name(namespace, home),
        NamespaceMappingStrategy::EnforceSameName => Ok(namespace.to_owned()),
        NamespaceMappingStrategy::SelectedName => match spec.selected_name() {
            Some(name) if is_dns_label(name) => Ok(name.to_owned()),
            other => Err(TwinError::NotALabel(other.unwrap_or_default().to_owned())),
        },
    }
}

/// Name of a twin by strategy `DefaultName`: `<namespace>-<home>`. A Namespace's name has no dot; one in the ID becomes `-`.
///
/// Two Namespaces can come to one name in this way, as in Liqo (`x` of `y-z`, `x-y` of `z`). The second one is refused by the host,
/// since the twin is not its own.
pub fn default_name(namespace: &str, home: &str) -> Result<String, TwinError> {
    let name = format!("{namespace}-{}", home.replace('.', "-"));
    match is_dns_label(&name) {
        true => Ok(name),
        false => Err(TwinError::TooLong(name)),
    }
}

/// Whether a Namespace of this name may be a twin at all, whatever its host's administrator allows. `own` are the Common Areas of that
/// cluster and the Namespace of its daemons.
pub fn check_twin(name: &str, own: &BTreeSet<String>) -> Result<(), TwinError> {
    match name == DEFAULT || is_of_the_system(name, own) {
        true => Err(TwinError::Reserved(name.to_owned())),
        false => Ok(()),
    }
}

/// Whether a Namespace of this name may have twins. `own` are the Common Areas of this cluster and the Namespace of its daemons.
pub fn check_offloaded(namespace: &str, own: &BTreeSet<String>) -> Result<(), TwinError> {
    match is_of_the_system(namespace, own) {
        true => Err(TwinError::NotOffloadable(namespace.to_owned())),
        false => Ok(()),
    }
}

fn is_of_the_system(name: &str, own: &BTreeSet<String>) -> bool {
    name.starts_with("kube-") || name == FREEPORT_SYSTEM || own.contains(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(strategy: NamespaceMappingStrategy, remote: Option<&str>) -> NamespaceOffloadingSpec {
        NamespaceOffloadingSpec {
            namespace_mapping_strategy: strategy,
            remote_namespace_name: remote.map(Into::into),
            ..NamespaceOffloadingSpec::default()
        }
    }

    #[test]
    fn a_twin_is_called_as_its_strategy_says() {
        use NamespaceMappingStrategy::{DefaultName, EnforceSameName, SelectedName};
        for (strategy, remote, home, want) in [
            (DefaultName, None, "west", "shop-west"),
            (DefaultName, Some("ignored"), "eu.west", "shop-eu-west"),
            (EnforceSameName, Some("ignored"), "west", "shop"),
            (SelectedName, Some("x"), "west", "x"),
        ] {
            assert_eq!(twin(&named(strategy, remote), "shop", home), Ok(want.to_owned()));
        }
        for bad in [None, Some(""), Some("X"), Some("a.b"), Some("-a")] {
            let error = twin(&named(SelectedName, bad), "shop", "west").unwrap_err();
            assert!(matches!(error, TwinError::NotALabel(_)), "{error}");
        }
        let long = twin(&named(DefaultName, None), &"n".repeat(60), "west").unwrap_err().to_string();
        assert!(long.contains("65 characters") && long.contains("EnforceSameName"), "{long}");
        assert_eq!(default_name(&"n".repeat(58), "west").map(|name| name.len()), Ok(63));
    }

    #[test]
    fn namespaces_of_the_system_take_no_part() {
        let own = BTreeSet::from(["clusterset-demo".to_owned(), "freeport".to_owned()]);
        for system in ["kube-system", "kube-anything", "freeport-system", "clusterset-demo", "freeport"] {
            assert!(check_twin(system, &own).is_err() && check_offloaded(system, &own).is_err(), "{system}");
        }
        assert!(check_twin("default", &own).is_err() && check_offloaded("default", &own).is_ok());
        assert!(check_twin("kube", &own).is_ok() && check_twin("shop", &own).is_ok());
        let west = default_name("kube", "west").unwrap();
        assert!(check_twin(&west, &own).is_err(), "however it came to its name");
    }
}
