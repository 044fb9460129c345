//! What binding needs to know of our own cluster.

use std::collections::BTreeSet;

use api::{
    bind::{binding::APIServiceBinding, carried::synced, resource::ClusterSecretKey},
    view::{Lenient, Tolerant, lean, or_default, owned},
};
use k8s_openapi::{
    api::core::v1::{Namespace, Secret},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::{
        CustomResourceDefinition, CustomResourceDefinitionNames,
    },
    apimachinery::pkg::apis::meta::v1::Time,
};
use kit::{
    boot::Env,
    index::Shared,
    objects::{Change, Decoded, Objects},
    watch::{Source, Watches},
};
use kube::{Api, Resource, ResourceExt, api::ApiResource, core::ObjectMeta, runtime::watcher};
use serde::{
    Deserialize,
    de::{DeserializeOwned, IgnoredAny},
};
use tokio::{sync::watch, task::JoinSet};

/// Finalizer of ours: what a binding brought goes before it.
pub(crate) const FINALIZER: &str = "multicluster.freeport.dev/bind";

/// Namespace of the credentials, as kube-bind has it.
pub(crate) const NAMESPACE: &str = "kube-bind";

/// The key of a Secret that holds the credential.
pub(crate) const KEY: &str = "kubeconfig";

/// What the contract of a binding is called here: the name of its Secret. No Secret has a name with `/`.
pub(crate) fn called(named: &ClusterSecretKey) -> String {
    match named.namespace == NAMESPACE && named.key == KEY {
        true => named.name.clone(),
        false => format!("{}/{} {}", named.namespace, named.name, named.key),
    }
}

/// Whether a binding has ended for us: it is being deleted, and waits for somebody else, as for a user's finalizer.
pub(crate) fn is_over(binding: &APIServiceBinding) -> bool {
    let is_held = || binding.finalizers().iter().any(|held| held == FINALIZER);
    binding.metadata.deletion_timestamp.is_some() && !is_held()
}

/// A CRD, without its schemas.
#[derive(Resource, Clone, Debug, Deserialize)]
#[resource(inherit = CustomResourceDefinition)]
pub(crate) struct Crd {
    #[serde(deserialize_with = "owned")]
    metadata: ObjectMeta,
    #[serde(default)]
    spec: Lenient<CrdSpec>,
    #[serde(default)]
    pub(crate) status: CrdStatus,
}

/// Which API a CRD defines.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct CrdSpec {
    group: String,
    scope: String,
    names: CustomResourceDefinitionNames,
    versions: Vec<CrdVersion>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct CrdVersion {
    name: String,
    served: bool,
    subresources: Option<CrdSubresources>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct CrdSubresources {
    status: Option<IgnoredAny>,
}

/// A version of an API in which objects are read and written.
pub(crate) struct Served {
    pub(crate) resource: ApiResource,
    /// Whether its objects are in Namespaces.
    pub(crate) is_namespaced: bool,
    /// Whether it has the subresource `status`.
    pub(crate) has_status: bool,
}

/// What an API server says of a CRD.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct CrdStatus {
    pub(crate) accepted_names: CustomResourceDefinitionNames,
    pub(crate) stored_versions: Option<Vec<String>>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) conditions: Vec<CrdCondition>,
}

/// A condition of a CRD. A time that we cannot hold is missing: whoever may write the status may write any.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct CrdCondition {
    #[serde(rename = "type")]
    pub(crate) type_: String,
    pub(crate) status: String,
    pub(crate) last_transition_time: Lenient<Option<Time>>,
    pub(crate) reason: Option<String>,
    pub(crate) message: Option<String>,
}

impl Crd {
    /// Whether it is being deleted.
    pub(crate) fn metadata_is_going(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    /// The first version that is served, as kube-bind has it; nothing while the API is not.
    pub(crate) fn served(&self) -> Option<Served> {
        let spec = self.spec.0.as_ref().ok().filter(|_| self.is_established())?;
        let versions = spec.versions.iter().map(|version| (version.name.as_str(), version.served));
        let resource = synced(&spec.group, &spec.names, versions)?;
        let version = spec.versions.iter().find(|version| version.name == resource.version)?;
        let has_status = version.subresources.as_ref().is_some_and(|has| has.status.is_some());
        Some(Served { resource, is_namespaced: spec.scope == "Namespaced", has_status })
    }

    /// Whether its API is served.
    pub(crate) fn is_established(&self) -> bool {
        self.status
            .conditions
            .iter()
            .any(|condition| condition.type_ == "Established" && condition.status == "True")
    }
}

#[derive(Resource, Clone, Debug, Deserialize)]
#[resource(inherit = Namespace)]
pub(crate) struct NamespaceView {
    #[serde(deserialize_with = "lean")]
    metadata: ObjectMeta,
}

/// What the watches told.
#[derive(Default)]
pub(crate) struct Known {
    pub(crate) bindings: Decoded<APIServiceBinding>,
    pub(crate) secrets: Decoded<Secret>,
    pub(crate) crds: Objects<Crd>,
    pub(crate) namespaces: Objects<NamespaceView>,
}

/// Our own cluster. Cloning shares it.
#[derive(Clone)]
pub(crate) struct Local {
    pub(crate) known: Shared<Known>,
    changed: watch::Sender<u64>,
}

impl Local {
    pub(crate) fn new() -> Self {
        Self { known: Shared::default(), changed: watch::Sender::new(0) }
    }

