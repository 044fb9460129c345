//! What binding needs to know of our own cluster.

use std::collections::BTreeSet;

use api::{
    bind::binding::APIServiceBinding,
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
use kube::{Api, Resource, ResourceExt, core::ObjectMeta, runtime::watcher};
use serde::{Deserialize, de::DeserializeOwned};
use tokio::{sync::watch, task::JoinSet};

/// Namespace of the credentials, as kube-bind has it.
pub(crate) const NAMESPACE: &str = "kube-bind";

/// A CRD, without its schemas.
#[derive(Resource, Clone, Debug, Deserialize)]
#[resource(inherit = CustomResourceDefinition)]
pub(crate) struct Crd {
    #[serde(deserialize_with = "owned")]
    metadata: ObjectMeta,
    #[serde(default)]
    pub(crate) status: CrdStatus,
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

    fn take_in<P>(&self, fold: fn(&mut Known, Change<P>), change: Change<P>) {
        self.known.with(|known| fold(known, change));
        self.changed.send_modify(|times| *times += 1);
    }

    /// Tells whenever something is another.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Those of these exports that an APIServiceBinding here uses: it has the name of its export.
    pub(crate) fn bound(&self, exports: Vec<String>) -> Vec<String> {
        self.known
            .with(|known| exports.into_iter().filter(|export| known.bindings.get(export).is_some()).collect())
    }

    /// Names of the bindings that use this Secret.
    pub(crate) fn bindings_of(&self, secret: &str) -> BTreeSet<String> {
        let uses = |binding: &&APIServiceBinding| {
            let of = &binding.spec.kubeconfig_secret_ref;
            of.namespace == NAMESPACE && of.name == secret
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