    /// Begins to watch.
    pub(crate) fn watch(&self, env: &Env, watches: &Watches, tasks: &mut JoinSet<()>) {
        let all = |env: &Env| env.client.clone();
        let secrets = Api::<Tolerant<Secret>>::namespaced(all(env), NAMESPACE);
        self.watch_one(env, (Api::all(all(env)), watches), tasks, "APIServiceBinding", |known, change| {
            known.bindings.change(change)
        });
        self.watch_one(env, (secrets, watches), tasks, "Secret", |known, change| {
            known.secrets.change(change)
        });
        self.watch_one(
            env,
            (Api::all(all(env)), watches),
            tasks,
            "CustomResourceDefinition",
            |known, change| known.crds.change(change),
        );
        self.watch_one(env, (Api::all(all(env)), watches), tasks, "Namespace", |known, change| {
            known.namespaces.change(change)
        });
    }

    fn watch_one<P>(
        &self,
        env: &Env,
        (api, watches): (Api<P>, &Watches),
        tasks: &mut JoinSet<()>,
        kind: &'static str,
        fold: fn(&mut Known, Change<P>),
    ) where
        P: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug + Send + Sync + 'static,
    {
        let local = self.clone();
        let sink = move |change: Change<P>| local.take_in(fold, change);
        let source = Source { cluster: "local", kind };
        tasks.spawn(watches.watch(api, watcher::Config::default(), source, env.metrics.clone(), sink));
    }

    pub(crate) fn take_in<P>(&self, fold: fn(&mut Known, Change<P>), change: Change<P>) {
        self.known.with(|known| fold(known, change));
        self.changed.send_modify(|times| *times += 1);
    }

    /// Tells whenever something is another.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Those of these exports that an APIServiceBinding here uses: it has the name of its export.
    pub(crate) fn bound(&self, exports: Vec<String>) -> Vec<String> {
        let is_used = |known: &Known, export: &str| known.bindings.get(export).is_some_and(|it| !is_over(it));
        self.known.with(|known| exports.into_iter().filter(|export| is_used(known, export)).collect())
    }

    /// Names of the bindings that use the contract that is [`called`] so.
    pub(crate) fn bindings_of(&self, contract: &str) -> BTreeSet<String> {
        let uses = |binding: &&APIServiceBinding| {
            !is_over(binding) && called(&binding.spec.kubeconfig_secret_ref) == contract
        };
        self.known.with(|known| known.bindings.iter().filter(uses).map(ResourceExt::name_any).collect())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn crd() -> serde_json::Value {
        let condition = |type_: &str| {
            json!({
                "type": type_, "status": "True", "lastTransitionTime": "9999-12-31T23:59:59Z", "reason": "A", "message": "b",
            })
        };
        let names = json!({
            "plural": "webs", "singular": "web", "kind": "Web", "listKind": "WebList", "shortNames": ["w"], "categories": ["all"],
        });
        json!({"status": {
            "acceptedNames": names, "storedVersions": ["v1"], "conditions": [condition("Odd"), condition("Established")],
        }})
    }

    proptest! {
        #[test]
        fn no_crd_stops_a_list(odd in odd::like(&crd(), &["plural", "kind", "type", "status"])) {
            odd::list::<Crd>(&odd).unwrap();
        }

        #[test]
        fn nothing_that_others_write_stops_a_list(
            odd in odd::anything(&["conditions", "lastTransitionTime", "kubeconfigSecretRef", "boundSchemas"]),
        ) {
            odd::everywhere::<Tolerant<APIServiceBinding>>(&odd).unwrap();
            odd::everywhere::<Tolerant<Secret>>(&odd).unwrap();
        }
    }

    #[test]
    fn a_binding_that_goes_without_our_finalizer_uses_no_contract() {
        let local = Local::new();
        let secret = json!({"namespace": "kube-bind", "name": "k", "key": "kubeconfig"});
        let used = |metadata: serde_json::Value| {
            let mut binding = json!({"metadata": metadata, "spec": {"kubeconfigSecretRef": secret}});
            binding["metadata"]["name"] = json!("mango");
            let change = Change::Apply(serde_json::from_value(binding).unwrap());
            local.take_in(|known, change| known.bindings.change(change), change);
            let (ours, theirs) = (local.bindings_of("k"), local.bound(vec!["mango".to_owned()]));
            assert_eq!(Vec::from_iter(ours), theirs);
            !theirs.is_empty()
        };
        let going =
            |finalizer: &str| json!({"deletionTimestamp": "2026-11-01T12:00:00Z", "finalizers": [finalizer]});
        assert!(used(json!({})) && used(going(FINALIZER)));
        assert!(!used(going("users.example.com/kept")) && !used(going("foregroundDeletion")));
    }

    #[test]
    fn only_what_the_konnector_may_read_has_the_name_of_a_secret() {
        let of = |namespace: &str, key: &str| {
            called(&ClusterSecretKey { namespace: namespace.into(), name: "mango".into(), key: key.into() })
        };
        assert_eq!(of(NAMESPACE, KEY), "mango");
        assert_eq!(
            (of("team", KEY), of(NAMESPACE, "other")),
            ("team/mango kubeconfig".into(), "kube-bind/mango other".into())
        );
    }

    /// A new CRD is shown so.
    #[test]
    fn a_crd_without_conditions_is_not_established() {
        let names = json!({"plural": "", "kind": ""});
        let new = json!({"status": {"conditions": null, "acceptedNames": names, "storedVersions": null}});
        assert!(!odd::list::<Crd>(&new).unwrap().iter().any(Crd::is_established));
    }

    #[test]
    fn an_established_crd_is_served_whatever_else_is_said_of_it() {
        let crds = odd::list::<Crd>(&crd()).unwrap();
        assert!(crds.iter().all(Crd::is_established));
    }
}
